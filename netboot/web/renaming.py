"""`POST /v1/inventory/machines/<name>/rename`: a machine gets another name, and keeps what is known of it
(docs/inventory.md)."""

from typing import Any

from images.values.strict import FaultsError, Strict
from images.values.types import Name
from netboot.lifecycle.errors import InventoryReadOnlyError, NoSuchMachineError
from netboot.machines.former import of_renamed
from netboot.web.declared import DeclaredActed, declared_item
from netboot.web.declaring import few_enough
from netboot.web.dependencies import dependencies
from netboot.web.errors import FaultyError
from netboot.web.intents import MayBeWhy
from netboot.web.operators import audit, partly


class Renaming(Strict):
    """`name`: the new one."""

    name: Name
    reason: MayBeWhy = ""
    dry_run: bool = False


def renamed(name: str, body: Renaming) -> DeclaredActed:
    """Give a machine another name. The one that it had becomes a former name."""
    store, item, new = dependencies().inventory_files, declared_item(name), body.name
    if item is None:
        raise NoSuchMachineError(f"the inventory's files declare no machine {name[:63]!r}")
    if new == name:
        return DeclaredActed(name=new, did="", dry_run=body.dry_run, file=item.document.file, declared=item.value)
    if declared_item(new) is not None:
        raise InventoryReadOnlyError(f"{new} is declared already: choose another name")
    value = of_renamed(item.value, new)
    edit = dict(store.edit(name, value, item))
    if store.is_of_one(item):
        edit = {**store.edit(new, value, None), **store.edit(name, None, item)}  # who reads between them finds two
    if why := store.kept_file(name, item) or (store.kept_file(new, None) if store.is_of_one(item) else ""):
        raise InventoryReadOnlyError(why)
    try:
        few_enough(store.declared(edit))
    except FaultsError as error:
        raise FaultyError(error.faults, "correct what was sent, or the files; nothing was written") from None
    file = next(iter(edit))
    if not body.dry_run:
        there = f"{file} is written, and declares it as {new}: remove {item.document.file}, which still does as {name}"
        facts: dict[str, object] = {"file": file, "to": new}
        about: dict[str, Any] = {"machine": name, "reason": body.reason, "before": item.value, "after": value}
        new_file = store.folder / file if store.is_of_one(item) else None
        with partly("rename", facts, so_far=lambda: there if new_file and new_file.exists() else "", **about):
            store.write(edit)
        audit("rename", facts, **about)
    return DeclaredActed(name=new, did="renamed", dry_run=body.dry_run, file=file, declared=value)
