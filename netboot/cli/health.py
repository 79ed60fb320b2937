"""`netboot machine health`, and what `machine show`, `boot show` and `explain` say of a machine's checks."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from netboot.cli import complete
from netboot.cli.client import Connection, api_command
from netboot.cli.output import program, say, show
from netboot.cli.times import ago


@click.command("health")
@click.argument("machine", shell_complete=complete.machines)
@click.option("--facts", "measured", is_flag=True, help="What was measured, below each check.")
@api_command
def command(machine: str, measured: bool, connection: Connection, output: str) -> None:
    """Show what the health checks on MACHINE found, as its current boot reported it.

    \b
    pass     as it should be                     warn     works, and somebody should look
    fail     not as it should be                 unknown  cannot be told
    absent   there is none, and none is expected

    What is expected comes from `health` of the machine and its profile in the inventory. The report is the machine's
    own word.

    \b
      netboot machine health gpu-001
      netboot machine health gpu-001 --output json
    """
    answer = connection.open().node_health.get(machine)
    checked = answer["checked"]
    if output == "json":
        program(output, answer)
        return
    expected = ", ".join(f"{name} {_value(value)}" for name, value in sorted(answer["expected"].items()))
    say(f"machine {machine}   {overall(checked)}")
    say(f"expected: {expected or 'nothing; the inventory has no `health` for it'}")
    click.echo()
    rows: list[tuple[object, ...]] = []
    for check in checked["report"]["checks"] if checked else ():
        rows.append((check["name"], check["status"], check["severity"], check["summary"], check["remedy"]))
        if measured:
            rows += [("", "", "", f"{name} = {_value(value)}", "") for name, value in sorted(check["facts"].items())]
    show(output, answer, ("check", "status", "severity", "what was found", "what to do"), rows, "no checks yet")


def overall(checked: Mapping[str, Any] | None) -> str:
    """One line: the worst status and when it was reported."""
    if checked is None:
        return "no health report of its current boot"
    stale = ", too long ago to tell anything of now" if checked["stale"] else ""
    return f"{checked['status']}, reported {ago(checked['at'])}{stale}"


def facts(checked: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Lines for `machine show` and `explain`: the whole, and each check that is not in order."""
    yield "health", overall(checked)
    for check in checked["report"]["checks"] if checked else ():
        if check["status"] not in ("pass", "absent"):
            yield "", f"{check['status']} ({check['severity']}): {check['name']}: {check['summary']}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}={part}" for key, part in sorted(value.items()))
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
