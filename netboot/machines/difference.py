"""What an edit adds, changes and removes; which removals are so large that a person has to confirm them."""

import hashlib
from collections.abc import Iterable
from typing import Any

from images.values.strict import Strict
from netboot.machines.declared import KINDS
from netboot.machines.values import Inventory

_Items = dict[str, dict[str, Any]]


class Difference(Strict):
    """Of one kind. `changed`: name → key → value before and after, as JSON has them."""

    added: tuple[str, ...]
    changed: dict[str, dict[str, tuple[Any, Any]]]
    removed: tuple[str, ...]


def differences(before: Inventory, after: Inventory) -> dict[str, Difference]:
    """By kind (the keys of `KINDS`); names sorted."""
    return {kind: _difference(_items(getattr(before, kind)), _items(getattr(after, kind))) for kind in KINDS}


def _items(declared: Iterable[Strict]) -> _Items:
    dumped = [item.model_dump(mode="json") for item in declared]
    return {item["name"]: item for item in dumped}


def _difference(before: _Items, after: _Items) -> Difference:
    both = sorted(before.keys() & after.keys())
    return Difference(
        added=tuple(sorted(after.keys() - before.keys())),
        changed={name: _keys(before[name], after[name]) for name in both if before[name] != after[name]},
        removed=tuple(sorted(before.keys() - after.keys())),
    )


def _keys(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {
        key: (before.get(key), after.get(key))
        for key in dict.fromkeys((*before, *after))
        if before.get(key) != after.get(key)
    }


def digest_of(inventory: Inventory) -> str:
    """SHA-256, hexadecimal, of all that an inventory declares: two that differ in anything have two."""
    return hashlib.sha256(inventory.model_dump_json().encode()).hexdigest()


def names(inventory: Inventory) -> frozenset[str]:
    """Of its machines."""
    return frozenset(machine.name for machine in inventory.machines)


def too_many_of(removed: int, of: int, percent: int, minimum: int, *, left: bool) -> bool:
    """Whether so many machines of an inventory go, or become others, that it may be an accident: more than `percent`
    of them and more than `minimum`, or all that there were. `left`: whether any machine is."""
    if removed and not left:
        return True
    return removed > minimum and removed * 100 > percent * of
