"""`netboot machine`: the machines of the inventory and what is known of them. Asks the running service."""

import json
from pathlib import Path
from typing import Any

import click

from netboot.cli import enrolment, health, identity
from netboot.cli.client import Client, api_options, open_client, segment, with_exit_codes
from netboot.cli.output import output_option, show
from netboot.cli.times import ago, boot_words, moment

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
    """


for _command in (*enrolment.COMMANDS, health.command):
    group.add_command(_command)


@group.command("list")
@click.option("--discovered", "others", is_flag=True, help="Those that asked and may not boot, in place of these.")
@api_options
@output_option
@with_exit_codes
def list_(others: bool, config: Path | None, server: str | None, token_file: Path | None, output: str) -> None:
    """List the machines of the inventory, each with its current boot.

    The current boot is the one that proved itself last, by its TPM or in the cluster; of a machine that never did, the
    newest of which it reported something. A script that was only served is a claim, which anybody can make; a newer
    boot that was only reported is shown behind the state, as "and an unproven".

    \b
      netboot machine list --output json
    """
    client = open_client(config, server, token_file)
    if others:
        _discovered(client, output, DISCOVERED_SHOWN)
        return
    found = client.get("/v1/machines")
    rows = [_row(one) for one in found["machines"]]
    columns = ("machine", "cluster", "profile", "state", "since", "health", "image", "scripts served", "last asked")
    show(output, found, columns, rows, "the inventory has no machine yet")


@group.command("show")
@click.argument("machine")
@api_options
@output_option
@with_exit_codes
def show_(machine: str, config: Path | None, server: str | None, token_file: Path | None, output: str) -> None:
    """Show all about MACHINE: how it is recognised, what it boots and why, its latest boots.

    \b
      netboot machine show gpu-001
    """
    found = open_client(config, server, token_file).get(f"/v1/machines/{segment(machine)}")
    if output == "json":
        click.echo(json.dumps(found, indent=2, sort_keys=True))
        return
    match = found["match"]
    facts = [
        ("machine", found["name"]),
        ("cluster", found["cluster"]),
        ("profile", found["profile"]),
        ("architecture", found["architecture"]),
        ("enabled", "yes" if found["enabled"] else "no"),
        ("recognised by", ", ".join([*match["macs"], *filter(None, (match["uuid"], match["serial"]))])),
        ("would boot", found["decision"]["outcome"]),
        *(("", because) for because in found["decision"]["because"]),
        ("current boot", _current(found["current"])),
        *([("pending boot", _pending(found["pending"]))] if found["pending"] else []),
        ("scripts served", f"{found['claims']['served']}, last {moment(found['claims']['last_ms']) or 'never'}"),
        *health.facts(found["checked"]),
        *identity.facts(found),
    ]
    for name, text in facts:
        click.echo(f"{name:<15} {text}")
    click.echo()
    rows = [(one["boot"], moment(one["started_ms"]), _state(one), one["reason"]) for one in found["boots"]]
    show(output, found, ("boot", "began", "state", "reason"), rows, "no boots yet")


@group.command("discovered")
@click.option("--limit", type=click.IntRange(1, 10_000), default=DISCOVERED_SHOWN, show_default=True, help="How many.")
@api_options
@output_option
@with_exit_codes
def discovered(limit: int, config: Path | None, server: str | None, token_file: Path | None, output: str) -> None:
    """List machines that asked and may not boot, the latest seen first.

    \b
      netboot machine discovered
    """
    _discovered(open_client(config, server, token_file), output, limit)


def _discovered(client: Client, output: str, limit: int) -> None:
    found = client.get("/v1/discovered", limit=limit)
    rows = [
        (
            one["mac"],
            one["uuid"],
            one["serial"],
            one["architecture"],
            one["peer"],
            ago(one["last_ms"]),
            one["times"],
            one["reason"],
        )
        for one in found["discovered"]
    ]
    columns = ("MAC", "UUID", "serial", "arch", "address", "last seen", "times", "why it may not boot")
    show(output, found, columns, rows, "nobody that may not boot has asked")


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    current = one["current"]
    image = (current["script"] or {}).get("image", "")[:12] if current else ""
    state = _state(current) if current else "never reported"
    if one["pending"]:
        state += f", and an unproven {_state(one['pending'])}"
    since = ago(current["last_ms"]) if current else ""
    claims = one["claims"]
    checked = one["checked"]
    health = f"{checked['status']} (stale)" if checked and checked["stale"] else checked["status"] if checked else ""
    asked = claims["served"], ago(claims["last_ms"])
    return one["name"], one["cluster"], one["profile"], state, since, health, image, *asked


def _current(trace: dict[str, Any] | None) -> str:
    return boot_words(trace) if trace else "it never reported any"


def _pending(trace: dict[str, Any]) -> str:
    return f"{boot_words(trace)}: it alters nothing; a reboot on its way, or a false report"


def _state(trace: dict[str, Any]) -> str:
    return f"{trace['state']} (claim)" if trace["claim"] else str(trace["state"])
