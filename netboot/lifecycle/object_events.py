"""What is worth an Event about a machine's object in Kubernetes: what is another in what it says. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from netboot.lifecycle.object_boots import BootTold
from netboot.lifecycle.object_status import LEFT_OUT, ConditionTold, ObjectStatus, milestone_of
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import Reason

BOOTING, IMAGE_CHANGED = "Booting", "ImageChanged"


class ObjectEvent(NamedTuple):
    """`machine`, `uid`: of the object; `good`: it is no warning; `at_ms`: when it was found."""

    machine: str
    uid: str
    reason: str
    note: str
    good: bool
    at_ms: int

    @property
    def same(self) -> tuple[str, str]:
        """What makes it one with an earlier event."""
        return self.uid, self.reason


class News(NamedTuple):
    """What is told of an object, whichever it is."""

    reason: str
    note: str
    good: bool


def news(before: ObjectStatus, after: ObjectStatus) -> tuple[News, ...]:
    """What is told of a machine whose object said `before` and says `after` now; nothing, where it said nothing: what
    is so already is nobody's news."""
    if before == ObjectStatus():
        return ()
    if after.phase == LEFT_OUT:
        said = "it is not in force: `netboot config check` says why"
        return (News(LEFT_OUT, said, good=False),) if before.phase != LEFT_OUT else ()
    return (*_of_boots(before, after), *_of_image(before, after), *_of_conditions(before, after))


def _of_boots(before: ObjectStatus, after: ObjectStatus) -> Iterator[News]:
    known = {each.id for each in before.boots}
    newest = after.boots[0] if after.boots else None
    if newest is not None and newest.id not in known:
        yield News(BOOTING, f"boot {newest.id} has begun{_with(newest)}", good=True)
    milestone = milestone_of(after)
    if milestone is None or milestone == milestone_of(before):
        return
    proven = next(each for each in after.boots if each.proven)
    if milestone[1] == Phase.FAILED:
        yield News("Failed", f"boot {proven.id} said that it failed: {proven.message}", good=False)
    elif milestone[1] == Phase.READY:
        yield News("Ready", f"the Node of boot {proven.id} is Ready", good=True)
    else:
        yield News("Attested", f"boot {proven.id} proved itself", good=True)


def _with(boot: BootTold) -> str:
    return f", with image {boot.image[:12]}" if boot.image else ""


def _of_image(before: ObjectStatus, after: ObjectStatus) -> Iterator[News]:
    was, now = before.image.in_force, after.image.in_force
    if was != now and was and now:
        yield News(IMAGE_CHANGED, f"it would be served image {now[:12]} now, and {was[:12]} before", good=True)


def _of_conditions(before: ObjectStatus, after: ObjectStatus) -> Iterator[News]:
    was = {each.type: each for each in before.conditions}
    for now in after.conditions:
        then = was.get(now.type)
        if now.reason == Reason.STUCK and (then is None or then.reason != Reason.STUCK):
            yield News("Stuck", now.message, good=False)
            break  # one of them says it
    for now in after.conditions:
        then = was.get(now.type)
        if now.type == "InService" and then is not None and _told(then, now):
            yield News(now.reason, now.message, good=now.status == "True")


def _told(then: ConditionTold, now: ConditionTold) -> bool:
    """Whether it is in service, or for another reason is not, but for the steps of a boot that others tell of."""
    if now.reason == Reason.NOT_JOINED and then.reason != Reason.IN_SERVICE:
        return False
    return (then.status, then.reason) != (now.status, now.reason)
