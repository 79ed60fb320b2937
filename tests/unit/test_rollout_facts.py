"""What a machine's condition is to a rollout: who keeps it out of service, and that this says nothing of an image."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from netboot.lifecycle.bootid import mint
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.drains import Reserved
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import Fact, Member, MemberState, Stage
from netboot.lifecycle.rollout_facts import facts_of, left, with_past
from netboot.machines.values import Channel, Inventory, Machine, Match, Profile
from tests.drains import drain
from tests.rollouts import NEW, OLD

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


def test_who_changes_channel_leaves_and_who_comes_is_no_member() -> None:
    """Rule L14: members are those of the start, as long as they use the channel."""
    moved = Machine(name="m-1", match=Match(serial="m-1"), profile="other")
    came = Machine(name="m-2", match=Match(serial="m-2"), profile="p")
    inventory = INVENTORY.model_copy(
        update={
            "machines": (moved, came),
            "profiles": (*INVENTORY.profiles, Profile(name="other", channel="edge")),
            "channels": (*INVENTORY.channels, Channel(name="edge")),
        }
    )
    snapshot: Any = SimpleNamespace(inventory=inventory)
    found = facts_of(snapshot, "stable", ["m-1", "m-3"], {}, {})
    assert found == {
        "m-1": Fact(up=False, image="", boot="", gone="it uses channel edge now"),
        "m-3": Fact(up=False, image="", boot="", gone="the inventory no longer has it"),
    }


@pytest.mark.parametrize(
    ("order", "told", "reason", "reachable", "fact"),
    [
        ({"what": "drain"}, False, Reason.IN_SERVICE, Reason.NODE_READY, ("it is draining", Stage.NONE)),
        ({}, None, Reason.IN_SERVICE, Reason.NODE_READY, ("it is draining", Stage.DRAINING)),
        ({}, False, Reason.DRAINING, Reason.NODE_NOT_READY, ("it is draining", Stage.DRAINING)),
        ({}, True, Reason.DRAINING, Reason.NODE_READY, ("it is draining", Stage.DRAINING)),
        ({}, True, Reason.DRAINING, Reason.NODE_NOT_READY, ("", Stage.GONE)),
        ({}, True, Reason.DRAINING, Reason.HEARD_FROM, ("", Stage.GONE)),
        ({}, True, Reason.HELD, Reason.NODE_NOT_READY, ("it is held", Stage.GONE)),
        ({"boot": "another"}, False, Reason.DRAINING, Reason.NODE_READY, ("", Stage.GONE)),
    ],
)
def test_a_machine_that_something_is_ordered_of_is_out_at_once_and_held_by_it_until_it_reboots(
    order: dict[str, str], told: bool | None, reason: Reason, reachable: Reason, fact: tuple[str, Stage]
) -> None:
    conditions = (
        MachineCondition.of(ConditionType.IN_SERVICE, reason, "", 1),
        MachineCondition.of(ConditionType.REACHABLE, reachable, "", 1),
    )
    judged = Judged(machine="m-1", conditions=conditions, timers={}, boot="b", image=NEW)
    orders = {"m-1": Reserved(drain("m-1", "1", **{"what": "reboot", "boot": "b", **order}), told)}
    snapshot: Any = SimpleNamespace(inventory=INVENTORY)
    found = facts_of(snapshot, "stable", ["m-1"], {"m-1": judged}, orders)
    assert found == {"m-1": Fact(up=False, image=NEW, boot="b", held=fact[0], stage=fact[1])}


A, B, C = (mint(b"k" * 32, "m-1", NEW, 1000 * number, 0) for number in range(1, 4))
"""Boots that began one after the other, by the clock of whoever began them."""


@pytest.mark.parametrize(
    ("state", "boot", "served", "arrived", "past"),
    [
        (MemberState.ASSIGNED, "", "", {}, False),
        (MemberState.ASSIGNED, B, "", {B: 3}, False),
        (MemberState.ASSIGNED, C, "", {B: 3, C: 2}, False),
        (MemberState.ASSIGNED, A, "", {A: 4, B: 3}, True),
        (MemberState.ASSIGNED, A, C, {A: 2, B: 3}, False),
        (MemberState.ASSIGNED, C, "", {B: 3}, True),
        (MemberState.ASSIGNED, A, "", {B: 3}, False),
        (MemberState.ASSIGNED, "no id", "", {B: 3}, False),
        (MemberState.OUT, C, A, {B: 3}, True),
        (MemberState.DONE, B, C, {B: 3}, True),
        (MemberState.DONE, B, C, {B: 3, C: 2}, False),
        (MemberState.DONE, B, A, {B: 3}, False),
        (MemberState.DONE, C, "", {B: 3}, True),
        (MemberState.DONE, C, "", {C: 3}, False),
    ],
)
def test_what_is_known_is_past_where_the_rollout_knows_of_a_later_boot(
    state: MemberState, boot: str, served: str, arrived: dict[str, int], past: bool
) -> None:
    def numbers(boots: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        return {each: (arrived[each], 0) for each in boots if each in arrived}

    fact = Fact(up=True, image=OLD, boot=B)
    member = Member(machine="m-1", previous=OLD, state=state, boot=boot, served=served)
    assert with_past({"m-1": fact}, {"m-1": member}, numbers) == {"m-1": fact._replace(past=past)}


def test_of_whose_boot_nothing_else_is_known_nothing_is_asked() -> None:
    facts = {"m-1": Fact(up=True, image=OLD, boot=B), "m-2": Fact(up=False, image="", boot="", gone="it is retired")}
    members = {name: Member(machine=name, previous=OLD, state=MemberState.DONE, boot=A, served=B) for name in facts}
    assert with_past(facts, members, lambda _boots: pytest.fail("it was asked")) == facts


def test_who_is_not_there_to_be_drained_any_more() -> None:
    snapshot: Any = SimpleNamespace(inventory=INVENTORY)
    retired = MachineCondition.of(ConditionType.IN_SERVICE, Reason.RETIRED, "", 1)
    judged = {"m-1": Judged(machine="m-1", conditions=(retired,), timers={}, boot="b", image=NEW)}
    all_ = {"default", "other"}
    assert left(snapshot, all_, ["m-1", "gone"], {}, all_) == {"gone": "the inventory no longer has it"}
    assert left(snapshot, all_, ["m-1"], judged, {"default"}) == {"m-1": "it is retired"}
    assert left(snapshot, {"other"}, ["m-1"], {}, {"other"}) == {"m-1": "it joins no cluster any more"}
    # another replica may have a newer inventory, and drains it
    assert left(snapshot, all_, ["m-1", "gone"], judged, {"other"}) == {}
    assert left(snapshot, {"other"}, ["m-1"], {}, set()) == {}
