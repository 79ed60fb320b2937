"""One boot as one trace, as OpenTelemetry has them: a span of the whole boot, and below it one of each phase. Pure.

Ids follow from the boot's, so that a boot that is exported twice is the same trace.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from netboot.lifecycle.drains import Drain
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.spans import IN_SERVICE, Span, spans
from netboot.lifecycle.trace import Trace

Attributes = Mapping[str, str]
ROOT = "boot"
"""The name of the span of the whole boot."""


class RejectedError(Exception):
    """A collector does not take what it was handed, now or ever."""


class Moment(NamedTuple):
    """Something that happened inside a span, milliseconds since 1970."""

    name: str
    at_ms: int
    attributes: Attributes


class BootSpan(NamedTuple):
    """A span. `parent` None: the boot's own. `failed`: why it is one that failed; empty: it did not."""

    name: str
    span_id: int
    parent: int | None
    begin_ms: int
    end_ms: int
    attributes: Attributes
    moments: tuple[Moment, ...] = ()
    failed: str = ""


class BootTrace(NamedTuple):
    """A boot. `before`: the id of the boot that the machine ran until then, to whose trace the first span links."""

    boot: str
    spans: tuple[BootSpan, ...]
    before: str | None = None


def trace_id(boot: str) -> int:
    """The boot id's own 16 bytes."""
    return int(boot.replace("-", ""), 16)


def span_id(boot: str, name: str) -> int:
    """Eight bytes that follow from the boot's id and the span's name; never 0."""
    return int.from_bytes(hashlib.sha256(f"{boot} {name}".encode()).digest()[:8]) or 1


def outcome_of(trace: Trace, in_service_ms: int | None) -> str:
    """How far it came: `InService`, or the state of its trace."""
    return IN_SERVICE if in_service_ms is not None else str(trace.state)


def boot_trace(
    trace: Trace, in_service_ms: int | None, before: Trace | None = None, orders: Sequence[Drain] = ()
) -> BootTrace:
    """All of a boot. `in_service_ms`: since when it was in service; `before`: the machine's boot before it; `orders`:
    what was ordered of the machine, of which one may be why it was rebooted."""
    parts, root = spans(trace, in_service_ms), span_id(trace.boot, ROOT)
    begin = parts[0].begin_ms if parts else trace.started_ms
    end = max(parts[-1].end_ms if parts else trace.last_ms, *(one.at_ms for one in trace.failures), begin)
    whole = BootSpan(
        name=ROOT,
        span_id=root,
        parent=None,
        begin_ms=begin,
        end_ms=end,
        attributes={**_about(trace, in_service_ms), **_cause(before, orders)},
        moments=_moments(trace),
        failed=trace.reason if in_service_ms is None else "",
    )
    phases = tuple(_phase(trace.boot, root, part) for part in parts)
    return BootTrace(trace.boot, (whole, *phases), before.boot if before is not None else None)


def _phase(boot: str, root: int, part: Span) -> BootSpan:
    attributes = {"netboot.until": part.until}
    if part.missing:
        attributes["netboot.missing"] = ", ".join(part.missing)
    return BootSpan(part.step, span_id(boot, part.step), root, part.begin_ms, part.end_ms, attributes)


def _about(trace: Trace, in_service_ms: int | None) -> dict[str, str]:
    script, attested = trace.script, trace.phase(Phase.ATTESTED)
    known = {
        "netboot.boot": trace.boot,
        "netboot.machine": trace.machine,
        "netboot.outcome": outcome_of(trace, in_service_ms),
        "netboot.class": script.class_name if script is not None else None,
        "netboot.image": script.image if script is not None else None,
        "netboot.channel": script.channel if script is not None else None,
        "netboot.profile": script.profile if script is not None else None,
        "netboot.cluster": script.cluster if script is not None else None,
        "netboot.assurance": attested.detail if attested is not None else None,
    }
    return {key: value for key, value in known.items() if value}


def _cause(before: Trace | None, orders: Sequence[Drain]) -> dict[str, str]:
    """Whose order had the machine rebooted: the one of the boot before that ended in that."""
    last = before.boot if before is not None else None
    cause = next((one for one in orders if one.boot == last and one.end == "rebooted"), None)
    if cause is None:
        return {}
    return {"netboot.reboot.order": cause.id, "netboot.reboot.by": cause.who, "netboot.reboot.reason": cause.reason}


def _moments(trace: Trace) -> tuple[Moment, ...]:
    failures = [Moment("failed", one.at_ms, {"netboot.detail": one.detail}) for one in trace.failures]
    crashes = [
        Moment("found a crash", one.at_ms, {"netboot.crash.begins": one.begins, "netboot.crash.sha256": one.sha256})
        for one in trace.crashes
    ]
    return tuple(sorted([*failures, *crashes], key=lambda one: one.at_ms))
