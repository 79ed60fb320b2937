"""What the object of a machine says of its boots, and what of that is a fact for whoever reads it. Pure.

Where there are several replicas each knows the boots that came to it. What it is told of one it folds into what the
object says: of each phase the earliest moment, of each boot the highest standing and the least number that gave it. So
whoever writes last, and in whatever order, the same is said in the end, and each replica takes that over by the very
fold that its own facts go through (`netboot.lifecycle.trace`).
"""

import json
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints, ValidationError

from images.values.strict import Strict
from netboot.lifecycle.conditions import moment
from netboot.lifecycle.events import EventRecord, Moment, ScriptRecord, SharedRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reached import FAILURE_DETAIL, ORDER, Failure, Reached, ends
from netboot.lifecycle.registrations import node_detail, uid_in
from netboot.lifecycle.state import Standing, standing
from netboot.lifecycle.trace import Trace, apply

MOST_BOOTS = 5
"""That proved themselves; the newest that did not is one more."""
MOST_FAILURES = 2
"""Of one boot: the first and the last."""
NONE = -1

_Word = Annotated[str, StringConstraints(max_length=64)]
_Moment = Annotated[str, StringConstraints(max_length=40)]
Digits = Annotated[str, StringConstraints(max_length=18, pattern=r"^[0-9]*$")]
"""A number that is too large for what reads JSON's numbers as floating point."""
_UID = r"^[0-9A-Za-z-]{0,64}$"
_Uid = Annotated[str, StringConstraints(max_length=64, pattern=_UID)]
_Uptime = Annotated[int, Field(ge=NONE, le=10**12)]


class StepTold(Strict):
    """A phase that a boot reached, and when it first did."""

    phase: _Word
    """Which it is, like Attested; docs/lifecycle.md says of each whether it is served, reported or observed."""
    at: Moment
    """When, in milliseconds since 1970, by the clock of the replica that was told."""
    uptime: _Uptime = NONE
    """Milliseconds since the machine's kernel started, by its own clock; -1: it said none."""
    digest: _Word = ""
    """SHA-256 of what proves it: the TPM's quote."""
    node: _Uid = ""
    """The uid of the Node that was registered."""


class FailureTold(Strict):
    """The boot said that something failed; it goes on trying."""

    at: Moment
    """When, in milliseconds since 1970."""
    uptime: _Uptime = NONE
    """Milliseconds since its kernel started; -1: it said none."""
    detail: Annotated[str, StringConstraints(max_length=FAILURE_DETAIL)] = ""
    """How what it said begins."""


class ScriptTold(Strict):
    """What its script was made of."""

    at: Moment = 0
    """When it was served, in milliseconds since 1970; 0: nobody has told."""
    cluster: _Word = ""
    """The cluster that it was to join."""
    profile: _Word = ""
    """The profile that its machine had."""
    channel: _Word = ""
    """The channel that its image was of."""
    class_name: _Word = ""
    """The class that its machine had; empty: none."""
    decision: _Word = ""
    """Digest of what was decided from."""
    script: _Word = ""
    """Digest of the script, without the boot id."""
    arguments: _Word = ""
    """Digest of its kernel arguments."""


class BootTold(Strict):
    """One boot."""

    id: _Word
    """Its boot id, by which `netboot machine explain --boot` knows it."""
    phase: _Word
    """How far it came, or Failed."""
    proven: bool = False
    """Whether it proved itself, or the cluster saw its Node: what anybody on the wire cannot claim."""
    started: _Moment
    """When it was first heard of."""
    reached: _Moment
    """When it came as far as it did."""
    image: _Word = ""
    """Digest of the image that its script named."""
    message: Annotated[str, StringConstraints(max_length=FAILURE_DETAIL)] = ""
    """How what it said that failed begins."""
    since: Digits = ""
    """Which of two boots is newer, whatever clocks say: the one with the greater number. Each is given when a boot
    proves itself, or until then when it is first reported."""
    script: ScriptTold = ScriptTold()
    """What was decided for it."""
    steps: Annotated[tuple[StepTold, ...], Field(max_length=len(ORDER))] = ()
    """Phases that it reached, in their order."""
    failures: Annotated[tuple[FailureTold, ...], Field(max_length=MOST_FAILURES)] = ()
    """The first and the last thing that it said failed."""


