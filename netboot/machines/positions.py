"""Where machines stand in their racks: which unit, and the one order in which racks and their machines are shown."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from images.values.strict import Fault
from netboot.machines.declared import Declared
from netboot.machines.values import HIGHEST

Natural = tuple[tuple[int, str], ...]
_DIGITS = re.compile(r"(\d+)")


def natural(name: str) -> Natural:
    """The key by which r2 comes before r10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(name) if part)


def standing(rack: str, position: int | None, name: str) -> tuple[Natural, int, Natural, str]:
    """The key by which racks come by name and, in each, machines as they stand: the highest unit first, those of which
    none is said after them, by name."""
    return natural(rack), -(position or 0), natural(name), name


class Run(NamedTuple):
    """`size` machines of a rack beside each other, from number `begin` on, that are alike: all with a unit, or all
    without. `gap`: units are free before them."""

    begin: int
    size: int
    gap: bool


def runs(positions: Sequence[int | None], states: Sequence[str]) -> list[Run]:
    """A rack's machines, in the order of `standing`, by what they have in common."""
    free = _gaps(positions)
    alike = [(state, position is None) for state, position in zip(states, positions, strict=True)]
    cuts = [0, *(n for n in range(1, len(alike)) if n in free or alike[n] != alike[n - 1]), len(alike)]
    return [Run(begin, end - begin, begin in free) for begin, end in pairwise(cuts) if begin < end]


def _gaps(positions: Sequence[int | None]) -> frozenset[int]:
    """Before which machines units are free, as far as units alone tell it: no machine says how high it is, so a gap is
    what is more than most machines of the rack are apart."""
    apart = [above - below for above, below in pairwise(positions) if above is not None and below is not None]
    if not apart:
        return frozenset()
    often = Counter(apart)
    usual = min(often, key=lambda units: (-often[units], units))
    return frozenset(number for number, units in enumerate(apart, 1) if units > usual)


def unit_of(item: Declared) -> tuple[str, int] | None:
    """Rack and unit of a machine; None: it says none, or its form is at fault."""
    unit, rack = item.value.get("position"), item.value.get("rack")
    if item.kind != "machine" or type(unit) is not int or not 1 <= unit <= HIGHEST or not isinstance(rack, str):
        return None
    return rack, unit


def units_of_two_machines(items: Sequence[Declared]) -> Iterator[Fault]:
    """Units of a rack that two machines have, and units of no rack."""
    first: dict[tuple[str, int], Declared] = {}
    for item in items:
        unit = item.value.get("position")
        if item.kind == "machine" and type(unit) is int and 1 <= unit <= HIGHEST and item.value.get("rack") is None:
            yield item.fault("is a unit of no rack: say `rack`, too, or leave it out", "position")
        elif (stands := unit_of(item)) is not None:
            rack, unit = stands
            other = first.setdefault(stands, item)
            if other is not item and other.name != item.name:  # the same name is a fault of its own
                at = other.place("position")
                words = f"unit {unit} of rack {rack} is of two machines, {item.name!r} and {other.name!r} in {at}"
                yield item.fault(words, "position")
