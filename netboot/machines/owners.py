"""Whose it is what only one machine may have (a MAC, a TPM, a Node's name), where several objects say they have it:
the machine's that had it before, so that nobody takes it from a machine by an object of their own."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from images.values.strict import Document, Fault
from netboot.machines.declared import Declared
from netboot.machines.inventory import identifiers
from netboot.machines.joining import addresses
from netboot.machines.positions import unit_of
from netboot.machines.values import Inventory, Machine

_Place = tuple[int | str, ...]


def newcomers(items: Sequence[Declared], in_force: Callable[[], Inventory | None]) -> list[Fault]:
    """Faults of machines that say something is theirs which another one that is declared has in force, and says so
    still. `in_force`: asked only where two say the same; None: nothing is."""
    said = defaultdict[tuple[str, str], list[tuple[Declared, _Place]]](list)
    for item in items:
        for kind, value, below in _owned(item):
            said[kind, value].append((item, below))
    disputed = {key: by for key, by in said.items() if len({item.name for item, _ in by}) > 1}
    inventory = in_force() if disputed else None
    if inventory is None:
        return []
    names = {item.name for by in disputed.values() for item, _ in by}
    had = {machine.name: _had(machine) for machine in inventory.machines if machine.name in names}
    faults = list[Fault]()
    for (kind, value), by in disputed.items():
        owner = next((item.name for item, _ in by if (kind, value) in had.get(item.name, ())), None)
        if owner is not None:
            words = f"{kind} {value} is the machine's {owner!r}, which has it in force and keeps it"
            faults += [item.fault(words, *below) for item, below in by if item.name != owner]
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


def _had(machine: Machine) -> set[tuple[str, str]]:
    value = machine.model_dump(mode="json")
    item = Declared("machine", machine.name, Document("", value, {(): 0}), ("machines", 0), value)
    return {(kind, owned) for kind, owned, _ in _owned(item)}
