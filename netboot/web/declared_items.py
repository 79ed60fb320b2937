"""One item of the inventory as its files declare it, and declaring it where those are the service's to write: one rule
for machines, profiles, channels, classes, racks and windows (docs/http-management.md)."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from images.values.strict import FaultsError, Strict
from images.values.types import Name
from netboot.lifecycle.errors import (
    BadClaimError,
    InventoryReadOnlyError,
    LifecycleError,
    NameTakenError,
    NoSuchMachineError,
    NotDeclaredError,
    NotReadyError,
)
from netboot.lifecycle.views import machine_named
from netboot.machines.declared import LISTS, Declared
from netboot.machines.former import taken
from netboot.web.binding import Shown, plain
from netboot.web.declaring import few_enough
from netboot.web.dependencies import dependencies
from netboot.web.errors import FaultyError
from netboot.web.intents import MayBeWhy
from netboot.web.operators import audit, partly
from netboot.web.shapes import Document

Did = Literal["created", "replaced", "removed", "renamed", ""]
_NAME: TypeAdapter[str] = TypeAdapter(Name)


class DeclaredListed(Shown):
    """An item as its file has it, from `line` on."""

    name: str
    file: str
    line: int
    declared: Document


class DeclaredShown(DeclaredListed):
    """`read_only`: why the API does not write it, empty: it does."""

    read_only: str


class Removing(Strict):
    """The query of DELETE. `dry_run`: `true` or `false`."""

    reason: MayBeWhy = ""
    dry_run: Literal["true", "false"] = "false"


class DeclaredActed(Shown):
    """`did`: empty where it was so already; `declared`: null where it is not (any more); `dry_run`: as it would be."""

    name: str
    did: Did
    dry_run: bool
    file: str
    declared: Document | None


def writing() -> AbstractContextManager[None]:
    """Nobody else writes the inventory by the API meanwhile."""
    return dependencies().inventory_files.writing()


def listed_of(item: Declared) -> DeclaredListed:
    """As lists have it."""
    return DeclaredListed(name=item.name, file=item.document.file, line=item.line("name"), declared=item.value)


def declared_item(kind: str, name: str) -> Declared | None:
    """The one of that kind and name, as its file has it. `kind`: what one is called, as in
    `netboot.machines.declared`."""
    items, _ = dependencies().inventory_files.items(kind)
    return next((item for item in items if item.name == name), None)


def require_free(name: str, but: str = "") -> None:
    """See that no machine has that name, or had it. `but`: the one that is to get it.

    Raises:
        NameTakenError: says which, and where.
    """
    items, _ = dependencies().inventory_files.items("machine")
    if why := taken(name, [(item.value, item.place("name")) for item in items], but):
        raise NameTakenError(why)


def unknown(kind: str, name: str) -> LifecycleError:
    """What says that it is declared nowhere; of a machine, what it is called now."""
    if kind != "machine":
        return NotDeclaredError(f"the inventory's files declare no {kind} {name[:63]!r}")
    try:
        machine_named(dependencies().live.view(), name)
    except NoSuchMachineError as error:
        return error
    except NotReadyError:
        pass  # nothing is in force yet
    return NoSuchMachineError(f"the inventory's files declare no machine {name[:63]!r}")


def shown_item(kind: str, name: str) -> DeclaredShown:
    """The same, and why the API does not write it.

    Raises:
        NoSuchMachineError, NotDeclaredError: there is none.
    """
    store, item = dependencies().inventory_files, declared_item(kind, name)
    if item is None:
        raise unknown(kind, name)
    return DeclaredShown(**plain(listed_of(item)), read_only=store.kept_from() or store.kept_file(kind, name, item))


def named(given: Any, kind: str, name: str) -> dict[str, Any]:
    """What was sent to be declared.

    Raises:
        BadClaimError: it is no item of the name that the path has.
    """
    if not isinstance(given, dict) or given.get("name") != name:
        raise BadClaimError(f"must be a {kind}, of the name that the path has", field="declared")
    return given


def declare_item(kind: str, name: str, value: dict[str, Any] | None, reason: str, *, dry_run: bool) -> DeclaredActed:
    """Write, in the end: what would not be taken is refused before. `value`: None takes it out."""
    store, before = dependencies().inventory_files, declared_item(kind, name)
    try:
        _NAME.validate_python(name)
    except ValidationError:
        raise BadClaimError("a name has at most 63 lower-case letters, digits, - and .", field="name") from None
    if kind == "machine" and before is None and value is not None:
        require_free(name)
    if why := store.kept_file(kind, name, before):
        raise InventoryReadOnlyError(why)
    was = before.value if before is not None else None
    try:
        edit = store.edit(kind, name, value, before)
        few_enough(store.declared(edit))
    except FaultsError as error:
        raise FaultyError(error.faults, "correct what was sent, or the files; nothing was written") from None
    did: Did = "removed" if value is None else "created" if was is None else "replaced" if was != value else ""
    file = next(iter(edit))
    act = "declare" if value is not None else "undeclare"
    facts: Mapping[str, object] = {"file": file}
    about: dict[str, Any] = {"reason": reason, "before": was, "after": value}
    if kind == "machine":
        about |= {"machine": name}
    else:
        facts = {**facts, "kind": LISTS[kind], "name": name}
    if did and not dry_run:
        with partly(act, facts, **about):
            store.write(edit)
    if not dry_run:
        audit(act, facts, **about, changed=bool(did))
    return DeclaredActed(name=name, did=did, dry_run=dry_run, file=file, declared=value)
