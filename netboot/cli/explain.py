"""`netboot explain`: why a machine gets the script that it gets. Asks the running service."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click

from netboot.cli import complete, hardware, health, past_boots, remedies
from netboot.cli.client import CANNOT_TELL, NOT_ALLOWED, UNKNOWN, ApiError, Client, Connection, connection_options
from netboot.cli.identity import facts
from netboot.cli.output import output_option, program, say
from netboot.cli.times import ago, boot_line
from netboot.client.errors import UnknownError
from netboot.lifecycle.phases import Phase
from netboot.machines.identity import parse_mac

_STATUS = {"boot": 0, "unknown": UNKNOWN, "refused": NOT_ALLOWED, "unavailable": CANNOT_TELL}
_WORDS = {
    "boot": "boots",
    "unknown": "is unknown: it waits, is listed as discovered, and asks again",
    "refused": "may not boot: it is told why, and asks again",
    "unavailable": "waits: what it boots cannot be told right now, and it asks again",
}


def _mac(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """As it was given. One that no machine can have would be told as a machine that is unknown."""
    try:
        return None if value is None else (parse_mac(value) and value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is {error}: give one like 52:54:00:12:34:56") from None


@click.command()
@click.argument("machine", required=False, shell_complete=complete.machines)
@click.option("--mac", callback=_mac, help="What a machine with this MAC address would get, in any spelling.")
@click.option("--uuid", help="… with this SMBIOS UUID.")
@click.option("--serial", help="… with this serial number.")
@click.option("--arch", help="… of this architecture, as iPXE says it (x86_64, i386, arm64).")
@click.option("--boot", help="What this boot of MACHINE got then, in place of what it would get now.")
@connection_options
@output_option
def command(
    machine: str | None,
    mac: str | None,
    uuid: str | None,
    serial: str | None,
    arch: str | None,
    boot: str | None,
    connection: Connection,
    output: str,
) -> None:
    """Explain which script MACHINE gets and why; or whoever makes the claim that the options describe.

    It prints the very decision that is served, and records nothing. With --boot: what was decided for that boot, from
    what was written down then; why it was decided so is kept of boots that proved themselves.

    \b
    Exit status: 0 it boots, 3 unknown, 4 not allowed (ambiguous, disabled, other
    architecture, command line too long),
    5 cannot tell right now (no usable image, or the service does not answer), 1 failed, 2 wrong usage.

    \b
      netboot explain gpu-001
      netboot explain gpu-001 --boot 0195d3c2-8f11-8a3b-9c4d-5e6f7a8b9c0d
      netboot explain --mac 52:54:00:12:34:56
    """
    claim = {"mac": mac, "uuid": uuid, "serial": serial, "arch": arch}
    claimed = any(value is not None for value in claim.values())
    if (machine is not None) == claimed:
        raise click.UsageError("name a machine, or describe a claim with --mac, --uuid, --serial, --arch")
    if boot is not None and machine is None:
        raise click.UsageError("--boot wants the name of its machine: name it before the option")
    client = connection.open()
    if machine is not None and boot is not None:
        _print_past(client.machines.explain(machine, boot=boot), output)
        return
    explained = _explained(client, machine, claim)
    if output == "json":
        program(output, explained)
    else:
        _print_decision(explained["decision"])
        for what in ("current", "pending"):
            if explained.get(what):
                say(f"  {what:<7} {boot_line(explained[what])}")
                _hint_at_console(explained[what])
        if machine is not None:
            _print_machine(explained)
    raise click.exceptions.Exit(_STATUS[explained["decision"]["outcome"]])


def _explained(client: Client, machine: str | None, claim: Mapping[str, str | None]) -> Mapping[str, Any]:
    if machine is None:
        return client.machines.explain_claim(**claim)
    try:
        return client.machines.explain(machine)
    except UnknownError:
        with suppress(ValueError):
            remedy = f"`netboot explain --mac {parse_mac(machine)}`"
            raise ApiError(f"no machine is called {machine}, which is a MAC address", remedy, UNKNOWN) from None
        raise


def _print_past(explained: Mapping[str, Any], output: str) -> None:
    if output == "json":
        program(output, explained)
        return
    say(f"{explained['machine']} boot {explained['boot']}, {explained['standing']}")
    for name, text in past_boots.facts(explained):
        say(f"  {name:<14} {text}")


def _hint_at_console(trace: Mapping[str, Any]) -> None:
    """Where to read what a boot that is not Ready said last."""
    if trace["console_at"] and trace["state"] != Phase.READY:
        say(f"  console `netboot boot show {trace['boot']}` has its last lines, of {ago(trace['console_at'])}")


def _print_machine(explained: Mapping[str, Any]) -> None:
    checked = health.facts(explained["checked"]) if "checked" in explained else ()
    known = (*hardware.facts(explained), *checked, *facts(explained), *remedies.facts(explained["remedies"]))
    for name, text in known:
        say(f"  {name:<14} {text}")


def _print_decision(decision: Mapping[str, Any]) -> None:
    reason = f" ({decision['reason']})" if "reason" in decision else ""
    name = (
        decision["machine"]["name"] if "machine" in decision else " and ".join(decision.get("machines", ())) or "this"
    )
    say(f"{name} {_WORDS[decision['outcome']]}{reason}")
    for because in decision["because"]:
        say(f"  because {because}")
    if decision["outcome"] == "boot":
        image = decision["image"]
        say(f"  image   {image['name']} {image['digest']}, needs {image['ram_mib']} MiB of memory")
        say(f"  kernel  {' '.join(decision['kernel_arguments'])}")
