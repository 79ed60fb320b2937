"""`/v1/rollouts[/<number>[/<act>]]`: bringing a channel's machines to another image, a few at a time."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from pydantic import ValidationError

from images.errors import ImageError, NotFoundError
from images.values.faults import first_told
from images.values.strict import fields
from netboot.lifecycle.channels import declared, resolve
from netboot.lifecycle.errors import (
    BadClaimError,
    CannotTellError,
    ChannelPinnedError,
    NoSuchImageError,
    RolloutRefusedError,
)
from netboot.lifecycle.publish import image_facts
from netboot.lifecycle.revocation import refuse
from netboot.lifecycle.rollout import Fact, Rollout
from netboot.lifecycle.rollout_batch import most
from netboot.lifecycle.rollout_counts import Counts, counted
from netboot.lifecycle.rollout_facts import facts_of
from netboot.lifecycle.rollout_member import due
from netboot.lifecycle.rollout_orders import Wish, another, begin, partakers, paused, resumed, undone
from netboot.lifecycle.rollout_store import Change, Members, Note
from netboot.lifecycle.rollout_undo import no_way_back
from netboot.lifecycle.snapshot import Assignment, ImageFacts, Snapshot
from netboot.machines.strategy import Strategy
from netboot.machines.values import Channel
from netboot.web import render
from netboot.web.control_planes import of_control_planes, require_control_plane
from netboot.web.dependencies import dependencies
from netboot.web.kubelets import require_kubelet
from netboot.web.operators import audit, operator
from netboot.web.pages import by_number, written
from netboot.web.renewals import require_renewals
from netboot.web.rollout_members import page_of, with_orders
from netboot.web.rollout_shapes import (
    MOST,
    ControlPlaneMachines,
    MembersAsked,
    Order,
    RolloutActed,
    RolloutAsked,
    RolloutDetail,
    RolloutMembers,
    RolloutPlanned,
    Rollouts,
    RolloutsAsked,
    RolloutShown,
    RolloutStarted,
    Start,
)


def listed(query: RolloutsAsked) -> Rollouts:
    """The newest first."""
    found = dependencies().rollouts.listed(query.limit + 1, by_number(query))
    there = found[: query.limit]
    more = written(str(there[-1].rollout.number)) if len(found) > len(there) else None
    return Rollouts(rollouts=tuple(_view(each.rollout, each.counts) for each in there), next_page=more)


def shown(number: int, query: RolloutAsked) -> RolloutDetail:
    """One, with its machines and what was done to it."""
    store = dependencies().rollouts
    found = store.summed(number)
    everybody = page_of(store, number, MembersAsked())[0] if query.members else ()
    return render.grown(
        RolloutDetail,
        _view(found.rollout, found.counts),
        by_rack=found.by_rack.racks,
        members=with_orders(found.rollout, everybody),
        history=tuple(store.history(number, MOST)),
    )


def members(number: int, query: MembersAsked) -> RolloutMembers:
    """Its machines, in pages; those in some states alone."""
    store = dependencies().rollouts
    rollout = store.rollout(number)
    found, more = page_of(store, number, query)
    return RolloutMembers.model_construct(members=with_orders(rollout, found), next_page=more)


def told(number: int) -> RolloutShown:
    """One, without its machines: what an act on it may have been decided by."""
    found = dependencies().rollouts.summed(number)
    return _view(found.rollout, found.counts)


def started(body: Start) -> RolloutStarted | RolloutPlanned:
    """Begin one, or say what it would be."""
    deps = dependencies()  # nobody sets the channel meanwhile: it is what this acts on (ROUTES)
    view = deps.live.view()
    channel = declared(view.snapshot, body.channel)
    if channel.image is not None:
        place = deps.inventory_files.place("channel", body.channel)
        said = f"channel {body.channel} is pinned to {channel.image[:12]} in {place}"
        raise ChannelPinnedError(f"{said}, and its machines boot that: a rollout needs a channel that is not pinned")
    image = _image(body.image, view.snapshot)
    if (fault := deps.unusable(image.digest)) is not None:
        raise RolloutRefusedError(f"image {image.name} {image.digest[:12]} cannot be used: {fault}")
    strategy, who, named = _strategy(channel, body), operator().who, body.control_plane
    wish = Wish(body.channel, image, strategy, body.on_next_boot, who, body.reason, named)
    now, base = deps.clock.now_ms(), deps.points_to(body.channel)
    facts = _facts(view.snapshot, body.channel)
    rollout, members = begin(wish, view, deps.rollouts.assigned(), facts, base, now, of_control_planes(view))
    going = partakers(members)
    if not body.on_next_boot:
        require_renewals(view, going)
    require_control_plane(view, named)
    for there in deps.rollouts.under_way():
        if there.channel == body.channel:
            raise RolloutRefusedError(another(there))
    if not body.any_kubelet:
        require_kubelet(view, going, image)
    if body.dry_run:
        up = sum(name in facts and facts[name].up for name in going)
        return render.grown(RolloutPlanned, _view(rollout, counted(members)), up=up, dry_run=True)
    over = [said for said, meant in (("--any-kubelet", body.any_kubelet), ("--force", body.force)) if meant]
    words = [each for each in (body.reason, f"with {' and '.join(over)}" if over else "") if each]
    rollout = deps.rollouts.start(rollout, members, Note(now, wish.operator, "start", "; ".join(words)))
    with suppress(ImageError, CannotTellError):  # the controllers do it too, in a moment
        present = {image.digest for image in deps.repository.images()}
        deps.repository_writer.keep("rollouts", sorted(deps.rollouts.images() & present))
    about = {"rollout": rollout.number, "channel": rollout.channel, "over": over, "control_plane": sorted(named)}
    audit("rollout-start", about, reason=body.reason, before={"image": base}, after={"image": rollout.image})
    return render.grown(RolloutStarted, _view(rollout, counted(members)), dry_run=False)


def pause(number: int, body: Order) -> RolloutActed:
    """Nobody's turn comes any more."""
    return _ordered(number, "pause", body)


