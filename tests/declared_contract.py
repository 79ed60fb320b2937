"""What every place does the same where an inventory is declared: `CASES`, run over `World`s by the test files.

`tests/contract/test_declarations.py` runs them over files and over objects as they are kept on the disk,
`tests/cluster/test_resources.py` over a real API server, followed by what follows it in the service.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pytest

from images.values.strict import FaultsError
from netboot.controllers.changes import Changes
from netboot.machines.declarations import Declarations
from netboot.machines.declared import items_of

Spec = Mapping[str, Any]
Key = tuple[str, str]
"""What an item is called, and its name."""
_MACS = {"one": "52:54:00:00:00:01", "two": "52:54:00:00:00:02"}


class World(Protocol):
    """A place, and whoever declares things there. What was declared can be read when these return."""

    declarations: Declarations

    def declare(self, items: Mapping[Key, Spec]) -> None:
        """They are there, or are others; each with its keys but for the name."""

    def remove(self, *keys: Key) -> None:
        """They are there no more."""

    def lose(self) -> None:
        """What keeps them is gone, and nobody makes it again."""


def machine(name: str, **more: Any) -> dict[Key, Spec]:
    return {("machine", name): {"match": {"macs": [_MACS[name]]}, "profile": "compute", **more}}


SITE: Mapping[Key, Spec] = {
    ("channel", "stable"): {},
    ("profile", "compute"): {"channel": "stable", "pcrs": {"none": []}},
    ("class", "hgx"): {"architecture": "arm64"},
    **machine("one", **{"class": "hgx"}),
    **machine("two"),
}


def a_site(world: World) -> None:
    world.declare(SITE)


def names(world: World) -> list[str]:
    return sorted(each.name for each in world.declarations.judged(None).inventory.machines)


def what_is_declared_is_read(world: World) -> None:
    a_site(world)
    inventory, left_out, _ = world.declarations.judged(None)
    machines = {each.name: each for each in inventory.machines}
    assert (sorted(machines), left_out) == (["one", "two"], ())
    assert (machines["one"].architecture, machines["two"].architecture) == ("arm64", "amd64")
    assert machines["two"].pcrs == {}
    assert [each.name for each in inventory.profiles] == ["compute"]
    assert [each.name for each in inventory.channels] == ["stable"]


def it_is_read_as_it_was_written(world: World) -> None:
    a_site(world)
    documents, faults = world.declarations.documents()
    items = {(item.kind, item.name): item for document in documents for item in items_of(document)}
    assert faults == []
    assert items["machine", "one"].value["match"] == {"macs": [_MACS["one"]]}
    assert "architecture" not in items["machine", "one"].value
    assert items["machine", "one"].place("name")


def a_change_is_seen_and_only_a_change(world: World) -> None:
    a_site(world)
    changes = Changes(world.declarations.paths, by_content=world.declarations.by_content)
    assert changes.settled(now=True)
    assert not changes.settled(now=True)
    world.declare(machine("two", enabled=False))
    assert changes.settled(now=True)
    assert [each.enabled for each in world.declarations.judged(None).inventory.machines].count(False) == 1
    world.remove(("machine", "two"))
    assert (changes.settled(now=True), names(world)) == (True, ["one"])


def a_fault_names_what_it_is_in(world: World) -> None:
    a_site(world)
    world.declare(machine("two", profile="compote"))
    try:
        faults = world.declarations.judged(None).left_out
    except FaultsError as error:
        faults = error.faults
    [fault] = faults
    assert fault.key.endswith(".profile")
    assert fault.message == "no profile is named 'compote'; did you mean 'compute'?"
    assert "two" in fault.file or fault.line


def nothing_at_all_is_no_inventory(world: World) -> None:
    a_site(world)
    world.remove(*SITE)
    with pytest.raises(FaultsError):
        world.declarations.judged(None)


def what_is_not_there_is_no_inventory(world: World) -> None:
    a_site(world)
    world.lose()
    with pytest.raises(FaultsError):
        world.declarations.judged(None)
    documents, faults = world.declarations.documents()
    assert (documents, len(faults)) == ([], 1)


CASES: list[Callable[[World], None]] = [
    what_is_declared_is_read,
    it_is_read_as_it_was_written,
    a_change_is_seen_and_only_a_change,
    a_fault_names_what_it_is_in,
    nothing_at_all_is_no_inventory,
    what_is_not_there_is_no_inventory,
]
