"""What a boot came to: phases and failures, and which of several reports of one stays, in whatever order they come."""

from operator import not_
from typing import TypeVar

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.events import SafeText
from netboot.lifecycle.phases import Phase, Source
from netboot.lifecycle.registrations import uid_in

ORDER = tuple(phase for phase in Phase if phase is not Phase.FAILED)
"""Phases in the order in which a boot goes through them."""
MOST_FAILURES = 32
"""Failures kept for each boot: the earliest and the latest half; a machine that fails for days tells nothing new."""
FAILURE_DETAIL = 56
"""Characters of what was said with a failure that other replicas are told; with a phase, none but a Node's uid."""
T = TypeVar("T")


class Reached(Strict):
    """A phase was reached: `at_ms` by our clock, `uptime_ms` by the machine's; `sha256`: of what proves it."""

    at_ms: int
    phase: Phase
    source: Source
    uptime_ms: int | None = None
    detail: SafeText = ""
    peer: str = ""
    sha256: str = Field("", exclude_if=not_)


class Failure(Strict):
    """The machine said that something failed; it goes on trying."""

    at_ms: int
    uptime_ms: int | None = None
    detail: SafeText = ""
    peer: str = ""


def with_phase(reached: tuple[Reached, ...], new: Reached) -> tuple[Reached, ...]:
    """Of two reports of one phase the earlier stays, as it is; the rest of the key only makes ties the same in any
    order, with the one that has a digest first. Which Node was registered stays known, whichever is the earlier."""
    kept = {entry.phase: entry for entry in reached}
    old = kept.get(new.phase, new)
    kept[new.phase] = min(old, new, key=_of_phase)
    if new.phase is Phase.NODE_REGISTERED:
        detail = min(old.detail, new.detail, key=_of_node)
        earlier = min(old.model_copy(update={"detail": ""}), new.model_copy(update={"detail": ""}), key=_of_phase)
        kept[new.phase] = earlier.model_copy(update={"detail": detail})
    return tuple(kept[phase] for phase in ORDER if phase in kept)


def _of_phase(entry: Reached) -> tuple[object, ...]:
    at_ms, uptime_ms, begins, *rest = _age(entry, 0)
    return at_ms, not entry.sha256, uptime_ms, begins, entry.sha256, *rest


def _of_node(detail: str) -> tuple[bool, str, int, str]:
    """Which of two is kept: the one that says a uid; of one uid the one that says most."""
    uid = uid_in(detail)
    return not uid, uid, -len(detail), detail


def _age(entry: Reached | Failure, most: int) -> tuple[int, int, str, int, str, bool, str]:
    """Of what is the same but for what other replicas are not told, the whole is first: `most` characters of the detail
    are (`netboot.lifecycle.object_boots`), and no address."""
    uptime_ms = -1 if entry.uptime_ms is None else entry.uptime_ms
    begins, peer = entry.detail[:most], entry.peer
    return entry.at_ms, uptime_ms, begins, -len(entry.detail), entry.detail, not peer, peer


def with_failure(failures: tuple[Failure, ...], new: Failure) -> tuple[Failure, ...]:
    """A machine that got no answer says the same again, with the same uptime: of these the earliest stays."""
    kept: dict[object, Failure] = {}
    for failure in sorted({*failures, new}, key=lambda failure: _age(failure, FAILURE_DETAIL)):
        said = failure.at_ms if failure.uptime_ms is None else (failure.uptime_ms,)
        kept.setdefault((said, failure.detail[:FAILURE_DETAIL]), failure)
    return ends(tuple(kept.values()), MOST_FAILURES)


def ends(ordered: tuple[T, ...], most: int) -> tuple[T, ...]:
    """All, or of too many the first half of `most` and the last."""
    return ordered if len(ordered) <= most else ordered[: most // 2] + ordered[-(most // 2) :]
