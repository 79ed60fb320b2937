"""`/v1/fleet[/machines]`: thousands of machines at a summary, without reading their boots (docs/http-management.md)."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from flask import current_app

from netboot.lifecycle.channels import users_of
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.published import View
from netboot.lifecycle.summary import RANK, UNJUDGED, MachineStatus, MachineSummary, as_of, is_retired
from netboot.machines.values import Machine
from netboot.status.controllers import LifecycleStatus, ProjectionStatus, RolloutsStatus, RolloutStatus, not_of_now
from netboot.web.causes import cases, cause_of
from netboot.web.dependencies import Dependencies, dependencies
from netboot.web.fleet_shapes import CaseShown, Fleet, FleetMachines, ImageRun, MachineEntry, MachinesAsked
from netboot.web.pages import by_number, written
from netboot.web.racks import as_they_stand, racks
from netboot.web.readiness import said_by

FIRST = 20
"""Machines that are late or ill, and causes of that, that the summary names."""
AILING = frozenset({MachineStatus.LATE, MachineStatus.ILL})
FRESH_MS = 2_000
"""For so long a look is good, so that a page costs the same with fifty machines and with fifty thousand."""


class Seen(NamedTuple):
    """A machine of the inventory, and how it is. `cause`: of one that is late or ill."""

    machine: Machine
    summary: MachineSummary
    cause: str = ""


class Look(NamedTuple):
    """What was seen of all machines at one moment. `standing`: all, as they stand; `sorted`: those that want to be seen
    first, first; `retired`: names; `users`: channel → how many machines boot it; `until_ms`: when one of them is late
    though nothing is found of it."""

    view: View
    standing: Sequence[Machine]
    summaries: Mapping[str, MachineSummary]
    at_ms: int
    sorted: Sequence[Seen]
    fleet: Fleet
    retired: frozenset[str]
    users: Mapping[str, int]
    until_ms: float


class Looked:
    """The last look of an application: for whoever asks soon after it, or before anything else was found."""

    def __init__(self) -> None:
        self._lock, self._last = threading.Lock(), None

    _last: Look | None

    def look(self, deps: Dependencies) -> Look:
        """How all machines are, not longer ago than FRESH_MS.

        Raises:
            netboot.lifecycle.errors.CannotTellError: it cannot be told.
        """
        with self._lock:  # who asks meanwhile has the same, and does not count it again
            last, now = self._last, deps.clock.now_ms()
            view = deps.live.view()
            if last is not None and last.view is view and 0 < now - last.at_ms < FRESH_MS:
                return last
            summaries = deps.summaries.summaries()
            if last is not None and last.view is view and last.summaries is summaries and now < last.until_ms:
                self._last = last._replace(at_ms=now)
            else:
                machines = (
                    last.standing
                    if last is not None and last.view is view
                    else as_they_stand(view.snapshot.inventory.machines)
                )
                seen = [Seen(each, as_of(summaries.get(each.name, UNJUDGED), now)) for each in machines]
                until = min((each.summary.late_ms for each in seen if each.summary.late_ms is not None), default=inf)
                first = [_with_cause(each) for each in sorted(seen, key=_urgency)]
                retired = frozenset(each.machine.name for each in seen if is_retired(each.summary))
                users = users_of(view.snapshot, retired)
                fleet = _summary(view, now, seen, first)
                self._last = Look(view, machines, summaries, now, first, fleet, retired, users, until)
            return self._last


def summary() -> Fleet:
    """Counts by status, reason, step, image and rack, who wants to be seen first, and rollouts under way."""
    deps = dependencies()
    found = look(deps)
    now = {"at_ms": found.at_ms, "rollouts": _rollouts(deps), "problem": _not_of_now(deps)}
    return found.fleet.model_copy(update=now)


def machines(query: MachinesAsked) -> FleetMachines:
    """Machines that fit all filters: late and ill ones first, of these the longest so."""
    seen = look(dependencies())
    wanted = {name: text for name, text in query.model_dump(exclude={"limit", "offset", "after"}).items() if text}
    found = [each for each in seen.sorted if _fits(each, wanted)] if wanted else seen.sorted
    offset = by_number(query) or query.offset
    page = tuple(_entry(each) for each in found[offset : offset + query.limit])
    more = written(str(offset + query.limit)) if offset + query.limit < len(found) else None
    told = {"of": len(found), "offset": offset, "next_page": more, "problem": _not_of_now(dependencies())}
    return FleetMachines(at_ms=seen.at_ms, machines=page, **told)


def look(deps: Dependencies) -> Look:
    """How all machines are, not longer ago than FRESH_MS.

    Raises:
        netboot.lifecycle.errors.CannotTellError: it cannot be told.
    """
    looked: Looked = current_app.extensions.setdefault("netboot.fleet", Looked())
    return looked.look(deps)


def _summary(view: View, at_ms: int, seen: Sequence[Seen], first: Sequence[Seen]) -> Fleet:
    statuses = Counter(each.summary.status for each in seen)
    ailing = first[: statuses[MachineStatus.LATE] + statuses[MachineStatus.ILL]]
    found = cases(each.cause for each in ailing)[:FIRST]
    racks_of: dict[str, set[str]] = {}
    for each in ailing:
        racks_of.setdefault(each.cause, set()).add(each.machine.rack or "")
    return Fleet(
        at_ms=at_ms,
        machines=len(seen),
        statuses={status: statuses[status] for status in MachineStatus},
        reasons=_reasons(seen),
        steps=dict(Counter(each.summary.step for each in seen if each.summary.step)),
        images=_images(view, seen),
        racks=racks((each.machine, each.summary.status) for each in seen),
        first=tuple(_entry(each) for each in ailing[:FIRST]),
        cases=tuple(
            CaseShown(
                cause=each.cause,
                machines=each.machines,
                racks=len(racks_of[each.cause]),
                first=_entry(first[each.first]),
            )
            for each in found
        ),
        rollouts=None,
        problem="",
    )


def _not_of_now(deps: Dependencies) -> str:
    """Why what was found of machines last may not be so any more, in words; empty: it is looked at all the time."""
    projection, lifecycle = said_by(deps, "projection", ProjectionStatus), said_by(deps, "lifecycle", LifecycleStatus)
    if isinstance(projection, CannotTellError):
        return f"nobody looks at machines now: projection: {projection}"
    if isinstance(lifecycle, CannotTellError):
        return f"nobody looks at machines now: lifecycle: {lifecycle}"
    return not_of_now(projection, lifecycle, deps.up_ms())


def _rollouts(deps: Dependencies) -> tuple[RolloutStatus, ...] | None:
    """Those under way, as the controllers said last; None where that cannot be told."""
    try:
        said = deps.status.read("rollouts", RolloutsStatus)
    except CannotTellError:
        return None
    return said.rollouts if said is not None else None


def _urgency(seen: Seen) -> tuple[int, int, str]:
    return RANK[seen.summary.status], seen.summary.since_ms, seen.machine.name


def _with_cause(seen: Seen) -> Seen:
    return seen._replace(cause=cause_of(seen.machine.name, seen.summary)) if seen.summary.status in AILING else seen


def _fits(seen: Seen, wanted: Mapping[str, str]) -> bool:
    machine, found, cause = seen
    said = {
        "name": machine.name,
        "status": found.status,
        "step": found.step,
        "rack": machine.rack or "",
        "class_name": machine.class_name or "",
        "cause": cause,
    }
    return all(
        text in (reason for _, reason in found.reasons)
        if name == "reason"
        else text.casefold() in f"{machine.name} {machine.rack or ''} {found.reason} {found.message}".casefold()
        if name == "text"
        else found.image.startswith(text)
        if name == "image"
        else said[name] == text
        for name, text in wanted.items()
    )


def _entry(seen: Seen) -> MachineEntry:
    machine, found, cause = seen
    told = found._asdict()
    del told["reasons"], told["late_ms"]
    told["since_ms"] = found.since_ms or None
    return MachineEntry.model_construct(
        name=machine.name,
        rack=machine.rack,
        position=machine.position,
        class_name=machine.class_name,
        profile=machine.profile,
        cause=cause,
        **told,
    )


def _reasons(seen: Iterable[Seen]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for reasons, count in Counter(each.summary.reasons for each in seen).items():  # few are different
        for kind, reason in reasons:
            found.setdefault(kind, Counter())[reason] += count
    return {kind: dict(counted) for kind, counted in found.items()}


def _images(view: View, seen: Iterable[Seen]) -> tuple[ImageRun, ...]:
    counted = Counter(each.summary.image for each in seen if each.summary.image)
    names = {digest: facts.name for digest, facts in view.snapshot.images.items()}
    return tuple(ImageRun(image=image, name=names.get(image), machines=n) for image, n in counted.most_common())
