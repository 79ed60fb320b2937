"""How a machine is, for whoever looks at thousands: made of its conditions, and of how long it is behind its gate.
Pure."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.transitions import Trouble

_T, _R = ConditionType, Reason
LONG_GATED_MS = 3_600_000
"""So long the gate keeps no machine that is well: no check and no boot takes as long. (`netboot_machines_long_gated`
counts from when a machine was in service last, over reboots, too.)"""


class MachineStatus(StrEnum):
    """In the order in which they want to be seen."""

    LATE = "late"
    """The deadline of its phase is past, it boots again and again, or its gate has kept it from work for long."""
    ILL = "ill"
    """It says that it failed, is lost, its Node is not Ready, or a health check failed."""
    HELD = "held"
    """Somebody keeps it from work: held, in quarantine, drained, cordoned."""
    COMING = "coming"
    """It boots, joins, or waits for its gate, within its deadline."""
    IN_SERVICE = "in-service"
    """It works; where it joins no cluster, it is up."""
    OFF = "off"
    """Nothing is awaited of it: never booted, disabled, retired."""
    UNKNOWN = "unknown"
    """It cannot be told: its Node is not seen, or it was not judged yet."""


RANK: Mapping[MachineStatus, int] = {status: rank for rank, status in enumerate(MachineStatus)}


class MachineSummary(NamedTuple):
    """A machine's status, and the condition that says so. `step`: the furthest of the boot that counts, `boot`: its
    id, `image`: what it was served; empty: not known. `reasons`: of all conditions, by their types. `late_ms`: when it
    will be late though nothing is found of it, None: never; `said`: the machine's own words in `message`."""

    status: MachineStatus
    condition: str = ""
    reason: str = ""
    message: str = ""
    since_ms: int = 0
    step: str = ""
    boot: str = ""
    image: str = ""
    reasons: tuple[tuple[str, str], ...] = ()
    late_ms: int | None = None
    said: str = ""


class Summaries(Protocol):
    """What was found of all machines, for reading."""

    def summaries(self) -> Mapping[str, MachineSummary]:
        """Of every machine that was judged; made anew only of those of which something else was found since, and the
        same value where that is nothing.

        Raises:
            netboot.lifecycle.errors.StateUnavailableError: they cannot be read.
        """
        ...


UNJUDGED = MachineSummary(MachineStatus.UNKNOWN, message="it was not judged yet")

RULES: tuple[tuple[MachineStatus, Mapping[ConditionType, frozenset[Reason]]], ...] = (
    (MachineStatus.OFF, {_T.IN_SERVICE: frozenset({_R.RETIRED}), _T.BOOTED: frozenset({_R.DISABLED, _R.RETIRED})}),
    (MachineStatus.LATE, {kind: frozenset({_R.STUCK, _R.BOOT_LOOP}) for kind in (_T.BOOTED, _T.JOINED)}),
    (
        MachineStatus.ILL,
        {
            _T.BOOTED: frozenset({_R.FAILED, _R.LOST}),
            _T.JOINED: frozenset({_R.FAILED, _R.LOST}),
            _T.HEALTHY: frozenset({_R.CHECKS_FAILED}),
            _T.IN_SERVICE: frozenset({_R.NODE_NOT_READY}),
        },
    ),
    (MachineStatus.HELD, {_T.IN_SERVICE: frozenset({_R.HELD, _R.QUARANTINED, _R.DRAINING, _R.CORDONED})}),
    (
        MachineStatus.COMING,
        {
            _T.BOOTED: frozenset({_R.BOOTING}),
            _T.JOINED: frozenset({_R.JOINING}),
            _T.IN_SERVICE: frozenset({_R.HEALTH_GATED}),
        },
    ),
    (MachineStatus.OFF, {_T.BOOTED: frozenset({_R.NEVER_BOOTED})}),
    (MachineStatus.IN_SERVICE, {_T.IN_SERVICE: frozenset({_R.IN_SERVICE, _R.NO_CLUSTER})}),
)
"""The first that holds, in this order; within one the first condition."""


def _gated_since_ms(judged: Judged) -> int | None:
    """Since when its gate keeps a machine from work: since it joined, or was in service last, whichever is later. None:
    it does not."""
    in_service, joined = judged.condition(_T.IN_SERVICE), judged.condition(_T.JOINED)
    if in_service is None or in_service.reason is not _R.HEALTH_GATED:
        return None
    return max(in_service.since_ms, joined.since_ms if joined is not None else 0)


def is_retired(found: MachineSummary) -> bool:
    """Whether it was taken out for good."""
    return (_T.IN_SERVICE.value, _R.RETIRED.value) in found.reasons


def as_of(found: MachineSummary, now_ms: int) -> MachineSummary:
    """The same at that moment."""
    if found.late_ms is None or now_ms < found.late_ms:
        return found
    return found._replace(status=MachineStatus.LATE, late_ms=None)


def summary_of(judged: Judged) -> MachineSummary:
    """How this machine is, as long as `late_ms` is to come."""
    by_type = {each.type: each for each in judged.conditions}
    for status, wanted in RULES:
        for kind, reasons in wanted.items():
            if (found := by_type.get(kind)) is not None and found.reason in reasons:
                return _of(status, found, judged)
    told = by_type.get(_T.IN_SERVICE)
    return _of(MachineStatus.UNKNOWN, told, judged) if told is not None else UNJUDGED


def _of(status: MachineStatus, because: MachineCondition, judged: Judged) -> MachineSummary:
    reasons = tuple((str(each.type), str(each.reason)) for each in judged.conditions)
    said = (str(because.type), str(because.reason), because.message, because.since_ms)
    gated = _gated_since_ms(judged) if because.reason is _R.HEALTH_GATED else None
    if gated is not None and judged.trouble is Trouble.STUCK:  # its class has a deadline for that
        status, gated = MachineStatus.LATE, None
    late_ms = gated + LONG_GATED_MS if gated is not None else None
    return MachineSummary(status, *said, judged.step, judged.boot, judged.image, reasons, late_ms, because.said)
