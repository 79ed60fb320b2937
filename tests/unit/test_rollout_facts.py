"""What a machine's condition is to a rollout: who keeps it out of service, and that this says nothing of an image."""

from types import SimpleNamespace
from typing import Any

import pytest

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import Fact
from netboot.lifecycle.rollout_facts import facts_of
from netboot.machines.values import Channel, Inventory, Machine, Match, Profile
from tests.rollouts import NEW

INVENTORY = Inventory(
    machines=(Machine(name="m-1", match=Match(serial="m-1"), profile="p"),),
    profiles=(Profile(name="p", channel="stable"),),
    channels=(Channel(name="stable"),),
)


@pytest.mark.parametrize(
    ("reason", "held"),
    [
        (Reason.HELD, "it is held"),
        (Reason.QUARANTINED, "it is quarantined"),
        (Reason.DRAINING, "it is draining"),
        (Reason.CORDONED, "it is cordoned"),
        (Reason.HEALTH_GATED, ""),
        (Reason.NODE_NOT_READY, ""),
    ],
)
def test_who_is_kept_out_of_service_by_somebody_is_so_by_its_condition(reason: Reason, held: str) -> None:
    condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, "", 1)
    judged = Judged(machine="m-1", conditions=(condition,), timers={}, boot="b", image=NEW)
    snapshot: Any = SimpleNamespace(inventory=INVENTORY)
    found = facts_of(snapshot, "stable", ["m-1"], {"m-1": judged}, {})
    assert found == {"m-1": Fact(up=False, image=NEW, boot="b", held=held)}
