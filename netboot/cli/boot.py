"""`netboot boot`: boots and their traces. Asks the running service."""

import shutil
import sys
from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from netboot.cli import complete, proof
from netboot.cli.client import Connection, api_command
from netboot.cli.following import follow, watch_option
from netboot.cli.health import overall
from netboot.cli.output import image_digest, program_line, say, show
from netboot.cli.selection import Selection, selection_options
from netboot.cli.times import clock, moment, ms, seconds, state
from netboot.cli.waterfall import BLOCKS, PLAIN, Marks, waterfall
from netboot.lifecycle.phases import Phase

if TYPE_CHECKING:
    from netboot.client.models import BootShown, ConsoleShown, CrashShown, TraceShown


@click.group()
def group() -> None:
    """Boots: what was served to a machine, and what it reported itself."""


@group.command("list")
@click.option("--machine", shell_complete=complete.machines, help="Of this machine only.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many at most.")
@selection_options
@watch_option
@api_command
def list_(
    machine: str | None, limit: int, selection: Selection, watched: bool, connection: Connection, output: str
) -> None:
    """List boots and claims, the newest first.

    \b
      netboot boot list --machine gpu-001
      netboot boot list -l gpu=h100 --watch
    """
    client = connection.open()
    chosen = selection.names(client)

    def boots() -> "list[TraceShown]":
        every = client.boots.each(machine=machine)
        return list(islice((boot for boot in every if chosen is None or boot["machine"] in chosen), limit))

    if watched:
        follow(client, output, boots, partial(_row, output), _COLUMNS, "no boots yet", "boot")
        return
    listed = {"boots": boots()} if chosen is not None else client.boots.list(machine=machine, limit=limit)
    rows = [_row(output, trace) for trace in listed["boots"]]
    names = [trace["boot"] for trace in listed["boots"]]
    show(output, listed, _COLUMNS, rows, "no boots yet", names=names)


_COLUMNS = ("boot", "machine", "began", "state", "standing", "seconds", "image", "reason")


def _row(output: str, trace: "TraceShown | Mapping[str, Any]") -> tuple[object, ...]:
    return (
        trace["boot"],
        trace["machine"],
        moment(trace["started_at"]),
        state(trace),
        trace["standing"],
        seconds(ms(trace["last_at"]) - ms(trace["started_at"])),
        image_digest(output, trace["script"]["image"]) if trace["script"] else "",
        trace["reason"] or ("it found a crash: `netboot boot show`" if trace["found_crashes"] else ""),
    )


@group.command("show")
@click.argument("boot", shell_complete=complete.boots)
@click.option("--waterfall", "drawn", is_flag=True, help="Draw where its time went, a bar for each phase.")
@api_command
def show_(boot: str, drawn: bool, connection: Connection, output: str) -> None:
    """Show the trace of BOOT: each phase, who says so, and when.

    `served`: we handed it out, to whomever. `reported`: the machine says so, or somebody in its name. `observed`: it
    proved it, or the cluster says so. BOOT is an id of `netboot boot list`.

    Where its kernel crashed, the end of that kernel's log stands below: firmware kept it, the machine's next boot found
    and sent it, and shows it too. Whose crash it was follows from its time.

    A boot that takes its time sends the last lines of its console again and again; the newest stand below. They are its
    own words, which nothing proves.

    A bar of --waterfall is the time from reaching a phase to reaching the next; dots, where phases between two were
    never heard of, are time that none accounts for. What goes on has a lighter one until now, with the moment
    from which on it is late.

    \b
      netboot boot show 0195d3c2-8f11-8a3b-9c4d-5e6f7a8b9c0d
      netboot boot show 0195d3c2-8f11-8a3b-9c4d-5e6f7a8b9c0d --waterfall
    """
    trace = connection.open().boots.get(boot)
    if output == "table":
        script = trace["script"]
        click.echo(f"machine {trace['machine']}   boot {trace['boot']}   {trace['state']}")
        if script:
            click.echo(f"image {script['image'][:12]} of channel {script['channel']}, profile {script['profile']}")
        if trace["seconds_to_ready"] is not None:
            click.echo(f"from the start of its kernel to the Ready node: {trace['seconds_to_ready']:.1f} s")
        click.echo(f"health {overall(trace['checked'])}")
        click.echo()
    if drawn and output == "table":
        for line in waterfall(trace["spans"], *_terminal(), trace["goes_on"]):
            click.echo(line)
        return
    show(
        output,
        trace,
        ("phase", "source", "time", "seconds", "uptime", "detail"),
        _phases(trace),
        "nothing is known of it",
        names=[trace["boot"]],
    )
    if output == "table":
        for crash in trace["crashes"]:
            _say_text(_headline(crash, trace["boot"]), crash["text"], _CRASH_GONE)
        if trace["console"]:
            _say_text(_said_last(trace["console"]), trace["console"]["text"], _CONSOLE_GONE)


