"""`netboot machine rename`: a machine gets another name, and keeps what is known of it. Asks the running service."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from images.values import files
from images.values.types import NAME
from netboot.cli import complete, file_acts
from netboot.cli.client import NOT_ALLOWED, ApiError, Client, Connection, api_command
from netboot.cli.dry_run import dry_run_option
from netboot.cli.ordering import may_say_why_option
from netboot.cli.output import show
from netboot.cli.paths import find_config
from netboot.client.errors import UnknownError
from netboot.config import Config

if TYPE_CHECKING:
    from netboot.client.models import DeclaredShown
    from netboot.machines.declared import Declared


@click.command()
@click.argument("machine", metavar="OLD", shell_complete=complete.machines)
@click.argument("name", metavar="NEW")
@click.option("--yes", is_flag=True, help="Also where it is in service.")
@may_say_why_option
@dry_run_option
@api_command
def rename(machine: str, name: str, reason: str, dry_run: bool, yes: bool, connection: Connection, output: str) -> None:
    """Give the machine OLD the name NEW. Its boots, its history, its TPM and what is wanted of it go with it.

    The name of before becomes one of its `former_names`: by that its running boot goes on to report. Where the service
    writes the inventory (`inventory_writable`), it does; a file that a person wrote is edited here, on the service's
    host, and its comments stay.

    A node cannot be renamed: a machine in service runs on as the node that it is until it boots again, its certificates
    are not renewed, and then another node joins. So drain it, rename it, reboot it. `node: {name: OLD}` in the
    inventory, written before this, keeps the node's name over that.

    \b
      netboot machine rename gpu-001 r7-gpu-01 --dry-run
      netboot machine rename gpu-001 r7-gpu-01 --reason "moved to rack 7"
    """
    if name == machine:
        raise click.BadParameter("it has that name already: give another", param_hint="NEW")
    client = connection.open()
    declared = client.declared.get(machine)
    node = _node(client, declared)
    if node and not (yes or dry_run):
        words = f"{machine} is in service. {_afterwards(machine, name, node)}"
        raise ApiError(words, f"`netboot machine drain {machine}`, then --yes, and reboot it", NOT_ALLOWED)
    so = "would be" if dry_run else "is"
    if not declared["read_only"]:
        answer = client.renaming.renamed(machine, {"name": name, "reason": reason, "dry_run": dry_run})
        done, file = dict(answer), answer["file"]
    else:
        file = _edit(declared, name, connection, reason, dry_run=dry_run)
        done = {"name": name, "did": "renamed", "dry_run": dry_run, "file": file}
    text = f"{machine} {so} {name} in {file}" + (f"\n{_afterwards(machine, name, node)}" if node else "")
    show(output, done, (), (), text)


def _node(client: Client, declared: "DeclaredShown") -> str:
    """The node as which the machine is in service; empty: as none."""
    name, node = declared["name"], declared["declared"].get("node")
    its = str(node.get("name") or name) if isinstance(node, dict) else str(name)
    try:
        found = client.machines.get(name)
    except UnknownError:
        return ""  # declared, and not in force yet
    if found["conditions"] is None:
        return its  # nobody can tell: as if it were
    by_type = {each["type"]: each for each in found["conditions"]}
    in_service = by_type.get("InService")
    if in_service is None or in_service["status"] != "True" or in_service["reason"] == "NoCluster":
        return ""
    return its


def _afterwards(machine: str, name: str, node: str) -> str:
    until = f"Until it boots again it runs as node {node}, whose certificates are not renewed: they end within a day."
    if node != machine:
        return f"{until} Then it joins as that node again."
    return f"{until} Then it joins as node {name}, and `kubectl delete node {node}` removes the old one."


def _edit(declared: "DeclaredShown", name: str, connection: Connection, reason: str, *, dry_run: bool) -> str:
    """Edit the file that a person wrote, here. Raises ApiError: not here, not by a program, or not so."""
    from netboot.machines.declared import documents_of, items_of
    from netboot.machines.renaming import NotEditableError, renamed
    from netboot.stores.inventory import read_inventory
    from netboot.stores.inventory_files import InventoryFiles

    path, machine = Path(declared["file"]), declared["name"]
    if not declared["line"]:
        remedy = "delete that object and apply one of the new name, with the old one in its `former_names`"
        raise ApiError(declared["read_only"], remedy, NOT_ALLOWED)
    config = find_config(connection.config)
    if path.parent.resolve() != config.inventory.resolve():
        raise ApiError(declared["read_only"], f"run this on the host that has {path}", NOT_ALLOWED)
    documents, _ = documents_of(config.inventory)
    items = [item for each in documents for item in items_of(each) if item.kind == "machine"]
    item = next((each for each in items if each.name == machine), None)
    if item is None or Path(item.document.file).name != path.name:
        raise ApiError(f"{path} does not declare {machine} here", "see --config", NOT_ALLOWED)
    _require_free(name, items, machine)
    try:
        text = renamed(files.bytes_of(path, files.LARGE).decode(), item, name)  # its lines end as they do
    except NotEditableError as error:
        raise ApiError(str(error), "then `netboot config check`", NOT_ALLOWED) from None
    read_inventory(config, {path.name: text})

    def write(before: file_acts.Stood, after: file_acts.Stood, result: str) -> None:
        facts = {"file": path.name, "to": name}
        file_acts.record(
            config.data, "rename", facts, machine=machine, before=before, after=after, reason=reason, result=result
        )

    if not dry_run:
        with file_acts.recorded(lambda: _declares(config, (machine, name)), write):
            InventoryFiles(config).write({path.name: text})
    return str(path)


def _require_free(name: str, items: "Sequence[Declared]", machine: str) -> None:
    """See that a machine may have that name.

    Raises:
        click.BadParameter: none can. ApiError: one of `items` has it, or had it.
    """
    from netboot.machines.former import taken

    if not NAME.fits(name):
        raise click.BadParameter(NAME.message, param_hint="NEW")
    if why := taken(name, [(item.value, item.place("name")) for item in items], machine):
        raise ApiError(why, "`netboot inventory list machines` has those that are taken", NOT_ALLOWED)


def _declares(config: Config, names: tuple[str, str]) -> file_acts.Stood:
    """What the files say of the machine, by either name."""
    from netboot.machines.declared import documents_of, items_of

    documents, _ = documents_of(config.inventory)
    items = [item for each in documents for item in items_of(each) if item.kind == "machine"]
    return next((item.value for item in items if item.name in names), None)
