"""`netboot config diff|accept`: what of the inventory would change, and confirming a change of many machines.

Both ask the running service.
"""

import json
import time
from collections.abc import Iterator
from typing import Any

import click

from netboot.cli.client import CANNOT_TELL, ApiError, Client, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.outcomes import confirm
from netboot.cli.output import show
from netboot.machines.declared import KINDS

NAMES_SHOWN = 20
_WHO = frozenset({"match", "identity", "pcrs", "node", "cluster"})
"""Keys of a machine by which it is recognised, and let in."""
READ_SECONDS, LOOK_SECONDS = 30.0, 0.5
_STATES = {
    "in-force": "what is declared is in force",
    "waits": "waits until an operator accepts it: `netboot config accept`",
    "new": "the service has yet to read it",
}


@click.command()
@api_command
def diff(connection: Connection, output: str) -> None:
    """Show what the inventory's files or objects, as they are now, would add, change and remove.

    They are compared with what is in force. Nothing is changed.

    \b
      netboot config diff
      netboot config diff --output json | jq -r '.machines.removed[]'
    """
    difference = connection.open().inventory.diff()
    show(output, difference, ("change", "kind", "name", "what"), list(_rows(difference)), "no difference")
    if output != "json":
        click.echo(_summary(difference))


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", default="", help="Why, for the log.")
@dry_run_option
@api_command
def accept(yes: bool, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Let an inventory come into force that removes many machines, or changes who they are.

    It shows which machines go, or are recognised by something else or let in by another proof, and asks. What is
    accepted is what was shown: a later edit is asked about anew. Until you say yes nothing is changed.

    \b
      netboot config accept
      netboot config accept --yes --reason "rack 7 is sold"
    """
    client = connection.open()
    difference = _judged(client)
    if difference["state"] != "waits":
        empty = {"accepted": None, "removed": 0, "others": 0, "of": difference["machines_in_force"]}
        empty |= {"dry_run": True} if dry_run else {}
        show(output, empty, (), (), "nothing waits to be accepted: what is declared is in force")
        return
    shown = list(_waiting(difference))
    for line in shown[:NAMES_SHOWN]:
        click.echo(line, err=output == "json")
    if len(shown) > NAMES_SHOWN:
        click.echo(f"… and {len(shown) - NAMES_SHOWN} more: `netboot config diff`", err=output == "json")
    click.echo(_summary(difference), err=output == "json")
    if not (yes or dry_run):
        confirm(_question(difference), "answer at a terminal, or give --yes", err=output == "json")
    answer = client.inventory.accept({"digest": difference["digest"], "reason": reason, "dry_run": dry_run})
    would = "would " if answer["dry_run"] else ""
    then = "; nothing was changed" if answer["dry_run"] else "; in force within a second"
    others = f", {answer['others']} {would}become others" if answer["others"] else ""
    accepted = "would be accepted" if answer["dry_run"] else "accepted"
    show(output, answer, (), (), f"{accepted}: {answer['removed']} machines {would}go{others}{then}")


def _waiting(difference: Any) -> Iterator[str]:
    """What goes, and who becomes another."""
    machines = difference["machines"]
    yield from (f"- {name}" for name in machines["removed"])
    added = {name: what for kind, name, what in _added(difference) if kind == "machine"}
    for name in difference["others"]:
        keys = ", ".join(key for key in machines["changed"].get(name, ()) if key in _WHO)
        yield f"~ {name}: {keys or added.get(name) or 'another name, too'}"
    if not (machines["removed"] or difference["others"]):
        yield from (f"- {kind} {name}" for key, kind in KINDS.items() for name in difference[key]["removed"])


def _question(difference: Any) -> str:
    removed, others = len(difference["machines"]["removed"]), len(difference["others"])
    in_force = difference["machines_in_force"]
    if others:
        remove = f"Remove {removed} of {in_force} machines, and recognise" if removed else "Recognise"
        return f"{remove} {others} of them by something else, or let them in by another proof?"
    return f"Remove these {removed} of {in_force} machines?" if removed else "Remove these objects?"


def _judged(client: Client) -> Any:
    """The difference, once the service has read what is declared now."""
    deadline = time.monotonic() + READ_SECONDS
    while (difference := client.inventory.diff())["state"] == "new":
        if time.monotonic() > deadline:
            message = "the service has not read the inventory as it is declared now"
            raise ApiError(message, "is it still being written? See `netboot doctor`", CANNOT_TELL)
        time.sleep(LOOK_SECONDS)
    return difference


def _rows(difference: Any) -> Iterator[tuple[str, str, str, str]]:
    added = list(_added(difference))
    for key, kind in KINDS.items():
        of_kind = difference[key]
        yield from (("+", *each) for each in added if each[0] == kind)
        for name, keys in of_kind["changed"].items():
            what = "; ".join(f"{field}: {json.dumps(was)} → {json.dumps(now)}" for field, (was, now) in keys.items())
            yield "~", kind, name, what
        yield from (("-", kind, name, "") for name in of_kind["removed"])


def _added(difference: Any) -> Iterator[tuple[str, str, str]]:
    """Kind and name of what is new, and of machines that may have been there before what is to be known of that."""
    others, again = set(difference["others"]), set(difference["again"])
    for key, kind in KINDS.items():
        for name in difference[key]["added"]:
            what = ""
            if kind == "machine" and name in again:
                what = "went within the last hour, and is recognised or let in by something else now"
            elif kind == "machine" and name in others and difference["untold"]:
                what = "new, or one that went within the last hour: that cannot be told"
            elif kind == "machine" and name in others:
                what = "a machine had one of its names that is recognised or let in by something else"
            yield kind, name, what


def _summary(difference: Any) -> str:
    counts = [
        f"{key}: {len(of_kind['added'])} added, {len(of_kind['changed'])} changed, {len(of_kind['removed'])} removed"
        for key in KINDS
        if any((of_kind := difference[key]).values())
    ]
    return "\n".join([*counts, f"inventory {difference['digest'][:12]}: {_STATES[difference['state']]}"])
