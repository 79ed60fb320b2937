"""Where the time of a boot went, and what no phase accounts for."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.objective import BUCKETS, PHASE_BUCKETS, Durations, Measured, measured, measured_phases
from netboot.lifecycle.phases import REPORTED_PHASES, Phase
from netboot.lifecycle.reached import ORDER
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.spans import KERNEL, STEPS, GoesOn, Span, Took, goes_on, spans, took
from netboot.lifecycle.trace import Trace, apply
from netboot.lifecycle.transitions import Trouble
from netboot.machines.deadlines import NONE, Deadline
from tests.records import START, boot_id, script

BOOT = boot_id("gpu-001", 0)
AT = {
    Phase.KERNEL_FETCHED: 1_000,
    Phase.INITRD_FETCHED: 2_000,
    Phase.INITRD_STARTED: 6_000,
    Phase.IMAGE_FETCHED: 9_000,
    Phase.IMAGE_VERIFIED: 10_000,
    Phase.SWITCHED: 11_000,
    Phase.BOOTED: 16_000,
    Phase.JOINING: 16_500,
    Phase.ATTESTED: 18_000,
    Phase.TOKEN_ISSUED: 18_100,
    Phase.CSR_APPROVED: 20_000,
    Phase.NODE_REGISTERED: 21_000,
    Phase.READY: 26_000,
}
"""Milliseconds after the script; the kernel starts 3 s after it."""


def booted(*without: Phase, late: int = 0, late_first: int = 0, lie_ms: int = 0, **others: Any) -> Trace:
    """`late`: each report but the first; `late_first`: the first; `lie_ms`: what the report of Booted adds to its
    uptime."""
    trace = apply(None, script("gpu-001", 0))
    for phase, after in AT.items():
        if phase not in without:
            uptime = after - 3_000 if phase in REPORTED_PHASES else None
            at = START + after
            if uptime is not None:
                at += late_first if phase is Phase.INITRD_STARTED else late
                uptime += lie_ms if phase is Phase.BOOTED else 0
            record = EventRecord(
                at_ms=at, boot=BOOT, machine="gpu-001", phase=phase, uptime_ms=uptime, peer="192.0.2.7", **others
            )
            trace = apply(trace, record)
    return trace


def test_each_phase_has_its_part_and_the_start_of_the_kernel_is_one_between() -> None:
    parts = [(part.step, part.until, part.seconds, part.missing) for part in spans(booted(), START + 27_000)]
    assert parts == [
        ("ScriptServed", "KernelFetched", 1.0, ()),
        ("KernelFetched", "InitrdFetched", 1.0, ()),
        ("InitrdFetched", "Kernel", 1.0, ()),
        ("Kernel", "InitrdStarted", 3.0, ()),
        ("InitrdStarted", "ImageFetched", 3.0, ()),
        ("ImageFetched", "ImageVerified", 1.0, ()),
        ("ImageVerified", "Switched", 1.0, ()),
        ("Switched", "Booted", 5.0, ()),
        ("Booted", "Joining", 0.5, ()),
        ("Joining", "Attested", 1.5, ()),
        ("Attested", "TokenIssued", 0.1, ()),
        ("TokenIssued", "CSRApproved", 1.9, ()),
        ("CSRApproved", "NodeRegistered", 1.0, ()),
        ("NodeRegistered", "Ready", 5.0, ()),
        ("Ready", "InService", 1.0, ()),
    ]
    assert took(spans(booted()), Phase.READY) == Took(23_000, 0)


def test_time_in_which_a_phase_was_never_heard_of_is_accounted_for_by_none() -> None:
    parts = spans(booted(Phase.BOOTED, Phase.JOINING))
    gap = Span("Switched", "Attested", START + 11_000, START + 18_000, ("Booted", "Joining"))
    assert [part for part in parts if part.missing] == [gap]
    assert took(parts, Phase.READY) == Took(23_000, 7_000)
    origins = spans(booted(Phase.KERNEL_FETCHED, Phase.INITRD_FETCHED))
    assert origins[0] == Span("ScriptServed", KERNEL, START, START + 3_000, ("KernelFetched", "InitrdFetched"))
    assert took(origins, Phase.READY) == Took(23_000, 0), "what was before the kernel is not counted"


def test_a_report_that_came_late_makes_no_phase_longer() -> None:
    assert spans(booted(late=60_000)) == spans(booted())


def test_the_first_report_may_come_late_too() -> None:
    assert spans(booted(late_first=40_000)) == spans(booted())


def test_no_uptime_makes_a_boot_longer_than_since_what_it_fetched() -> None:
    assert took(spans(booted(lie_ms=10**11)), Phase.READY) == Took(24_000, 0), "from what was fetched last"
    assert booted(lie_ms=10**11).seconds_to_ready == 26.0


def test_without_an_uptime_there_is_no_start_of_the_kernel_and_nothing_is_measured() -> None:
    trace = booted()
    silent = trace.model_copy(
        update={"reached": tuple(each.model_copy(update={"uptime_ms": None}) for each in trace.reached)}
    )
    assert KERNEL not in {part.step for part in spans(silent)}
    assert all(not part.missing for part in spans(silent))
    assert took(spans(silent), Phase.READY) is None
    assert measured(silent, "Ready", "", None) is None
    assert spans(apply(None, script("gpu-001", 0))) == ()


def test_moments_that_contradict_each_other_are_put_in_the_order_of_phases() -> None:
    trace = booted(Phase.BOOTED)
    early = EventRecord(
        at_ms=START + 19_000, boot=BOOT, machine="gpu-001", phase=Phase.BOOTED, uptime_ms=16_000, peer="192.0.2.7"
    )
    parts = {part.step: part.seconds for part in spans(apply(trace, early))}
    assert (parts["Switched"], parts["Booted"], parts["Joining"], parts["Attested"]) == (8.0, 0.0, 0.0, 0.0)
    assert took(spans(apply(trace, early)), Phase.READY) == Took(23_000, 0)


@given(st.dictionaries(st.sampled_from(ORDER), st.integers(0, 10**7), min_size=1), st.integers(0, 10**6) | st.none())
def test_parts_follow_each_other_without_gap_and_none_is_negative(at: dict[Phase, int], uptime: int | None) -> None:
    trace: Trace | None = None
    for phase, after in at.items():
        record = EventRecord(
            at_ms=START + after, boot=BOOT, machine="gpu-001", phase=phase, uptime_ms=uptime, peer="192.0.2.7"
        )
        trace = apply(trace, record)
    assert trace is not None
    parts = spans(trace)
    assert all(part.end_ms >= part.begin_ms for part in parts)
    assert all((a.end_ms, a.until) == (b.begin_ms, b.step) for a, b in pairwise(parts))
    assert [part.step for part in parts] == sorted((part.step for part in parts), key=STEPS.index)
    ready = took(parts, Phase.READY)
    assert ready is None or 0 <= ready.unaccounted_ms <= ready.ms


def test_a_boot_counts_in_each_bucket_that_it_fits_and_once_in_the_sums() -> None:
    one = measured(booted(Phase.BOOTED), "Ready", "hgx", None)
    assert one == Measured("Ready", "hgx", "a" * 12, 23_000, 5_500)
    durations = Durations(target="Ready", hardware="hgx", image="a" * 12).plus(one).plus(one._replace(ms=15_000))
    durations = durations.plus(one._replace(ms=3_600_001, unaccounted_ms=0))
    assert durations.buckets()[:4] == [("15", 1), ("20", 1), ("25", 2), ("30", 2)]
    assert durations.buckets()[-2:] == [("3600", 2), ("+Inf", 3)]
    assert (durations.ms, durations.unaccounted_ms) == (23_000 + 15_000 + 3_600_001, 11_000)
    assert len(durations.counts) == len(BUCKETS) + 1


def test_each_phase_is_counted_from_the_kernel_on_where_the_next_one_was_heard_of() -> None:
    trace = booted(Phase.BOOTED)
    assert [(one.target, one.ms) for one in measured_phases(trace, "hgx")] == [
        ("phase Kernel", 3_000),
        ("phase InitrdStarted", 3_000),
        ("phase ImageFetched", 1_000),
        ("phase ImageVerified", 1_000),
        ("phase Joining", 1_500),
        ("phase Attested", 100),
        ("phase TokenIssued", 1_900),
        ("phase CSRApproved", 1_000),
        ("phase NodeRegistered", 5_000),
    ]
    last = Measured("phase Ready", "hgx", "a" * 12, 1_000, 0)
    assert measured_phases(trace, "hgx", START + 27_000) == [last]
    durations = Durations(target=last.target, hardware="hgx", image="a" * 12).plus(last)
    assert (durations.phase, durations.buckets()[:3]) == ("Ready", [("0.5", 0), ("1", 1), ("2", 1)])
    assert len(durations.counts) == len(PHASE_BUCKETS) + 1
    assert Durations(target="Ready", hardware="", image="").phase is None


def at(step: str, trouble: Trouble = Trouble.NONE, boot: str = BOOT, /, **reasons: Reason) -> Judged:
    """What was found of its machine, of which what is not said is that it boots."""
    found = {ConditionType.BOOTED: Reason.BOOTING} | {ConditionType[kind]: reason for kind, reason in reasons.items()}
    conditions = tuple(MachineCondition.of(kind, reason, "", START) for kind, reason in found.items())
    return Judged(machine="gpu-001", conditions=conditions, timers={}, step=step, boot=boot, trouble=trouble)


GATED = {"BOOTED": Reason.BOOTED, "JOINED": Reason.JOINED, "IN_SERVICE": Reason.HEALTH_GATED}


@pytest.mark.parametrize(
    ("judged", "found"),
    [
        (at("Ready"), GoesOn("Ready", START + 26_000, START + 86_000, late=False)),
        (at("Ready", Trouble.STUCK, BOOTED=Reason.STUCK), GoesOn("Ready", START + 26_000, START + 86_000, late=True)),
        (at("Ready", Trouble.FAILED, BOOTED=Reason.FAILED), GoesOn("Ready", START + 26_000, None, late=False)),
        (at("HealthGated", **GATED), GoesOn("HealthGated", START + 26_000, None, late=False)),
        (at("Ready", Trouble.LOST, BOOTED=Reason.LOST), None),
        (at("InService", **GATED | {"IN_SERVICE": Reason.HELD}), None),
        (at("Booted", BOOTED=Reason.BOOTED, JOINED=Reason.NO_CLUSTER, IN_SERVICE=Reason.NO_CLUSTER), None),
        (at("Ready", IN_SERVICE=Reason.RETIRED), None),
        (at("Ready", Trouble.NONE, boot_id("gpu-001", 7)), None),
        (None, None),
    ],
)
def test_what_a_boot_is_in_now(judged: Judged | None, found: GoesOn | None) -> None:
    deadlines = {"Ready": Deadline(60, ""), "HealthGated": Deadline(NONE, "")}
    assert goes_on(booted(), judged, deadlines) == found
    assert goes_on(booted(), judged, deadlines, START + 27_000) is None
