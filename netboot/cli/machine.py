"""`netboot machine`: the machines of the inventory and what is known of them. Asks the running service."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from netboot.cli import (
    acts,
    complete,
    conditions,
    declare,
    delete_node,
    drains,
    enrolment,
    events,
    hardware,
    health,
    identity,
    imports,
    renaming,
)
from netboot.cli.client import Client, Connection, api_command
from netboot.cli.following import follow, watch_option
from netboot.cli.output import image_digest, is_wide, program, say, show
from netboot.cli.selection import Selection, selection_options
from netboot.cli.times import ago, boot_line, moment, ms, state
from netboot.machines.found import reported, summary

if TYPE_CHECKING:
    from netboot.client.models import MachineListed, MachineShown, TraceShown

DISCOVERED_SHOWN = 100


@click.group()
def group() -> None:
    """Machines: those of the inventory, those that asked and are not in it, and whose TPM is whose.

    \b
    A machine proves who it is by its TPM. It is enrolled once, either on first use:
      netboot machine enroll gpu-001              opens a window; then boot the machine
      netboot machine approve gpu-001             shows what it showed, and lets it join
    or from a list, without a window:
      netboot machine enroll --csv eks.csv

    \b
    What is wanted of a machine outlives its boots:
      netboot machine hold gpu-001 --reason "DIMM 4"         its node takes no new work
      netboot machine quarantine gpu-001 --reason "breach"   it joins nothing
      netboot machine holds                                  who is, since when, by whom and why
      netboot machine drain gpu-001 --reason "DIMM 4"        its Pods go elsewhere
      netboot machine reboot gpu-001 --reason "new image"    the same, and then it reboots
      netboot machine delete-node gpu-001 --reason "dead"    its Node goes, so that its Pods start elsewhere
      netboot machine rename gpu-001 r7-gpu-01               another name: what is known of it goes with it
    """


for _command in (
    *enrolment.COMMANDS,
    *acts.COMMANDS,
    *drains.COMMANDS,
    declare.declare,
    declare.undeclare,
    renaming.rename,
    imports.import_,
    delete_node.delete_node,
    health.command,
    events.command,
):
    group.add_command(_command)


@group.command("list")
@click.option("--discovered", "others", is_flag=True, help="Those that asked and may not boot, in place of these.")
@selection_options
@watch_option
@api_command
def list_(others: bool, selection: Selection, watched: bool, connection: Connection, output: str) -> None:
    """List the machines of the inventory, each with its current boot.

    The current boot is the one that proved itself last, by its TPM or in the cluster; of a machine that never did, the
    newest of which it reported something. A script that was only served is a claim, which anybody can make; a newer
    boot that was only reported is shown behind the state, as "and an unproven".

    \b
      netboot machine list --output json
      netboot machine list -l gpu=h100 --field-selector rack=r1
      netboot machine list --watch
    """
    client = connection.open()
    nobody = "no machine is selected" if selection else "the inventory has no machine yet"
    if others:
        _discovered(client, output, DISCOVERED_SHOWN)
    elif watched:
        follow(client, output, lambda: selection.machines(client), partial(_row, output), _columns(output), nobody)
    else:
        listed = client.machines.list(selector=selection.selector, field_selector=selection.field_selector)
        rows = [_row(output, machine) for machine in listed["machines"]]
        names = [machine["name"] for machine in listed["machines"]]
        show(output, listed, _columns(output), rows, nobody, names=names)


@group.command("show")
@click.argument("machine", shell_complete=complete.machines)
@api_command
def show_(machine: str, connection: Connection, output: str) -> None:
    """Show all about MACHINE: how it is recognised, what it boots and why, its conditions, its latest boots.

    \b
      netboot machine show gpu-001
    """
    detail = connection.open().machines.get(machine)
    if output == "json":
        program(output, detail, names=[detail["name"]])
        return
    match = detail["match"]
    facts = [
        ("machine", detail["name"]),
        ("cluster", detail["cluster"]),
        ("profile", detail["profile"]),
        ("architecture", detail["architecture"]),
        *hardware.facts(detail),
        *([("rack", detail["rack"])] if detail["rack"] else []),
        *([("unit", str(detail["position"]))] if detail["position"] else []),
        *([("NVLink domain", detail["accelerator_domain"])] if detail["accelerator_domain"] else []),
        ("enabled", "yes" if detail["enabled"] else "no"),
        ("recognised by", ", ".join([*match["macs"], *filter(None, (match["uuid"], match["serial"]))])),
        ("would boot", detail["decision"]["outcome"]),
        *(("", because) for because in detail["decision"]["because"]),
        ("current boot", _current(detail["current"])),
        *([("pending boot", _pending(detail["pending"]))] if detail["pending"] else []),
        ("scripts served", f"{detail['claims']['served']}, last {moment(detail['claims']['last_at']) or 'never'}"),
        *_waited(detail["claims"]),
        *health.facts(detail["checked"]),
        *acts.facts(detail),
        *drains.facts(detail),
        *conditions.deadlines(detail),
        *identity.facts(detail),
    ]
    for name, text in facts:
        say(f"{name:<15} {text}")
    click.echo()
    show(output, detail, conditions.COLUMNS, conditions.rows(detail["conditions"]), _unjudged(detail))
    click.echo()
    rows = [(boot["boot"], moment(boot["started_at"]), state(boot), boot["reason"]) for boot in detail["boots"]]
    show(output, detail, ("boot", "began", "state", "reason"), rows, "no boots yet")


@group.command("discovered")
@click.option("--limit", type=click.IntRange(1, 10_000), default=DISCOVERED_SHOWN, show_default=True, help="How many.")
@api_command
def discovered(limit: int, connection: Connection, output: str) -> None:
    """List machines that asked and may not boot, the latest seen first.

    \b
      netboot machine discovered
    """
    _discovered(connection.open(), output, limit)


def _discovered(client: Client, output: str, limit: int) -> None:
    listed = client.boots.list_discovered(limit=limit)
    rows = [
        (
            asker["mac"],
            asker["uuid"],
            asker["serial"],
            asker["architecture"],
            asker["peer"],
            ago(asker["last_at"]),
            asker["times"],
            summary(asker["hardware"]),
            reported(asker),
            asker["seen"],
            asker["reason"],
        )
        for asker in listed["discovered"]
    ]
    columns = (
        "MAC",
        "UUID",
        "serial",
        "arch",
        "address",
        "last seen",
        "times",
        "made of",
        "declared by, too",
        "seen",
        "why it may not boot",
    )
    names = [asker["mac"] for asker in listed["discovered"]]
    show(output, listed, columns, rows, "nobody that may not boot has asked", names=names)


_COLUMNS = ("machine", "cluster", "profile", "state", "since", "condition", "health", "image")
_MORE = ("class", "rack", "unit", "architecture", "recognised by", "boot")


def _columns(output: str) -> tuple[str, ...]:
    return (*_COLUMNS, "scripts served", "last asked", *(_MORE if is_wide(output) else ()))


def _row(output: str, machine: "MachineListed | Mapping[str, Any]") -> tuple[object, ...]:
    current = machine["current"]
    image = image_digest(output, current["script"]["image"]) if current and current["script"] else ""
    boot = state(current) if current else "never reported"
    if machine["pending"]:
        boot += f", and an unproven {state(machine['pending'])}"
    since = ago(current["last_at"]) if current else ""
    claims = machine["claims"]
    checked = machine["checked"]
    health = f"{checked['status']} (stale)" if checked and checked["stale"] else checked["status"] if checked else ""
    waited = claims.get("waited") or {}
    asked = claims["served"], ago(max(filter(None, (claims["last_at"], waited.get("last_at"))), key=ms, default=None))
    condition = conditions.brief(machine["conditions"])
    row = machine["name"], machine["cluster"], machine["profile"], boot, since, condition, health, image, *asked
    if not is_wide(output):
        return row
    match = machine["match"]
    by = ", ".join([*match["macs"], *filter(None, (match["uuid"], match["serial"]))])
    stands = (machine.get(key) for key in ("class", "rack", "position", "architecture"))
    return *row, *stands, by, current["boot"] if current else ""


def _unjudged(detail: "MachineShown") -> str:
    return "its conditions cannot be told now" if detail["conditions"] is None else "no conditions yet"


def _current(trace: "TraceShown | None") -> str:
    return boot_line(trace) if trace else "it never reported any"


def _waited(claims: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """That whoever asked in its name was told to wait, though that may be over."""
    if (waited := claims.get("waited")) is not None:
        since = f"since {moment(waited['first_at'])}, " if waited["times"] > 1 else ""
        yield "told to wait", f"{since}last {moment(waited['last_at'])}, whoever asked from {waited['peer']}"
        yield "", waited["reason"]


def _pending(trace: "TraceShown") -> str:
    return f"{boot_line(trace)}: it alters nothing; a reboot on its way, or a false report"
