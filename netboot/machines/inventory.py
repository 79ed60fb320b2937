"""The inventory folder: all its `*.yaml` together are what the operator declares; all faults of all files at once."""

import difflib
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from images.values import strict
from images.values.strict import Document, Fault, FaultsError
from netboot.machines.arguments import misunderstood
from netboot.machines.classes import Class
from netboot.machines.declared import KINDS, NO_EDIT, Declared, Edit, documents_of, items_of
from netboot.machines.former import names_of_two_machines
from netboot.machines.identity import parse_mac, parse_serial, parse_uuid
from netboot.machines.joining import (
    Joining,
    addresses_of_others,
    addresses_of_two_machines,
    reserved_keys,
    unsaid_policies,
    weakened_taints,
)
from netboot.machines.judged import unknown_names
from netboot.machines.maintenance import unknown_zones
from netboot.machines.positions import units_of_two_machines
from netboot.machines.values import Inventory, Machine, Profile

MOST_NEAREST = 20
"""Of so many names it is looked for what was meant: of 1,500 racks it takes minutes, and nobody reads it."""


def load_inventory(
    folder: Path, joining: Joining | None = None, edit: Edit = NO_EDIT, sent: Sequence[Document] = ()
) -> Inventory:
    """Everything that the files of `folder` declare, merged in the order of their names; with `edit`, and with what was
    `sent` after them, would declare.

    `joining`: what is asked of machines that join clusters; None: those of this site only boot. A machine that says
    nothing of PCRs has its profile's policy; one that says no architecture has its class's.

    Raises:
        images.values.strict.FaultsError: with every fault of every file: form, names declared twice, identifiers of two
            machines, references to what is not declared.
    """
    documents, faults = documents_of(folder, edit)
    faults_of_files = bool(faults)
    inventories, items, found = _read([*documents, *sent])
    faults += found
    faults += addresses_of_others(items, joining)
    if not faults_of_files:  # what an unreadable file declares is unknown, not undeclared
        faults += unknown_references(items)
        faults += other_architectures(items)
        faults += unsaid_policies(items) if joining is not None else ()
    if faults:
        raise FaultsError(faults)
    return merged(inventories)


def merged(inventories: Sequence[Inventory]) -> Inventory:
    """All that documents declare whose references are known; each machine with what it leaves to its profile and its
    class."""
    profiles = {profile.name: profile for inventory in inventories for profile in inventory.profiles}
    classes = {declared.name: declared for inventory in inventories for declared in inventory.classes}
    return Inventory(
        machines=tuple(
            completed(machine, profiles[machine.profile], classes.get(machine.class_name or ""))
            for inventory in inventories
            for machine in inventory.machines
        ),
        profiles=tuple(profiles.values()),
        channels=tuple(channel for inventory in inventories for channel in inventory.channels),
        classes=tuple(classes.values()),
        racks=tuple(rack for inventory in inventories for rack in inventory.racks),
        maintenance=tuple(window for inventory in inventories for window in inventory.maintenance),
    )


def faults_among(documents: Sequence[Document]) -> list[Fault]:
    """What is wrong with these by themselves, whatever else is declared."""
    return _read(documents)[2]


def _read(documents: Sequence[Document]) -> tuple[list[Inventory], list[Declared], list[Fault]]:
    """What documents declare, as far as they can be read; their raw items; and what is wrong with these."""
    faults: list[Fault] = []
    inventories: list[Inventory] = []
    for document in documents:
        try:
            inventories.append(strict.check(document, Inventory))
        except FaultsError as error:
            faults += error.faults
    items = [item for document in documents for item in items_of(document)]
    return inventories, items, faults + faults_of_items(items)


def faults_of_items(items: list[Declared]) -> list[Fault]:
    """What is wrong with items by themselves and beside each other: of two that meet, it is said of the second."""
    faults: list[Fault] = []
    faults += _names_declared_twice(items)
    faults += names_of_two_machines(items)
    faults += _identifiers_of_two_machines(items)
    faults += addresses_of_two_machines(items)
    faults += units_of_two_machines(items)
    faults += weakened_taints(items)
    faults += reserved_keys(items)
    faults += misunderstood(items)
    faults += unknown_names(items)
    faults += unknown_zones(items)
    return faults


def completed(machine: Machine, profile: Profile | None, of_class: Class | None) -> Machine:
    """The machine with what it leaves to its profile and its class."""
    left: dict[str, Any] = {}
    if profile is not None and profile.pcrs is not None and "pcrs" not in machine.model_fields_set:
        left["pcrs"] = profile.pcrs
    if of_class is not None and "architecture" not in machine.model_fields_set:
        left["architecture"] = of_class.architecture
    return machine.model_copy(update=left) if left else machine


