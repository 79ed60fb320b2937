"""`/v1/channels[/<name>]`: where channels point, and moving them."""

import logging
from typing import Annotated

from flask import Response, jsonify, request
from pydantic import StringConstraints, ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from netboot.lifecycle.channels import channel_states, declared, move
from netboot.lifecycle.errors import BadClaimError, CannotTellError, RolloutRefusedError
from netboot.lifecycle.rollout_orders import cancelled
from netboot.lifecycle.rollout_store import Note
from netboot.machines.inventory import declared_at
from netboot.web import inputs, render
from netboot.web.dependencies import dependencies
from netboot.web.operators import operator

log = logging.getLogger(__name__)


class Move(Strict):
    """The body of a PUT. `image`: a digest, the beginning of one, or the name of an image (its newest). `force`: also
    where machines of the channel are of another architecture."""

    image: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
    force: bool = False


def listed() -> Response:
    """Every channel of the inventory."""
    inputs.only(())
    states = channel_states(dependencies().live.view().snapshot, dependencies().repository)
    return jsonify({"channels": [render.plain(state) for state in states]})


def shown(name: str) -> Response:
    """One channel."""
    inputs.only(())
    snapshot = dependencies().live.view().snapshot
    channel = declared(snapshot, name)
    return jsonify(
        next(
            render.plain(state)
            for state in channel_states(snapshot, dependencies().repository)
            if state.name == channel.name
        )
    )


def moved(name: str) -> Response:
    """Let the channel point to another image: written into the store, in force within a second."""
    inputs.only(())
    deps, asked = dependencies(), _move()
    place = declared_at(deps.inventory, "channel", name) or str(deps.inventory)
    snapshot = deps.live.view().snapshot
    ended, kept = list[int](), False

    def first() -> None:
        nonlocal kept
        there = _end_rollouts(name, force=asked.force)
        kept = there is None
        ended.extend(there or ())

    repository, writer = deps.repository, deps.repository_writer
    state = move(snapshot, repository, writer, name, asked.image, place, force=asked.force, first=first)
    try:
        deps.rollouts.release(name)
    except CannotTellError:
        if not asked.force:
            raise
        kept = True
    fields = {"operator": operator().fingerprint, "peer": request.remote_addr, "channel": name, "image": state.image}
    log.info("channel moved", extra={"fields": fields})
    return jsonify(render.plain(state) | {"ended_rollouts": ended, "assignments_kept": kept})


def _end_rollouts(channel: str, *, force: bool) -> list[int] | None:
    """What rollouts would assign over what is set is ended first, so that none moves the channel back. None: with
    `force`, where it cannot be told what they assigned."""
    deps = dependencies()
    try:
        under_way = [each for each in deps.rollouts.under_way() if each.channel == channel]
        if under_way and not force:
            raise RolloutRefusedError(
                f"rollout {under_way[0].number} of channel {channel} is {under_way[0].state}: let it end or undo it; "
                "`force` ends it, and all machines of the channel boot what is set from their next boot on"
            )
        who = operator().who
        for each in under_way:
            deps.rollouts.change(
                each.number,
                lambda rollout, members: (cancelled(rollout, f"channel set by {who}", deps.clock.now_ms()), members),
                lambda *_: Note(deps.clock.now_ms(), who, "channel set"),
            )
    except CannotTellError as error:
        if not force:
            raise
        log.warning("rollouts of channel %s: %s", channel, error)
        return None
    return [each.number for each in under_way]


def _move() -> Move:
    try:
        return Move.model_validate(request.get_json())
    except ValidationError as error:
        fault = first_fault(error)
        raise BadClaimError(
            f'{fault.key or "the body"}: {fault.message}; expected {{"image": "<digest, prefix or name>"}}'
        ) from None
