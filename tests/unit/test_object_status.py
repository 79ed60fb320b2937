"""What objects of machines say of them, how soon, and how fast: rules, and what becomes of them in any order."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.object_boots import MOST_BOOTS, cut
from netboot.lifecycle.object_status import (
    LEFT_OUT,
    MOST_BYTES,
    MOST_MESSAGE,
    Facts,
    ObjectStatus,
    Urgency,
    status_in,
    status_of,
    urgency_of,
)
from netboot.lifecycle.pacing import APART_SECONDS, CLAIMS_APART_SECONDS, MOST_A_SECOND, Apart, Rate
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import STATUSES, ConditionType, Reason
from netboot.lifecycle.trace import Trace, apply
from netboot.lifecycle.transitions import Trouble
from netboot.machines.resources import declared_as
from netboot.machines.values import Machine
from tests.records import IMAGE, START, boot_id, event, script

NAME = "gpu-001"
PROVEN = (Phase.INITRD_STARTED, Phase.BOOTED, Phase.ATTESTED)
READY = (*PROVEN, Phase.NODE_REGISTERED, Phase.READY)


def machine(name: str = NAME) -> Machine:
    found = declared_as(name, {"match": {"macs": ["52:54:00:00:00:01"]}, "profile": "compute"})
    assert found is not None
    return found


def boot(number: int, *phases: Phase, detail: str = "") -> Trace:
    trace = apply(None, script(NAME, number))
    for place, phase in enumerate(phases):
        trace = apply(trace, event(NAME, number, phase, 500 + place * 1_000, detail))
    return trace


def judged(trace: Trace | None = None, reason: Reason = Reason.JOINING, message: str = "it is so") -> Judged:
    kind = ConditionType.JOINED
    conditions = [MachineCondition.of(kind, reason, message, START)]
    conditions.append(MachineCondition.of(ConditionType.IN_SERVICE, Reason.NOT_JOINED, "it has not joined", START))
    step = trace.state.value if trace is not None else ""
    trouble = Trouble.STUCK if reason is Reason.STUCK else Trouble.NONE
    named = trace.boot if trace is not None else ""
    return Judged(
        machine=NAME, conditions=tuple(conditions), timers={}, step=step, boot=named, image=IMAGE, trouble=trouble
    )


def status(*boots: Trace, reason: Reason = Reason.JOINING, message: str = "it is so", of: Trace | None = None) -> Any:
    counted = of or next((each for each in boots), None)
    return status_of(Facts(machine(), judged(counted, reason, message), boots, IMAGE), 3)


def test_what_an_object_says() -> None:
    proven = boot(1, *READY)
    assert status(proven, reason=Reason.JOINED).document() == {
        "phase": "Ready",
        "reason": "NotJoined",
        "boot": boot_id(NAME, 1),
        "node": NAME,
        "image": {"in_force": IMAGE, "booted": IMAGE, "short": IMAGE[:12]},
        "boots": [
            {
                "id": boot_id(NAME, 1),
                "phase": "Ready",
                "proven": True,
                "started": "2023-11-14T22:13:21Z",
                "reached": "2023-11-14T22:13:25Z",
                "image": IMAGE,
                "script": {
                    "at": START + 1_000,
                    "cluster": "default",
                    "profile": "compute",
                    "channel": "stable",
                },
                "steps": [
                    {"phase": "ScriptServed", "at": START + 1_000},
                    *(
                        {"phase": str(phase), "at": START + 1_500 + place * 1_000, "uptime": 500 + place * 1_000}
                        for place, phase in enumerate(READY)
                    ),
                ],
            }
        ],
        "conditions": [
            {
                "type": "Joined",
                "status": "True",
                "reason": "Joined",
                "message": "it is so",
                "lastTransitionTime": "2023-11-14T22:13:20Z",
                "observedGeneration": 3,
            },
            {
                "type": "InService",
                "status": "False",
                "reason": "NotJoined",
                "message": "it has not joined",
                "lastTransitionTime": "2023-11-14T22:13:20Z",
                "observedGeneration": 3,
            },
        ],
    }


def test_a_machine_that_was_not_judged_and_an_object_that_is_not_in_force() -> None:
    assert status_of(Facts(machine(), None, (), ""), 1).document() == {"node": NAME}
    assert status_of(None, 1).document() == {"phase": LEFT_OUT, "reason": LEFT_OUT}
    assert status_of(Facts(machine(), judged(), (), ""), 1).phase == "NeverBooted"


def test_a_generation_that_nobody_can_tell_is_said_to_be_none() -> None:
    """`kubectl wait` believes a condition that says none at all."""
    told = status_of(Facts(machine(), judged(), (), ""), 0).document()
    assert [each["observedGeneration"] for each in told["conditions"]] == [0, 0]


def test_what_others_wrote_there_is_none_of_ours() -> None:
    written = status(boot(1, *READY))
    assert status_in(written.document()) == written
    assert status_in({"conditions": 3}) == status_in({}) == ObjectStatus()


def test_boots_that_did_not_prove_themselves_push_none_out_that_did() -> None:
    proven = [boot(number, *READY) for number in range(20, 10, -1)]
    claimed = boot(30, Phase.INITRD_STARTED)
    told = status(claimed, *proven).boots
    assert [each.id for each in told] == [claimed.boot, *(each.boot for each in proven[:MOST_BOOTS])]


texts = st.text(max_size=3_000)


@given(texts, texts.map(lambda text: text.encode("ascii", "replace").decode()), st.sampled_from(list(Reason)))
def test_no_object_is_larger_than_it_may_be(message: str, detail: str, reason: Reason) -> None:
    some = "".join(each for each in detail if " " <= each <= "~")[:300]
    boots = tuple(boot(number, *PROVEN, Phase.FAILED, detail=some) for number in range(9, 1, -1))
    conditions = tuple(
        MachineCondition.of(kind, next(iter(STATUSES[kind])), message, START).model_copy(update={"reason": reason})
        for kind in ConditionType
    )
    found = judged(boots[0]).model_copy(update={"conditions": conditions})
    told = status_of(Facts(machine(), found, boots, IMAGE), 2**31)
    assert len(json.dumps(told.document(), ensure_ascii=False).encode("utf-8", "replace")) <= MOST_BYTES


@given(texts)
def test_a_text_that_is_cut_is_its_beginning(text: str) -> None:
    kept = cut(text, MOST_MESSAGE)
    assert kept == text or (kept.endswith("…") and text.startswith(kept[:-1]))
    assert len(kept) <= MOST_MESSAGE


FAILED = boot(1, *PROVEN, Phase.FAILED, detail="no route")
CLAIMED = boot(2, Phase.INITRD_STARTED)


@pytest.mark.parametrize(
    ("before", "after", "urgency"),
    [
        (ObjectStatus(), status(), Urgency.SOON),
        (status(), status(boot(1, Phase.INITRD_STARTED)), Urgency.LATER),
        (status(boot(1, Phase.INITRD_STARTED)), status(boot(1, Phase.BOOTED)), Urgency.LATER),
        (status(boot(1, Phase.BOOTED)), status(boot(1, *PROVEN)), Urgency.NOW),
        (status(boot(1, *PROVEN)), status(boot(1, *PROVEN, Phase.TOKEN_ISSUED)), Urgency.SOON),
        (status(boot(1, *PROVEN)), status(boot(1, *READY)), Urgency.NOW),
        (status(boot(1, *PROVEN)), status(FAILED), Urgency.NOW),
        (status(boot(1, *PROVEN)), status(boot(1, *PROVEN), reason=Reason.STUCK), Urgency.NOW),
        (status(boot(1, Phase.BOOTED)), status(boot(1, Phase.BOOTED), reason=Reason.STUCK), Urgency.LATER),
        (status(boot(1, *READY)), status(boot(1, *READY), message="another"), Urgency.LATER),
        (status(boot(1, *READY)), status(CLAIMED, boot(1, *READY), of=boot(1, *READY)), Urgency.LATER),
        (status(boot(1, *READY)), status_of(None, 1), Urgency.SOON),
        (status_of(None, 1), status(), Urgency.SOON),
    ],
)
def test_how_soon_it_is_written(before: ObjectStatus, after: ObjectStatus, urgency: Urgency) -> None:
    assert urgency_of(before, after) is urgency


@given(st.lists(st.sampled_from(list(Phase)[3:9]), max_size=6), st.lists(st.sampled_from(list(Phase)[3:9]), max_size=6))
def test_nothing_that_anybody_may_claim_is_written_before_its_minute(one: list[Phase], other: list[Phase]) -> None:
    proven = boot(1, *READY)
    for base in ((), (proven,)):
        before, after = (
            status(boot(2, *phases), *base, of=base[0] if base else None, message=str(phases))
            for phases in (one, other)
        )
        assert urgency_of(before, after) is Urgency.LATER


waits = st.lists(st.tuples(st.floats(0, 2), st.sampled_from(["write", "quick", "slow", "fail"])), max_size=300)


@given(waits)
def test_no_second_has_more_writes_than_it_may(steps: list[tuple[float, str]]) -> None:
    now, rate, writes = 0.0, Rate(0.0), list[float]()
    for wait, what in steps:
        now += wait / 20
        while rate.take(now):
            writes.append(now)
        if what == "fail":
            rate.failed()
        elif what != "write":
            rate.answered(0.01 if what == "quick" else 3.0)
        assert 0 < rate.a_second <= MOST_A_SECOND
    for begin in writes:
        assert sum(begin <= each < begin + 1 for each in writes) <= MOST_A_SECOND


def test_a_bucket_empties_and_tells_when_there_is_more() -> None:
    rate = Rate(0.0)
    assert [rate.take(0.0) for _ in range(6)] == [True] * 5 + [False]
    assert rate.wait() == pytest.approx(1 / 45)
    assert rate.take(rate.wait() + 1e-9)
    for _ in range(20):
        rate.failed()
    assert (rate.a_second, rate.take(0.5)) == (1.0, False)
    assert rate.take(2.0)
    rate.answered(0.01)
    assert rate.a_second == 1.5
    rate.answered(3.0)
    assert rate.a_second == pytest.approx(1.05)


@given(st.lists(st.tuples(st.floats(0, 90), st.sampled_from(list(Urgency))), max_size=40))
def test_one_machine_is_written_as_rarely_as_it_may(steps: list[tuple[float, Urgency]]) -> None:
    apart, now = Apart(), 0.0
    written = list[tuple[float, Urgency]]()
    for wait, urgency in steps:
        now += wait
        if now >= apart.due(NAME, urgency):
            apart.note(NAME, urgency, now)
            written.append((now, urgency))
    for (first, _), (second, urgency) in itertools.pairwise(written):
        assert second - first >= APART_SECONDS[urgency]
    claims = [at for at, urgency in written if urgency is Urgency.LATER]
    assert all(second - first >= CLAIMS_APART_SECONDS for first, second in itertools.pairwise(claims))
