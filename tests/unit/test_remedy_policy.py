"""Which remedy is due, and what withholds it: one after the other, and by Hypothesis."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.intents import Exemption, Intent
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.remedies import DAY_MS, Books, Case, Fleet, Pause, Remedy
from netboot.lifecycle.remedy_policy import Decision, common_cause, decide, end_of, room, under_remedy, unrecorded
from netboot.lifecycle.transitions import Mark
from netboot.machines.remedies import Remedies, Rules
from tests.drains import drain
from tests.records import START
from tests.remedies import HOUR, MINUTE, WAITED, ailment, books, case, fleet, remedy, rules

NOTHING = books()


def held(mark: Mark | Exemption = Mark.HELD, owner: str = "operator", **more: Any) -> Intent:
    values = {"machine": "gpu-001", "mark": mark, "owner": owner, "who": "ann", "reason": "DIMM 4", "since_ms": START}
    return Intent.model_validate(values | more)


def test_one_that_is_ready_is_rebooted_and_the_next_time_put_in_quarantine() -> None:
    assert decide(case(), NOTHING, fleet()) == Decision("reboot", due=True, words="")
    once = books(remedy(end="back"))
    assert decide(case(), once, fleet()) == Decision("quarantine", due=True, words="")
    twice = books(remedy(end="back"), remedy(id=8, what="quarantine", end="readmitted"))
    assert decide(case(), twice, fleet()) == Decision(None, False, "nothing more is done about it today (class hgx)")


def test_what_was_passed_over_is_over_and_nothing_is_done_twice_but_where_it_is_said_twice() -> None:
    nothing = Decision(None, False, "nothing more is done about it today (class hgx)")
    readmitted = books(remedy(what="quarantine", end="readmitted"))
    assert decide(case(reason=Reason.NODE_NOT_READY), readmitted, fleet()) == nothing
    assert decide(case(), readmitted, fleet()) == nothing
    twice = rules(actions=["reboot", "reboot", "quarantine"])
    assert decide(case(rules=twice), books(remedy(end="back")), fleet()).what == "reboot"
    both = books(remedy(end="back"), remedy(id=8, end="back"))
    assert decide(case(rules=twice), both, fleet()).what == "quarantine"
    other = rules(actions=["quarantine"])
    assert decide(case(rules=other), both, fleet()) == nothing, "its class said something else this morning"


def test_a_day_later_it_begins_anew_and_a_clock_that_was_set_back_makes_nothing_older() -> None:
    old = books(remedy(end="back"), now_ms=START + DAY_MS)
    assert decide(case(), old, fleet()).what == "reboot"
    assert decide(case(), old._replace(now_ms=START + DAY_MS - 1), fleet()).what == "quarantine"
    assert decide(case(), old._replace(now_ms=START - 5 * DAY_MS), fleet()).what == "quarantine"


def test_a_node_that_is_not_ready_is_never_drained() -> None:
    for reason in (Reason.NODE_NOT_READY, Reason.STUCK):
        assert decide(case(reason=reason), NOTHING, fleet()) == Decision("quarantine", due=True, words="")
    only = rules(actions=["reboot", "reboot"])
    assert decide(case(ready=False, rules=only), NOTHING, fleet()).what is None


def test_nothing_is_due_before_the_wait_is_over() -> None:
    assert decide(case(waited_ms=WAITED - 1), NOTHING, fleet()) == Decision("reboot", due=False, words="")
    assert not decide(case(waited_ms=WAITED - 1), NOTHING, fleet()).acts


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rules": Rules()}, "it is not to act by itself (default): `remedies: {act: true}`"),
        (
            {"rules": Rules(Remedies(act=True), "class c", replicas=True)},
            "of several replicas none acts by itself, for the others would not know of it (docs/ha.md)",
        ),
        ({"unseen": "nodes/default/hgx cannot be looked at"}, "nodes/default/hgx cannot be looked at"),
        ({"elsewhere": "rollout 3 of channel stable has it"}, "rollout 3 of channel stable has it"),
    ],
)
def test_what_is_due_and_withheld_says_why(changed: dict[str, Any], words: str) -> None:
    assert decide(case(**changed), NOTHING, fleet()) == Decision("reboot", due=True, words=words)


def test_paused_frozen_or_out_of_room_it_is_withheld() -> None:
    stopped = books(pause=Pause(stands=True, who="ann", reason="power work", since_ms=START))
    assert decide(case(), stopped, fleet()).words == "remedies are paused by ann: power work"
    resumed = books(pause=Pause(stands=False, who="ann", reason="done", since_ms=START))
    assert decide(case(), resumed, fleet()).acts
    frozen = fleet(withheld="nothing begins: frozen by bob: audit")
    assert decide(case(), NOTHING, frozen).words == "nothing begins: frozen by bob: audit"
    other = books(remedy("gpu-009", id=3))
    assert decide(case(), other, fleet(gpu_009="r1")) == Decision(
        "reboot",
        True,
        "no more than 1 machine of rack r1 may be out of service (class hgx)",
        ", and 1 is: gpu-009 (by remedy 3)",
    )
    assert decide(case(), other, fleet(gpu_009="r2")).acts
    assert decide(case(), other, fleet(49, gpu_009="r2")).words == (
        "no more than 1 machine may be out of service (class hgx)"
    )
    assert decide(case(rack=""), other, fleet(gpu_009="")).words == (
        "no more than 1 machine without a rack may be out of service (class hgx)"
    )


def test_whoever_is_out_fills_a_place_by_whose_word_ever_and_who_waits_for_a_remedy_itself_none() -> None:
    at_hand = books(
        remedy("gpu-009", id=3),
        orders=[drain("gpu-002", "order-2", who="ann")],
        intents=[held(machine="gpu-003", who="bob"), held(Exemption.ACCEPTED, machine="gpu-005")],
    )
    names = [f"gpu-00{number}" for number in range(10)]
    around = fleet()._replace(
        racks=dict.fromkeys(names, "r1"),
        out=unrecorded(names[6:9], {"gpu-007", "gpu-008"}, {"gpu-008": "rollout 3 has it"}),
    )
    refused = room(case(rules=rules(per_rack=4, fleet=9)), at_hand, around)
    assert refused is not None
    assert sorted(refused.who) == ["gpu-002", "gpu-003", "gpu-006", "gpu-008", "gpu-009"]
    assert refused.out == ", and 5 are: gpu-002 (by ann), gpu-003 (by bob), gpu-006 (by itself) and 2 more"
    assert str(refused) == f"no more than 4 machines of rack r1 may be out of service (class hgx){refused.out}"
    assert room(case(rules=rules(per_rack=6, fleet=9)), at_hand, around) is None
    assert room(case("gpu-002", rules=rules(per_rack=5, fleet=9)), at_hand, around) is None, "it is out itself"


def test_a_machine_that_is_under_a_remedy_itself_takes_no_room_from_its_next() -> None:
    own = books(remedy(end=None, drain=""))
    assert decide(case(), own, fleet(10, gpu_001="r1")) == Decision("quarantine", due=True, words="")


def test_what_somebody_has_taken_in_hand_is_left_alone() -> None:
    order = drain("gpu-001", "order-1", who="ann", reason="new image")
    assert decide(case(), books(orders=[order]), fleet()) == Decision(
        None, False, "it is to be drained, by ann: new image"
    )
    ours = drain("gpu-001", "order-7", "reboot", who="netboot", reason="remedy 7")
    found = decide(case(), books(remedy(), orders=[ours]), fleet())
    assert found == Decision(None, False, "it is to be rebooted, by remedy 7: remedy 7")
    assert decide(case(), books(intents=[held()]), fleet()).words == "it is held, by ann: DIMM 4"
    by_us = held(Mark.QUARANTINED, "remedy/7", who="netboot", reason="remedy 7")
    found = decide(case(), books(remedy(what="quarantine"), intents=[by_us]), fleet())
    assert found.words == "it is quarantined, by remedy 7: remedy 7"
    accepted = books(intents=[held(Exemption.ACCEPTED)])
    assert decide(case(), accepted, fleet()).words == "it is accepted, by ann: DIMM 4"
    assert decide(case(reason=Reason.NODE_NOT_READY), accepted, fleet()).acts, "its checks are, and no more"


def near(*minutes: int, racks: str = "abc", **more: Any) -> list[Case]:
    return [
        case(f"gpu-{place:03}", since_ms=START + minute * MINUTE, rack=rack, **more)
        for place, (minute, rack) in enumerate(zip(minutes, racks, strict=True), 1)
    ]


def test_three_machines_in_two_racks_within_ten_minutes_are_a_matter_of_the_fleet() -> None:
    words = "gpu-001, gpu-002, gpu-003 in 2 racks are not well for one reason, ChecksFailed, within ten minutes"
    assert common_cause(near(0, 5, 10, racks="aab"), NOTHING) == words
    assert common_cause(near(0, 5, 11, racks="aab"), NOTHING) == ""
    assert common_cause(near(0, 5, 10, racks="aaa"), NOTHING) == ""
    assert common_cause(near(0, 5, 10, 60, racks="aaab"), NOTHING) == "", "the other rack is an hour later"
    assert common_cause(near(0, 5, racks="ab"), NOTHING) == ""
    assert common_cause([case._replace(rack="") for case in near(0, 5, 10)], NOTHING) == words.replace("2 r", "3 r")
    assert common_cause(near(0, 5, 10, rules=Rules()), NOTHING) == "", "nothing would be done"
    mixed = [*near(0, 5, racks="ab"), case("gpu-003", reason=Reason.STUCK, rack="c", since_ms=START)]
    assert common_cause(mixed, NOTHING) == ""
    resumed = books(pause=Pause(stands=False, who="ann", reason="", since_ms=START))
    assert common_cause(near(0, 5, 10), resumed) == ""
    assert common_cause(near(1, 5, 10), resumed) != ""
    assert common_cause(near(0, 5, 10), books(intents=[held()])) == "", "one of them is somebody's"
    assert common_cause(near(0, 1, 2, 3, 4, 5, 6, racks="abcdefg"), NOTHING).startswith(
        "gpu-001, gpu-002, gpu-003, gpu-004, gpu-005 and 2 more in 7 racks"
    )


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab"), st.booleans()), max_size=9))
def test_one_cause_is_found_as_the_obvious_way_finds_it(facts: list[tuple[int, str, bool]]) -> None:
    cases = [
        case(f"gpu-{place}", since_ms=START + minute * MINUTE, rack=rack, rules=rules(act=act))
        for place, (minute, rack, act) in enumerate(facts)
    ]
    windows = [
        [each for each in cases if 0 <= each.ailment.since_ms - first.ailment.since_ms <= 10 * MINUTE]
        for first in cases
    ]
    expected = any(
        len(near) >= 3 and len({each.rack for each in near}) >= 2 and any(each.rules.remedies.act for each in near)
        for near in windows
    )
    assert bool(common_cause(cases, NOTHING)) == expected


def test_how_a_remedy_has_ended() -> None:
    order = drain("gpu-001", "order-7", "reboot")
    one, over = remedy(), {"back": True, "gone": False}
    assert end_of(one, books(one, orders=[order]), **over) is None, "it has not been rebooted"
    for end in ("taken-off", "replaced", "undone"):
        assert end_of(one, books(one, orders=[order.model_copy(update={"end": end})]), **over) == end
    done = books(one, orders=[order.model_copy(update={"end": "rebooted"})])
    assert end_of(one, done, **over) == "back"
    assert end_of(one, done, back=False, gone=False) is None, "it keeps its place until it is back"
    assert end_of(one, books(one), **over) == "back", "the order is longer ago than is kept"
    assert end_of(one, done, back=False, gone=True) == "gone"
    kept = remedy(what="quarantine")
    assert end_of(kept, books(kept, intents=[held(Mark.QUARANTINED, "remedy/7")]), **over) is None
    assert end_of(kept, books(kept, intents=[held(Mark.QUARANTINED)]), **over) == "readmitted"


MACHINES = [f"gpu-{number:03}" for number in range(12)]
FACTS = st.lists(
    st.tuples(
        st.sampled_from(MACHINES),
        st.sampled_from([Reason.CHECKS_FAILED, Reason.NODE_NOT_READY, Reason.STUCK]),
        st.booleans(),  # its Node is Ready
        st.integers(0, 3600),  # how long it has been so
        st.integers(0, 4 * 3600),  # how much later this is
    ),
    max_size=60,
)


def end_some(taken: list[Remedy], done: set[int]) -> list[Remedy]:
    return [each.model_copy(update={"end": "back"}) if each.id in done else each for each in taken]


@given(FACTS, st.integers(1, 3), st.integers(1, 4), st.sets(st.integers(1, 60)))
def test_no_order_of_facts_lets_more_act_than_budgets_allow(
    facts: list[tuple[str, Reason, bool, int, int]], per_rack: int, whole: int, done: set[int]
) -> None:
    kind, racks = rules(per_rack=per_rack, fleet=whole), {name: f"r{int(name[-1]) % 3}" for name in MACHINES}
    taken: list[Remedy] = []
    now = START
    for machine, reason, ready, waited, later in facts:
        now += later * 1000
        on_record = Books(now, None, end_some(taken, done), {}, {}, {})
        one = Case(machine, racks[machine], ailment(machine, reason), ready, kind, waited * 1000)
        decision = decide(one, on_record, Fleet(len(MACHINES), racks))
        if not decision.acts:
            continue
        assert decision.what == "quarantine" or ready
        assert waited >= kind.remedies.wait
        row = {"id": len(taken) + 1, "what": decision.what, "at_ms": now, "reason": reason}
        taken = [each for each in end_some(taken, done) if each.machine != machine or each.end] + [
            remedy(machine, **row)
        ]
        under = under_remedy(end_some(taken, done))
        assert len(under) <= whole
        assert max([sum(racks[name] == rack for name in under) for rack in racks.values()], default=0) <= per_rack
        lately = [each for each in taken if each.machine == machine and now - each.at_ms < DAY_MS]
        assert len(lately) <= len(kind.remedies.actions)


@given(
    st.sampled_from(["unseen", "elsewhere"]),
    st.sampled_from([Reason.CHECKS_FAILED, Reason.NODE_NOT_READY, Reason.STUCK]),
    st.integers(0, 100 * HOUR),
    st.integers(0, 3),
)
def test_nothing_acts_on_what_cannot_be_seen_or_is_somebody_elses(
    what: str, reason: Reason, waited: int, before: int
) -> None:
    taken = [remedy(id=number, end="back") for number in range(before)]
    one = case(reason=reason, waited_ms=waited, **{what: "why"})
    assert not decide(one, books(*taken), fleet()).acts


@given(st.permutations(range(6)))
def test_the_order_in_which_it_became_known_alters_nothing(order: list[int]) -> None:
    taken = [remedy(f"gpu-00{number}", id=number, end=None if number % 2 else "back") for number in range(6)]
    shuffled = books(*(taken[place] for place in order))
    racks = {f"gpu-00{number}": f"r{number % 2}" for number in range(6)}
    for machine in ("gpu-001", "gpu-002", "gpu-009"):
        for most in (1, 2, 3, 4):
            one = case(machine, rules=rules(fleet=most, per_rack=2))
            around = Fleet(437, racks)
            assert decide(one, shuffled, around) == decide(one, books(*taken), around)
            assert room(one, shuffled, around) == room(one, books(*taken), around)
