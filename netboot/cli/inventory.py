"""`netboot inventory`: what the inventory declares, each thing as it is written, and declaring it where the service
writes it. Asks the running service."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

import click

from netboot.cli import complete
from netboot.cli.client import NOT_ALLOWED, ApiError, Client, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.given_files import GivenFile
from netboot.cli.moves import not_meanwhile
from netboot.cli.ordering import may_say_why_option
from netboot.cli.output import printable, program, show
from netboot.client.errors import UnknownError
from netboot.machines.declared import KINDS, LARGEST_ITEM, LISTS

if TYPE_CHECKING:
    from netboot.client.models import DeclaredActed, DeclaredShown

_KIND = click.Choice(tuple(KINDS))
_Kind = Literal["profiles", "channels", "classes", "racks", "maintenance"]
_DID = {"created": "declared", "replaced": "declared", "": "declared, as it was,"}


@click.group()
def group() -> None:
    """What the inventory declares: machines, profiles, channels, classes, racks and maintenance windows, each as its
    file has it.

    Everybody may look. Where the service may write the inventory (`inventory_writable`, and files in no git) admins
    declare things here; elsewhere the answer says where to edit them.

    \b
      netboot inventory list profiles
      netboot inventory show profiles default > default.yaml
      netboot inventory set default.yaml --dry-run
      netboot inventory remove racks r7 --reason "sold"
    """


def _names(typed: dict[str, Any]) -> Iterable[tuple[str, str]]:
    for each in _items(complete.client(typed), typed["kind"])["items"]:
        yield each["name"], ""


_named = complete.completer(_names)


@group.command("list")
@click.argument("kind", type=_KIND)
@api_command
def list_(kind: str, connection: Connection, output: str) -> None:
    """List what is declared of KIND, in force or not, with the file and the line where it is.

    Files that cannot be read are named on stderr.

    \b
      netboot inventory list classes
      netboot inventory list machines --output name
    """
    found = _items(connection.open(), kind)
    for problem in found["problems"]:
        click.secho(f"warning: {printable(problem)}", fg="yellow", err=True)
    rows = [(each["name"], _place(each)) for each in found["items"]]
    answer = {kind: found["items"], "problems": found["problems"]}
    show(output, answer, ("name", "where"), rows, f"no {KINDS[kind]} is declared", names=[row[0] for row in rows])


@group.command("show")
@click.argument("kind", type=_KIND)
@click.argument("name", shell_complete=_named)
@api_command
def show_(kind: str, name: str, connection: Connection, output: str) -> None:
    """Show NAME of KIND as a file of the inventory has it, which `netboot inventory set` takes.

    \b
      netboot inventory show profiles default
      netboot inventory show racks r7 --output json | jq .declared.origins
    """
    found = _get(connection.open(), kind, name)
    if output not in ("table", "wide"):
        program(output, found, names=[found["name"]])
        return
    from netboot.machines.written import text_of  # brings the whole inventory

    click.echo(f"# {printable(_place(found))}")
    if found["read_only"]:
        click.echo(f"# not the service's to write: {printable(found['read_only'])}")
    click.echo(text_of(KINDS[kind], found["declared"]), nl=False)


@group.command("set")
@click.argument("file", type=GivenFile(LARGEST_ITEM))
@may_say_why_option
@dry_run_option
@api_command
def set_(file: BinaryIO, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Declare what FILE has, or declare it otherwise: one thing, as a file of the inventory has it; - reads a pipe.

    The whole inventory is checked with it, every fault is named, and with one nothing is written. The service writes a
    file of its own for it; one that a person wrote is not changed. Where somebody else declares the same at that very
    moment, one of the two is refused.

    \b
      netboot inventory show classes hgx > hgx.yaml
      netboot inventory set hgx.yaml --dry-run
      echo '{racks: [{name: r7, origins: ["http://192.0.2.7:8080"]}]}' | netboot inventory set - --reason "new rack"
    """
    kind, name, declared = _one(file)
    client = connection.open()
    try:
        tags: Any = {"if_match": client.tagged(_get, client, kind, name)[1]}
    except UnknownError:
        tags = {"if_none_match": "*"}
    body: Any = {"declared": declared, "reason": reason, "dry_run": dry_run}
    with _not_meanwhile(kind, name):
        if kind == "machines":
            answer = client.declared.put(name, body, **tags)
        else:
            answer = client.inventory.put(cast("_Kind", kind), name, body, **tags)
    _told(output, kind, answer, f"{_DID[answer['did']]} in {answer['file']}")


