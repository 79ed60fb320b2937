"""What is found of a machine, condition by condition: a reason, and a sentence for people."""

from collections.abc import Mapping

from netboot.lifecycle import sentences
from netboot.lifecycle.conditions import moment
from netboot.lifecycle.known import BOOTED, READY, Known, Node, Subject
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.transitions import Gate, Mark, Trouble, gravest

Finding = tuple[Reason, str] | tuple[Reason, str, str]
"""Why, in which words; and of these the machine's own, where it has some: what it said last."""


def _nothing(known: Known) -> Finding:
    if not known.declared.enabled:
        return Reason.DISABLED, "the inventory disables it (`enabled: false`), and no boot of it is known"
    return Reason.NEVER_BOOTED, "no boot of it is known"


def _going(known: Known, subject: Subject, waits: Reason) -> Finding:
    """A boot that is not where it should be yet."""
    trace, (step, trouble), declared = subject.trace, subject.course, known.declared
    deadline = declared.deadlines[str(step)]
    if trouble is Trouble.STUCK:
        stuck, said = sentences.stuck(trace, step, deadline), sentences.said_last(trace)
        if _is_retired(known):
            return Reason.RETIRED, _retired(stuck), said
        return Reason.STUCK, stuck + _newer(known, subject), said
    if subject.tries and not _is_retired(known):
        loop = sentences.looping(subject.tries, declared.boot_limit, joins=declared.joins)
        return Reason.BOOT_LOOP, loop, sentences.said_last(subject.tries[0])
    if trouble is Trouble.FAILED:
        return Reason.FAILED, sentences.failed(trace, step) + _newer(known, subject), trace.failures[-1].detail
    return waits, sentences.booting(trace, step, deadline)


def _newer(known: Known, subject: Subject) -> str:
    """What is said besides of one that is in trouble while a boot that only reports has begun."""
    if subject.newer is None:
        return ""
    trace, (step, trouble) = subject.newer
    return f"; since then {sentences.newer(trace, step, trouble, known.declared.deadlines[str(step)])}"


def _lost(known: Known, subject: Subject) -> Finding:
    declared = known.declared
    deadline = declared.deadlines["Lost" if declared.joins else "ReportStale"]
    lost = sentences.lost(subject.trace, deadline, joins=declared.joins)
    said = sentences.said_last(subject.trace)
    return (Reason.RETIRED, _retired(lost), said) if _is_retired(known) else (Reason.LOST, lost, said)


def _is_retired(known: Known) -> bool:
    """Nothing is awaited of it: it is neither late nor lost."""
    return Mark.RETIRED in known.marks


def _retired(found: str) -> str:
    return f"it is retired, and nothing is awaited of it; {found}"


def booted(known: Known, subject: Subject | None) -> Finding:
    """Whether it is up: multi-user.target, or what comes after it."""
    if subject is None:
        return _nothing(known)
    if subject.course.trouble is Trouble.LOST:
        return _lost(known, subject)
    if subject.at < BOOTED:
        return _going(known, subject, Reason.BOOTING)
    pending = known.state.pending if subject.own else None
    newer = f"; boot {pending.boot} was reported since, and has not proven itself" if pending is not None else ""
    return Reason.BOOTED, f"boot {subject.trace.boot} is up, with image {_image(subject.trace)}{newer}"


def joined(known: Known, subject: Subject | None) -> Finding:
    """Whether its Node registered and was Ready."""
    if not known.declared.joins:
        return Reason.NO_CLUSTER, "no cluster of its name is configured: it boots, and joins nothing"
    if subject is None:
        return _nothing(known)
    if subject.course.trouble is Trouble.LOST:
        return _lost(known, subject)
    at = subject.at
    if at >= READY:
        return Reason.JOINED, f"the Node of boot {subject.trace.boot} registered and was Ready"
    return _going(known, subject, Reason.JOINING if at >= BOOTED else Reason.BOOTING)


def healthy(known: Known, subject: Subject | None, *, stale: bool) -> Finding:
    """What its own checks say: a claim of the machine."""
    checked = known.state.checked if subject is not None and subject.own else None
    if checked is None:
        return Reason.NO_REPORT, "the boot that counts has reported no health"
    said = f"its checks said {checked.status}"
    if stale:
        limit = sentences.lasting(known.declared.deadlines["ReportStale"])
        return Reason.REPORT_STALE, f"{said} at {moment(checked.at_ms)}, and no report came in {limit} since"
    return _CHECKS[checked.status], f"{said}: see `netboot machine health {known.declared.name}`"


