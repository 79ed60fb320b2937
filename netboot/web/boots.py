"""`/v1/boots?machine=&limit=&continue=`, `/v1/boots/<id>`; `/v1/discovered`: machines that asked and may not boot."""

import logging
from operator import attrgetter
from typing import Annotated

from netboot.lifecycle.crashes import crashes_of
from netboot.lifecycle.errors import CannotTellError, NoSuchBootError, unheard_of
from netboot.lifecycle.spans import goes_on, spans
from netboot.lifecycle.state import DISCOVERED_KEPT, KEPT
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.views import machine_named
from netboot.web import node_health, render
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.inputs import Whole
from netboot.web.pages import PageAsked, Paged, gone, page, read, written
from netboot.web.shapes import CheckedReport, ConsoleShown, CrashShown, TraceShown
from netboot.web.sightings import Sighting, sightings

log = logging.getLogger(__name__)


class BootsAsked(PageAsked):
    """Of which machine, and how many."""

    machine: str | None = None
    limit: Annotated[int, Whole(1, 1_000)] = 20


class Boots(Paged):
    """The newest first."""

    boots: tuple[TraceShown, ...]


class SpanShown(Shown):
    """A part of a boot, milliseconds since 1970. `missing`: steps within it that were never heard of."""

    step: str
    until: str
    begin_ms: int
    end_ms: int
    missing: tuple[str, ...]


class GoesOnShown(Shown):
    """What a boot is in now. `deadline_ms`: when it is late, unless deadlines stood still meanwhile; null: never.
    `late`: it is; `now_ms`: this moment."""

    step: str
    begin_ms: int
    deadline_ms: int | None
    late: bool
    now_ms: int


class BootShown(TraceShown):
    """One boot whole. `console`: null: it sent none. `in_service_ms`: when it was first seen in service; null where it
    was not, or that cannot be read. `goes_on`: what follows `spans` and has no end yet; null where the boot is over
    or another one counts, or that cannot be told."""

    crashes: tuple[CrashShown, ...]
    console: ConsoleShown | None
    checked: CheckedReport | None
    in_service_ms: int | None
    spans: tuple[SpanShown, ...]
    goes_on: GoesOnShown | None


class DiscoveredAsked(PageAsked):
    """How many."""

    limit: Annotated[int, Whole(1, DISCOVERED_KEPT)] = 100


class DiscoveredMachines(Paged):
    """The latest seen first."""

    discovered: tuple[Sighting, ...]


def listed(query: BootsAsked) -> Boots:
    """Boots and claims, the newest first."""
    name, after = query.machine, read(query.after) if query.after is not None else None
    try:
        boots = dependencies().states.boots(name, query.limit + 1, after)
    except NoSuchBootError:
        raise gone() from None
    if name is not None and not boots and after is None:
        machine_named(dependencies().live.view(), name)  # an empty answer is about a machine that there is
    shown, more = boots[: query.limit], len(boots) > query.limit
    return Boots(boots=tuple(map(render.trace, shown)), next_page=written(shown[-1].boot) if more else None)


def shown(boot: str) -> BootShown:
    """One boot's trace, with the crashes that it found and that ended it, and the last lines of its console."""
    states = dependencies().states
    trace = states.boot(boot)
    if trace is None:
        raise unheard_of(boot)
    crashes = crashes_of(trace, states.boots(trace.machine, sum(KEPT.values())))
    texts = {finder: states.crash_texts(finder) for finder in {crashed.found_by for crashed in crashes}}
    in_service_ms = _in_service(trace)
    return render.grown(
        BootShown,
        render.trace(trace),
        crashes=tuple(render.crashed(each, texts[each.found_by].get(each.crash.sha256)) for each in crashes),
        console=render.console(trace, states.console(boot)),
        checked=node_health.report_of(trace),
        in_service_ms=in_service_ms,
        spans=tuple(SpanShown(**part._asdict()) for part in spans(trace, in_service_ms)),
        goes_on=_goes_on(trace, in_service_ms),
    )


def _goes_on(trace: Trace, in_service_ms: int | None) -> GoesOnShown | None:
    deps = dependencies()
    try:
        view, judged = deps.live.view(), deps.conditions.judged([trace.machine]).get(trace.machine)
    except CannotTellError as error:
        log.warning("conditions: %s", error)
        return None
    machine, now = view.index.named(trace.machine), deps.clock.now_ms()
    found = goes_on(trace, judged, view.deadlines(machine), in_service_ms) if machine is not None else None
    return GoesOnShown(**found._asdict(), now_ms=max(now, found.begin_ms)) if found is not None else None


def _in_service(trace: Trace) -> int | None:
    """When it was first in service. Nothing where that cannot be read: all else can be told."""
    try:
        return dependencies().history.in_service([trace.boot]).get(trace.boot)
    except CannotTellError as error:
        log.warning("history: %s", error)
        return None


def discovered(query: DiscoveredAsked) -> DiscoveredMachines:
    """Machines that asked and may not boot, the latest seen first."""
    known = sightings(query.limit + 1 if query.after is None else DISCOVERED_KEPT)
    found, more = page(query, known, attrgetter("key"))
    return DiscoveredMachines(discovered=tuple(found), next_page=more)
