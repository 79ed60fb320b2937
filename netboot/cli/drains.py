"""`netboot machine drain|reboot|undrain|drains`: what takes a machine's Pods away. Asks the running service."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from netboot.cli.client import Connection, api_command
from netboot.cli.ordering import machine_act, may_say_why_option, standing
from netboot.cli.output import show
from netboot.cli.selection import Selection, selected, selection_options
from netboot.cli.times import ago, duration_option, moment
from netboot.lifecycle.budget import Out, named
from netboot.lifecycle.drains import End

_WORDS = {"drain": "drained", "reboot": "drained and rebooted"}
_ENDS: Mapping[End, str] = {
    "taken-off": "taken off",
    "replaced": "replaced",
    "undone": "undone",
    "rebooted": "done",
    "withdrawn": "taken back",
}
_ORDERED = (
    duration_option(
        "--deadline", "30m", "1m", "24h", "By when it has to be drained; else it is undone.", field="seconds"
    ),
    click.option("--allow-bare", "bare", is_flag=True, help="Evict Pods without a controller too: they are lost."),
    click.option(
        "--allow-local-data",
        "local",
        is_flag=True,
        help="Evict Pods with an emptyDir too: what they have in it is lost.",
    ),
)


def _words(answer: Mapping[str, Any]) -> str:
    machine, drain, would = answer["machine"], answer["drain"], answer["dry_run"]
    if answer["act"] == "undrain":
        if drain is None:
            return f"{machine} is not to be drained"
        so = "would be" if would else "is"
        return f"{machine} {so} drained no more. It was to be {_WORDS[drain['what']]} {standing(drain)}"
    word = _WORDS[drain["what"]]
    if not answer["did"]:
        return f"{machine} is to be {word} already: {standing(drain)}"
    so = "would be" if would else "is to be"
    said = f"{machine} {so} {word} by {moment(drain['deadline'])}: `netboot machine drains` says how far it is."
    return "\n".join((said, *_control_plane(answer["control_plane"]), *_around(answer["out"])))


def _control_plane(why: str | None) -> Iterator[str]:
    """Of a machine of one: whether the others do without it."""
    if why:
        yield f"WARNING: it is of a control plane, and should not go now: {why}."
    elif why is not None:
        yield "It is of a control plane, whose other Nodes are in order."


def _around(out: Mapping[str, Any] | None) -> Iterator[str]:
    """Who is out of service besides: an order of a person is carried out all the same."""
    if out is None:
        yield "Who else is out of service cannot be told: see `netboot doctor`."
        return
    if near := {name: Out(out["rack"], by) for name, by in out["of_rack"].items()}:
        yield f"Of rack {out['rack']} {_more(len(near))} out of service: {named(near)}."
    if out["of_all"]:
        yield f"In all {_more(out['of_all'])} held, in quarantine, or to be drained."


def _more(count: int) -> str:
    return "1 more machine is" if count == 1 else f"{count} more machines are"


@machine_act(lambda client: client.drains.drain, _words, *_ORDERED)
def drain() -> None:
    """Drain MACHINE: its node takes no new Pods, and those that run there are evicted, budgets respected.

    Pods of DaemonSets stay. It is drained until `undrain`, whatever it boots. What is not drained by the deadline is
    undone, never forced. `netboot machine drains` says how far it is.

    \b
      netboot machine drain gpu-001 --reason "DIMM 4" --deadline 2h
      netboot machine undrain gpu-001
    """


@machine_act(lambda client: client.drains.reboot, _words, *_ORDERED)
def reboot() -> None:
    """Drain MACHINE, then reboot it: it is told on its own Node, and no BMC is needed.

    The order is for the boot that runs now, and for no other; what is not drained by the deadline is not rebooted.

    \b
      netboot machine reboot gpu-001 --reason "new image"
      netboot machine drains
    """


@machine_act(lambda client: client.drains.undrain, _words, why=may_say_why_option)
def undrain() -> None:
    """Let MACHINE take Pods again, and reboot it no more, unless it has taken the order already.

    \b
      netboot machine undrain gpu-001 --reason "DIMM replaced"
    """


@click.command()
@selection_options
@api_command
def drains(selection: Selection, connection: Connection, output: str) -> None:
    """List machines that are to be drained or rebooted, and how far each is.

    \b
      netboot machine drains --output json
      netboot machine drains --field-selector rack=r1
    """
    listed = connection.open().drains.list(**selection.asked)
    rows = [
        (
            each["machine"],
            each["what"],
            each["state"]["state"] if each["state"] else "ordered",
            ago(each["since"]),
            moment(each["deadline"]),
            each["who"],
            each["state"]["words"] if each["state"] else "nobody has said yet how far it is",
        )
        for each in listed["drains"]
    ]
    columns = ("machine", "is to be", "state", "since", "deadline", "by", "how it stands")
    for problem in listed["problems"]:
        click.echo(problem, err=True)
    show(output, listed, columns, rows, "no machine is to be drained or rebooted", names=selected(listed["drains"]))


COMMANDS = (drain, undrain, reboot, drains)


def facts(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What `machine show` says of it: what stands, or how the last one ended; nothing where nothing ever did."""
    if machine["drains"] is None:
        return [("drained", "it cannot be told whether it is to be drained: see `netboot doctor`")]
    return [(each["what"], _how(each)) for each in machine["drains"][:1]]


def _how(drain: Mapping[str, Any]) -> str:
    since = standing(drain)
    if drain["end"] is not None:
        return f"{_ENDS[drain['end']]} {moment(drain['ended_at'])}: {drain['words']} (ordered {since})"
    state = drain["state"]
    return f"{state['state']}: {state['words']} ({since})" if state else since
