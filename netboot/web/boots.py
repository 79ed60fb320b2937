"""`/v1/boots?machine=&limit=`, `/v1/boots/<id>`; `/v1/discovered`: machines that asked and may not boot."""

import logging
from typing import Any

from flask import Response, jsonify, request

from netboot.lifecycle.crashes import crashes_of
from netboot.lifecycle.errors import CannotTellError, NoSuchBootError
from netboot.lifecycle.spans import spans
from netboot.lifecycle.state import KEPT
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.views import machine_named
from netboot.web import inputs, node_health, render
from netboot.web.dependencies import dependencies

log = logging.getLogger(__name__)


def listed() -> Response:
    """Boots and claims, the newest first."""
    inputs.only(("machine", "limit"))
    name = request.args.get("machine")
    boots = dependencies().states.boots(name, inputs.whole("limit", 20, 1, 1_000))
    if name is not None and not boots:
        machine_named(dependencies().live.view(), name)  # an empty answer is about a machine that there is
    return jsonify({"boots": [render.trace(boot) for boot in boots]})


def shown(boot: str) -> Response:
    """One boot's trace, with the crashes that it found and that ended it."""
    inputs.only(())
    states = dependencies().states
    trace = states.boot(boot)
    if trace is None:
        raise NoSuchBootError("never heard of, or longer ago than is kept")
    crashes = crashes_of(trace, states.boots(trace.machine, sum(KEPT.values())))
    texts = {finder: states.crash_texts(finder) for finder in {crashed.found_by for crashed in crashes}}
    shown = [render.crashed(crashed, texts[crashed.found_by].get(crashed.crash.sha256)) for crashed in crashes]
    more = {"crashes": shown, "checked": node_health.report_of(trace), **_time(trace)}
    return jsonify({**render.trace(trace), **more})


def _time(trace: Trace) -> dict[str, Any]:
    """Where it went. When it was first in service is left out where that cannot be read: all else can be told."""
    try:
        in_service_ms = dependencies().history.in_service([trace.boot]).get(trace.boot)
    except CannotTellError as error:
        log.warning("history: %s", error)
        in_service_ms = None
    parts = [{**part._asdict(), "missing": list(part.missing)} for part in spans(trace, in_service_ms)]
    return {"in_service_ms": in_service_ms, "spans": parts}


def discovered() -> Response:
    """Machines that asked and may not boot, the latest seen first."""
    inputs.only(("limit",))
    machines = dependencies().sightings.discovered(inputs.whole("limit", 100, 1, 10_000))
    return jsonify({"discovered": [render.plain(machine) for machine in machines]})
