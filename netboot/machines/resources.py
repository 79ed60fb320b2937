"""An inventory declared by custom resources: a bad one takes out itself, and what cannot be without it, and no other.

Of two that share what only one may have (a MAC, a node's name) the one is out that did not have it before; both are
where neither had: nobody can tell whose it is.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from images.values import strict
from images.values.strict import Document, Fault, FaultsError, Strict
from netboot.machines.declarations import Judged
from netboot.machines.declared import KINDS, LARGEST_ITEM, LISTS, Declared, items_of
from netboot.machines.inventory import faults_of_items, merged, other_architectures, unknown_references
from netboot.machines.joining import Joining, addresses_of_others, unsaid_policies_apart
from netboot.machines.maintenance import SHUT
from netboot.machines.owners import newcomers
from netboot.machines.values import Inventory, Machine

MOST_BYTES = 64 << 20
"""Of all objects together, as JSON: 50,000 machines have a quarter of it. Of one: LARGEST_ITEM."""
LARGEST_OF = {"rollout": 1_500_000}
"""Of kinds of which one is larger: a rollout has all its machines in it."""
MOST_DEPTH = 32
"""Of mappings and lists in a spec; any that counts has five."""
_PLACE = re.compile(r"^[a-z]+\[0\](\.name$)?")


class Resource(Strict):
    """One object. `kind`: what an item of a file is called; `shown`: as kubectl takes it, like `machineclass/gpu`;
    `refused`: why its spec is not here, in words; empty: it is. `uid`, `generation`: of holds, orders and rollouts, for
    their coming is an act; `status`: of orders; `version`: of rollouts. Items of an inventory are what they say."""

    kind: str
    name: str
    shown: str
    spec: Any
    refused: str = ""
    uid: str = ""
    generation: int = 0
    status: Mapping[str, str] | None = None
    version: str = ""

    @property
    def size(self) -> int:
        """Of what is kept of it, in bytes or nearly so."""
        return len(json.dumps((self.spec, self.status) if self.status is not None else self.spec))


def fit(resource: Resource) -> Resource:
    """The same, without its spec where that is deeper or larger than one may be: many that are could keep all others
    out, which together have at most MOST_BYTES."""
    if _deep(resource.spec):
        return resource.model_copy(update={"spec": None, "refused": "is nested deeper than anything that is declared"})
    if (size := resource.size) > (most := LARGEST_OF.get(resource.kind, LARGEST_ITEM)):
        words = f"has {size:,} bytes, and one object has at most {most:,}: leave out what it need not say"
        return resource.model_copy(update={"spec": None, "refused": words})
    return resource


def _deep(value: object) -> bool:
    """Whether it is nested deeper than anything that there is a definition of, and than it could be kept."""
    level, depth = [value], 0
    while level and depth <= MOST_DEPTH:
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level, depth = [value for values in inner for value in values], depth + 1
    return bool(level)


class Listed(NamedTuple):
    """All of a kind, as they are."""

    resources: tuple[Resource, ...]


class Changed(NamedTuple):
    """One is `there` as it is now, or is there no more."""

    resource: Resource
    there: bool


class Same(NamedTuple):
    """Nothing changed, and somebody who knows has said so."""


Seen = Listed | Changed | Same
"""What is seen of a kind."""


def document_of(resource: Resource) -> Document:
    """As a file that declares it alone would be, without lines."""
    spec = resource.spec if isinstance(resource.spec, dict) else {}
    return Document(resource.shown, {LISTS[resource.kind]: [{**spec, "name": resource.name}]}, {(): 0})


def declared_as(name: str, spec: Any) -> Machine | None:
    """The machine that an object of that name alone declares; None: it has faults."""
    document = document_of(Resource(kind="machine", name=name, shown=f"machine/{name}", spec=spec))
    try:
        [machine] = strict.check(document, Inventory).machines
    except FaultsError:
        return None
    return machine


def judged(
    resources: Sequence[Resource],
    where: str,
    joining: Joining | None,
    in_force: Callable[[], Inventory | None] = lambda: None,
    removed: Callable[[], Mapping[str, Machine]] = dict,
) -> Judged:
    """What they declare. `where`: what messages call the place; `in_force`: by what the service goes until then;
    `removed`: machines that went from it lately, or for the faults of their objects.

    Raises:
        FaultsError: there are none: more likely an accident than an inventory.
    """
    if not resources:
        message = "has no object of netboot.dev: `netboot cluster inventory` prints the files of a site as such objects"
        raise FaultsError([Fault(where, 0, "", message)])
    inventories, faults = dict[str, Inventory](), list[Fault]()
    documents = {resource.shown: document_of(resource) for resource in resources}
    for resource in resources:
        try:
            inventories[resource.shown] = _alone(resource, documents[resource.shown])
        except FaultsError as error:
            faults += error.faults
    items = [item for document in documents.values() for item in items_of(document)]
    faults += _beside_each_other(items, newcomers(items, in_force, removed, {fault.file for fault in faults}))
    faults += addresses_of_others(items, joining)
    faults += _without_each_other(items, faults, joining)
    out = {fault.file for fault in faults}
    inventory = merged([inventory for shown, inventory in inventories.items() if shown not in out])
    if any(resource.kind == "window" and resource.shown in out for resource in resources):
        inventory = inventory.model_copy(update={"maintenance": (*inventory.maintenance, SHUT)})
    absent = frozenset(KINDS) - {LISTS[resource.kind] for resource in resources} - {"machines"}
    return Judged(inventory, FaultsError(set(map(_of_object, faults))).faults, absent)


def _alone(resource: Resource, document: Document) -> Inventory:
    """What an object alone declares. Raises FaultsError."""
    if resource.refused:
        raise FaultsError(item.fault(resource.refused) for item in items_of(document))
    return strict.check(document, Inventory)


def _beside_each_other(items: list[Declared], newcomers: list[Fault]) -> list[Fault]:
    """What is wrong with items by themselves, and with which of those that have one thing together. `newcomers`: what
    is wrong with those that say what another one has."""
    faults, new = newcomers, {fault.file for fault in newcomers}
    for item in items:
        if item.document.file in new:
            faults += faults_of_items([item])
    others = [item for item in items if item.document.file not in new]
    faults += faults_of_items(others)
    faults += faults_of_items(others[::-1])  # of two that meet, the first
    return faults


def _without_each_other(items: Sequence[Declared], known: Sequence[Fault], joining: Joining | None) -> Iterator[Fault]:
    """What is wrong with items for others are not there, or are left out; in the end none of these is referred to."""
    out = {fault.file for fault in known}
    while True:
        left = [item for item in items if item.document.file not in out]
        gone = {(item.kind, item.name) for item in items if item.document.file in out}
        faults = [*unknown_references(left, gone), *other_architectures(left)]
        if joining is not None:
            faults += unsaid_policies_apart(left)
        if not faults:
            return
        yield from faults
        out |= {fault.file for fault in faults}


def _of_object(fault: Fault) -> Fault:
    """The same, with the key as the object has it."""
    key = _PLACE.sub(lambda found: "metadata.name" if found[1] else "spec", fault.key)
    return replace(fault, key=key)


def counts(resources: Sequence[Resource], kinds: Iterable[str]) -> Mapping[str, int]:
    """How many there are of each kind."""
    return {kind: sum(resource.kind == kind for resource in resources) for kind in kinds}
