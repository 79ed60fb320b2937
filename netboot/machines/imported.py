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
_PROFILE: Path = ("profile",)
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
    """What was read of a list: its machines, and what is wrong with it, with those that stand beside it. `nameless`:
    what is to be done about one without a name, in a list of that form."""

    items: Sequence[Item]
    faults: Sequence[str]
    nameless: str = "fill it in"


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
    and get the words of the list. That several machines have no profile is one fault."""
    of = {item.at: item for item in read.items}
    places = {at: number for number, at in enumerate(of)}
    several = _without_profile(read)
    alike = {_no_profile(item) for item in several}
    words = "say --profile for all of them, or fill it in"
    said = [f"{several[0].at}: profile: {len(several)} machines say none, this one first: {words}"] if several else []
    faults = [*read.faults, *said, *(_in_words(fault, of, read.nameless) for fault in others if fault not in alike)]
    return sorted(faults, key=lambda fault: places.get(fault.partition(": ")[0], -1))


def unseen(read: Listed, others: Sequence[str], found: int) -> int:
    """How many more faults there are than `in_order` tells, where `others` are the first of so many."""
    alike = {_no_profile(item) for item in _without_profile(read)}
    return max(0, found - len(others) - len(alike.difference(others)))


def _without_profile(read: Listed) -> Sequence[Item]:
    """Those of a list that say none, where they are several: an option was forgotten then."""
    found = [item for item in read.items if _PROFILE[0] not in item.declared]
    return found if len(found) > 1 else ()


def _no_profile(item: Item) -> str:
    return f"{item.at}: {_PROFILE[0]}: {REQUIRED}"


def _in_words(fault: str, of: Mapping[str, Item], nameless: str) -> str:
    place, _, rest = fault.partition(": ")
    key, _, message = rest.partition(": ")
    path = tuple(part.partition("[")[0] for part in key.split("."))
    if place not in of:
        return fault
    if message == REQUIRED:
        remedies = {NAME: nameless, _PROFILE: "fill it in, or say --profile for all"}
        words = f"is not said: {remedies[path]}" if path in remedies else message
        return f"{place}: {of[place].called(path)}: {words}"
    said = of[place].said_of(path)
    return of[place].fault(said, message) if said is not None else fault
