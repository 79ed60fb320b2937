"""`/v1/inventory[/machines[/<name>]]`, `POST /v1/discovered/<mac>/declare`: machines as the inventory's files declare
them, and where those are the service's to write, declaring them (docs/http-management.md)."""

from contextlib import AbstractContextManager
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SkipValidation, StringConstraints, TypeAdapter, ValidationError

from images.values.strict import FaultsError, Strict
from images.values.types import Name
from netboot.lifecycle.errors import BadClaimError, InventoryReadOnlyError, NoSuchMachineError
from netboot.machines.declared import NO_EDIT, Declared
from netboot.machines.found import declaration
from netboot.machines.imported import MOST, of_sent, sent
from netboot.machines.values import Machine
from netboot.web.binding import Shown, plain
from netboot.web.declaring import few_enough, seen
from netboot.web.dependencies import dependencies
from netboot.web.errors import FaultyError
from netboot.web.inputs import one_line
from netboot.web.intents import MayBeWhy
from netboot.web.operators import audit, audit_each, partly
from netboot.web.pages import PageAsked, Paged, page
from netboot.web.shapes import Document
from netboot.web.sightings import SEEN_DIGITS

Did = Literal["created", "replaced", "removed", "renamed", ""]
_NAME: TypeAdapter[str] = TypeAdapter(Name)
LARGEST_LIST = 4 * 1024 * 1024
"""Bytes of a list of machines: `MOST` with all that can be said of them."""


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
    seen: Annotated[str, StringConstraints(pattern=rf"^([0-9a-f]{{{SEEN_DIGITS}}})?$")] = ""
    """`seen` of what was shown: it is declared by nothing else. Empty: by whatever was heard last."""
    reason: MayBeWhy = ""
    dry_run: bool = False


class DeclaredActed(Shown):
    """`did`: empty where it was so already; `declared`: null where it is not (any more); `dry_run`: as it would be."""

    name: str
    did: Did
    dry_run: bool
    file: str
    declared: Document | None


class MachineSent(Strict):
    """One of a list: the machine as a file of the inventory has it, and where it stands in the list, as faults are to
    say it; empty: by its number."""

    declared: SkipValidation[Machine]
    place: Annotated[str, StringConstraints(max_length=300), AfterValidator(one_line)] = ""


class DeclaringMany(Strict):
    """The body of `POST`: machines that nobody declares yet."""

    machines: Annotated[tuple[MachineSent, ...], Field(min_length=1, max_length=MOST)]
    reason: MayBeWhy = ""
    dry_run: bool = False


class DeclaredMany(Shown):
    """`machines`: their names, in the order in which they were sent; `dry_run`: as it would be."""

    dry_run: bool
    file: str
    machines: tuple[str, ...]


def overview() -> InventoryDescribed:
    """Whether the inventory is the API's to write, and what machines may refer to."""
    deps = dependencies()
    in_force = deps.live.view().snapshot.inventory
    return InventoryDescribed(
        folder=deps.inventory_files.where,
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
    store, item = dependencies().inventory_files, declared_item(name)
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
    """Declare a machine that asked and may not boot, by what it said of itself."""
    with writing():
        found = plain(seen(mac, body.seen))
        value = declaration(body.name, body.profile, found, class_name=body.class_name, rack=body.rack)
        if declared_item(body.name) is not None:
            raise InventoryReadOnlyError(f"{body.name} is declared already: choose another name, or edit that machine")
        return _declare(body.name, value, body.reason, dry_run=body.dry_run)


def imported(body: DeclaringMany) -> DeclaredMany:
    """Declare many at once, in one file: all, or none and every fault."""
    store = dependencies().inventory_files
    given: list[Any] = [each.declared for each in body.machines]
    places = [each.place or f"machines[{number}]" for number, each in enumerate(body.machines)]
    with writing():
        try:
            few_enough(store.declared(NO_EDIT, [sent(place, each) for place, each in zip(places, given, strict=True)]))
            edit = store.together(given)
        except FaultsError as error:
            raise FaultyError(of_sent(error.faults, places), "correct the list, and send it whole") from None
        ((file, _),) = edit.items()
        if not body.dry_run:
            with partly("declare", {"file": file, "machines": [each["name"] for each in given]}, reason=body.reason):
                store.write(edit)
            audit_each("declare", {each["name"]: each for each in given}, {"file": file}, body.reason)
    return DeclaredMany(dry_run=body.dry_run, file=file, machines=tuple(each["name"] for each in given))


def writing() -> AbstractContextManager[None]:
    """Nobody else writes the inventory by the API meanwhile."""
    return dependencies().inventory_files.writing()


def _listed(item: Declared) -> DeclaredListed:
    return DeclaredListed(name=item.name, file=item.document.file, line=item.line("name"), declared=item.value)


def declared_item(name: str) -> Declared | None:
    """The machine of that name, as its file has it."""
    items, _ = dependencies().inventory_files.machines()
    return next((item for item in items if item.name == name), None)


def _declare(name: str, value: dict[str, Any] | None, reason: str, *, dry_run: bool) -> DeclaredActed:
    """Write, in the end: what would not be taken is refused before."""
    store, before = dependencies().inventory_files, declared_item(name)
    try:
        _NAME.validate_python(name)
    except ValidationError:
        raise BadClaimError("a name has at most 63 lower-case letters, digits, - and .", field="name") from None
    if why := store.kept_file(name, before):
        raise InventoryReadOnlyError(why)
    was = before.value if before is not None else None
    try:
        edit = store.edit(name, value, before)
        few_enough(store.declared(edit))
    except FaultsError as error:
        raise FaultyError(error.faults, "correct what was sent, or the files; nothing was written") from None
    did: Did = "removed" if value is None else "created" if was is None else "replaced" if was != value else ""
    file = next(iter(edit))
    act = "declare" if value is not None else "undeclare"
    about: dict[str, Any] = {"machine": name, "reason": reason, "before": was, "after": value}
    if did and not dry_run:
        with partly(act, {"file": file}, **about):
            store.write(edit)
    if not dry_run:
        audit(act, {"file": file}, **about, changed=bool(did))
    return DeclaredActed(name=name, did=did, dry_run=dry_run, file=file, declared=value)
