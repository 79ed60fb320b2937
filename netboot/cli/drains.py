"""`netboot machine drain|reboot|undrain|drains`: what takes a machine's Pods away. Asks the running service."""

from collections.abc import Mapping
from typing import Any

import click

from netboot.cli.acts import dry_run_option, may_say_why_option, why_option
from netboot.cli.client import Connection, api_command, segment
from netboot.cli.output import show
from netboot.cli.times import ago, duration_option, moment
from netboot.lifecycle.drains import End

_WORDS = {"drain": "drained", "reboot": "drained and rebooted"}
ENDS: Mapping[End, str] = {
    "taken-off": "taken off",
    "replaced": "replaced",
    "undone": "undone",
    "rebooted": "done",
    "withdrawn": "taken back",
}
deadline_option = duration_option("--deadline", "30m", "1m", "24h", "By when it has to be drained; else it is undone.")
bare_option = click.option("--allow-bare", is_flag=True, help="Evict Pods without a controller too: they are lost.")
local_option = click.option(
    "--allow-local-data", is_flag=True, help="Evict Pods with an emptyDir too: what they have in it is lost."
)


@click.command()
@click.argument("machine")
@why_option
@deadline_option
@bare_option
@local_option
@dry_run_option
@api_command
def drain(
    machine: str,
    reason: str,
    deadline: int,
    allow_bare: bool,
    allow_local_data: bool,
    dry_run: bool,
    connection: Connection,
    output: str,
) -> None:
    """Drain MACHINE: its node takes no new Pods, and those that run there are evicted, budgets respected.

    Pods of DaemonSets stay. It is drained until `undrain`, whatever it boots. What is not drained by the deadline is
    undone, never forced. `netboot machine drains` says how far it is.

    \b
      netboot machine drain gpu-001 --reason "DIMM 4" --deadline 2h
      netboot machine undrain gpu-001
    """
    body = {"reason": reason, "seconds": deadline, "bare": allow_bare, "local": allow_local_data, "dry_run": dry_run}
    _act(connection, output, machine, "drain", body)


@click.command()
@click.argument("machine")
@why_option
@deadline_option
@bare_option
@local_option
@dry_run_option
@api_command
def reboot(
    machine: str,
    reason: str,
    deadline: int,
    allow_bare: bool,
    allow_local_data: bool,
    dry_run: bool,
    connection: Connection,
    output: str,
) -> None:
    """Drain MACHINE, then reboot it: it is told on its own Node, and no BMC is needed.

    The order is for the boot that runs now, and for no other; what is not drained by the deadline is not rebooted.

    \b
      netboot machine reboot gpu-001 --reason "new image"
      netboot machine drains
    """
    body = {"reason": reason, "seconds": deadline, "bare": allow_bare, "local": allow_local_data, "dry_run": dry_run}
    _act(connection, output, machine, "reboot", body)


@click.command()
@click.argument("machine")
@may_say_why_option
@dry_run_option
@api_command
def undrain(machine: str, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Let MACHINE take Pods again, and reboot it no more, unless it has taken the order already.

    \b
      netboot machine undrain gpu-001 --reason "DIMM replaced"
    """
    _act(connection, output, machine, "undrain", {"reason": reason, "dry_run": dry_run})


@click.command()
@api_command
def drains(connection: Connection, output: str) -> None:
    """List machines that are to be drained or rebooted, and how far each is.

    \b
      netboot machine drains --output json
    """
    listed = connection.open().get("/v1/drains")
    rows = [
        (
            each["machine"],
            each["what"],
            each["state"]["state"] if each["state"] else "ordered",
            ago(each["since_ms"]),
            moment(each["deadline_ms"]),
            each["who"],
            each["state"]["words"] if each["state"] else "nobody has said yet how far it is",
        )
        for each in listed["drains"]
    ]
    columns = ("machine", "is to be", "state", "since", "deadline", "by", "how it stands")
    for problem in listed["problems"]:
        click.echo(problem, err=True)
    show(output, listed, columns, rows, "no machine is to be drained or rebooted")


COMMANDS = (drain, undrain, reboot, drains)


def facts(machine: dict[str, Any]) -> list[tuple[str, str]]:
    """What `machine show` says of it: what stands, or how the last one ended; nothing where nothing ever did."""
    if machine["drains"] is None:
        return [("drained", "it cannot be told whether it is to be drained: see `netboot doctor`")]
    return [(each["what"], _standing(each)) for each in machine["drains"][:1]]


def _standing(drain: dict[str, Any]) -> str:
    since = f"since {moment(drain['since_ms'])} by {drain['who']}: {drain['reason']}"
    if drain["end"] is not None:
        return f"{ENDS[drain['end']]} {moment(drain['ended_ms'])}: {drain['words']} (ordered {since})"
    state = drain["state"]
    return f"{state['state']}: {state['words']} ({since})" if state else since


def _act(connection: Connection, output: str, machine: str, act: str, body: dict[str, Any]) -> None:
    answer = connection.open().post(f"/v1/machines/{segment(machine)}/{act}", body)
    show(output, answer, (), (), _words(answer))


def _words(answer: dict[str, Any]) -> str:
    machine, drain, would = answer["machine"], answer["drain"], answer["dry_run"]
    if answer["act"] == "undrain":
        if drain is None:
            return f"{machine} is not to be drained"
        so = "would be" if would else "is"
        return f"{machine} {so} drained no more. It was to be {_WORDS[drain['what']]} {_since(drain)}"
    word = _WORDS[drain["what"]]
    if not answer["did"]:
        return f"{machine} is to be {word} already: {_since(drain)}"
    so = "would be" if would else "is to be"
    return f"{machine} {so} {word} by {moment(drain['deadline_ms'])}: `netboot machine drains` says how far it is."


def _since(drain: dict[str, Any]) -> str:
    return f"since {moment(drain['since_ms'])} by {drain['who']}: {drain['reason']}"