def _names_declared_twice(items: list[Declared]) -> Iterator[Fault]:
    first: dict[tuple[str, str], Declared] = {}
    for item in items:
        other = first.setdefault((item.kind, item.name), item)
        if other is not item:
            message = f"{item.kind} {item.name!r} is declared twice, first in {other.place('name')}"
            yield item.fault(message, "name")


def _identifiers_of_two_machines(items: list[Declared]) -> Iterator[Fault]:
    first: dict[tuple[str, str], tuple[Declared, tuple[int | str, ...]]] = {}
    for item in items:
        if item.kind != "machine":
            continue
        for kind, value, below in identifiers(item):
            other, where = first.setdefault((kind, value), (item, below))
            if (other, where) == (item, below):
                continue
            if other is item:
                yield item.fault(f"{kind} {value} is here twice", *below)
            elif other.name != item.name:  # the same name is a fault of its own
                message = (
                    f"{kind} {value} is of two machines, {item.name!r} and {other.name!r} in {other.place(*where)}"
                )
                yield item.fault(message, *below)


def identifiers(item: Declared) -> Iterator[tuple[str, str, tuple[int | str, ...]]]:
    """Kind, normalised value and place of each identifier that can be read; the others are faults of form."""
    match = item.value.get("match")
    if not isinstance(match, dict):
        return
    macs = match.get("macs")
    for number, mac in enumerate(macs if isinstance(macs, list) else []):
        yield from _readable("MAC", parse_mac, mac, ("match", "macs", number))
    yield from _readable("UUID", parse_uuid, match.get("uuid"), ("match", "uuid"))
    yield from _readable("serial", parse_serial, match.get("serial"), ("match", "serial"))
    ek = match.get("ek_sha256")
    if isinstance(ek, str):
        yield "EK", ek, ("match", "ek_sha256")
    node = item.value.get("node")
    given = node.get("name") if isinstance(node, dict) else None
    cluster = item.value.get("cluster", "default")
    if isinstance(given or item.name, str) and isinstance(cluster, str):
        # two machines under one node's name would each be let in as the other
        below: tuple[int | str, ...] = ("node", "name") if given else ("name",)
        yield f"in cluster {cluster} the node", given or item.name, below


def _readable(
    kind: str, parse: Callable[[object], str], value: object, below: tuple[int | str, ...]
) -> Iterator[tuple[str, str, tuple[int | str, ...]]]:
    try:
        yield kind, parse(value), below
    except ValueError:
        return


def unknown_references(items: list[Declared], left_out: Set[tuple[str, str]] = frozenset()) -> Iterator[Fault]:
    """References to what is not declared. `left_out`: kinds and names of what is, and is no part of the inventory."""
    names = {kind: sorted({item.name for item in items if item.kind == kind}) for kind in KINDS.values()}
    users = (("machine", "profile"), ("machine", "class"), ("machine", "rack"), ("profile", "channel"))
    said = dict[tuple[str, str], str]()
    for user, target in users:
        known = set(names[target])
        for item in items:
            reference = item.value.get(target) if item.kind == user else None
            if isinstance(reference, str) and reference not in known:
                words = said.get((target, reference), "")
                if not words and (target, reference) in left_out:
                    words = f"the {target} {reference!r} is left out, for its own faults"
                elif not words:
                    near = f"; {_nearest(reference, target, names[target])}" if len(said) < MOST_NEAREST else ""
                    words = f"no {target} is named {reference!r}{near}"
                said[target, reference] = words
                yield item.fault(words, target)


def other_architectures(items: list[Declared]) -> Iterator[Fault]:
    """Machines that say another architecture than their class."""
    of_class = {item.name: item.value.get("architecture", "amd64") for item in items if item.kind == "class"}
    for item in items:
        said, name = item.value.get("architecture"), item.value.get("class")
        if item.kind != "machine" or not isinstance(said, str) or not isinstance(name, str):
            continue
        if name in of_class and said != of_class[name]:
            words = f"{said}, and its class {name!r} is {of_class[name]}: leave it out, or name another class"
            yield item.fault(words, "architecture")


def _nearest(reference: str, kind: str, names: list[str]) -> str:
    near = difflib.get_close_matches(reference, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    listed = next(key for key, one in KINDS.items() if one == kind)
    return f"declared {listed}: {', '.join(names)}" if names else f"no {kind} is declared at all"
