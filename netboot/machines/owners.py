"""Whose it is what only one machine may have (a MAC, a TPM, a Node's name), where several objects say they have it:
the machine's that had it before, so that nobody takes it from a machine by an object of their own."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set

from images.values.strict import Document, Fault
from netboot.machines.declared import Declared
from netboot.machines.inventory import identifiers
from netboot.machines.joining import addresses
from netboot.machines.positions import unit_of
from netboot.machines.values import Inventory, Machine

_Place = tuple[int | str, ...]
_Thing = tuple[str, str]
"""Of which kind, and which one."""


def newcomers(
    items: Sequence[Declared],
    in_force: Callable[[], Inventory | None],
    removed: Callable[[], Mapping[str, Machine]] = dict,
    unread: Set[str] = frozenset(),
) -> list[Fault]:
    """Faults of machines that say something is theirs which another one that is declared has, and says so still.

    `in_force`, `removed`: what is, None: nothing is; and machines that were and are out of it lately, or for their
    faults: of these what was theirs stays so. Both are asked only where two say the same. `unread`: documents whose
    faults keep from telling what they say: their machines keep all that they had.
    """
    said = defaultdict[_Thing, list[tuple[Declared, _Place]]](list)
    for item in items:
        for kind, value, below in _owned(item):
            said[kind, value].append((item, below))
    disputed = {thing: by for thing, by in said.items() if len({item.name for item, _ in by}) > 1}
    keep = {item.name for item in items if item.kind == "machine" and item.document.file in unread}
    if not disputed and not keep:
        return []
    names = keep | {item.name for by in disputed.values() for item, _ in by}
    now, before = in_force(), removed()
    had = {each.name: _had(each) for each in (now.machines if now is not None else ()) if each.name in names}
    lately = {name: _had(before[name]) for name in names & before.keys()}
    kept = {thing: name for of in (lately, had) for name in keep & of.keys() for thing in of[name]}
    faults = list[Fault]()
    for thing in dict.fromkeys((*disputed, *(thing for thing in kept if thing in said))):
        by = said[thing]
        claim = [item.name for item, _ in by] + ([kept[thing]] if thing in kept else [])
        owners = [(name, "has it in force") for name in claim if thing in had.get(name, ())]
        owners += [(name, "had it in force last") for name in claim if thing in lately.get(name, ())]
        for name, has in owners[:1]:
            words = f"{' '.join(thing)} is the machine's {name!r}, which {has} and keeps it"
            faults += [item.fault(words, *below) for item, below in by if item.name != name]
    return faults


def _owned(item: Declared) -> Iterator[tuple[str, str, _Place]]:
    """Kind, value and place of what no other may have."""
    if item.kind != "machine":
        return
    yield from identifiers(item)
    for _, below, address in addresses([item]):
        yield "address", str(address), below
    if (stands := unit_of(item)) is not None:
        yield "unit", "{1} of rack {0}".format(*stands), ("position",)
    yield "name", item.name, ("name",)
    former = item.value.get("former_names")
    for number, name in enumerate(former if isinstance(former, list) else []):
        if isinstance(name, str):
            yield "name", name, ("former_names", number)


def _had(machine: Machine) -> set[_Thing]:
    value = machine.model_dump(mode="json")
    item = Declared("machine", machine.name, Document("", value, {(): 0}), ("machines", 0), value)
    return {(kind, owned) for kind, owned, _ in _owned(item)}
