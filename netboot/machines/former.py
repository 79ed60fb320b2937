"""Names that machines had before: what was known of them by those is theirs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from images.values.strict import Fault
from netboot.machines.declared import Declared
from netboot.machines.values import Inventory


def present_names(inventory: Inventory) -> dict[str, str]:
    """Former name → the name that its machine has now."""
    return {former: machine.name for machine in inventory.machines for former in machine.former_names}


def staying(inventory: Inventory, in_force: Set[str], lately: Set[str] = frozenset()) -> frozenset[str]:
    """The names of its machines, and what they were called of `in_force`, or of those that went `lately`: one of each
    that is new, its own name first. Who is declared a former name of a machine that stays, or a second one of another,
    has left."""
    before = in_force | lately
    new = [machine for machine in inventory.machines if machine.name not in before]
    were = [next((name for name in machine.former_names if name in before), machine.name) for machine in new]
    return frozenset((*were, *(machine.name for machine in inventory.machines)))


def formers(machine: Mapping[str, object]) -> list[str]:
    """Former names of a machine as a file has it, be it with faults."""
    listed = machine.get("former_names")
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def taken(name: str, machines: Iterable[tuple[Mapping[str, object], str]], but: str = "") -> str:
    """Why no machine may get that name; "": it is free. `machines`: each as a file has it, and where its name is;
    `but`: the one that is to get it, whose own former name it may be."""
    for value, place in machines:
        if value.get("name") == name:
            return f"{name} is declared already, at {place}: choose another name, or edit that machine"
        if name in formers(value) and value.get("name") != but:
            return f"{name} is a former name of {value.get('name')}, which is declared at {place}: choose another name"
    return ""


def of_renamed(value: dict[str, object], name: str) -> dict[str, object]:
    """A machine, as a file has it, under another name: the one before is its latest former name. What it is called
    again is no former name any more."""
    former = [value["name"], *formers(value)]
    renamed = {**value, "name": name, "former_names": [each for each in dict.fromkeys(former) if each != name]}
    return {key: each for key, each in renamed.items() if key != "former_names" or each}


def names_of_two_machines(items: Sequence[Declared]) -> Iterator[Fault]:
    """Former names that another machine has or had, or that are the machine's own: nobody could tell whose history is
    meant."""
    machines = [item for item in items if item.kind == "machine"]
    present = {item.name: item for item in machines}
    first: dict[str, tuple[Declared, int]] = {}
    for item in machines:
        listed = item.value.get("former_names")
        for number, name in enumerate(listed if isinstance(listed, list) else []):
            if not isinstance(name, str):
                continue  # a fault of form
            where = "former_names", number
            other, place = first.setdefault(name, (item, number))
            if name == item.name:
                yield item.fault(f"{name!r} is its name now: leave it out here", *where)
            elif name in present:
                at = present[name].place("name")
                yield item.fault(f"{name!r} is the name of another machine, in {at}: leave it out here", *where)
            elif (other, place) != (item, number):
                words = f"former name {name!r} is here twice"
                if other is not item:
                    at = other.place("former_names", place)
                    words = f"former name {name!r} is of two machines, {item.name!r} and {other.name!r} in {at}"
                yield item.fault(words, *where)
