"""`netboot machine declare|undeclare`: a machine that asked and may not boot becomes one of the inventory. Asks the
running service."""

from typing import TYPE_CHECKING, Literal

import click

from netboot.cli.client import Client, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.ordering import may_say_why_option
from netboot.cli.output import show
from netboot.client.errors import UnknownError
from netboot.machines.found import declaration, in_words
from netboot.machines.identity import parse_mac

if TYPE_CHECKING:
    from netboot.client.models import DeclaringFound


@click.command()
@click.argument("mac")
@click.option("--name", required=True, help="What it is to be called, which becomes its host name.")
@click.option("--profile", required=True, help="A declared profile, which says what it boots.")
@click.option("--class", "class_name", help="A declared class, whose hardware it has.")
@click.option("--rack", help="A declared rack, where it stands.")
@click.option("--seen", default="", help="What `discovered` shows under seen: it is declared by nothing else.")
@click.option("--print", "printed", is_flag=True, help="Print the YAML, for an inventory that is kept in git.")
@may_say_why_option
@dry_run_option
@api_command
def declare(
    mac: str,
    name: str,
    profile: str,
    class_name: str | None,
    rack: str | None,
    seen: str,
    printed: bool,
    reason: str,
    dry_run: bool,
    connection: Connection,
    output: str,
) -> None:
    """Declare the machine with MAC, which asked and may not boot, by what it said: its MACs, UUID and serial
    number, and the key of its TPM, where it was discovered; else the MAC and UUID with which it asked.

    With --seen it is declared by what `netboot machine discovered` showed, or not at all: it may be another by now.

    Only where the service may write the inventory (`inventory_writable`); what would not be taken is not written, and
    every fault is named. With --print nothing is written: the YAML goes into a file of the inventory.

    \b
      netboot machine discovered
      netboot machine declare 52:54:00:12:34:56 --name gpu-001 --profile default --seen 0123456789abcdef0123456789abcdef
      netboot machine declare 52:54:00:12:34:56 --name gpu-001 --profile default --print >> inventory/gpu-001.yaml
    """
    try:
        wanted = parse_mac(mac)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="MAC") from None
    client = connection.open()
    if printed:
        click.echo(_yaml(client, wanted, name, profile, class_name, rack, seen), nl=False)
        return
    body: DeclaringFound = {"name": name, "profile": profile, "class": class_name, "rack": rack, "seen": seen}
    answer = client.declared.declare(wanted, {**body, "reason": reason, "dry_run": dry_run})
    so = "would be" if answer["dry_run"] else "is"
    match = (answer["declared"] or {}).get("match", {})
    show(output, answer, (), (), f"{name} {so} declared in {answer['file']}: {in_words(match)}")


@click.command()
@click.argument("machine")
@may_say_why_option
@dry_run_option
@api_command
def undeclare(machine: str, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Take MACHINE out of the inventory, where it was declared by the API.

    One that is in a file which somebody wrote is taken out there: the answer says where. What is known of it stays for
    a while; `netboot machine retire` first, where it must not come back by its TPM alone.

    \b
      netboot machine undeclare gpu-001 --reason "sold"
    """
    said: Literal["true", "false"] = "true" if dry_run else "false"
    answer = connection.open().declared.delete(machine, reason=reason or None, dry_run=said, if_match="*")
    show(output, answer, (), (), f"{machine} {'would be' if dry_run else 'is'} declared no more")


def _yaml(
    client: Client, mac: str, name: str, profile: str, class_name: str | None, rack: str | None, seen: str
) -> str:
    from netboot.stores.inventory_files import text_of  # brings the whole inventory

    found = next((each for each in client.boots.each_discovered() if each["mac"] == mac), None)
    if found is None:
        raise UnknownError(f"no machine with the MAC {mac} asked and may not boot", "see `netboot machine discovered`")
    if seen and seen != found["seen"]:
        why = f"the machine with the MAC {mac} says something else of itself by now than was shown ({seen})"
        raise UnknownError(why, "look again: `netboot machine discovered`")
    return text_of(declaration(name, profile, found, class_name=class_name, rack=rack))
