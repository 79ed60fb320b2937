"""What operators order that takes a machine's Pods away: `POST /v1/machines/<name>/{drain,reboot,undrain}`,
`/v1/drains`, `/v1/machines/<name>/drains` (docs/drain.md)."""

import secrets
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Annotated

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.budget import BY_ITSELF, by_whom, fills_a_place
from netboot.lifecycle.drains import (
    LONGEST_MS,
    SHORTEST_MS,
    Change,
    Drain,
    DrainsStatus,
    State,
    What,
    decide,
    orderable,
)
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.views import machine_named
from netboot.web import render
from netboot.web.control_planes import hindrance
from netboot.web.dependencies import dependencies
from netboot.web.intents import MayBeWhy, Why
from netboot.web.operators import audit, operator
from netboot.web.selecting import SelectAsked, part
from netboot.web.shapes import Did, DrainActed, Drains, DrainShown, DrainsOf, Out

SHOWN = 20
Deadline = Annotated[int, Field(ge=SHORTEST_MS // 1000, le=LONGEST_MS // 1000)]


class Ordering(Strict):
    """The body of `drain` and `reboot`. `seconds`: by when it has to be drained, from now."""

    reason: Why
    seconds: Deadline = 1800
    bare: bool = False
    local: bool = False
    dry_run: bool = False


class Undraining(Strict):
    """The body of `undrain`."""

    reason: MayBeWhy = ""
    dry_run: bool = False


def drain(name: str, body: Ordering) -> DrainActed:
    """Move its Pods away."""
    return _order(name, "drain", body)


def reboot(name: str, body: Ordering) -> DrainActed:
    """Move its Pods away, then reboot it."""
    return _order(name, "reboot", body)


def undrain(name: str, body: Undraining) -> DrainActed:
    """Let it take Pods again, and forget the order to reboot, if it was not taken yet."""
    deps, who = dependencies(), operator().who
    was = stands = deps.drains.stands(name)
    if stands is None:
        machine_named(deps.live.view(), name)  # 404, where it is not there at all
    elif not body.dry_run:
        words = f"by {who}{': ' if body.reason else ''}{body.reason}"
        stands = deps.drains.finish(stands.id, "taken-off", words, deps.clock.now_ms())
    if not body.dry_run:
        audit("undrain", machine=name, reason=body.reason, before=was, after=stands, changed=stands is not None)
    did: Did = "taken-off" if stands is not None else ""
    return _answer(name, "undrain", did, stands, dry_run=body.dry_run)


def listed(query: SelectAsked) -> Drains:
    """All that stand, and how far each is."""
    states, problems = _states()
    found, more = part(query, dependencies().drains.standing(), attrgetter("id"))
    return Drains(drains=tuple(_shown(one, states) for one in found), problems=tuple(problems), next_page=more)


def shown(name: str) -> DrainsOf:
    """What stands of one machine, and what ended, the latest first."""
    drains = of(name)
    if not drains:
        machine_named(dependencies().live.view(), name)
    return DrainsOf(machine=name, drains=tuple(drains))


def of(name: str) -> list[DrainShown]:
    """Of one machine, the latest first. Raises CannotTellError."""
    states, _ = _states()
    return [_shown(one, states) for one in dependencies().drains.of(name, SHOWN)]


def hindered(clusters: Collection[str]) -> list[str]:
    """What keeps node collectors of these clusters from carrying orders out, in words."""
    _, problems = _said(clusters)
    return problems


def how_far() -> dict[str, DrainShown]:
    """Machine → what stands of it, as `listed` has it. Raises CannotTellError."""
    states, _ = _states()
    return {one.machine: _shown(one, states) for one in dependencies().drains.standing()}


def _order(name: str, what: What, body: Ordering) -> DrainActed:
    deps, who = dependencies(), operator().who
    now = deps.clock.now_ms()
    asked = Drain(
        id=secrets.token_hex(8),
        machine=name,
        what=what,
        boot=_boot(name),
        who=who,
        reason=body.reason,
        since_ms=now,
        deadline_ms=now + body.seconds * 1000,
        bare=body.bare,
        local=body.local,
    )
    if body.dry_run:
        change = decide(deps.drains.stands(name), asked)
    else:
        change = deps.drains.order(asked)
        was = change.replaced if change.did else change.drain
        facts = {"deadline_ms": asked.deadline_ms}
        audit(what, facts, machine=name, reason=body.reason, before=was, after=change.drain, changed=change.did)
    return _answer(name, what, _did(change), change.drain, dry_run=body.dry_run)


def _around(name: str) -> Out | None:
    """Who is out of service beside it: of its rack, by whose word, and how many of all are by somebody's; None where
    that cannot be told. An order of a person waits for no budget (docs/drain.md)."""
    deps = dependencies()
    try:
        by = by_whom(deps.drains.standing(), deps.intents.all(deps.clock.now_ms()))
        machines = {each.name: each for each in deps.live.view().snapshot.inventory.machines if each.enabled}
        rack = machines[name].rack if name in machines else None
        near = [each for each, said in machines.items() if rack is not None and said.rack == rack and each != name]
        judged = deps.conditions.judged(near)
    except CannotTellError:
        return None
    out = [each for each in near if each in by or (each in judged and fills_a_place(judged[each]))]
    of_rack = {each: by.get(each, BY_ITSELF) for each in out}
    return Out(rack=rack, of_rack=of_rack, of_all=len(by.keys() & machines.keys() - {name}))


def _control_plane(name: str) -> str | None:
    """As `hindrance` has it; None also where the inventory cannot be told, as `_around` says."""
    try:
        return hindrance(dependencies().live.view(), name)
    except CannotTellError:
        return None


def _boot(name: str) -> str:
    """The boot of a machine that has a Node, to which an order is bound.

    Raises:
        NoSuchMachineError, ActRefusedError.
    """
    deps = dependencies()
    machine = machine_named(deps.live.view(), name)
    return orderable(name, deps.states.machines([name]).get(name), joins=deps.joins(machine))


def _did(change: Change) -> Did:
    if not change.did:
        return ""
    return "ordered" if change.replaced is None else "replaced"


def _answer(name: str, act: str, did: Did, drain: Drain | None, *, dry_run: bool) -> DrainActed:
    states, _ = _states()
    return DrainActed(
        machine=name,
        act=act,
        did=did,
        dry_run=dry_run,
        out=_around(name) if act != "undrain" else None,
        control_plane=_control_plane(name) if act != "undrain" else None,
        drain=_shown(drain, states) if drain is not None else None,
    )


def _shown(drain: Drain, states: dict[str, State]) -> DrainShown:
    """With how far it is: null where that is not known, or it has ended."""
    state = states.get(drain.machine) if drain.end is None else None
    if state is not None and state.id != drain.id:
        state = None  # of the one before
    return render.grown(DrainShown, drain, state=state)


def _states() -> tuple[dict[str, State], list[str]]:
    issuer = dependencies().issuer
    return _said(issuer.clusters if issuer is not None else ())


def _said(clusters: Iterable[str]) -> tuple[dict[str, State], list[str]]:
    """By machine, and what hinders whom from carrying orders out. Raises CannotTellError."""
    deps, problems = dependencies(), list[str]()
    now, states = deps.clock.now_ms(), dict(deps.drains.elsewhere())
    for cluster in clusters:
        try:
            said = deps.status.read(f"drains-{cluster}", DrainsStatus)
        except CannotTellError as error:
            problems.append(str(error))
            continue
        fresh = said is not None and said.fresh(now)
        if not fresh:
            problems.append(f"nodes-{cluster} has not said for a while how far it is")
        if said is not None:
            if not deps.drains.shared or (fresh and said.leads):  # else another replica knows more
                states |= said.drains
            problems += [f"cluster {cluster}: {why}" for why in (said.problem, said.lacks) if why]
    return states, problems
