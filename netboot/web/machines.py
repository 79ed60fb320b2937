"""`/v1/machines[/<name>]`, `/v1/machines/<name>/explain`; `/v1/explain`: the same for whoever claims to be one."""

import logging
from collections.abc import Mapping
from operator import attrgetter

from flask import request

from images.values.strict import Strict
from netboot.join.enrolment import Alert
from netboot.lifecycle.claims import parse_claim
from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.decide import Claim, Decision, decide, decide_machine
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import Intent
from netboot.lifecycle.published import View
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.views import machine_detail, machine_named, machine_views, pcr_policy
from netboot.machines.values import Machine, boot_limit_of
from netboot.web import drains, node_health, past_boots, remedies, render
from netboot.web.binding import Shown
from netboot.web.dependencies import dependencies
from netboot.web.machine_shapes import (
    Explained,
    ExplainedInPart,
    MachineListed,
    Machines,
    MachineShown,
    SaidBoots,
    SaidSeconds,
)
from netboot.web.pages import page
from netboot.web.past_boots import PastExplained
from netboot.web.selecting import SelectAsked, selected
from netboot.web.shapes import (
    DrainShown,
    IdentityShown,
)

log = logging.getLogger(__name__)

BOOTS_SHOWN = 10


class ExplainAsked(Strict):
    """`boot`: what that one got then."""

    boot: str | None = None


class ClaimAsked(Strict):
    """What a machine says of itself."""

    mac: str | None = None
    uuid: str | None = None
    serial: str | None = None
    arch: str | None = None
    platform: str | None = None


class ClaimExplained(Shown):
    """`claim`: as it was read."""

    claim: Claim
    decision: Decision


def listed(query: SelectAsked) -> Machines:
    """Machines of the inventory, each with its current boot; those that are selected."""
    found, more = page(query, selected(query), attrgetter("name"))
    names = None if query.limit is None else [each.name for each in found]
    views, conditions = machine_views(found, dependencies().states.machines(names)), _conditions(names)
    return Machines.model_construct(
        next_page=more,
        machines=tuple(
            render.grown(
                MachineListed,
                view.machine,
                current=render.maybe_trace(view.current),
                pending=render.maybe_trace(view.pending),
                claims=view.claims,
                checked=node_health.brief(view.checked),
                conditions=render.conditions(conditions, view.machine.name),
            )
            for view in views
        ),
    )


def shown(name: str) -> MachineShown:
    """One machine: what it would be served now, and its latest boots."""
    states = dependencies().states
    view = dependencies().live.view()
    machine_named(view, name)
    detail = machine_detail(view, name, states.machines([name]).get(name), tuple(states.boots(name, BOOTS_SHOWN)))
    return render.grown(
        MachineShown,
        detail.machine,
        accelerator_domain=view.stands(detail.machine).accelerator_domain,
        current=render.maybe_trace(detail.current),
        pending=render.maybe_trace(detail.pending),
        claims=detail.claims,
        decision=detail.decision,
        boots=tuple(map(render.trace, detail.boots)),
        checked=node_health.report_of(detail.current),
        conditions=render.conditions(_conditions([name]), name),
        deadlines=_deadlines(view, detail.machine),
        intents=_intents(name),
        drains=_drains(name),
        boot_limit=_boot_limit(view, detail.machine),
        hardware=view.hardware(detail.machine),
        **dict(_identity(detail.machine)),
    )


def explained(name: str, query: ExplainAsked) -> Explained | ExplainedInPart | PastExplained:
    """What this machine gets, however it is recognised, and why; and how far the boot is that it has. With `boot`: what
    that boot got then."""
    if query.boot is not None:
        return past_boots.explained(dependencies(), name, query.boot)
    view = dependencies().live.view()
    machine = machine_named(view, name)
    known = ExplainedInPart(
        decision=decide_machine(view, machine),
        remedies=remedies.of(name),
        hardware=view.hardware(machine),
        **dict(_identity(machine)),
    )
    try:
        state = dependencies().states.machines([name]).get(name, MachineState(machine=name))
    except CannotTellError as error:
        log.warning("boots: %s", error)
        return known
    return render.grown(
        Explained,
        known,
        current=render.maybe_trace(state.current),
        pending=render.maybe_trace(state.pending),
        checked=node_health.report_of(state.current),
    )


def claim_explained(query: ClaimAsked) -> ClaimExplained:  # noqa: ARG001 - read as boot servers read it
    """What whoever claims this would get, and why. Nothing is recorded."""
    claim = parse_claim(request.query_string.decode("ascii", "replace"))
    return ClaimExplained(claim=claim, decision=decide(dependencies().live.view(), claim))


def _conditions(names: list[str] | None = None) -> Mapping[str, tuple[MachineCondition, ...]] | None:
    """What was found of these, or of all; None where that cannot be told: all else of a machine can be."""
    try:
        return dependencies().conditions.conditions(names)
    except CannotTellError as error:
        log.warning("conditions: %s", error)
        return None


def _intents(name: str) -> tuple[Intent, ...] | None:
    """What is wanted of it; None where that cannot be told."""
    deps = dependencies()
    try:
        return tuple(deps.intents.of(name, deps.clock.now_ms()))
    except CannotTellError as error:
        log.warning("intents: %s", error)
        return None


def _drains(name: str) -> tuple[DrainShown, ...] | None:
    """What was ordered of it that takes its Pods away; None where that cannot be told."""
    try:
        return tuple(drains.of(name))
    except CannotTellError as error:
        log.warning("drains: %s", error)
        return None


def _deadlines(view: View, machine: Machine) -> dict[str, SaidSeconds]:
    """How long its boots may stay at each phase, and by whose word: its class's, its profile's, or nobody's."""
    deadlines = view.deadlines(machine).items()
    return {name: SaidSeconds(**each._asdict()) for name, each in deadlines}


def _boot_limit(view: View, machine: Machine) -> SaidBoots:
    """How many boots may come before one is Ready, 0 for no limit, and by whose word."""
    hardware = view.classes[machine.class_name] if machine.class_name is not None else None
    limit = boot_limit_of(view.profiles[machine.profile], hardware)
    return SaidBoots(boots=limit.boots, said_by=limit.said_by)


def _identity(machine: Machine) -> IdentityShown:
    """How it proves itself. What it boots can be told without this, so a record that cannot be read is only said."""
    deps = dependencies()
    policy, alerts, problem, enrolment = pcr_policy(machine), tuple[Alert, ...](), None, None
    try:
        alerts = tuple(deps.register.store.alerts(machine.name))
        enrolment = deps.register.view(machine.name, deps.clock.now_ms())
    except CannotTellError as error:
        log.warning("enrolment: %s", error)
        problem = "the record of enrolments cannot be read right now"
    return IdentityShown(pcr_policy=policy, alerts=alerts, enrolment=enrolment, enrolment_problem=problem)
