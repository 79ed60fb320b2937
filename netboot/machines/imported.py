"""Machines of a list that is kept elsewhere, on their way into the inventory: where each stands there, and by which
words of the list each of its values is said."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from images.values.faults import REQUIRED
from images.values.strict import Document, Fault
from netboot.machines.inventory import faults_among

Path = tuple[str, ...]
"""Of a value in a machine's declaration: `("match", "uuid")`."""
MOST = 2_000
"""Machines that go at once: they stay in one file, which each act on one of them reads and writes."""
NAME: Path = ("name",)
_UNSAID = {
    NAME: "is not said: fill it in; by which property of Redfish machines are called says --name-from",
    ("profile",): "is not said: fill it in, or say --profile for all",
}
"""What is to be done where the list leaves out what must be said."""
_ITEM = "machines[0]"
"""Of a machine that is a document by itself, the key."""


class Said(NamedTuple):
    """By which column, or property, a value was said, and as what."""

    field: str
    value: str


@dataclass(slots=True)
class Item:
    """A machine of a list. `at`: where it stands in there, as faults say it; `said`: its values, as they were said;
    `unsaid`: by what values that are missing could have been."""

    at: str
    declared: dict[str, Any] = field(default_factory=dict)
    said: dict[Path, Said] = field(default_factory=dict)
    unsaid: dict[Path, str] = field(default_factory=dict)

    def put(self, path: Path, value: Any, said: Said) -> None:
        """Declare a value."""
        inner = self.declared
        for part in path[:-1]:
            inner = inner.setdefault(part, {})
        inner[path[-1]] = value
        self.said[path] = said

    def said_of(self, path: Path) -> Said | None:
        """What said a value, or the one that it is a part of."""
        return next((self.said[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.said), None)

    def called(self, path: Path) -> str:
        """The column, or property, that would have said a value; else the value's own key."""
        return self.unsaid.get(path, ".".join(path))

    def fault(self, said: Said, message: str) -> str:
        """What is wrong with a value of it: where, which one, what it is, and why it may not be that."""
        return f"{self.at}: {said.field} {said.value[:100]!r}: {message}"


class Listed(NamedTuple):
    """What was read of a list: its machines, and what is wrong with it, with those that stand beside it."""

    items: Sequence[Item]
    faults: Sequence[str]


def left_out(items: Iterable[Item], defaults: Mapping[str, str]) -> None:
    """Declare of each what its list says nothing of. `defaults`: by key; options of these names said them."""
    for item in items:
        for key, value in defaults.items():
            if key not in item.declared:
                item.put((key,), value, Said(f"--{key}", value))


def sent(at: str, declared: Any) -> Document:
    """A machine as a document by itself, whose faults are said to be at a place without lines."""
    return Document(at, {"machines": [declared]}, {(): 0})


def of_sent(faults: Iterable[Fault], places: Sequence[str]) -> list[Fault]:
    """The same faults in the order of `places`, with keys as the machine has them; those of other files come first."""
    order = {place: number for number, place in enumerate(places)}
    found = sorted(faults, key=lambda fault: order.get(fault.file, -1))
    return [_of_item(fault) if fault.file in order else fault for fault in found]


def _of_item(fault: Fault) -> Fault:
    return replace(fault, key=fault.key.removeprefix(_ITEM).removeprefix("."))


def wrong(items: Sequence[Item]) -> list[str]:
    """What is wrong with machines of a list by themselves, whatever else is declared."""
    found = faults_among([sent(item.at, item.declared) for item in items])
    return [str(fault) for fault in of_sent(found, [item.at for item in items])]


def in_order(read: Listed, others: Iterable[str]) -> list[str]:
    """All faults of a list, in its order: its own and those of `wrong` or of the API, which are `place: key: message`
    and get the words of the list."""
    of = {item.at: item for item in read.items}
    places = {at: number for number, at in enumerate(of)}
    faults = [*read.faults, *(_in_words(fault, of) for fault in others)]
    return sorted(faults, key=lambda fault: places.get(fault.partition(": ")[0], -1))


def _in_words(fault: str, of: Mapping[str, Item]) -> str:
    place, _, rest = fault.partition(": ")
    key, _, message = rest.partition(": ")
    path = tuple(part.partition("[")[0] for part in key.split("."))
    if place not in of:
        return fault
    if message == REQUIRED:
        return f"{place}: {of[place].called(path)}: {_UNSAID.get(path, message)}"
    said = of[place].said_of(path)
    return of[place].fault(said, message) if said is not None else fault
