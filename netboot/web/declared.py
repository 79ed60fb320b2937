"""`/v1/inventory[/machines[/<name>]]`, `POST /v1/discovered/<mac>/declare`: machines as the inventory's files declare
them, and where those are the service's to write, declaring them (docs/http-management.md)."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field, SkipValidation, StringConstraints

from images.values.strict import Fault, FaultsError, Strict
from images.values.types import Name
from netboot.machines.declared import NO_EDIT
from netboot.machines.former import formers, taken
from netboot.machines.found import declaration
from netboot.machines.imported import MOST, of_sent, sent
from netboot.machines.selectors import declared_that_fit
from netboot.machines.values import Machine
from netboot.web.binding import Shown, plain
from netboot.web.declared_items import (
    DeclaredActed,
    DeclaredListed,
    DeclaredShown,
    Removing,
    declare_item,
    listed_of,
    named,
    require_free,
    shown_item,
    writing,
)
from netboot.web.declaring import few_enough, seen
from netboot.web.dependencies import dependencies
from netboot.web.errors import FaultyError
from netboot.web.inputs import one_line
from netboot.web.intents import MayBeWhy
from netboot.web.operators import audit_each, partly
from netboot.web.pages import Paged, page
from netboot.web.selecting import SelectAsked
from netboot.web.sightings import SEEN_DIGITS

LARGEST_LIST = 4 * 1024 * 1024
"""Bytes of a list of machines: `MOST` with all that can be said of them."""


class InventoryDescribed(Shown):
    """`read_only`: why the API writes nothing there, empty: it does. And names of what machines may refer to."""

    folder: str
    read_only: str
    profiles: tuple[str, ...]
    classes: tuple[str, ...]
    racks: tuple[str, ...]


class DeclaredMachines(Paged):
    """In the order of the files. `problems`: files that cannot be read, whose machines are not in there."""

    machines: tuple[DeclaredListed, ...]
    problems: tuple[str, ...]


class Declaring(Strict):
    """The body of PUT: the machine as a file of the inventory has it."""

    declared: SkipValidation[Machine]
    reason: MayBeWhy = ""
    dry_run: bool = False


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


def listed(query: SelectAsked) -> DeclaredMachines:
    """Machines as they are declared, also where that is not in force; those that are selected."""
    store = dependencies().inventory_files
    items, problems = store.items("machine")
    if query.labels or query.fields:
        items = declared_that_fit(items, store.items("class")[0], query.labels or (), query.fields or ())
    once = list({item.name: item for item in items}.values())
    part, more = page(query, once, lambda item: item.name)
    return DeclaredMachines(machines=tuple(map(listed_of, part)), problems=problems, next_page=more)


def shown(name: str) -> DeclaredShown:
    """One, as it is declared."""
    return shown_item("machine", name)


def put(name: str, body: Declaring) -> DeclaredActed:
    """Declare a machine, or declare it otherwise."""
    value = named(body.declared, "machine", name)
    return declare_item("machine", name, value, body.reason, dry_run=body.dry_run)


def removed(name: str, query: Removing) -> DeclaredActed:
    """Declare a machine no more."""
    return declare_item("machine", name, None, query.reason, dry_run=query.dry_run == "true")


def declare(mac: str, body: DeclaringFound) -> DeclaredActed:
    """Declare a machine that asked and may not boot, by what it said of itself."""
    with writing():
        found = plain(seen(mac, body.seen))
        value = declaration(body.name, body.profile, found, class_name=body.class_name, rack=body.rack)
        require_free(body.name)
        return declare_item("machine", body.name, value, body.reason, dry_run=body.dry_run)


def _names_that_were(given: Sequence[Any], places: Sequence[str]) -> dict[str, Fault]:
    """Of a list, the names that another machine had before, with the fault that this is."""
    items, _ = dependencies().inventory_files.items("machine")
    former = {each for item in items for each in formers(item.value)}
    declared = [(item.value, item.place("name")) for item in items]
    names = [(value.get("name") if isinstance(value, dict) else None) for value in given]
    return {
        name: Fault(place, 0, "name", taken(name, declared))
        for name, place in zip(names, places, strict=True)
        if isinstance(name, str) and name in former
    }


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
            were = _names_that_were(given, places)
            theirs = {repr(name) for name in were}  # as the fault of the other machine begins, which is none of its own
            others = [each for each in error.faults if each.message.partition(" is the name of ")[0] not in theirs]
            raise FaultyError(
                of_sent([*were.values(), *others], places), "correct the list, and send it whole"
            ) from None
        ((file, _),) = edit.items()
        if not body.dry_run:
            with partly("declare", {"file": file, "machines": [each["name"] for each in given]}, reason=body.reason):
                store.write(edit)
            audit_each("declare", {each["name"]: each for each in given}, {"file": file}, body.reason)
    return DeclaredMany(dry_run=body.dry_run, file=file, machines=tuple(each["name"] for each in given))
