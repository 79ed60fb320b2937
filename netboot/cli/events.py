"""`netboot machine events`: what happened to a machine, as one timeline. Asks the running service."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import click

from netboot.cli import complete
from netboot.cli.client import Connection, api_command
from netboot.cli.output import program_line, say, show
from netboot.cli.times import clock, moment

if TYPE_CHECKING:
    from netboot.client.models import Event


@click.command("events")
@click.argument("machine", shell_complete=complete.machines)
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many at most.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens; Ctrl-C ends it.")
@api_command
def command(machine: str, limit: int, follow: bool, connection: Connection, output: str) -> None:
    """Show what happened to MACHINE, oldest first: phases of its boots, changes of its conditions and so of its health,
    what operators did about its identity, and alerts.

    Where its condition changed, the third column says to what, and the fourth why. With --follow --output json: one
    object a line.

    \b
      netboot machine events gpu-001
      netboot machine events gpu-001 --follow
    """
    api = connection.open().events
    listed = api.list(machine, limit=limit)
    if not follow:
        rows = [(moment(event["at"]), *_facts(event)) for event in listed["events"]]
        columns = ("time", "kind", "what", "by", "detail")
        show(output, listed, columns, rows, "nothing has happened to it yet")
        _missing(listed["problems"])
        return
    for event in listed["events"]:
        _say(event, output)
    said = _missing(listed["problems"])
    for line in api.watch(machine, since=listed["since"]):
        if "event" in line:
            _say(cast("Event", line["event"]), output)
        elif line.get("problem", "") != said:
            said = _missing(filter(None, [line.get("problem", "")]))


def _missing(problems: Iterable[str]) -> str:
    """Say what is not shown; returns that."""
    said = "; ".join(problems)
    if said:
        say(f"not all is shown: {said}", err=True)
    return said


def _say(event: "Event", output: str) -> None:
    if output == "json":
        program_line(output, event)
        return
    kind, what, said_by, detail = _facts(event)
    say(f"{clock(event['at'])}  {kind:<9} {what:<18} {said_by:<15} {detail}".rstrip())


def _facts(event: "Event") -> tuple[str, str, str, str]:
    return event["kind"], event["what"], event["said_by"], event["detail"]