@group.command()
@click.argument("kind", type=_KIND)
@click.argument("name", shell_complete=_named)
@may_say_why_option
@dry_run_option
@api_command
def remove(kind: str, name: str, reason: str, dry_run: bool, connection: Connection, output: str) -> None:
    """Take NAME of KIND out of the inventory, where it was declared by the API and nothing names it.

    What names it is said, each with its file and line. One that is in a file which somebody wrote is taken out there.
    One that somebody else changes at that very moment stays.

    \b
      netboot inventory remove profiles old --dry-run
      netboot inventory remove profiles old --reason "nobody boots it"
    """
    dry: Literal["true", "false"] = "true" if dry_run else "false"
    client = connection.open()
    more: Any = {"reason": reason or None, "dry_run": dry, "if_match": client.tagged(_get, client, kind, name)[1]}
    with _not_meanwhile(kind, name):
        if kind == "machines":
            answer = client.declared.delete(name, **more)
        else:
            answer = client.inventory.delete(cast("_Kind", kind), name, **more)
    _told(output, kind, answer, "declared no more")


def _not_meanwhile(kind: str, name: str) -> AbstractContextManager[None]:
    """Around an act on it with the tag of what was found."""
    said = f"{KINDS[kind]} {name} was changed by somebody else just now"
    look = f"look at it again, `netboot inventory show {kind} {name}`: nothing was changed"
    return not_meanwhile(ApiError(said, look, NOT_ALLOWED))


def _told(output: str, kind: str, answer: "DeclaredActed", what: str) -> None:
    so = "would be" if answer["dry_run"] else "is"
    show(output, answer, (), (), f"{KINDS[kind]} {answer['name']} {so} {what}", names=[answer["name"]])


def _place(item: Any) -> str:
    return f"{item['file']}:{item['line']}" if item["line"] else str(item["file"])


def _items(client: Client, kind: str) -> Any:
    if kind == "machines":
        found = client.declared.list()
        return {"items": found["machines"], "problems": found["problems"]}
    return client.inventory.list(cast("_Kind", kind))


def _get(client: Client, kind: str, name: str) -> "DeclaredShown":
    return client.declared.get(name) if kind == "machines" else client.inventory.get(cast("_Kind", kind), name)


def _one(file: BinaryIO) -> tuple[str, str, dict[str, Any]]:
    """The kind, the name and the item of a file.

    Raises:
        images.values.strict.FaultsError: it is no YAML. ApiError: it declares no one item.
    """
    from images.values import strict
    from netboot.machines.declared import items_of
    from netboot.machines.written import is_json

    try:
        text = file.read().decode()
    except UnicodeDecodeError:
        raise ApiError(f"{file.name} is not UTF-8 text", "write it in UTF-8", NOT_ALLOWED) from None
    document = strict.parse(text, file.name)
    items = list(items_of(document))
    if len(items) != 1 or document.value != {LISTS[items[0].kind]: [items[0].value]}:
        found = ", ".join(f"{each.kind} {each.name}" for each in items)[:200] or "none that has a name"
        remedy = "give one thing at a time, like `racks: [{name: r7}]`: see `netboot inventory show`"
        words = f"{file.name} has to declare one thing, and nothing else, and declares {found}"
        raise ApiError(printable(words), remedy, NOT_ALLOWED)
    if not is_json(items[0].value):
        remedy = "write text, numbers, true or false, lists, and keys with values"
        raise ApiError(f"{items[0].place()} has values that JSON has no words for", remedy, NOT_ALLOWED)
    return LISTS[items[0].kind], items[0].name, items[0].value
