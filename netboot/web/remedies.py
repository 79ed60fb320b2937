"""What is done by itself about machines that are not well: `GET /v1/remedies[/{<number>,pause}]`,
`POST /v1/remedies/{pause,resume}` (docs/remedies.md)."""

import json
import logging
from typing import Annotated

from images.values.strict import Strict
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.remedies import Pause, RemediesStatus, Remedy, Standing
from netboot.web import render
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.inputs import Whole
from netboot.web.intents import Why
from netboot.web.operators import audit, operator
from netboot.web.pages import PageAsked, Paged, by_number, written
from netboot.web.shapes import Document, RemediesOf

log = logging.getLogger(__name__)

SHOWN, MOST, OF_MACHINE = 20, 200, 5
FRESH_MS = 60_000
"""How old what the loop says may be."""


class Ordering(Strict):
    """The body of `pause` and `resume`."""

    reason: Why
    dry_run: bool = False


class RemediesAsked(PageAsked):
    """How many of the latest."""

    limit: Annotated[int, Whole(1, MOST)] = SHOWN


class Remedies(Paged):
    """`pause`: null where nobody ever paused; `problem`: why this may not be how it is; `machines`: who is not well, of
    `ailing`; `under`: how many are under a remedy."""

    pause: Pause | None
    problem: str
    machines: tuple[Standing, ...]
    ailing: int
    withheld: int
    under: int
    remedies: tuple[Remedy, ...]


class RemedyShown(Remedy):
    """`evidence`: what was at hand of the machine's boot."""

    evidence: Document | None


class Paused(Shown):
    """`pause`: null where nobody ever paused."""

    pause: Pause | None


class PauseActed(Shown):
    """`did`: false where it was so already; `pause`: what stands then."""

    act: str
    did: bool
    dry_run: bool
    pause: Pause | None


def listed(query: RemediesAsked) -> Remedies:
    """Whether anything may begin, who is not well and what is done about it, and the latest remedies."""
    deps = dependencies()
    said, problem = _said()
    pause = deps.remedies.books(deps.clock.now_ms()).pause
    found = deps.remedies.latest(None, query.limit + 1, by_number(query))
    there = found[: query.limit]
    return Remedies(
        pause=pause,
        problem=problem,
        machines=said.machines,
        ailing=said.ailing,
        withheld=said.withheld,
        under=said.under,
        remedies=tuple(there),
        next_page=written(str(there[-1].id)) if len(found) > len(there) else None,
    )


def shown(number: int) -> RemedyShown:
    """One, with what was at hand of the machine's boot."""
    remedy, evidence = dependencies().remedies.one(number)
    return render.grown(RemedyShown, remedy, evidence=json.loads(evidence) if evidence else None)


def paused() -> Paused:
    """Whether remedies are paused by somebody's word."""
    deps = dependencies()
    return Paused(pause=deps.remedies.books(deps.clock.now_ms()).pause)


def pause(body: Ordering) -> PauseActed:
    """Nothing begins any more."""
    return _ordered("pause", body, stands=True)


def resume(body: Ordering) -> PauseActed:
    """Remedies may begin again; what was found until now is no matter of the fleet any more."""
    return _ordered("resume", body, stands=False)


def of(name: str) -> RemediesOf | None:
    """What is done about one machine, and what was; None where that cannot be told."""
    try:
        latest = dependencies().remedies.latest(name, OF_MACHINE)
        said, problem = _said()
    except CannotTellError as error:
        log.warning("remedies: %s", error)
        return None
    now = next((each for each in said.machines if each.machine == name), None)
    return RemediesOf(now=now, problem=problem, latest=tuple(latest))


def _ordered(act: str, body: Ordering, *, stands: bool) -> PauseActed:
    deps, who = dependencies(), operator().who
    now = deps.clock.now_ms()
    asked = Pause(stands=stands, who=who, reason=body.reason, since_ms=now)
    if body.dry_run:
        before = deps.remedies.books(now).pause
        did = asked.changes(before)
        found = asked if did else before
    else:
        before = deps.remedies.books(now).pause
        did = deps.remedies.pause(asked)
        found = asked if did else before
        audit(f"remedies-{act}", reason=body.reason, before=before, after=found, changed=did)
    return PauseActed(act=act, did=did, dry_run=body.dry_run, pause=found)


def _said() -> tuple[RemediesStatus, str]:
    """What the loop said last, and why that may not be how it is now; "": it is."""
    deps = dependencies()
    said = deps.status.read("remedies", RemediesStatus)
    if said is None or abs(deps.clock.now_ms() - said.at_ms) > FRESH_MS:
        return said or RemediesStatus(at_ms=0), "the controllers have not said for a while how machines are"
    return said, said.problem or said.unseen
