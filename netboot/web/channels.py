"""`/v1/channels[/<name>]`: where channels point, and moving them."""

import logging
from collections.abc import Container, Mapping, Sequence
from contextlib import nullcontext
from operator import attrgetter
from typing import Annotated, Any

from pydantic import StringConstraints

from images.errors import ImageError
from images.values.strict import Strict
from netboot.lifecycle.channels import ChannelState, channel_states, declared, move, users_of
from netboot.lifecycle.errors import CannotTellError, RolloutRefusedError
from netboot.lifecycle.rollout_orders import cancelled
from netboot.lifecycle.rollout_store import Note
from netboot.web import render
from netboot.web.dependencies import dependencies
from netboot.web.fleet import Look, look
from netboot.web.intents import MayBeWhy
from netboot.web.operators import audit, operator, partly, written
from netboot.web.pages import PageAsked, Paged, page

log = logging.getLogger(__name__)


class Move(Strict):
    """The body of a PUT. `image`: a digest, the beginning of one, or the name of an image (its newest). `force`: also
    where machines of the channel are of another architecture, or a rollout is under way."""

    image: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
    reason: MayBeWhy = ""
    force: bool = False
    dry_run: bool = False


class Channels(Paged):
    """In the order of the inventory."""

    channels: tuple[ChannelState, ...]


class Moved(ChannelState):
    """The channel as it is then. `ended_rollouts`: their numbers; `assignments_kept`: machines boot what a rollout
    assigned to them, for that cannot be read, or changed; `alone`: it is so at this replica, and others could not be
    told; `dry_run`: nothing was changed."""

    ended_rollouts: tuple[int, ...]
    assignments_kept: bool
    alone: bool
    dry_run: bool


def listed(query: PageAsked) -> Channels:
    """Every channel of the inventory."""
    states = channel_states(dependencies().live.view().snapshot, dependencies().repository, _users())
    found, more = page(query, list(states), attrgetter("name"))
    return Channels(channels=tuple(found), next_page=more)


def shown(name: str) -> ChannelState:
    """One channel."""
    snapshot = dependencies().live.view().snapshot
    channel = declared(snapshot, name)
    states = channel_states(snapshot, dependencies().repository, _users())
    return next(state for state in states if state.name == channel.name)


def moved(name: str, body: Move) -> Moved:
    """Let the channel point to another image: written into the store, in force within a second."""
    deps, asked = dependencies(), body
    place = deps.inventory_files.place("channel", name)
    snapshot = deps.live.view().snapshot
    ended, kept, alone = list[int](), False, False

    def first() -> None:
        nonlocal kept
        kept = not _end_rollouts(name, asked, ended)

    def so_far() -> str:
        return f"rollouts {', '.join(map(str, ended))} of channel {name} were ended" if ended else ""

    def point(channel: str, digest: str) -> None:
        nonlocal alone, kept
        over: Sequence[int] | None
        try:
            over = deps.repository_writer.point(channel, digest, operator().who, end=asked.force)
        except CannotTellError as error:
            if deps.point_alone is None or not asked.force:
                raise
            log.warning("channel %s is set at this replica alone: %s", channel, error)
            over = deps.point_alone(channel, digest, operator().who)
            alone, kept = True, over is None
        ended.extend(number for number in over or () if number not in ended)

    was = _set(name)
    moving = point if not asked.dry_run else None
    facts: dict[str, object] = {"channel": name, "image": asked.image, "was": was, "ended_rollouts": ended}
    about: dict[str, Any] = {"reason": asked.reason, "before": {"image": was}, "after": {"image": asked.image}}
    with partly("channel-set", facts, so_far=so_far, **about) if not asked.dry_run else nullcontext():
        state = move(
            snapshot, deps.repository, moving, name, asked.image, place, _users(), force=asked.force, first=first
        )
    if not asked.dry_run:
        facts |= {"image": state.image}
        with written("channel-set", facts, reason=asked.reason, before={"image": was}):
            kept = not _released(name, force=asked.force) or kept
        after = {"image": state.image, "name": state.image_name}
        audit("channel-set", facts, reason=asked.reason, before={"image": was}, after=after, changed=was != state.image)
    dry = asked.dry_run
    return render.grown(Moved, state, ended_rollouts=tuple(ended), assignments_kept=kept, alone=alone, dry_run=dry)


def _set(channel: str) -> str | None:
    """What it points to; None: nothing, or nobody can read what, and setting it mends that."""
    try:
        return dependencies().repository.channel(channel)
    except ImageError as error:
        log.warning("channel %s: %s", channel, error)
        return None


def retired() -> Container[str]:
    """Machines that are; none, where it cannot be told what was found of any."""
    found = _look()
    return found.retired if found is not None else ()


def _users() -> Mapping[str, int]:
    """Channel → how many machines boot it."""
    found = _look()
    return found.users if found is not None else users_of(dependencies().live.view().snapshot, ())


def _look() -> Look | None:
    """Where it cannot be told what was found of machines, channels are shown and set all the same."""
    try:
        return look(dependencies())
    except CannotTellError as error:
        log.warning("conditions: %s", error)
        return None


def _released(channel: str, *, force: bool) -> bool:
    """What rollouts that ended assigned is over. False: with `force`, where that cannot be written."""
    try:
        dependencies().rollouts.release(channel)
    except CannotTellError:
        if not force:
            raise
        return False
    return True


def _end_rollouts(channel: str, asked: Move, ended: list[int]) -> bool:
    """What rollouts would assign over what is set is ended first, so that none moves the channel back; their numbers
    are in `ended`. False: with `force`, where it cannot be told what they assigned."""
    deps = dependencies()
    try:
        deps.rollouts.refresh()
        under_way = [each for each in deps.rollouts.under_way() if each.channel == channel]
        if under_way and not asked.force:
            raise RolloutRefusedError(
                f"rollout {under_way[0].number} of channel {channel} is {under_way[0].state}: let it end or undo it; "
                "`force` ends it, and all machines of the channel boot what is set from their next boot on"
            )
        who = operator().who
        for each in under_way:
            if not asked.dry_run:
                deps.rollouts.change(
                    each.number,
                    lambda rollout, members: (
                        cancelled(rollout, f"channel set by {who}", deps.clock.now_ms()),
                        members,
                    ),
                    lambda *_: Note(deps.clock.now_ms(), who, "channel set"),
                )
            ended.append(each.number)
    except CannotTellError as error:
        if not asked.force:
            raise
        log.warning("rollouts of channel %s: %s", channel, error)
        return False
    return True
