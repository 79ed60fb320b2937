"""What is done by itself about machines that are not well: `GET /v1/remedies[/<number>]`, `POST
/v1/remedies/{pause,resume}` (docs/remedies.md)."""

import json
import logging
from typing import Any

from flask import Response, jsonify

from images.values.strict import Strict
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.remedies import Pause, RemediesStatus
from netboot.web import inputs, render
from netboot.web.dependencies import dependencies
from netboot.web.inputs import parsed
from netboot.web.intents import Why
from netboot.web.operators import audit, operator

log = logging.getLogger(__name__)

SHOWN, MOST, OF_MACHINE = 20, 200, 5
FRESH_MS = 60_000
"""How old what the loop says may be."""


class Ordering(Strict):
    """The body of `pause` and `resume`."""

    reason: Why
    dry_run: bool = False


def listed() -> Response:
    """Whether anything may begin, who is not well and what is done about it, and the latest remedies."""
    inputs.only(("limit",))
    deps = dependencies()
    said, problem = _said()
    pause = deps.remedies.books(deps.clock.now_ms()).pause
    remedies = deps.remedies.latest(None, inputs.whole("limit", SHOWN, 1, MOST))
    return jsonify(
        {
            "pause": render.plain(pause) if pause is not None else None,
            "problem": problem,
            "machines": [render.plain(each) for each in said.machines],
            "ailing": said.ailing,
            "withheld": said.withheld,
            "under": said.under,
            "remedies": [render.plain(each) for each in remedies],
        }
    )


def shown(number: int) -> Response:
    """One, with what was at hand of the machine's boot."""
    inputs.only(())
    remedy, evidence = dependencies().remedies.one(number)
    return jsonify({**render.plain(remedy), "evidence": json.loads(evidence) if evidence else None})


def pause() -> Response:
    """Nothing begins any more."""
    return _ordered("pause", stands=True)


def resume() -> Response:
    """Remedies may begin again; what was found until now is no matter of the fleet any more."""
    return _ordered("resume", stands=False)


def of(name: str) -> dict[str, Any] | None:
    """What is done about one machine, and what was; None where that cannot be told."""
    try:
        latest = dependencies().remedies.latest(name, OF_MACHINE)
        said, problem = _said()
    except CannotTellError as error:
        log.warning("remedies: %s", error)
        return None
    now = next((render.plain(each) for each in said.machines if each.machine == name), None)
    return {"now": now, "problem": problem, "latest": [render.plain(each) for each in latest]}


def _ordered(act: str, *, stands: bool) -> Response:
    inputs.only(())
    body, deps, who = parsed(Ordering), dependencies(), operator().who
    now = deps.clock.now_ms()
    asked = Pause(stands=stands, who=who, reason=body.reason, since_ms=now)
    if body.dry_run:
        before = deps.remedies.books(now).pause
        did = asked.changes(before)
        found = asked if did else before
    else:
        before = deps.remedies.books(now).pause
        did = deps.remedies.pause(asked)
        found = deps.remedies.books(now).pause
        audit(f"remedies-{act}", reason=body.reason, before=before, after=found, changed=did)
    pause = render.plain(found) if found is not None else None
    return jsonify({"act": act, "did": did, "dry_run": body.dry_run, "pause": pause})


def _said() -> tuple[RemediesStatus, str]:
    """What the loop said last, and why that may not be how it is now; "": it is."""
    deps = dependencies()
    said = deps.status.read("remedies", RemediesStatus)
    if said is None or abs(deps.clock.now_ms() - said.at_ms) > FRESH_MS:
        return said or RemediesStatus(at_ms=0), "the controllers have not said for a while how machines are"
    return said, said.problem or said.unseen
