"""`POST /v1/inventory/machines/<name>/rename`: a machine gets another name, and keeps what is known of it
(docs/inventory.md)."""

from typing import Any

from images.values.strict import FaultsError, Strict
from images.values.types import Name
from netboot.lifecycle.errors import InventoryReadOnlyError
from netboot.machines.former import of_renamed
from netboot.web.declared_items import DeclaredActed, declared_item, require_free, unknown
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
    store, item, new = dependencies().inventory_files, declared_item("machine", name), body.name
    if item is None:
        raise unknown("machine", name)
    if new == name:
        return DeclaredActed(name=new, did="", dry_run=body.dry_run, file=item.document.file, declared=item.value)
    require_free(new, name)
    value, kept = of_renamed(item.value, new), store.kept_file("machine", name, item)
    edit = dict(store.edit("machine", name, value, item))
    if store.is_of_one(item):
        made = store.edit("machine", new, value, None)
        edit = {**made, **store.edit("machine", name, None, item)}  # who reads between them finds two
        kept = kept or store.kept_file("machine", new, None)
    if kept:
        raise InventoryReadOnlyError(kept)
    try:
        few_enough(store.declared(edit))
    except FaultsError as error:
        raise FaultyError(error.faults, "correct what was sent, or the files; nothing was written") from None
    file = next(iter(edit))

    def so_far() -> str:
        both = all(declared_item("machine", each) is not None for each in (name, new))
        return f"{new} is declared in {file}, and {name} is still, of which one has to be taken out" if both else ""

    if not body.dry_run:
        facts: dict[str, object] = {"file": file, "to": new}
        about: dict[str, Any] = {"machine": name, "reason": body.reason, "before": item.value, "after": value}
        with partly("rename", facts, so_far=so_far, **about):
            store.write(edit)
        audit("rename", facts, **about)
    return DeclaredActed(name=new, did="renamed", dry_run=body.dry_run, file=file, declared=value)
