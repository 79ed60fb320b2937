"""What is to be thought of a machine: its conditions, from what is known of it and from clocks. Pure.

It is told everything each time and keeps nothing but when it began to wait for what, so the same facts come to the
same conditions in whatever order they came, and a machine recovers when its facts do. Of whoever is not proven it
believes what a claim may do: explain how a machine fails that has nothing proven to show.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from netboot.lifecycle import findings
from netboot.lifecycle.ailments import Ailing, ailment_of
from netboot.lifecycle.conditions import Judged, MachineCondition, Timer
from netboot.lifecycle.known import BOOTED, UP, Known, Node, Subject
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.transitions import PLACE, Absence, Course, Fact, Gate, Mark, Step, Trouble, course_of
from netboot.machines.deadlines import NONE, Deadline


class Due(NamedTuple):
    """When to look again though nothing happened: when that clock shows this."""

    place: str
    at: int


class Verdict(NamedTuple):
    """What was found. `dues`: there is nothing to find before the first of these, unless something happens."""

    judged: Judged
    dues: tuple[Due, ...]
    lost: bool = False
    """Its Node has not been Ready for the deadline `Lost`, whichever boot counts now."""
    ailing: Ailing | None = None
    """What may be acted on, and what the Node shows of that."""


@dataclass(slots=True)
class _Clocks:
    """What is waited for: timers go on where they were before, unless what they are of is another."""

    before: Mapping[str, Timer]
    shows: Mapping[str, int]
    timers: dict[str, Timer] = field(default_factory=dict)
    dues: list[Due] = field(default_factory=list)
    over: set[str] = field(default_factory=set)

    def past(self, name: str, of: str, place: str, deadline: Deadline) -> bool:
        """Whether this has been so for as long as the deadline."""
        if deadline.seconds == NONE:
            return False
        now, old = self.shows.get(place, 0), self.before.get(name)
        known = old is not None and (old.of, old.place) == (of, place) and old.since <= now
        timer = old if known and old is not None else Timer(of=of, place=place, since=now)
        self.timers[name] = timer
        due = timer.since + deadline.seconds * 1000
        if now < due:
            self.dues.append(Due(place, due))
        else:
            self.over.add(name)
        return now >= due


def judge(known: Known, before: Judged | None, shows: Mapping[str, int], now_ms: int) -> Verdict:
    """The conditions of a machine now. `before`: of the last look; `shows`: what the clocks of `SeenTime` show;
    `now_ms`: the time of day, for the moments of transitions alone."""
    clocks = _Clocks(before.timers if before is not None else {}, shows)
    subject = _subject(known, clocks)
    stale = _stale(known, clocks)
    lost = "node" in clocks.over
    ailment = ailment_of(known, before, clocks.past, now_ms, lost=lost)
    silent = stale or _fell_silent(known, subject, clocks)
    found = {
        ConditionType.BOOTED: findings.booted(known, subject),
        ConditionType.JOINED: findings.joined(known, subject),
        ConditionType.HEALTHY: findings.healthy(known, subject, stale=stale),
        ConditionType.IN_SERVICE: findings.in_service(known, subject),
        ConditionType.UP_TO_DATE: findings.up_to_date(known, subject),
        ConditionType.REACHABLE: findings.reachable(known, subject, stale=silent),
    }
    judged = Judged(
        machine=known.declared.name,
        conditions=tuple(
            MachineCondition.of(kind, reason, message, now_ms, *said).after(before.condition(kind) if before else None)
            for kind, (reason, message, *said) in found.items()
        ),
        timers=clocks.timers,
        step=str(subject.course.step) if subject else "",
        boot=subject.trace.boot if subject else "",
        image=subject.trace.script.image if subject and subject.trace.script else "",
        trouble=subject.course.trouble if subject and Mark.RETIRED not in known.marks else Trouble.NONE,
        ailment=ailment,
    )
    ailing = Ailing(ailment, known.declared, known.node in UP, known.word.holder) if ailment is not None else None
    return Verdict(judged, tuple(clocks.dues), lost, ailing)


def _subject(known: Known, clocks: _Clocks) -> Subject | None:
    """The current boot, unless it is lost, or there is none: then the one that is under way, whose deadline began with
    its own phase. Of a machine whose Node is Ready that one alters nothing, and no trouble of a boot that proved itself
    is taken away by one that did not: anybody on the wire may have said it."""
    current, follower = known.state.current, known.state.pending or known.claim
    if current is None:
        if follower is None:
            return None
        return Subject(follower, _course(known, follower, clocks, own=False), own=False, tries=_loop(known, follower))
    course = _course(known, current, clocks, own=True)
    if follower is None or follower.boot == current.boot or known.node in UP:
        return Subject(current, course, own=True, tries=_loop(known, current))
    since = _course(known, follower, clocks, own=False, timer="newer")
    if course.trouble is Trouble.LOST:
        return Subject(follower, since, own=False, tries=_loop(known, follower))
    newer = (follower, since) if known.state.pending is not None else None
    return Subject(current, course, own=True, newer=newer, tries=_loop(known, current))


def _loop(known: Known, trace: Trace) -> tuple[Trace, ...]:
    """The boots that came to nothing, newest first, where they are too many and this is one of them."""
    goal, limit = Phase.READY if known.declared.joins else Phase.BOOTED, known.declared.boot_limit.boots
    tries = tuple(takewhile(lambda each: each.phase(goal) is None, known.tries))
    return tries if limit and len(tries) > limit and trace.boot in {each.boot for each in tries} else ()


def _course(known: Known, trace: Trace, clocks: _Clocks, *, own: bool, timer: str = "step") -> Course:
    facts: list[Fact] = [reached.phase for reached in trace.reached]
    if trace.state is Phase.FAILED:
        facts.append(Phase.FAILED)
    registered = own and any(PLACE[reached.phase] >= PLACE[Phase.NODE_REGISTERED] for reached in trace.reached)
    if registered and known.node in UP:
        facts.append(Gate.HEALTH_GATED if known.node is Node.GATED else Gate.IN_SERVICE)
    if own and _silent(known, trace, clocks):
        facts.append(Absence.SILENT)
    course = course_of(facts)
    if course.trouble is Trouble.NONE and _overdue(known, trace, course.step, clocks, timer):
        course = course_of([*facts, Absence.OVERDUE])
    return course


def _overdue(known: Known, trace: Trace, step: Step, clocks: _Clocks, timer: str) -> bool:
    declared, place = known.declared, known.declared.places
    at = PLACE[step]
    deadline = declared.deadlines.get(str(step))
    if deadline is None or (at >= BOOTED and not declared.joins):
        return False
    where = place.cluster if at >= BOOTED else place.reports
    return clocks.past(timer, f"{trace.boot} {step}", where, deadline)


def _silent(known: Known, trace: Trace, clocks: _Clocks) -> bool:
    """Of a boot that was Ready: whether its Node has not been for long; where it joins nothing, whether it reported its
    health and does so no more."""
    declared = known.declared
    if not declared.joins:
        return _stale(known, clocks)
    if trace.phase(Phase.READY) is None or known.node in UP:
        return False
    return clocks.past("node", trace.boot, declared.places.nodes, declared.deadlines["Lost"])


def _fell_silent(known: Known, subject: Subject | None, clocks: _Clocks) -> bool:
    """Of a boot that said that it failed: whether nothing more was heard of it for as long as its phase may take."""
    if subject is None or subject.course.trouble is not Trouble.FAILED:
        return False
    deadline, heard = known.declared.deadlines[str(subject.course.step)], subject.trace.last_ms
    return clocks.past("heard", f"{subject.trace.boot} {heard}", known.declared.places.reports, deadline)


def _stale(known: Known, clocks: _Clocks) -> bool:
    checked, declared = known.state.checked, known.declared
    if checked is None:
        return False
    return clocks.past("report", str(checked.at_ms), declared.places.reports, declared.deadlines["ReportStale"])
