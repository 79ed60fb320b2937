"""`netboot machine declare|undeclare`: a machine that asked and may not boot becomes one of the inventory. Asks the
running service."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import click

from images.values import strict
from netboot.cli.client import NOT_ALLOWED, ApiError, Client, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.inventory_yaml import Yaml, yaml_options
from netboot.cli.moves import not_meanwhile
from netboot.cli.ordering import may_say_why_option
from netboot.cli.output import show
from netboot.client.errors import NotAllowedError, UnknownError
from netboot.machines.declared import items_of
from netboot.machines.found import declaration, in_words
from netboot.machines.identity import parse_mac

if TYPE_CHECKING:
    from netboot.client.models import DeclaringFound, MachineSent


_NUMBERED = re.compile(r"[^%]*%(0[1-9])?d[^%]*")
_LOOK = "look at it again, `netboot inventory show machines {}`: nothing was changed"
_SEEN = re.compile(r"[0-9a-f]{32}")


def _seen(_context: click.Context, _option: click.Parameter, given: str) -> str:
    if given and not _SEEN.fullmatch(given):
        raise click.BadParameter("must be what `netboot machine discovered` shows under seen: 32 hexadecimal digits")
    return given


@click.command()
@click.argument("mac", required=False)
@click.option("--all", "every", is_flag=True, help="Each machine that introduced itself, in place of one MAC.")
@click.option("--name", required=True, help="What it is to be called, its host name; with --all like gpu-%03d.")
@click.option("--first", type=click.IntRange(0), default=1, show_default=True, help="With --all: the first number.")
@click.option("--profile", required=True, help="A declared profile, which says what it boots.")
@click.option("--class", "class_name", help="A declared class, whose hardware it has.")
@click.option("--rack", help="A declared rack, where it stands.")
@click.option(
    "--seen", default="", callback=_seen, help="What `discovered` shows under seen: it is declared by nothing else."
)
@yaml_options
@may_say_why_option
@dry_run_option
@api_command
def declare(
    mac: str | None,
    every: bool,
    name: str,
    first: int,
    profile: str,
    class_name: str | None,
    rack: str | None,
    seen: str,
    yaml: Yaml | None,
    reason: str,
    dry_run: bool,
    connection: Connection,
    output: str,
) -> None:
    """Declare the machine with MAC, which asked and may not boot, by what it said: its MACs, UUID and serial
    number, and the key of its TPM, where it was discovered; else the MAC and UUID with which it asked.

    With --seen it is declared by what `netboot machine discovered` showed, or not at all: it may be another by now.

    With --all each that was discovered is declared, or none: in the order of the ports at which they are, as their
    switches say, then of their MACs. Not where two say that they are one machine: declare the others one by one.

    Only where the service may write the inventory (`inventory_writable`); what would not be taken is not written, and
    every fault is named. For an inventory that is kept in git --out writes the YAML into a file that is not there yet,
    whole or not at all, and --print shows it: one file a machine, for two lists in one file are a fault.

    \b
      netboot machine discovered
      netboot machine declare 52:54:00:12:34:56 --name gpu-001 --profile default --seen 0123456789abcdef0123456789abcdef
      netboot machine declare 52:54:00:12:34:56 --name gpu-001 --profile default --out inventory/gpu-001.yaml
      netboot machine declare --all --name gpu-%03d --profile default --dry-run
    """
    if every:
        values = _each(connection.open(), mac or seen, name, first, profile, class_name, rack)
        _declare_each(connection.open(), values, reason, output, yaml=yaml, dry_run=dry_run)
        return
    try:
        wanted = parse_mac(mac or "")
    except ValueError as error:
        raise click.BadParameter(str(error) if mac else "name one, or --all", param_hint="MAC") from None
    client = connection.open()
    if yaml is not None:
        value = _found(client, wanted, name, profile, class_name, rack, seen)
        _require_right(client, [value])
        yaml.put([value], output)
        return
    body: DeclaringFound = {"name": name, "profile": profile, "class": class_name, "rack": rack, "seen": seen}
    with not_meanwhile(_another(wanted, seen)):
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
    client = connection.open()
    there, tag = client.tagged(client.declared.get, machine)
    if there["read_only"] and there["line"]:
        at, why = f"{there['file']}:{there['line']}", there["read_only"]
        why = why if at in why else f"{machine} is declared at {at}; {why}"
        raise NotAllowedError(why, "take it out there, then `netboot config check`")
    changed = ApiError(f"{machine} was changed by somebody else just now", _LOOK.format(machine), NOT_ALLOWED)
    with not_meanwhile(changed):
        answer = client.declared.delete(machine, reason=reason or None, dry_run=said, if_match=tag)
    show(output, answer, (), (), f"{machine} {'would be' if dry_run else 'is'} declared no more")


def _each(
    client: Client, one: str, pattern: str, first: int, profile: str, class_name: str | None, rack: str | None
) -> list[dict[str, Any]]:
    """What all that introduced themselves would be, in the inventory. `one`: what names a single machine."""
    if one:
        raise click.UsageError("--all is of all machines: leave out MAC and --seen")
    if not _NUMBERED.fullmatch(pattern):
        raise click.BadParameter(
            "with --all it has one place for a number: write it like gpu-%03d", param_hint="--name"
        )
    found = [each for each in client.boots.each_discovered() if each["hardware"] is not None and each["mac"]]
    if not found:
        remedy = "see `netboot machine discovered`; machines do where `discovery` is configured: docs/discovery.md"
        raise UnknownError("no machine introduced itself within the hour", remedy)
    if claimed := [str(each["mac"]) for each in found if each["told_otherwise_from"]]:
        why = f"more than one says to be the machine with the MAC {', '.join(claimed)}"
        raise ApiError(why, "find out which it is, and declare machines by their MACs, with --seen", NOT_ALLOWED)
    numbered = enumerate(sorted(found, key=_place), first)
    return [declaration(pattern % number, profile, each, class_name=class_name, rack=rack) for number, each in numbered]


def _place(found: Mapping[str, Any]) -> list[tuple[int, str, int]]:
    """By switch and port, whose numbers count as such, then by MAC; those of which no switch says it come last."""
    links = [card["neighbour"] for card in found["hardware"]["cards"] if card["neighbour"]]
    where = f"{links[0]['system']} {links[0]['port']}" if links else ""
    parts = re.findall(r"(\D+)|(\d+)", where) or [("\U0010ffff", "")]
    return [*((0, text, int(number or 0)) for text, number in parts), (1, found["mac"], 0)]


def _declare_each(
    client: Client, values: "list[dict[str, Any]]", reason: str, output: str, *, yaml: Yaml | None, dry_run: bool
) -> None:
    """All, or none."""
    if yaml is not None:
        _require_right(client, values)
        yaml.put(values, output)
        return
    machines: list[MachineSent] = [{"place": value["match"]["macs"][0], "declared": value} for value in values]
    answer = client.declared.import_({"machines": machines, "reason": reason, "dry_run": dry_run})
    rows = [(value["name"], in_words(value["match"])) for value in values]
    show(output, answer, ("machine", "declared by"), rows, names=answer["machines"])


def _found(
    client: Client, mac: str, name: str, profile: str, class_name: str | None, rack: str | None, seen: str
) -> dict[str, Any]:
    """What one that asked would be, in the inventory."""
    found = next((each for each in client.boots.each_discovered() if each["mac"] == mac), None)
    if found is None:
        remedy = f"see `netboot machine discovered`; what it is told, `netboot explain --mac {mac}` says"
        raise UnknownError(f"no machine with the MAC {mac} asked and may not boot", remedy)
    if seen and seen != found["seen"]:
        raise _another(mac, seen)
    return declaration(name, profile, found, class_name=class_name, rack=rack)


def _another(mac: str, seen: str) -> ApiError:
    why = f"the machine with the MAC {mac} says something else of itself by now than was shown ({seen})"
    return ApiError(why, "look again, it may be another: `netboot machine discovered`", NOT_ALLOWED)


def _require_right(client: Client, values: "list[dict[str, Any]]") -> None:
    """See that they are such as the service would declare: by themselves, and by what they refer to there.

    Raises:
        click.BadParameter: a name that no machine can have. NotAllowedError: what is not declared,
        or a name that is taken.
    """
    from netboot.machines.former import taken
    from netboot.machines.imported import of_sent, sent
    from netboot.machines.inventory import faults_among, unknown_references  # bring the whole inventory

    declared = [(each["declared"], f"{each['file']}:{each['line']}") for each in client.declared.each()]
    if why := "\n".join(filter(None, (taken(value["name"], declared) for value in values))):
        raise NotAllowedError(f"{why}\nnothing was made", "`netboot inventory list machines` has those that are taken")
    there = client.declared.overview()
    others = {key: [{"name": name} for name in there[key]] for key in ("profiles", "classes", "racks")}
    documents = [sent(value["name"], value) for value in values]
    items = [item for each in (*documents, strict.Document("", others, {})) for item in items_of(each)]
    faults = [*faults_among(documents), *unknown_references(items)]
    if unfit := [fault for fault in faults if fault.key.endswith(".name")]:
        raise click.BadParameter(unfit[0].message, param_hint="'--name'")
    if faults:
        said = "\n".join(map(str, of_sent(faults, [value["name"] for value in values])))
        raise NotAllowedError(f"{said}\nnothing was made", "correct what is named")