_CHECKS: Mapping[str, Reason] = {
    "pass": Reason.CHECKS_PASSED,
    "warn": Reason.CHECKS_WARN,
    "fail": Reason.CHECKS_FAILED,
    "unknown": Reason.CHECKS_UNKNOWN,
}
_MARKS: Mapping[Mark, Reason] = {mark: Reason(mark.value) for mark in Mark}


def in_service(known: Known, subject: Subject | None) -> Finding:
    """Whether it takes work now, as the cluster shows it."""
    mark = gravest(known.marks)
    if mark is not None:
        return _MARKS[mark], f"it is {mark.value.lower()}, whatever it boots"
    if not known.declared.joins:
        return Reason.NO_CLUSTER, "no cluster of its name is configured, so nothing gives it work"
    if subject is None or subject.at < READY:
        return Reason.NOT_JOINED, "it has not joined: see the conditions Booted and Joined"
    if known.node is None:
        return Reason.NODE_NOT_SEEN, "the cluster shows no Node of it: it was deleted, or could not be looked at yet"
    if known.node is Node.NOT_READY:
        return Reason.NODE_NOT_READY, "its Node is not Ready"
    if known.node is Node.GATED:
        return Reason.HEALTH_GATED, _gated(known, subject)
    if known.node is Node.CORDONED:
        return Reason.CORDONED, "its Node is cordoned, by somebody else than netboot: `kubectl uncordon` takes that off"
    return Reason.IN_SERVICE, "its Node is Ready and may take work"


def _gated(known: Known, subject: Subject) -> str:
    if subject.course.trouble is Trouble.STUCK:
        return sentences.stuck(subject.trace, subject.course.step, known.declared.deadlines[str(subject.course.step)])
    return sentences.STUCK[Gate.HEALTH_GATED]


def up_to_date(known: Known, subject: Subject | None) -> Finding:
    """Whether it has the image that it would be served now."""
    declared = known.declared
    if subject is None:
        return Reason.NEVER_BOOTED, "no boot of it is known"
    if subject.trace.script is None:
        return Reason.IMAGE_UNKNOWN, f"what boot {subject.trace.boot} was served is not known (any more)"
    by = f"rollout {declared.rollout} of channel {declared.channel}"
    if declared.image is None:
        whose = f"channel {declared.channel}" if declared.rollout is None else by
        return Reason.NO_IMAGE, f"{whose} has no image that can be used"
    has = subject.trace.script.image
    if has == declared.image:
        whose = f"of channel {declared.channel}" if declared.rollout is None else f"that {by} assigned"
        return Reason.UP_TO_DATE, f"boot {subject.trace.boot} has the image {whose}"
    whose = f"channel {declared.channel} is" if declared.rollout is None else f"{by} assigned"
    would = f"{whose} image {declared.image[:12]} now"
    return Reason.OTHER_IMAGE, f"boot {subject.trace.boot} has image {has[:12]}, and {would}: it takes a reboot"


def reachable(known: Known, subject: Subject | None, *, stale: bool) -> Finding:
    """Whether it is heard of as it should be."""
    if subject is None:
        return Reason.NEVER_BOOTED, "no boot of it is known"
    course, trace = subject.course, subject.trace
    if known.declared.joins and subject.own and subject.at >= READY:
        if known.node is None:
            return (
                Reason.NODE_NOT_SEEN,
                "the cluster shows no Node of it: it was deleted, or could not be looked at yet",
            )
        if known.node is Node.NOT_READY:
            return Reason.NODE_NOT_READY, f"its Node is not Ready; last heard: {sentences.last_heard(trace)}"
        return Reason.NODE_READY, "its Node is Ready"
    if course.trouble is Trouble.STUCK or stale:
        return Reason.SILENT, f"nothing came in time; last heard: {sentences.last_heard(trace)}"
    if subject.at >= BOOTED and known.state.checked is None and not known.declared.joins:
        return Reason.NO_REPORT, f"it is up and sends no health reports; last heard: {sentences.last_heard(trace)}"
    return Reason.HEARD_FROM, f"last heard: {sentences.last_heard(trace)}"


def _image(trace: Trace) -> str:
    return trace.script.image[:12] if trace.script is not None else "unknown"
