"""Custom resources that say what another machine has: nobody loses what it had by somebody else's object."""

from pathlib import Path
from typing import Any

import pytest

from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.resources import Resource, judged
from netboot.machines.values import Inventory
from netboot.stores.resources import KeptResources
from netboot.stores.snapshot import write_snapshot
from tests.unit.test_resources import ALL, WHERE, fleet, machine, replaced, resource

EK = "ab" * 32
NEW = "in force and keeps it"


def holders() -> list[Resource]:
    whole = {"macs": ["52:54:00:00:00:01"], "uuid": "4c4c4544-0000-0000-0000-000000000001", "serial": "S1"}
    node = {"name": "n-1", "addresses": ["192.0.2.1"]}
    place: dict[str, Any] = {"rack": "r1", "position": 7}
    one = machine(1, match={**whole, "ek_sha256": EK}, node=node, former_names=["old-001"], **place)
    return [*replaced(fleet(6), one), resource("rack", "r1")]


def in_force(resources: list[Resource]) -> Inventory:
    return judged(resources, WHERE, None).inventory


def left_of(now: list[Resource], before: list[Resource]) -> tuple[list[str], list[str]]:
    inventory, faults, _ = judged(now, WHERE, None, lambda: in_force(before))
    return [each.name for each in inventory.machines], list(map(str, faults))


def test_one_object_that_takes_macs_of_five_machines_takes_none() -> None:
    macs = [f"52-54-00-00-00-{number:02x}" for number in range(1, 6)]
    thief = resource("machine", "a-thief", match={"macs": macs}, profile="compute")
    kept, faults = left_of([*fleet(6), thief], fleet(6))
    assert kept == ALL
    assert faults == [
        f"machine/a-thief: spec.match.macs[{number - 1}]: MAC 52:54:00:00:00:{number:02x} is the machine's "
        f"'gpu-{number:03}', which has it {NEW}"
        for number in range(1, 6)
    ]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"match": {"uuid": "4C4C4544-0000-0000-0000-000000000001"}}, "UUID"),
        ({"match": {"serial": "S1"}}, "serial S1"),
        ({"match": {"serial": "S9", "ek_sha256": EK}}, f"EK {EK}"),
        ({"node": {"name": "n-1"}}, "in cluster default the node n-1"),
        ({"node": {"name": "gpu-002"}}, "in cluster default the node gpu-002"),
        ({"node": {"addresses": ["192.0.2.1"]}}, "address 192.0.2.1"),
        ({"former_names": ["gpu-001"]}, "name gpu-001"),
        ({"former_names": ["old-001"]}, "name old-001"),
        ({"rack": "r1", "position": 7}, "unit 7 of rack r1"),
    ],
)
def test_nor_by_anything_else_that_one_alone_has(spec: dict[str, Any], said: str) -> None:
    kept, faults = left_of([*holders(), machine(9, **spec)], holders())
    assert kept == ALL
    assert [fault.split(":")[0] for fault in faults] == ["machine/gpu-009"]
    assert said in faults[0] and NEW in faults[0]


def test_nor_by_its_own_name() -> None:
    kept, faults = left_of(
        [*holders(), resource("machine", "old-001", match={"serial": "S9"}, profile="compute")], holders()
    )
    assert kept == ALL
    assert faults == [f"machine/old-001: metadata.name: name old-001 is the machine's 'gpu-001', which has it {NEW}"]


def test_a_machine_in_force_that_says_anothers_is_out_alone_with_its_own_faults() -> None:
    mixed = machine(2, "52:54:00:00:00:01", node={"taints": ["netboot.dev/unchecked=x:NoExecute"]})
    kept, faults = left_of(replaced(fleet(6), mixed), fleet(6))
    assert kept == [name for name in ALL if name != "gpu-002"]
    assert [NEW in fault for fault in faults] == [True, False]
    assert "netboot.dev/unchecked=x" in faults[1]


def test_of_two_that_are_new_both_are_out_and_what_its_owner_gave_up_is_free() -> None:
    new = [machine(number, "52:54:00:00:00:0f") for number in (8, 9)]
    assert left_of([*fleet(6), *new], fleet(6))[0] == ALL
    moved = replaced(fleet(6), machine(1, "52:54:00:00:00:0e"), machine(9, "52:54:00:00:00:01"))
    assert left_of(moved, fleet(6)) == ([*ALL, "gpu-009"], [])
    renamed = resource(
        "machine", "node-1", match={"macs": ["52:54:00:00:00:01"]}, profile="compute", former_names=["gpu-001"]
    )
    assert left_of([*fleet(6), renamed], fleet(6))[0] == ALL, "both are there"
    without = [each for each in fleet(6) if each.name != "gpu-001"]
    assert left_of([*without, renamed], fleet(6)) == ([*ALL[1:], "node-1"], [])


def test_what_is_in_force_is_what_machines_boot_by(tmp_path: Path) -> None:
    kept = KeptResources(tmp_path, "netboot")
    kept.write([*fleet(6), machine(9, "52:54:00:00:00:01")])
    assert [each.name for each in kept.judged(None).inventory.machines] == ALL[1:], "nobody can tell whose it is"
    snapshot = Snapshot(
        site="s",
        published_ms=1,
        inventory=in_force(fleet(6)),
        channels={},
        unusable={},
        images={},
        url="http://h",
        origins=(),
    )
    write_snapshot(tmp_path / "snapshot.json", snapshot)
    assert [each.name for each in kept.judged(None).inventory.machines] == ALL
    assert in_force(fleet(6)) == kept.judged(None).inventory


def test_half_the_racks_of_a_large_fleet_gone_costs_no_more_than_they_say() -> None:
    """What was meant is looked for of a few: of all of them it took minutes."""
    racks = [resource("rack", f"rack-{number:04}") for number in range(0, 3000, 2)]
    machines = [
        machine(1, f"52:54:00:01:{number >> 8:02x}:{number & 255:02x}", rack=f"rack-{number:04}")
        for number in range(3000)
    ]
    named = [
        each.model_copy(update={"name": f"m-{number}", "shown": f"machine/m-{number}"})
        for number, each in enumerate(machines)
    ]
    inventory, faults, _ = judged([*fleet(0), *racks, *named], WHERE, None)
    assert (len(inventory.machines), len(faults)) == (1500, 1500)
    assert sum("did you mean 'rack-" in str(fault) for fault in faults) == 20
    assert "machine/m-999: spec.rack: no rack is named 'rack-0999'" in map(str, faults)
