"""The gate's decision: pure, total; what it may never do, whatever comes."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.controllers.nodes.budget import Budget
from netboot.controllers.nodes.gate import (
    CLOSING,
    Decision,
    Known,
    Reason,
    decide,
    is_shut,
    may_close,
    told,
    was_closed,
)
from netboot.join.node_said import GateSaid, HealthSaid
from netboot.join.ports import NodeView
from netboot.machines.classes import Gate

OURS, THEIRS = "a" * 64, "b" * 64
REGISTERED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
CLOSED = {"key": "netboot.dev/unchecked", "value": "ChecksFailed", "effect": "NoSchedule"}
UNATTESTED = {"key": "netboot.dev/unattested", "effect": "NoSchedule"}
FOREIGN = {"key": "example.com/maintenance", "value": "x", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
RETIRED = {"key": "netboot.dev/held", "value": "Retired", "effect": "NoSchedule"}


def said(status: str = "True", credential: str = OURS, **checks: str) -> HealthSaid:
    return HealthSaid(status, "r", f"it is {status}", credential, checks or {"cpus": "pass"}, "2026-01-01T00:00:00Z")


def node(*taints: dict[str, str], health: HealthSaid | None = None, **more: Any) -> NodeView:
    plain = NodeView("gpu-001", "uid", ready=True, boot_id="", created_ms=0, marked=True)
    return plain._replace(**{"taints": taints, "health": health, **more})


def known(**more: Any) -> Known:
    return Known(**{"certificates": {OURS}, "gate": Gate(), "hold": "", **more})


@pytest.mark.parametrize(
    ("view", "how", "reason", "words", "taints"),
    [
        (node(REGISTERED, health=said()), known(), "Healthy", "it is True", ()),
        (node(FOREIGN, REGISTERED, UNATTESTED, health=said()), known(), "Healthy", "it is True", (FOREIGN, UNATTESTED)),
        (node(CLOSED, health=said()), known(), "Healthy", "it is True", ()),
        (node(REGISTERED), known(), "NoReport", "the node has not said yet how healthy it is", (REGISTERED,)),
        (
            node(REGISTERED, health=said(credential=THEIRS)),
            known(),
            "OtherBoot",
            "what the node says of its health is not under a certificate of its current boot",
            (REGISTERED,),
        ),
        (node(REGISTERED, health=said("False")), known(), "ChecksFailed", "it is False", (REGISTERED,)),
        (node(REGISTERED, health=said("Unknown")), known(), "ChecksUnknown", "it is Unknown", (REGISTERED,)),
        (
            node(REGISTERED, health=said(cpus="pass", load="absent")),
            known(gate=Gate(required=("cpus", "load", "nvlink"))),
            "ChecksMissing",
            "checks that its class requires are not in: load, nvlink",
            (REGISTERED,),
        ),
        (
            node(REGISTERED, health=said(cpus="pass", load="warn")),
            known(gate=Gate(required=("cpus", "load"))),
            "Healthy",
            "it is True",
            (),
        ),
        (node(FOREIGN, health=said("False")), known(), "ChecksFailed", "it is False", (FOREIGN, CLOSED)),
        (
            node(health=said()),
            known(stale=True),
            "ReportStale",
            "the node has not said for half an hour how healthy it is",
            ({**CLOSED, "value": "ReportStale"},),
        ),
        (
            node(REGISTERED, health=said()),
            known(often=True),
            "OpenedOften",
            "it was opened too often of late: some minutes later it is again",
            (REGISTERED,),
        ),
        (
            node(health=said("False")),
            known(hold="Held"),
            "ChecksFailed",
            "it is False",
            ({**RETIRED, "value": "Held"},),
        ),
        (node(health=said("False")), known(gate=Gate(on_failure="report")), "ChecksFailed", "it is False", ()),
        (node(health=said("Unknown")), known(), "ChecksUnknown", "it is Unknown", ()),
        (
            node(REGISTERED, health=said(), by_hand=True),
            known(hold="Held"),
            "Healthy",
            "somebody has taken the gate of this Node into their own hands",
            (REGISTERED,),
        ),
        (node(REGISTERED, health=said(), marked=False), known(), "Healthy", "it is not netboot's", (REGISTERED,)),
        (node(health=said()), known(hold="Retired"), "Healthy", "it is True", (RETIRED,)),
        (node(RETIRED, health=said()), known(hold="Retired"), "Healthy", "it is True", (RETIRED,)),
        (
            node(RETIRED, health=said()),
            known(hold="Held"),
            "Healthy",
            "it is True",
            ({**RETIRED, "value": "Held"},),
        ),
        (node(RETIRED, FOREIGN, health=said()), known(), "Healthy", "it is True", (FOREIGN,)),
        (node(RETIRED, health=said()), known(hold=None), "Healthy", "it is True", (RETIRED,)),
        (
            node({**RETIRED, "value": "me"}, health=said()),
            known(),
            "Healthy",
            "it is True",
            ({**RETIRED, "value": "me"},),
        ),
    ],
)
def test_what_is_decided(view: NodeView, how: Known, reason: str, words: str, taints: tuple[Any, ...]) -> None:
    decision = decide(view, how)
    assert (decision.reason, decision.words, decision.taints) == (Reason(reason), words, taints)
    assert decision.closes is (is_shut(taints) and not is_shut(view.taints))


LET = {"netboot.dev/accepted": "true"}
ENDED = {**CLOSED, "value": "AcceptanceEnded"}
NO_MORE = "it is accepted no more, and would not be open by itself: "


@pytest.mark.parametrize(
    ("view", "how", "taints", "label"),
    [
        (node(REGISTERED, health=said("False")), known(accepted=True), (), True),
        (node(REGISTERED), known(accepted=True), (), True),
        (node(REGISTERED, FOREIGN, health=said(credential=THEIRS)), known(accepted=True), (FOREIGN,), True),
        (node(CLOSED, health=said("False")), known(accepted=True), (), True),
        (node(REGISTERED, health=said()), known(accepted=True), (), False),
        (node(REGISTERED, health=said("False")), known(accepted=True, certificates=()), (REGISTERED,), False),
        (node(REGISTERED, health=said("False")), known(accepted=None), (REGISTERED,), False),
        (node(REGISTERED, health=said("False"), labels=LET), known(accepted=None), (REGISTERED,), False),
        (node(health=said("False")), known(accepted=True), (), True),
        (node(health=said("False")), known(accepted=None), (CLOSED,), False),
        (node(health=said("False"), labels=LET), known(accepted=None), (), True),
        (node(health=said("False"), labels=LET), known(), (CLOSED,), False),
        (node(health=said("Unknown"), labels=LET), known(), (ENDED,), False),
        (node(labels=LET), known(), (ENDED,), False),
        (node(labels=LET), known(accepted=True, certificates=()), (ENDED,), False),
        (node(labels=LET), known(gate=Gate(on_failure="report")), (ENDED,), False),
        (node(labels=LET), known(may_close=False), (), True),
        (node(health=said("False")), known(may_close=False), (), False),
        (node(health=said(), labels=LET), known(), (), False),
        (node(health=said(), labels=LET), known(accepted=True), (), False),
        (node(ENDED, health=said()), known(), (), False),
        (node(labels=LET, by_hand=True), known(), (), True),
        (node(REGISTERED, health=said("False"), marked=False), known(accepted=True), (REGISTERED,), False),
        (node(REGISTERED, health=said("False")), known(accepted=True, hold="Retired"), (RETIRED,), True),
    ],
)
def test_what_an_acceptance_opens_and_its_end_closes(
    view: NodeView, how: Known, taints: tuple[Any, ...], label: bool
) -> None:
    decision = decide(view, how)
    assert (decision.taints, decision.accepted) == (taints, label)
    assert decision.closes is (is_shut(taints) and not is_shut(view.taints))
    if taints == (ENDED,):
        assert decision.reason is Reason.ACCEPTANCE_ENDED
        assert decision.words.startswith(NO_MORE)


keys = st.sampled_from(["netboot.dev/unchecked", "netboot.dev/held", "netboot.dev/unattested", "example.com/a", "rack"])
effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
values = st.sampled_from(["", "x", "Held", "Retired", "Quarantined", "ChecksFailed", "ReportStale", "AcceptanceEnded"])


@st.composite
def taint_lists(draw: st.DrawFn) -> tuple[dict[str, str], ...]:
    """As an apiserver takes them: no two of one key and effect; a value may be left out."""
    pairs = draw(st.lists(st.tuples(keys, effects), unique=True, max_size=8))
    found = ({"key": key, "effect": effect, "value": draw(values)} for key, effect in pairs)
    return tuple({name: text for name, text in one.items() if text} for one in found)


words = st.builds(
    said,
    st.sampled_from(["True", "False", "Unknown", "odd"]),
    st.sampled_from([OURS, THEIRS, ""]),
    cpus=st.just("pass"),
)
views = st.builds(
    lambda taints, health, marked, by_hand, labels: node(
        *taints, health=health, marked=marked, by_hand=by_hand, labels=labels
    ),
    taint_lists(), st.none() | words, st.booleans(), st.booleans(), st.sampled_from([{}, LET]),
)  # fmt: skip
facts = st.builds(
    Known,
    certificates=st.sets(st.sampled_from([OURS, "c" * 64])),
    gate=st.builds(
        Gate,
        required=st.sampled_from([(), ("cpus",), ("nvlink",)]),
        on_failure=st.sampled_from(["taint", "report"]),
    ),
    stale=st.booleans(),
    hold=st.sampled_from([None, "", "Held", "Retired", "Quarantined"]),
    often=st.booleans(),
    accepted=st.sampled_from([None, False, True]),
    may_close=st.booleans(),
)


@given(views, facts)
def test_whatever_comes(view: NodeView, how: Known) -> None:
    decision = decide(view, how)
    _others_stay(view, decision)
    added = [taint for taint in decision.taints if taint not in view.taints]
    assert all(taint["effect"] == "NoSchedule" for taint in added), "nothing that runs is ever evicted"
    pairs = [(taint["key"], taint["effect"]) for taint in decision.taints]
    assert len(set(pairs)) == len(pairs), "the apiserver takes no two of one key and effect"
    if is_shut(view.taints) and not is_shut(decision.taints):
        assert how.certificates, "nobody's word opens it to who did not prove the boot"
        if not decision.accepted:
            assert view.health is not None
            assert (view.health.status, view.health.credential in how.certificates) == ("True", True)
            assert set(how.gate.required) <= {"cpus"}
            assert not how.stale
            assert not how.often
        else:
            assert how.accepted
    assert decision.closes is (is_shut(decision.taints) and not is_shut(view.taints))
    if decision.closes:
        assert decision.reason in CLOSING
        assert how.may_close
        assert how.gate.on_failure == "taint" or view.labels == LET
        assert was_closed(decision.taints)
    if not view.marked or view.by_hand:
        assert decision.taints == view.taints
    again = decide(view._replace(taints=decision.taints, labels=LET if decision.accepted else {}), how)
    assert (again.taints, again.accepted) == (decision.taints, decision.accepted), "what was done is not done again"


def _others_stay(view: NodeView, decision: Decision) -> None:
    """In their order, as they were read."""
    ours = ("netboot.dev/unchecked", "netboot.dev/held")
    before = [taint for taint in view.taints if taint["key"] not in ours]
    assert [taint for taint in decision.taints if taint["key"] not in ours] == before


@pytest.mark.parametrize(("of", "most"), [(0, 1), (1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (437, 43), (5_000, 500)])
def test_a_tenth_may_be_closed_and_one_in_any_case(of: int, most: int) -> None:
    assert [may_close(closed, of) for closed in (0, most - 1, most, most + 1)] == [True, True, False, False]


@pytest.mark.parametrize(
    ("taints", "closed"),
    [
        ((), False),
        ((REGISTERED,), False),
        ((FOREIGN, CLOSED), True),
        ((REGISTERED, CLOSED), False),
        (({**CLOSED, "value": "else"},), False),
    ],
)
def test_closed_is_what_the_gate_itself_has_shut(taints: tuple[dict[str, str], ...], closed: bool) -> None:
    assert was_closed(taints) is closed


def test_a_cluster_has_its_tenth_too_however_many_classes_it_has() -> None:
    assert not Budget(Counter(a=9, b=9), Counter(a=1)).allows("b"), "one of 18 is closed"
    of_twenty = Budget(Counter(a=9, b=11), Counter(a=1))
    assert (of_twenty.allows("a"), of_twenty.allows("b")) == (False, True)


@pytest.mark.parametrize(
    ("taints", "says"),
    [
        ((), ("True", "Open", "netboot's gate is open")),
        ((FOREIGN, RETIRED, UNATTESTED), ("True", "Open", "netboot's gate is open")),
        ((FOREIGN, REGISTERED), ("False", "Unchecked", "netboot's gate has not opened yet")),
        ((CLOSED,), ("False", "ChecksFailed", "netboot's gate was closed after it had been open")),
        (
            ({**CLOSED, "value": "ReportStale"}, RETIRED),
            ("False", "ReportStale", "netboot's gate was closed after it had been open"),
        ),
        (({**CLOSED, "value": "x y"},), ("False", "Unchecked", "netboot's gate has not opened yet")),
        ((CLOSED, REGISTERED), ("False", "Unchecked", "netboot's gate has not opened yet")),
    ],
)
def test_others_are_told_how_the_taint_is(taints: tuple[dict[str, str], ...], says: tuple[str, str, str]) -> None:
    assert told(taints) == GateSaid(*says)
