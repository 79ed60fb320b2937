"""`netboot config diff|accept`: what the inventory's files would change, and confirming a large removal.

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
READ_SECONDS, LOOK_SECONDS = 30.0, 0.5
_STATES = {
    "in-force": "the files are in force",
    "waits": "waits until an operator accepts it: `netboot config accept`",
    "new": "the service has yet to read it",
}


@click.command()
@api_command
def diff(connection: Connection, output: str) -> None:
    """Show what the inventory's files, as they are now, would add, change and remove.

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
    """Let an inventory that removes many machines come into force.

    It shows which machines go, and asks. What is accepted is what was shown: a later edit is asked about anew. Until
    you say yes nothing is changed.

    \b
      netboot config accept
      netboot config accept --yes --reason "rack 7 is sold"
    """
    client = connection.open()
    difference = _judged(client)
    if difference["state"] != "waits":
        empty = {"accepted": None, "removed": 0, "of": difference["machines_in_force"]}
        empty |= {"dry_run": True} if dry_run else {}
        show(output, empty, (), (), "nothing waits to be accepted: the files are in force")
        return
    machines = difference["machines"]["removed"]
    removed = machines or [f"{kind} {name}" for key, kind in KINDS.items() for name in difference[key]["removed"]]
    for name in removed[:NAMES_SHOWN]:
        click.echo(f"- {name}", err=output == "json")
    if len(removed) > NAMES_SHOWN:
        click.echo(f"… and {len(removed) - NAMES_SHOWN} more: `netboot config diff`", err=output == "json")
    click.echo(_summary(difference), err=output == "json")
    if not (yes or dry_run):
        of = f"{len(removed)} of {difference['machines_in_force']} machines" if machines else "objects"
        question = f"Remove these {of}?"
        confirm(question, "answer at a terminal, or give --yes", err=output == "json")
    answer = client.inventory.accept({"digest": difference["digest"], "reason": reason, "dry_run": dry_run})
    so = "would go; nothing was changed" if answer["dry_run"] else "go; in force within a second"
    accepted = "would be accepted" if answer["dry_run"] else "accepted"
    show(output, answer, (), (), f"{accepted}: {answer['removed']} machines {so}")


def _judged(client: Client) -> Any:
    """The difference, once the service has read the files of now."""
    deadline = time.monotonic() + READ_SECONDS
    while (difference := client.inventory.diff())["state"] == "new":
        if time.monotonic() > deadline:
            message = "the service has not read the inventory's files as they are now"
            raise ApiError(message, "are they still being written? See `netboot doctor`", CANNOT_TELL)
        time.sleep(LOOK_SECONDS)
    return difference


def _rows(difference: Any) -> Iterator[tuple[str, str, str, str]]:
    for key, kind in KINDS.items():
        of_kind = difference[key]
        yield from (("+", kind, name, "") for name in of_kind["added"])
        for name, keys in of_kind["changed"].items():
            what = "; ".join(f"{field}: {json.dumps(was)} → {json.dumps(now)}" for field, (was, now) in keys.items())
            yield "~", kind, name, what
        yield from (("-", kind, name, "") for name in of_kind["removed"])


def _summary(difference: Any) -> str:
    counts = [
        f"{key}: {len(of_kind['added'])} added, {len(of_kind['changed'])} changed, {len(of_kind['removed'])} removed"
        for key in KINDS
        if any((of_kind := difference[key]).values())
    ]
    return "\n".join([*counts, f"inventory {difference['digest'][:12]}: {_STATES[difference['state']]}"])
