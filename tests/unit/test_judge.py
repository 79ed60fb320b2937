"""What is found of a machine: its conditions, whole, and how they come and go by facts and by clocks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.judge import Verdict, judge
from netboot.lifecycle.known import Declared, Known, Node, Places, wants_claim
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reached import ORDER
from netboot.lifecycle.reasons import STATUSES, ConditionType, Reason
from netboot.lifecycle.state import Checked, MachineState
from netboot.lifecycle.trace import Trace, apply
from netboot.lifecycle.transitions import Mark, Trouble
from netboot.machines.deadlines import in_force
from tests.records import START, boot_id, certified, event, script

PLACES = Places("reports", "cluster/default", "nodes/default/hgx")
IMAGE = "a" * 64
HOUR = 3_600_000
BOOT = boot_id("gpu-001", 1)
AT = "2023-11-14T22:13:21Z"
T, R = ConditionType, Reason


def declared(**changed: Any) -> Declared:
    known = Declared("gpu-001", "default", "gpu-001", True, True, "stable", IMAGE, in_force(), PLACES)
    return known._replace(**changed)


def boot(*phases: Phase, number: int = 1, detail: str = "") -> Trace:
    trace = apply(None, script("gpu-001", number))
    for phase in phases:
        trace = apply(trace, event("gpu-001", number, phase, 500, detail))
    return trace


def upto(phase: Phase, number: int = 1) -> Trace:
    return boot(*ORDER[1 : ORDER.index(phase) + 1], number=number)


def known(current: Trace | None = None, **more: Any) -> Known:
    state = MachineState(machine="gpu-001", current=current, **more.pop("state", {}))
    return Known(more.pop("declared", declared()), state, **more)


def shows(ms: int) -> dict[str, int]:
    return dict.fromkeys(PLACES, ms)


def found(verdict: Verdict) -> dict[str, tuple[str, str]]:
    return {each.type.value: (each.status, each.reason.value) for each in verdict.judged.conditions}


def messages(verdict: Verdict) -> dict[str, str]:
    return {each.type.value: each.message for each in verdict.judged.conditions}


def after(of: Known, ms: int, before: Judged | None = None) -> Verdict:
    """Judged when it became known, and again when the clocks have gone on by so much."""
    first = judge(of, before, shows(0), START)
    return judge(of, first.judged, shows(ms), START + ms)


@pytest.mark.parametrize(
    ("phase", "sentence"),
    [
        (
            Phase.SCRIPT_SERVED,
            "5m (default): it has its script and has not fetched its kernel: its firmware stopped, or lost the network",
        ),
        (
            Phase.KERNEL_FETCHED,
            "5m (default): it has its kernel and has not fetched its initrd: its firmware stopped, or lost the network",
        ),
        (
            Phase.INITRD_FETCHED,
            (
                "10m (default): it has kernel and initrd, and its initrd has said nothing: "
                "the kernel hangs, or has no network"
            ),
        ),
        (
            Phase.INITRD_STARTED,
            "15m (default): its initrd runs and has not fetched the root image: the network, or every origin of it",
        ),
        (
            Phase.IMAGE_FETCHED,
            "5m (default): it has the root image and has not verified it: it is damaged, or the memory is too small",
        ),
        (
            Phase.IMAGE_VERIFIED,
            "5m (default): it has verified the root image and has not switched to it: see its console",
        ),
        (
            Phase.SWITCHED,
            "10m (default): it runs the root image, and has not reached multi-user.target: a unit hangs, or the kernel",
        ),
        (
            Phase.BOOTED,
            "10m (default): it is up and does not begin to join: the image has no agent, or the agent's unit failed",
        ),
        (
            Phase.JOINING,
            (
                "15m (default): it asks to join and has not proven itself: see `netboot machine show`, "
                "and its agent's journal"
            ),
        ),
        (Phase.ATTESTED, "5m (default): it has proven itself and got no token: see the log of the join server"),
        (
            Phase.TOKEN_ISSUED,
            "10m (default): it has its token, and no certificate was approved: its kubelet does not ask, or is refused",
        ),
        (
            Phase.CSR_APPROVED,
            "5m (default): its certificate is approved, and no Node registered: its kubelet does not reach the cluster",
        ),
        (
            Phase.NODE_REGISTERED,
            "15m (default): its Node is there and was never Ready: its kubelet, or the network of Pods, is not up",
        ),
    ],
)
def test_a_boot_that_is_stuck_says_where_and_what_was_last_heard_in_one_sentence(phase: Phase, sentence: str) -> None:
    of = known(upto(phase))
    message = f"boot {BOOT} reached {phase} at {AT} and nothing beyond in {sentence}; last heard: {phase} at {AT}"
    deadline = in_force()[phase].seconds * 1000
    early = judge(of, judge(of, None, shows(0), START).judged, shows(deadline - 1), START)
    verdict = judge(of, early.judged, shows(deadline), START)
    assert early.judged.trouble is Trouble.NONE
    assert (verdict.judged.trouble, verdict.judged.step) == (Trouble.STUCK, phase)
    kind = "Booted" if ORDER.index(phase) < ORDER.index(Phase.BOOTED) else "Joined"
    assert found(verdict)[kind] == ("False", "Stuck")
    assert messages(verdict)[kind] == message


def test_a_node_that_nobody_lets_work_is_overdue_where_a_class_says_so() -> None:
    of = known(upto(Phase.READY), node=Node.GATED)
    assert after(of, 999 * HOUR).judged.trouble is Trouble.NONE
    of = known(
        upto(Phase.READY), node=Node.GATED, declared=declared(deadlines=in_force(("class hgx", {"HealthGated": 3600})))
    )
    verdict = after(of, HOUR)
    assert (verdict.judged.trouble, verdict.judged.step) == (Trouble.STUCK, "HealthGated")
    assert found(verdict)["InService"] == ("False", "HealthGated")
    assert messages(verdict)["InService"] == (
        f"boot {BOOT} reached HealthGated and nothing beyond in 1h (class hgx): its Node is Ready and may not take "
        f"work: netboot.dev/unchecked is still on it; last heard: Ready at {AT}"
    )


def test_a_ready_boot_of_which_it_was_not_heard_that_it_registered_is_gated_or_in_service_all_the_same() -> None:
    verdict = judge(known(boot(Phase.READY), node=Node.IN_SERVICE), None, shows(0), START)
    assert (verdict.judged.step, verdict.judged.trouble) == ("InService", Trouble.NONE)


def test_of_a_boot_of_which_other_replicas_know_the_rest_its_certificate_is_what_was_heard_last() -> None:
    verdict = judge(known(claim=apply(None, certified("gpu-001", 1))), None, shows(0), START)
    assert messages(verdict)["Reachable"] == f"last heard: a client certificate at {AT}"


def test_one_that_is_stuck_recovers_by_itself() -> None:
    stuck = after(known(upto(Phase.SWITCHED)), 600_000)
    assert found(stuck)["Booted"] == ("False", "Stuck")
    well = judge(known(upto(Phase.BOOTED)), stuck.judged, shows(700_000), START + 700_000)
    assert found(well)["Booted"] == ("True", "Booted")
    assert well.judged.condition(T.BOOTED).since_ms == START + 700_000  # type: ignore[union-attr]


def test_deadlines_stand_still_while_we_cannot_see() -> None:
    of = known(upto(Phase.JOINING))
    first = judge(of, None, shows(0), START)
    blind = judge(of, first.judged, {"reports": 9 * HOUR, "cluster/default": 0}, START + 9 * HOUR)
    assert found(blind)["Joined"] == ("False", "Joining")
    assert [due.place for due in blind.dues] == ["cluster/default"]
    assert found(judge(of, blind.judged, shows(9 * HOUR), START))["Joined"] == ("False", "Stuck")


def test_a_clock_that_went_back_makes_nobody_late() -> None:
    of = known(upto(Phase.SWITCHED))
    first = judge(of, None, shows(HOUR), START)
    crashed = judge(of, first.judged, shows(HOUR - 60_000), START)
    assert found(crashed)["Booted"] == ("False", "Booting")
    assert crashed.judged.timers["step"].since == HOUR - 60_000


def test_a_machine_in_service_is_well_in_everything() -> None:
    of = known(upto(Phase.READY), node=Node.IN_SERVICE, state={"checked": Checked(status="pass", at_ms=START)})
    verdict = after(of, 60_000)
    assert found(verdict) == {
        "Booted": ("True", "Booted"),
        "Joined": ("True", "Joined"),
        "Healthy": ("True", "ChecksPassed"),
        "InService": ("True", "InService"),
        "UpToDate": ("True", "UpToDate"),
        "Reachable": ("True", "NodeReady"),
    }
    assert verdict.judged.conditions[0].document() == {
        "type": "Booted",
        "status": "True",
        "reason": "Booted",
        "message": f"boot {BOOT} is up, with image {IMAGE[:12]}",
        "lastTransitionTime": "2023-11-14T22:13:20Z",
    }
    assert [due.place for due in verdict.dues] == ["reports"]


def test_a_machine_of_which_nothing_is_known() -> None:
    assert found(after(known(), HOUR)) == {
        "Booted": ("False", "NeverBooted"),
        "Joined": ("False", "NeverBooted"),
        "Healthy": ("Unknown", "NoReport"),
        "InService": ("False", "NotJoined"),
        "UpToDate": ("Unknown", "NeverBooted"),
        "Reachable": ("Unknown", "NeverBooted"),
    }
    assert found(after(known(declared=declared(enabled=False)), HOUR))["Booted"] == ("False", "Disabled")


@pytest.mark.parametrize(
    ("of", "kind", "expected"),
    [
        (known(upto(Phase.READY), node=Node.GATED), "InService", ("False", "HealthGated")),
        (known(upto(Phase.READY), node=Node.CORDONED), "InService", ("False", "Cordoned")),
        (known(upto(Phase.READY), node=Node.CORDONED), "Reachable", ("True", "NodeReady")),
        (known(upto(Phase.READY), node=Node.NOT_READY), "InService", ("False", "NodeNotReady")),
        (known(upto(Phase.READY), node=Node.NOT_READY), "Reachable", ("False", "NodeNotReady")),
        (known(upto(Phase.READY)), "InService", ("Unknown", "NodeNotSeen")),
        (known(upto(Phase.READY)), "Reachable", ("Unknown", "NodeNotSeen")),
        (
            known(upto(Phase.READY), node=Node.IN_SERVICE, marks=frozenset({Mark.RETIRED})),
            "InService",
            ("False", "Retired"),
        ),
        (known(upto(Phase.READY), node=Node.IN_SERVICE, marks=frozenset({Mark.HELD})), "InService", ("False", "Held")),
        (known(upto(Phase.BOOTED), declared=declared(joins=False)), "Joined", ("False", "NoCluster")),
        (known(upto(Phase.BOOTED), declared=declared(joins=False)), "InService", ("False", "NoCluster")),
        (known(upto(Phase.BOOTED), declared=declared(joins=False)), "Reachable", ("Unknown", "NoReport")),
        (known(upto(Phase.BOOTED), declared=declared(image="b" * 64)), "UpToDate", ("False", "OtherImage")),
        (known(upto(Phase.BOOTED), declared=declared(image=None)), "UpToDate", ("Unknown", "NoImage")),
        (known(apply(None, event("gpu-001", 1, Phase.BOOTED))), "UpToDate", ("Unknown", "ImageUnknown")),
        (known(boot(Phase.SWITCHED, Phase.FAILED, detail="no link")), "Booted", ("False", "Failed")),
        (known(claim=boot()), "Booted", ("False", "Booting")),
        (known(claim=apply(None, certified("gpu-001", 1))), "Reachable", ("True", "HeardFrom")),
        (
            known(state={"pending": boot(Phase.SWITCHED, number=2)}, claim=boot(number=3)),
            "Reachable",
            ("True", "HeardFrom"),
        ),
    ],
)
def test_what_is_found_of_which_facts(of: Known, kind: str, expected: tuple[str, str]) -> None:
    assert found(judge(of, None, shows(0), START))[kind] == expected


@pytest.mark.parametrize("status", ["pass", "warn", "fail", "unknown"])
def test_health_is_what_the_last_report_says_until_it_is_stale(status: str) -> None:
    of = known(upto(Phase.BOOTED), state={"checked": Checked(status=status, at_ms=START)})
    fresh = judge(of, None, shows(0), START)
    reason = {"pass": "ChecksPassed", "warn": "ChecksWarn", "fail": "ChecksFailed", "unknown": "ChecksUnknown"}[status]
    assert found(fresh)["Healthy"][1] == reason
    assert found(judge(of, fresh.judged, shows(1_200_000), START))["Healthy"] == ("Unknown", "ReportStale")


def test_a_class_says_how_soon_a_report_is_missed_and_the_next_one_ends_it() -> None:
    """Its Node stays Ready: only what reports was stopped."""
    of_class = in_force(("class hgx", {"ReportStale": 420}))
    checked = Checked(status="pass", at_ms=START + 1_000)
    of = known(
        upto(Phase.READY), declared=declared(deadlines=of_class), state={"checked": checked}, node=Node.IN_SERVICE
    )
    fresh = after(of, 419_999)
    assert found(fresh)["Healthy"] == ("True", "ChecksPassed")
    late = judge(of, fresh.judged, shows(420_000), START)
    assert messages(late)["Healthy"] == f"its checks said pass at {AT}, and no report came in 7m (class hgx) since"
    assert found(late)["InService"] == ("True", "InService")
    again = replace(of, state=of.state.model_copy(update={"checked": Checked(status="pass", at_ms=START + 430_000)}))
    assert found(judge(again, late.judged, shows(430_000), START))["Healthy"] == ("True", "ChecksPassed")
    never = replace(of, declared=declared(deadlines=in_force(("class hgx", {"ReportStale": 0}))))
    assert found(after(never, 1_000 * HOUR))["Healthy"] == ("True", "ChecksPassed")


def test_a_failed_boot_says_why_in_its_own_words() -> None:
    of = known(boot(Phase.SWITCHED, Phase.FAILED, detail="no link"))
    assert messages(judge(of, None, shows(0), START))["Booted"] == (
        f"boot {BOOT} says that it failed after Switched, at {AT}: no link"
    )


def test_a_condition_has_what_the_machine_said_last_as_it_said_it() -> None:
    """Of whoever has failed, is stuck, lost, in a loop or retired; never what was written down of it by others."""
    words = 'can\'t open "C:\\new"'
    of = known(boot(Phase.SWITCHED, Phase.FAILED, detail=words))
    failed = {str(each.type): each for each in judge(of, None, shows(0), START).judged.conditions}
    assert {kind: each.said for kind, each in failed.items() if each.said} == {"Booted": words, "Joined": words}
    assert failed["Booted"].document()["said"] == words
    silent = judge(known(upto(Phase.INITRD_STARTED)), None, shows(0), START).judged.conditions
    assert ["said" in each.document() for each in silent] == [False] * 6


def test_a_failed_boot_that_says_nothing_more_is_silent() -> None:
    of = known(boot(Phase.INITRD_STARTED, Phase.FAILED, detail="no link"))
    early = after(of, 900_000 - 1)
    assert found(early)["Reachable"] == ("True", "HeardFrom")
    verdict = judge(of, early.judged, shows(900_000), START)
    assert (found(verdict)["Booted"], found(verdict)["Reachable"]) == (("False", "Failed"), ("False", "Silent"))


def test_a_node_that_is_not_ready_for_long_is_lost_and_a_short_while_is_not() -> None:
    of = known(upto(Phase.READY), node=Node.NOT_READY)
    verdict = after(of, 1_200_000 - 1)
    assert found(verdict)["Booted"] == ("True", "Booted")
    lost = judge(of, verdict.judged, shows(1_200_000), START)
    assert (found(lost)["Booted"], found(lost)["Joined"]) == (("Unknown", "Lost"), ("Unknown", "Lost"))
    assert messages(lost)["Booted"] == (
        f"boot {BOOT}: its Node has not been Ready for 20m (default); last heard: Ready at {AT}"
    )
    back = judge(known(upto(Phase.READY), node=Node.GATED), lost.judged, shows(1_300_000), START)
    assert (found(back)["Booted"], found(back)["InService"]) == (("True", "Booted"), ("False", "HealthGated"))


def test_one_that_joins_nothing_is_lost_when_its_reports_end() -> None:
    of = known(
        upto(Phase.BOOTED), declared=declared(joins=False), state={"checked": Checked(status="pass", at_ms=START)}
    )
    verdict = after(of, 1_200_000)
    assert found(verdict)["Booted"] == ("Unknown", "Lost")
    assert found(verdict)["Reachable"] == ("False", "Silent")
    assert messages(verdict)["Booted"] == (
        f"boot {BOOT}: it has sent no health report for 20m (default); last heard: Booted at {AT}"
    )


def test_what_nobody_proved_alters_nothing_of_a_boot_whose_node_is_ready() -> None:
    """A claim is not a boot: anybody on the wire makes one, and reports for it."""
    calm = known(upto(Phase.READY), node=Node.IN_SERVICE)
    stirred = Known(calm.declared, calm.state, boot(number=9), calm.node)
    assert found(after(stirred, HOUR)) == found(after(calm, HOUR))
    pending = {"pending": boot(Phase.INITRD_STARTED, Phase.FAILED, number=8)}
    assert found(after(known(upto(Phase.READY), node=Node.IN_SERVICE, state=pending), HOUR)) == found(after(calm, HOUR))


def test_the_boot_that_is_under_way_explains_a_machine_whose_proven_boot_is_lost() -> None:
    pending = {"pending": upto(Phase.INITRD_STARTED, number=2)}
    of = known(upto(Phase.READY), node=Node.NOT_READY, state=pending)
    late = after(of, 1_200_000 - 1)
    assert found(late)["Booted"] == ("True", "Booted")
    lost = judge(of, late.judged, shows(1_200_000), START)
    assert found(lost)["Booted"] == ("False", "Stuck"), "its deadline began with its own phase"
    assert lost.judged.step == Phase.INITRD_STARTED
    pending = {"pending": upto(Phase.IMAGE_FETCHED, number=2)}
    on = judge(known(upto(Phase.READY), node=Node.NOT_READY, state=pending), lost.judged, shows(1_200_000), START)
    assert found(on)["Booted"] == ("False", "Booting")


@pytest.mark.parametrize(
    ("current", "pending", "node", "wanted"),
    [
        (None, None, None, True),
        (upto(Phase.READY), None, Node.IN_SERVICE, False),
        (upto(Phase.READY), None, Node.NOT_READY, True),
        (upto(Phase.READY), boot(number=2), Node.NOT_READY, False),
        (upto(Phase.BOOTED), None, None, False),
    ],
)
def test_claims_are_asked_for_where_they_may_explain(
    current: Trace | None, pending: Trace | None, node: Node | None, wanted: bool
) -> None:
    assert wants_claim(MachineState(machine="gpu-001", current=current, pending=pending), node) is wanted


def test_a_transition_keeps_its_moment_and_never_goes_back() -> None:
    ahead = judge(known(upto(Phase.SWITCHED)), None, shows(0), START + 9 * HOUR)
    same = judge(known(upto(Phase.SWITCHED)), ahead.judged, shows(600_000), START)
    assert same.judged.condition(T.BOOTED).since_ms == START + 9 * HOUR  # type: ignore[union-attr]
    other = judge(known(upto(Phase.BOOTED)), same.judged, shows(600_000), START)
    assert other.judged.condition(T.BOOTED).since_ms == START + 9 * HOUR  # type: ignore[union-attr]


FACTS = st.lists(st.sampled_from([*ORDER[1:], Phase.FAILED]), max_size=12)


@given(
    FACTS,
    st.sampled_from([None, *Node]),
    st.booleans(),
    st.booleans(),
    st.lists(st.integers(0, 3 * HOUR), min_size=1, max_size=5),
    st.sampled_from([frozenset(), frozenset({Mark.DRAINING}), frozenset(Mark)]),
)
def test_whatever_comes_every_condition_is_declared_and_the_same_facts_come_to_the_same(
    phases: Sequence[Phase], node: Node | None, joins: bool, current: bool, steps: Sequence[int], marks: frozenset[Mark]
) -> None:
    trace = boot(*phases)
    again = boot(*reversed([*phases, *phases]))
    state: Mapping[str, Any] = {"checked": Checked(status="warn", at_ms=START)} if current and not joins else {}
    results = []
    for each in (trace, again):
        of = known(each if current else None, declared=declared(joins=joins), node=node, marks=marks, state=dict(state))
        of = of if current else Known(of.declared, of.state, each, node, marks)
        before, ms = None, 0
        for step in steps:
            verdict = judge(of, before, shows(ms), START + ms)
            assert all(due.at > ms for due in verdict.dues)
            before, ms = verdict.judged, ms + step
        assert before is not None
        assert [condition.type for condition in before.conditions] == list(ConditionType)
        assert all(STATUSES[each.type][each.reason] == each.status for each in before.conditions)
        results.append([(each.type, each.status, each.reason) for each in before.conditions])
    assert results[0] == results[1]