def boot_told(trace: Trace, since: int) -> BootTold | None:
    """What is told of a boot. `since`: the number of the fact that gave it its standing. None: nothing is known
    of it but texts, which stay where they were told."""
    kept = _told_of(trace)
    if not kept.reached and not kept.failures:
        return None
    script = kept.script
    return BootTold(
        id=kept.boot,
        phase=kept.state.value,
        proven=standing(kept) is Standing.PROVEN,
        started=moment(kept.started_ms),
        reached=moment(kept.reached[-1].at_ms if kept.reached else kept.started_ms),
        image=script.image if script is not None else "",
        message=kept.reason,
        since=str(since) if since else "",
        script=ScriptTold()
        if script is None
        else ScriptTold(
            at=script.at_ms,
            cluster=script.cluster,
            profile=script.profile,
            channel=script.channel,
            class_name=script.class_name or "",
            decision=script.decision,
            script=script.script,
            arguments=script.arguments or "",
        ),
        steps=tuple(
            StepTold(phase=each.phase, at=each.at_ms, uptime=_told(each), digest=each.sha256, node=uid_in(each.detail))
            for each in kept.reached
        ),
        failures=tuple(FailureTold(at=each.at_ms, uptime=_told(each), detail=each.detail) for each in kept.failures),
    )


def _told_of(trace: Trace) -> Trace:
    """As much of a trace as is told."""
    bare = {"peer": ""}
    return Trace(
        boot=trace.boot,
        machine=trace.machine,
        script=trace.script.model_copy(update=bare) if trace.script is not None else None,
        reached=tuple(each.model_copy(update={**bare, "detail": _node(each)}) for each in trace.reached),
        failures=ends(
            tuple(each.model_copy(update={**bare, "detail": each.detail[:FAILURE_DETAIL]}) for each in trace.failures),
            MOST_FAILURES,
        ),
    )


def _node(said: Reached) -> str:
    """What is told of a detail: which Node was registered, if its uid is one of those that API servers give."""
    uid = uid_in(said.detail) if said.phase is Phase.NODE_REGISTERED else ""
    return node_detail("", uid) if uid and re.fullmatch(_UID, uid) else ""


def _told(said: Reached | Failure) -> int:
    return NONE if said.uptime_ms is None else said.uptime_ms


def record_of(told: BootTold, machine: str, at_ms: int) -> SharedRecord | None:
    """What an object says of a boot, as a record that was read at `at_ms`; None: it is not what we write, as somebody
    may have changed it, or of an older netboot."""
    about = {"boot": told.id, "machine": machine, "peer": ""}
    try:
        facts: list[ScriptRecord | EventRecord] = [
            _event(about | {"phase": each.phase, "sha256": each.digest, "detail": _detail(each)}, each)
            for each in told.steps
        ]
        facts += [_event(about | {"phase": Phase.FAILED, "detail": each.detail}, each) for each in told.failures]
        if told.script.at:
            script = told.script.model_dump() | {"class_name": told.script.class_name or None}
            script |= {"arguments": told.script.arguments or None, "image": told.image, "at_ms": script.pop("at")}
            facts.append(ScriptRecord.model_validate({**about, **script}))
        record = SharedRecord(
            at_ms=at_ms, boot=told.id, machine=machine, since=int(told.since or 0), facts=tuple(facts)
        )
    except ValidationError:
        return None
    trace = apply(None, record)
    known = standing(trace) is not Standing.CLAIMED
    return record if known and told.proven == (standing(trace) is Standing.PROVEN) else None


def _detail(step: StepTold) -> str:
    return node_detail("", step.node) if step.node and step.phase == Phase.NODE_REGISTERED else ""


def _event(about: Mapping[str, str], said: StepTold | FailureTold) -> EventRecord:
    uptime_ms = None if said.uptime == NONE else said.uptime
    return EventRecord.model_validate({**about, "at_ms": said.at, "uptime_ms": uptime_ms}, strict=False)


def cut(text: str, most: int) -> str:
    """As much of it as has so many bytes in JSON; what is left out is an ellipsis."""
    if _bytes_of(text) <= most:
        return text
    kept = text[:most]
    while _bytes_of(kept) > most - len("…".encode()):
        kept = kept[: -max(1, (_bytes_of(kept) - most) // 6)]
    return f"{kept}…"


def _bytes_of(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - len('""')
