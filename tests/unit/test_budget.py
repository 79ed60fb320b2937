"""Whether one more machine may go out of service, whoever asks: the rule by itself."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.controllers.found import Found
from netboot.lifecycle.budget import Out, Places, by_whom, fills_a_place, slots
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.intents import Exemption, Intent
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import MemberState
from netboot.lifecycle.transitions import Mark
from tests.drains import START, drain
from tests.rollouts import fleet

HELD = {"mark": Mark.HELD, "owner": "operator", "who": "bob", "reason": "DIMM 4", "since_ms": START}


def intent(machine: str, **more: Any) -> Intent:
    return Intent.model_validate({"machine": machine, **HELD, **more})


def test_it_says_who_is_out_by_whose_word() -> None:
    drains = [drain("m1", "o1"), drain("m2", "o2", "reboot", owner="remedy/7", who="netboot")]
    turn = drain("m3", "o3", "reboot", owner="rollout/3", who="rollout 3 of channel stable")
    marked = [
        intent("m4"),
        intent("m5", mark=Mark.QUARANTINED, owner="remedy/8", who="netboot"),
        intent("m6", mark=Exemption.ACCEPTED),
    ]
    said = by_whom([*drains, turn], marked)
    assert said == {
        "m1": "by alice",
        "m2": "by remedy 7",
        "m3": "by rollout 3 of channel stable",
        "m4": "by bob",
        "m5": "by remedy 8",
    }
    assert slots([*drains, turn], marked) == {"o1", "o2", "o3", "m4 Held operator", "m5 Quarantined remedy/8"}
    places = Places(9, 2, {name: Out("a" if name < "m3" else "b", by) for name, by in said.items()})
    assert str(places.refusal("a")) == (
        "no more than 2 machines of rack a may be out of service, and 2 are: m1 (by alice), m2 (by remedy 7)"
    )
    assert str(places.refusal("b")).endswith(
        ", and 3 are: m3 (by rollout 3 of channel stable), m4 (by bob), m5 (by remedy 8)"
    )
    assert places.refusal("c") is None


def test_who_is_near_counts_in_its_rack_alone() -> None:
    near = {"n1": Out("a", "by itself"), "n2": Out("b", "by bob")}
    assert Places(9, 2, {"n1": near["n1"]}, near).fits("a"), "it is one machine"
    places = Places(2, 1, {}, near)
    assert str(places.refusal("a")) == (
        "no more than 1 machine of rack a may be out of service, and 1 is: n1 (by itself)"
    )
    assert places.fits("c")
    places.take("m1", Out("c", "by alice"))
    assert (places.fits("c"), places.fits("d")) == (False, True)
    places.take("m2", Out("d", "by alice"))
    assert str(places.refusal("e")) == (
        "no more than 2 machines may be out of service, and 2 are: m1 (by alice), m2 (by alice)"
    )


@given(
    st.integers(1, 5),
    st.none() | st.integers(1, 3),
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["", "r1", "r2"]), max_size=8),
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from(["r1", "r2"]), max_size=8),
    st.lists(st.sampled_from(["", "r1", "r2"]), max_size=9),
)
def test_whoever_is_out_no_more_go_than_may(
    most: int, per_rack: int | None, out: dict[str, str], near: dict[str, str], wanted: list[str]
) -> None:
    before = {name: Out(rack, "") for name, rack in out.items()}
    places = Places(most, per_rack, before, {name: Out(rack, "") for name, rack in near.items()})
    there, racks = len(out), [*out.values(), *(rack for name, rack in near.items() if name not in out)]
    for number, rack in enumerate(wanted):
        may = there < most and (per_rack is None or racks.count(rack) < per_rack)
        assert places.fits(rack) == may == (places.refusal(rack) is None)
        if may:
            places.take(f"new-{number}", Out(rack, ""))
            there, racks = there + 1, [*racks, rack]


@pytest.mark.parametrize(
    ("reason", "boot", "fills"),
    [
        (Reason.IN_SERVICE, "b", False),
        (Reason.NODE_NOT_READY, "b", True),
        (Reason.CORDONED, "b", True),
        (Reason.NODE_NOT_SEEN, "b", True),
        (Reason.NOT_JOINED, "b", True),
        (Reason.NOT_JOINED, "", False),
        (Reason.RETIRED, "b", False),
    ],
)
def test_a_machine_that_never_booted_or_is_retired_fills_no_place(reason: Reason, boot: str, fills: bool) -> None:
    condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, "", START)
    judged, found = Judged(machine="m1", conditions=(condition,), timers={}, boot=boot), Found()
    found.put(judged)
    assert (fills_a_place(judged), found.out) == (fills, {"m1"} if fills else set())
    found.drop("m1")
    assert found.out == set()


def test_a_rollout_says_what_keeps_the_next_turn_from_coming_unless_it_is_its_own_machines() -> None:
    world = fleet(8, 4, max_unavailable="2", per_rack=1, on_next_boot=False)
    world.by, world.near = {"m0000": "by bob"}, {"x1": Out("r1", "by remedy 7"), "x2": Out("r2", "by itself")}
    world.look()
    limit = "no more than 2 machines may be out of service, and 2 are"
    own = "m0007 (by rollout 7 of channel stable)"
    assert (world.assigned, world.rollout.why) == (["m0007"], f"{limit}: m0000 (by bob), {own}")
    world.by |= {"m0004": "by alice"}
    world.look()
    assert (world.assigned, world.rollout.why) == ([], f"{limit}: m0000 (by bob), m0004 (by alice)")
    world.by, world.near = {}, {f"x{number}": Out(f"r{number}", "by itself") for number in range(4)}
    world.look()
    words = "no more than 1 machine of rack r0 may be out of service, and 1 is: x0 (by itself)"
    assert (world.assigned, world.rollout.why) == ([], words)
    world.near = {}
    world.look()
    assert (len(world.assigned), world.rollout.why) == (2, ""), "its own"


def test_whose_turn_it_was_and_who_is_held_meanwhile_waits_again() -> None:
    world = fleet(8, 4, max_unavailable="2", on_next_boot=False)
    world.look()
    held = world.assigned[0]
    world.by = {held: "by bob"}
    world.look()
    assert world.members[held].state is MemberState.WAITING
    assert len(world.assigned) == 1
