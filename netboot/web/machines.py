"""`/v1/machines[/<name>]`, `/v1/machines/<name>/explain`; `/v1/explain`: the same for whoever claims to be one."""

import logging
from collections.abc import Mapping
from typing import Any

from flask import Response, jsonify, request

from netboot.lifecycle.claims import parse_claim
from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.decide import decide, decide_machine
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.published import View
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.views import machine_detail, machine_named, machine_views
from netboot.machines.values import Machine, boot_limit_of
from netboot.web import drains, inputs, node_health, past_boots, remedies, render
from netboot.web.dependencies import dependencies
from netboot.web.enrolments import pcr_policy

log = logging.getLogger(__name__)

BOOTS_SHOWN = 10


def listed() -> Response:
    """Every machine of the inventory with its current boot."""
    inputs.only(())
    views, conditions = machine_views(dependencies().live.view(), dependencies().states.machines()), _conditions()
    return jsonify(
        {
            "machines": [
                {
                    **render.plain(view.machine),
                    "current": render.maybe_trace(view.current),
                    "pending": render.maybe_trace(view.pending),
                    "claims": render.plain(view.claims),
                    "checked": node_health.brief(view.checked),
                    "conditions": render.conditions(conditions, view.machine.name),
                }
                for view in views
            ]
        }
    )


def shown(name: str) -> Response:
    """One machine: what it would be served now, and its latest boots."""
    inputs.only(())
    states = dependencies().states
    view = dependencies().live.view()
    machine_named(view, name)
    detail = machine_detail(view, name, states.machines([name]).get(name), tuple(states.boots(name, BOOTS_SHOWN)))
    return jsonify(
        {
            **render.plain(detail.machine),
            "rack": detail.machine.rack,
            "accelerator_domain": view.stands(detail.machine).accelerator_domain,
            "current": render.maybe_trace(detail.current),
            "pending": render.maybe_trace(detail.pending),
            "claims": render.plain(detail.claims),
            "decision": render.plain(detail.decision),
            "boots": [render.trace(boot) for boot in detail.boots],
            "checked": node_health.report_of(detail.current),
            "conditions": render.conditions(_conditions([name]), name),
            "deadlines": _deadlines(view, detail.machine),
            "intents": _intents(name),
            "drains": _drains(name),
            "boot_limit": _boot_limit(view, detail.machine),
            **_hardware(view, detail.machine),
            **_identity(detail.machine),
        }
    )


def explained(name: str) -> Response:
    """What this machine gets, however it is recognised, and why; and how far the boot is that it has. With `boot`: what
    that boot got then."""
    inputs.only(("boot",))
    if (boot := request.args.get("boot")) is not None:
        return jsonify(past_boots.explained(dependencies(), name, boot))
    view = dependencies().live.view()
    machine = machine_named(view, name)
    decision = render.plain(decide_machine(view, machine))
    known = {**_hardware(view, machine), **_identity(machine), **_boots(name)}
    return jsonify({"decision": decision, **known, "remedies": remedies.of(name)})


def claim_explained() -> Response:
    """What whoever claims this would get, and why. Nothing is recorded."""
    inputs.only(("mac", "uuid", "serial", "arch", "platform"))
    claim = parse_claim(request.query_string.decode("ascii", "replace"))
    decision = decide(dependencies().live.view(), claim)
    return jsonify({"claim": render.plain(claim), "decision": render.plain(decision)})


def _hardware(view: View, machine: Machine) -> dict[str, Any]:
    """What its class declares, where it names one."""
    hardware = view.hardware(machine)
    return {} if hardware is None else {"hardware": hardware}


def _conditions(names: list[str] | None = None) -> Mapping[str, tuple[MachineCondition, ...]] | None:
    """What was found of these, or of all; None where that cannot be told: all else of a machine can be."""
    try:
        return dependencies().conditions.conditions(names)
    except CannotTellError as error:
        log.warning("conditions: %s", error)
        return None


def _intents(name: str) -> list[dict[str, Any]] | None:
    """What is wanted of it; None where that cannot be told."""
    deps = dependencies()
    try:
        return [render.plain(each) for each in deps.intents.of(name, deps.clock.now_ms())]
    except CannotTellError as error:
        log.warning("intents: %s", error)
        return None


def _drains(name: str) -> list[dict[str, Any]] | None:
    """What was ordered of it that takes its Pods away; None where that cannot be told."""
    try:
        return drains.of(name)
    except CannotTellError as error:
        log.warning("drains: %s", error)
        return None


def _deadlines(view: View, machine: Machine) -> dict[str, Any]:
    """How long its boots may stay at each phase, and by whose word: its class's, its profile's, or nobody's."""
    deadlines = view.deadlines(machine).items()
    return {name: {"seconds": each.seconds, "said_by": each.said_by} for name, each in deadlines}


def _boot_limit(view: View, machine: Machine) -> dict[str, Any]:
    """How many boots may come before one is Ready, 0 for no limit, and by whose word."""
    hardware = view.classes[machine.class_name] if machine.class_name is not None else None
    limit = boot_limit_of(view.profiles[machine.profile], hardware)
    return {"boots": limit.boots, "said_by": limit.said_by}


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
    deps = dependencies()
    identity: dict[str, Any] = {"pcr_policy": pcr_policy(machine), "alerts": [], "enrolment": None}
    identity["enrolment_problem"] = None
    try:
        identity["alerts"] = [render.plain(alert) for alert in deps.register.store.alerts(machine.name)]
        identity["enrolment"] = render.plain(deps.register.view(machine.name, deps.clock.now_ms()))
    except CannotTellError as error:
        log.warning("enrolment: %s", error)
        identity["enrolment_problem"] = "the record of enrolments cannot be read right now"
    return identity
