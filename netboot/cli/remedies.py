"""`netboot remedies`: what is done by itself about machines that are not well. Asks the running service."""

from collections.abc import Iterable, Mapping
from typing import Any

import click

from images.values.durations import in_words
from netboot.cli.client import Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.ordering import standing, why_option
from netboot.cli.output import printable, program, say, show
from netboot.cli.times import moment

_ENDS = {
    "back": "it came back",
    "taken-off": "the order was taken off",
    "replaced": "the next one took its place",
    "undone": "the order came to nothing",
    "withdrawn": "the order was taken back",
    "readmitted": "it was readmitted",
    "gone": "it is retired, or in the inventory no more",
    None: "",
}


@click.group()
def group() -> None:
    """See, pause and resume what is done by itself about machines that are not well.

    Classes of the inventory say what that is (`remedies:`); none acts before it says `act: true`.

    \b
      netboot remedies status
      netboot remedies pause --reason "power work in hall 2"
    """


@group.command()
@api_command
def status(connection: Connection, output: str) -> None:
    """Show whether remedies may begin, which machines are not well and what comes next for each, and the latest.

    \b
      netboot remedies status
      netboot remedies status --output json
    """
    said = connection.open().remedies.list()
    if output == "json":
        program(output, said, names=[each["id"] for each in said["remedies"]])
        return
    if said["problem"]:
        click.echo(said["problem"], err=True)
    click.echo(_pause(said["pause"]))
    rows = [(each["machine"], each["reason"], moment(each["since"]), *now(each)) for each in said["machines"]]
    show(output, said, ("machine", "is", "since", "next", "withheld"), rows, "no machine is known not to be well")
    if said["remedies"]:
        click.echo()
        columns = ("number", "when", "machine", "what", "for", "came to")
        show(output, said, columns, map(_row, said["remedies"]))


@group.command("show")
@click.argument("number", type=click.IntRange(1))
@api_command
def show_one(number: int, connection: Connection, output: str) -> None:
    """Show remedy NUMBER, with what was at hand of the machine's boot when it was taken.

    \b
      netboot remedies show 7
    """
    found = connection.open().remedies.get(number)
    if output == "json":
        program(output, found, names=[found["id"]])
        return
    say(line(found))
    evidence = found["evidence"] or {}
    for name in ("boot", "conditions", "health"):
        if evidence.get(name):
            click.echo(f"\n{name}:")
            click.echo("\n".join(_lines(evidence[name])))
    if evidence.get("crash"):
        click.echo(f"\ncrash:\n{printable(evidence['crash'])}")


@group.command()
@why_option
@dry_run_option
@api_command
def pause(reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Let no remedy begin. What has begun goes on; what people order is done as ever.

    \b
      netboot remedies pause --reason "power work in hall 2"
    """
    answer: Mapping[str, Any] = connection.open().remedies.pause({"reason": reason, "dry_run": dry_run})
    so = "are paused already" if not answer["did"] else "would be paused" if dry_run else "are paused"
    show(output, answer, (), (), f"remedies {so}: {standing(answer['pause'])}")


@group.command()
@why_option
@dry_run_option
@api_command
def resume(reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Let remedies begin again. What was found until now does not pause them any more.

    \b
      netboot remedies resume --reason "it was the switch of row 3"
    """
    answer = connection.open().remedies.resume({"reason": reason, "dry_run": dry_run})
    so = "are not paused" if not answer["did"] else "could begin again" if dry_run else "may begin again"
    show(output, answer, (), (), f"remedies {so}")


def facts(remedies: Mapping[str, Any] | None) -> Iterable[tuple[str, str]]:
    """What `explain` says of a machine's."""
    if remedies is None:
        yield "remedies", "it cannot be told what was done about it: see `netboot doctor`"
        return
    if remedies["problem"]:
        yield "remedies", f"{remedies['problem']}, so it may not be as it is said here"
    if (unwell := remedies["now"]) is not None:
        coming, withheld = now(unwell)
        words = "; ".join(filter(None, (coming and f"next: {coming}", withheld)))
        yield "not well", f"{unwell['reason']} since {moment(unwell['since'])}: {unwell['message']}"
        yield "remedy", words or "none"
    for each in remedies["latest"]:
        yield "remedy", line(each)


def now(unwell: Mapping[str, Any]) -> tuple[str, str]:
    """What comes next, and what withholds it."""
    left = -(-unwell["left_seconds"] // 60) * 60
    after = f" in {in_words(left)}" if left and unwell["what"] else ""
    return f"{unwell['what']}{after}", unwell["words"]


def line(remedy: Mapping[str, Any]) -> str:
    """One, in a sentence."""
    _, when, machine, what, why, came = _row(remedy)
    end = f"; {came}" if came else ""
    return f"{remedy['id']} · {when}: {what} of {machine}, for {why}: {remedy['message']}{end}"


def _row(remedy: Mapping[str, Any]) -> tuple[Any, ...]:
    withheld = remedy["outcome"] == "withheld"
    came = f"withheld: {remedy['words']}" if withheld else _ENDS[remedy["end"]]
    return remedy["id"], moment(remedy["at"]), remedy["machine"], remedy["what"], remedy["reason"], came


def _pause(said: Mapping[str, Any] | None) -> str:
    if said is None or not said["stands"]:
        return "Remedies may begin, where a class says so."
    return f"Remedies are paused: {standing(said)}. `netboot remedies resume --reason …` lets them begin again."


def _lines(value: object, depth: int = 1) -> Iterable[str]:
    """Nested values, one a line; what machines said is shown as printable text."""
    pairs = sorted(value.items()) if isinstance(value, dict) else enumerate(value, 1) if isinstance(value, list) else ()
    for name, inner in pairs:
        if isinstance(inner, dict | list):
            yield f"{'  ' * depth}{name}:"
            yield from _lines(inner, depth + 1)
        else:
            yield f"{'  ' * depth}{name}: {printable(str(inner))}"
    if not isinstance(value, dict | list):
        yield f"{'  ' * depth}{printable(str(value))}"
