"""`/v1/inventory[/machines[/<name>]]`, `POST /v1/discovered/<mac>/declare`: machines as the inventory's files declare
them, and where those are the service's to write, declaring them (docs/http-management.md)."""

from contextlib import AbstractContextManager
from typing import Any, Literal

from pydantic import Field, SkipValidation, TypeAdapter, ValidationError

from images.values.strict import FaultsError, Strict
from images.values.types import Name
from netboot.lifecycle.errors import (
    BadClaimError,
    InventoryReadOnlyError,
    InventoryUnreadError,
    NoSuchMachineError,
    TooManyRemovedError,
)
from netboot.lifecycle.sightings import Discovered
from netboot.machines.declared import Declared
from netboot.machines.difference import names, too_many_of
from netboot.machines.found import declaration
from netboot.machines.identity import parse_mac
from netboot.machines.values import Inventory, Machine
from netboot.status.controllers import PublisherStatus
from netboot.web.binding import Shown, plain
from netboot.web.dependencies import dependencies
from netboot.web.errors import FaultyError
from netboot.web.intents import MayBeWhy
from netboot.web.operators import audit
from netboot.web.pages import PageAsked, Paged, page
from netboot.web.shapes import Document

Did = Literal["created", "replaced", "removed", ""]
_NAME: TypeAdapter[str] = TypeAdapter(Name)
LOOKED_AT = 10_000
"""Discovered machines, of which the latest with that MAC counts."""


class InventoryDescribed(Shown):
    """`read_only`: why the API writes nothing there, empty: it does. And names of what machines may refer to."""

    folder: str
    read_only: str
    profiles: tuple[str, ...]
    classes: tuple[str, ...]
    racks: tuple[str, ...]


class DeclaredListed(Shown):
    """A machine as its file has it, from `line` on."""

    name: str
    file: str
    line: int
    declared: Document


class DeclaredMachines(Paged):
    """In the order of the files. `problems`: files that cannot be read, whose machines are not in there."""

    machines: tuple[DeclaredListed, ...]
    problems: tuple[str, ...]


class DeclaredShown(DeclaredListed):
    """`read_only`: why the API does not write it, empty: it does."""

    read_only: str


class Declaring(Strict):
    """The body of PUT: the machine as a file of the inventory has it."""

    declared: SkipValidation[Machine]
    reason: MayBeWhy = ""
    dry_run: bool = False


class Removing(Strict):
    """The query of DELETE. `dry_run`: `true` or `false`."""

    reason: MayBeWhy = ""
    dry_run: Literal["true", "false"] = "false"


class DeclaringFound(Strict):
    """The body of `declare`: what it is to be called and to boot. How it is recognised is what was seen of it."""

    name: Name
    profile: Name
    class_name: Name | None = Field(None, alias="class")
    rack: Name | None = None
    reason: MayBeWhy = ""
    dry_run: bool = False


class DeclaredActed(Shown):
    """`did`: empty where it was so already; `declared`: null where it is not (any more); `dry_run`: as it would be."""

    name: str
    did: Did
    dry_run: bool
    file: str
    declared: Document | None


def overview() -> InventoryDescribed:
    """Whether the inventory is the API's to write, and what machines may refer to."""
    deps = dependencies()
    in_force = deps.live.view().snapshot.inventory
    return InventoryDescribed(
        folder=str(deps.inventory),
        read_only=deps.inventory_files.kept_from(),
        profiles=tuple(each.name for each in in_force.profiles),
        classes=tuple(each.name for each in in_force.classes),
        racks=tuple(each.name for each in in_force.racks),
    )


def listed(query: PageAsked) -> DeclaredMachines:
    """Machines as they are declared, also where that is not in force."""
    items, problems = dependencies().inventory_files.machines()
    once = list({item.name: item for item in items}.values())
    part, more = page(query, once, lambda item: item.name)
    return DeclaredMachines(machines=tuple(map(_listed, part)), problems=problems, next_page=more)


def shown(name: str) -> DeclaredShown:
    """One, as it is declared."""
    store, item = dependencies().inventory_files, _item(name)
    if item is None:
        raise NoSuchMachineError(f"the inventory's files declare no machine {name[:63]!r}")
    return DeclaredShown(**plain(_listed(item)), read_only=store.kept_from() or store.kept_file(name, item))


