"""`/v1/machines[/<name>]`, `/v1/machines/<name>/explain`."""

import logging
from typing import Any

from flask import Blueprint, Response, jsonify

from netboot.join.enrolment import ALERT
from netboot.lifecycle.decide import decide_machine
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.views import machine_detail, machine_named, machine_views
from netboot.machines.values import Machine
from netboot.web import node_health, query, render
from netboot.web.auth import protect
from netboot.web.dependencies import dependencies
from netboot.web.enrolments import HISTORY_SHOWN, pcr_policy

blueprint = Blueprint("machines", __name__)
protect(blueprint)

log = logging.getLogger(__name__)

BOOTS_SHOWN = 10


@blueprint.get("/v1/machines")
def listed() -> Response:
    """Every machine of the inventory with its current boot."""
    query.only(())
    found = machine_views(dependencies().live.view(), dependencies().states.machines())
    return jsonify(
        {
            "machines": [
                {
                    **render.plain(one.machine),
                    "current": render.maybe_trace(one.current),
                    "pending": render.maybe_trace(one.pending),
                    "claims": render.plain(one.claims),
                    "checked": node_health.brief(one.checked),
                }
                for one in found
            ]
        }
    )


@blueprint.get("/v1/machines/<name>")
def shown(name: str) -> Response:
    """One machine: what it would be served now, and its latest boots."""
    query.only(())
    states = dependencies().states
    view = dependencies().live.view()
    machine_named(view, name)
    detail = machine_detail(view, name, states.machines([name]).get(name), tuple(states.boots(name, BOOTS_SHOWN)))
    return jsonify(
        {
            **render.plain(detail.machine),
            "current": render.maybe_trace(detail.current),
            "pending": render.maybe_trace(detail.pending),
            "claims": render.plain(detail.claims),
            "decision": render.plain(detail.decision),
            "boots": [render.trace(boot) for boot in detail.boots],
            "checked": node_health.report_of(detail.current),
            **_identity(detail.machine),
        }
    )


@blueprint.get("/v1/machines/<name>/explain")
def explained(name: str) -> Response:
    """What this machine gets, however it is recognised, and why; and how far the boot is that it has."""
    query.only(())
    view = dependencies().live.view()
    machine = machine_named(view, name)
    return jsonify({"decision": render.plain(decide_machine(view, machine)), **_identity(machine), **_boots(name)})


def _boots(name: str) -> dict[str, Any]:
    """How far it is, where that can be told."""
    try:
        state = dependencies().states.machines([name]).get(name, MachineState(machine=name))
    except CannotTellError as error:
        log.warning("boots: %s", error)
        return {}
    return {
        "current": render.maybe_trace(state.current),
        "pending": render.maybe_trace(state.pending),
        "checked": node_health.report_of(state.current),
    }


def _identity(machine: Machine) -> dict[str, Any]:
    """How it proves itself. What it boots can be told without this, so a record that cannot be read is only said."""
    mine = dependencies()
    said: dict[str, Any] = {"pcr_policy": pcr_policy(machine), "alerts": [], "enrolment": None}
    said["enrolment_problem"] = None
    try:
        history = mine.register.store.history(machine.name, HISTORY_SHOWN)
        said["alerts"] = [render.plain(one) for one in history if one.act == ALERT]
        said["enrolment"] = render.plain(mine.register.view(machine.name, mine.clock.now_ms()))
    except CannotTellError as error:
        log.warning("enrolment: %s", error)
        said["enrolment_problem"] = "the record of enrolments cannot be read right now"
    return said
