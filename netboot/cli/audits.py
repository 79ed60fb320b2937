"""`netboot audit`: who did what. Asks the running service."""

import click

from netboot.cli import complete
from netboot.cli.client import Connection, api_command
from netboot.cli.output import show
from netboot.cli.times import moment
from netboot.stores.audit import concerned, told


@click.command()
@click.option("--machine", shell_complete=complete.machines, help="Of this machine alone.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="The newest so many.")
@api_command
def command(machine: str | None, limit: int, connection: Connection, output: str) -> None:
    """List what people and programs did, the newest first: who, what, what was before and what came of it.

    What was refused is among it. What netboot does by itself is in the log, and in the histories of what it concerns.

    \b
      netboot audit --machine gpu-001
      netboot audit --output json | jq '.audit[] | select(.result == "not-allowed")'
    """
    listed = connection.open().audits.list(machine=machine, limit=limit)
    rows = [
        (
            moment(each["at"]),
            f"{each['who']} ({each['role']})",
            each["act"],
            ", ".join(filter(None, (each["machine"], concerned(each["facts"])))),
            told(each["before"]),
            told(each["after"]),
            each["reason"],
            each["result"],
        )
        for each in listed["audit"]
    ]
    columns = ("at", "who", "act", "what", "before", "after", "reason", "result")
    show(output, listed, columns, rows, "nobody did anything yet")