def put(name: str, body: Declaring) -> DeclaredActed:
    """Declare a machine, or declare it otherwise."""
    given: Any = body.declared
    if not isinstance(given, dict) or given.get("name") != name:
        raise BadClaimError("must be a machine, of the name that the path has", field="declared")
    return _declare(name, given, body.reason, dry_run=body.dry_run)


def removed(name: str, query: Removing) -> DeclaredActed:
    """Declare a machine no more."""
    return _declare(name, None, query.reason, dry_run=query.dry_run == "true")


def declare(mac: str, body: DeclaringFound) -> DeclaredActed:
    """Declare a machine that asked and may not boot, by the MAC and UUID with which it did."""
    found = _seen(mac)
    seen = found.mac or mac, found.uuid, found.architecture
    value = declaration(body.name, body.profile, *seen, class_name=body.class_name, rack=body.rack)
    with writing():
        if _item(body.name) is not None:
            raise InventoryReadOnlyError(f"{body.name} is declared already: choose another name, or edit that machine")
        return _declare(body.name, value, body.reason, dry_run=body.dry_run)


def writing() -> AbstractContextManager[None]:
    """Nobody else writes the inventory by the API meanwhile."""
    return dependencies().inventory_files.writing()


def _listed(item: Declared) -> DeclaredListed:
    return DeclaredListed(name=item.name, file=item.document.file, line=item.line("name"), declared=item.value)


def _item(name: str) -> Declared | None:
    items, _ = dependencies().inventory_files.machines()
    return next((item for item in items if item.name == name), None)


def _declare(name: str, value: dict[str, Any] | None, reason: str, *, dry_run: bool) -> DeclaredActed:
    """Write, in the end: what would not be taken is refused before."""
    deps, store, before = dependencies(), dependencies().inventory_files, _item(name)
    try:
        _NAME.validate_python(name)
    except ValidationError:
        raise BadClaimError("a name has at most 63 lower-case letters, digits, - and .", field="name") from None
    if why := store.kept_file(name, before):
        raise InventoryReadOnlyError(why)
    was = before.value if before is not None else None
    try:
        edit = store.edit(name, value)
        _few_enough(deps.live.view().snapshot.inventory, store.declared(edit))
    except FaultsError as error:
        raise FaultyError(error.faults, "correct what was sent, or the files; nothing was written") from None
    did: Did = "removed" if value is None else "created" if was is None else "replaced" if was != value else ""
    file = next(iter(edit))
    if did and not dry_run:
        store.write(edit)
    if not dry_run:
        audit(
            "declare" if value is not None else "undeclare",
            {"file": file},
            machine=name,
            reason=reason,
            before=was,
            after=value,
            changed=bool(did),
        )
    return DeclaredActed(name=name, did=did, dry_run=dry_run, file=file, declared=value)


def _few_enough(in_force: Inventory, then: Inventory) -> None:
    """Refuse what the publisher would let nobody boot by before an operator accepts it.

    Raises:
        TooManyRemovedError: more would go than may at once, within an hour. InventoryUnreadError: nobody can tell.
    """
    deps = dependencies()
    of, after = names(in_force), names(then)
    if not of - after:
        return
    publisher = deps.status.read("publisher", PublisherStatus)
    if publisher is None:
        raise InventoryUnreadError("the publisher has not said yet how many machines went lately")
    lately, limits = publisher.inventory.lately, deps.inventory_limits
    gone = lately + len(of - after)
    percent, minimum = limits.removals_percent, limits.removals_minimum
    if too_many_of(gone, lately + len(of), percent, minimum, left=bool(after)):
        raise TooManyRemovedError(
            f"{gone} of {lately + len(of)} machines would be gone within an hour; {percent} % of them may go, and "
            f"{minimum} at least, and never all"
        )


def _seen(mac: str) -> Discovered:
    """What the machine with that MAC said when it asked last."""
    try:
        wanted = parse_mac(mac)
    except ValueError as error:
        raise BadClaimError(str(error), field="mac") from None
    found = [each for each in dependencies().sightings.discovered(LOOKED_AT) if each.mac == wanted]
    if not found:
        raise NoSuchMachineError(f"no machine with the MAC {wanted} asked and may not boot")
    return found[0]