def resume(number: int, body: Order) -> RolloutActed:
    """It goes on."""
    return _ordered(number, "resume", body)


def undo(number: int, body: Order) -> RolloutActed:
    """Machines boot what they had."""
    return _ordered(number, "undo", body)


def _ordered(number: int, act: str, body: Order) -> RolloutActed:
    deps, who, did = dependencies(), operator().who, False
    was: dict[str, object] = {}

    def halted(rollout: Rollout, members: Members) -> tuple[Rollout, Members]:
        return paused(rollout, members, who)

    acts: dict[str, Change] = {"pause": halted, "resume": resumed, "undo": _brought_back}

    def note(before: Rollout, after: Rollout) -> Note | None:
        nonlocal did
        did = before != after
        was.update(state=before.state, undoing=before.undoing)
        return Note(deps.clock.now_ms(), who, act, body.reason) if did else None

    deps.rollouts.refresh()  # what was paused at another replica a moment ago is not running
    if body.dry_run:
        before = deps.rollouts.rollout(number)
        rollout, members = acts[act](before, deps.rollouts.members(number))
        note(before, rollout)
    else:
        rollout = deps.rollouts.change(number, acts[act], note)
        facts = {"rollout": number, "channel": rollout.channel}
        after = {"state": rollout.state, "undoing": rollout.undoing}
        audit(f"rollout-{act}", facts, reason=body.reason, before=was, after=after, changed=did)
        members = deps.rollouts.members(number)
    return render.grown(RolloutActed, _view(rollout, counted(members)), act=act, did=did, dry_run=body.dry_run)


def _brought_back(rollout: Rollout, members: Members) -> tuple[Rollout, Members]:
    """Undone, unless a machine would be given an image that does not boot."""
    deps = dependencies()
    back = undone(rollout, members)
    if why := no_way_back(rollout, members, deps.unusable):
        raise RolloutRefusedError(why)
    return back


def _image(reference: str, snapshot: Snapshot) -> ImageFacts:
    repository = dependencies().repository
    digest = resolve(repository.images(), reference).digest
    refuse(digest, snapshot, repository)
    try:
        return image_facts(digest, repository.verified(digest))
    except NotFoundError as error:
        raise NoSuchImageError(str(error)) from None


def _strategy(channel: Channel, body: Start) -> Strategy:
    by_channel = (channel.strategy or Strategy()).model_dump()
    try:
        return Strategy.model_validate(by_channel | body.strategy)
    except ValidationError as error:
        fault = first_told(error, partial(fields, Strategy))
        raise BadClaimError(fault.message, field=f"strategy.{fault.key}") from None


def _facts(snapshot: Snapshot, channel: str) -> dict[str, Fact]:
    profiles = {profile.name for profile in snapshot.inventory.profiles if profile.channel == channel}
    names = [machine.name for machine in snapshot.inventory.machines if machine.profile in profiles]
    return facts_of(snapshot, channel, names, dependencies().conditions.judged(names), {})


def _view(rollout: Rollout, counts: Counts) -> RolloutShown:
    """With what follows from its machines."""
    return render.grown(
        RolloutShown,
        rollout,
        machines=counts.machines,
        of=counts.of,
        racks=counts.racks,
        domains=counts.domains,
        control_plane=ControlPlaneMachines(named=counts.named, kept=counts.kept),
        most=most(rollout, counts.going, lambda: counts.largest),
        to_reboot=tuple(due(rollout, counts.assigned, _published())),
    )


def _published() -> Mapping[str, Assignment]:
    """What boot servers know of assignments: nobody is rebooted before they do."""
    try:
        return dependencies().live.view().snapshot.assigned
    except CannotTellError:
        return {}