_CRASH_GONE = "it cannot be read (any more): the service's log says why"
_CONSOLE_GONE = "they are longer ago than is kept, or cannot be read: then the service's log says why"


def _terminal() -> tuple[int, Marks]:
    """How wide it is, and what can be drawn on it; a pipe is 80 columns wide."""
    if not sys.stdout.isatty():
        return 80, PLAIN
    blocks = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    return shutil.get_terminal_size().columns, BLOCKS if blocks else PLAIN


def _headline(crash: "CrashShown", shown: str) -> str:
    """Whose kernel crashed and when, from where it is looked at, and from which address that was reported."""
    when, said = f"crashed at {moment(crash['crashed_at'])} by its clock", f"its log, as {crash['peer']} reported:"
    if crash["boot"] == shown:
        return f"its kernel {when}; boot {crash['found_by']} found the end of {said}"
    whose = f"the kernel of boot {crash['boot']}" if crash["boot"] else "a kernel, of which boot cannot be told,"
    return f"{whose} {when}; this boot found the end of {said}"


def _said_last(console: "ConsoleShown") -> str:
    """When, by both clocks, and from which address the last lines of the console came."""
    when = f"at {moment(console['at'])}, {seconds(console['uptime_ms'])} s after its kernel started"
    return f"the last lines of its console, {when}, as {console['peer']} reported:"


def _say_text(headline: str, text: str | None, gone: str) -> None:
    """What a kernel said; `gone`: in its place where the service has it no more."""
    say("\n".join(("", headline, *(f"  {line}" for line in (gone if text is None else text).splitlines()))))


def _phases(trace: "BootShown") -> list[tuple[object, ...]]:
    """Phases and failures by time; `seconds` since the script, or since the first that was heard."""
    facts: list[Mapping[str, Any]] = [*trace["reached"]]
    facts += [{**failure, "phase": "Failed", "source": "reported"} for failure in trace["failures"]]
    script = next((fact["at"] for fact in trace["reached"] if fact["phase"] == "ScriptServed"), trace["started_at"])
    began = ms(script)
    return [
        (
            fact["phase"],
            fact["source"],
            clock(fact["at"]),
            seconds(ms(fact["at"]) - began),
            seconds(fact["uptime_ms"]),
            fact["detail"],
        )
        for fact in sorted(facts, key=lambda fact: fact["at"])
    ]


@group.command("watch")
@click.option("--machine", shell_complete=complete.machines, help="Of this machine only.")
@click.option("--since", type=click.IntRange(0), help="Begin after this entry, as an earlier watch showed it.")
@click.option(
    "--until",
    type=click.Choice([phase.value for phase in Phase]),
    help="End, with status 0, when a boot reaches this phase.",
)
@api_command
def watch(
    machine: str | None,
    since: int | None,
    until: str | None,
    connection: Connection,
    output: str,
) -> None:
    """Follow boots as they happen; Ctrl-C ends it. With `--output json` one object a line.

    \b
      netboot boot watch
    """
    for line in connection.open().watch.watch(machine=machine, since=since):
        entry = line.get("event")
        if "gap" in line:
            say(f"some may be missing here: {line['gap']}; see `netboot boot list`", err=True)
        if entry is None:
            continue
        if output == "json":
            program_line(output, entry, entry["boot"])
        else:
            say(_line(entry))
        if entry["phase"] == until:
            return


group.add_command(proof.command)


def _line(entry: Mapping[str, Any]) -> str:
    uptime = f" up {seconds(entry['uptime_ms'])} s" if entry["uptime_ms"] is not None else ""
    what = f"{entry['machine']:<16} {entry['phase']:<14} {entry['source']:<8}"
    return f"{clock(entry['at'])}  {what} {entry['boot']}{uptime}  {entry['detail']}".rstrip()
