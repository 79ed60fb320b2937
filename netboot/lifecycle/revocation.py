"""Images that are revoked: which, who may not use them, and whom it would leave without one. Pure but for the ports.

What is in force is what the newest signed site bundle says that was ever seen here. A bundle that is gone, damaged or
older than that takes no revocation back.
"""

from collections.abc import Container, Mapping

from images.artifact.bundle import SiteBundle
from images.errors import ImageError
from images.values.strict import Strict
from images.values.types import Sha256
from netboot.lifecycle.bootid import is_of
from netboot.lifecycle.errors import RevokedImageError
from netboot.lifecycle.image_repository import ImageRepository
from netboot.lifecycle.rollout_facts import why_gone
from netboot.lifecycle.snapshot import Revocations, Snapshot
from netboot.lifecycle.state import MachineState
from netboot.machines.values import Channel

REVOKED = "it is revoked at this site: `netboot image revocations` says why"


def in_force(known: Revocations, bundle: SiteBundle | None) -> Revocations:
    """After a look at the bundle; `known`: before it."""
    if bundle is None or bundle.issued < known.issued:
        return known
    issued = bundle.issued if bundle.images_revoked else 0
    return Revocations(issued=issued, images=bundle.images_revoked)


def looked_up(known: Revocations, repository: ImageRepository) -> Revocations:
    """The same, with the bundle of the store as it is now; one that cannot be believed is none."""
    try:
        return in_force(known, repository.bundle())
    except ImageError:
        return known


def refuse(digest: str, snapshot: Snapshot, repository: ImageRepository) -> None:
    """Let nobody be given a revoked image.

    Raises:
        RevokedImageError: it is one.
    """
    if digest in looked_up(snapshot.revocations, repository).images:
        raise RevokedImageError(f"image {digest[:12]} cannot be used: {REVOKED}")


class UsedChannel(Strict):
    """A channel that gives the image to machines. `image`: what it points to; `pinned`: by the inventory;
    `assigned`: machines to which a rollout assigned it."""

    name: str
    image: str
    pinned: bool
    assigned: int


class Uses(Strict):
    """Who has to do with an image. `boots`: machines that boot it next, and are neither disabled nor retired; `runs`:
    those that boot or run it now."""

    image: Sha256
    channels: tuple[UsedChannel, ...]
    boots: tuple[str, ...]
    runs: tuple[str, ...]


def uses(
    digest: str,
    snapshot: Snapshot,
    repository: ImageRepository,
    states: Mapping[str, MachineState],
    retired: Container[str],
) -> Uses:
    """By what is set and assigned, whether it can be used or not. `retired`: names of machines that are."""
    pointed = {each.name: _pointed(each, repository) for each in snapshot.inventory.channels}
    profiles = {profile.name: profile.channel for profile in snapshot.inventory.profiles}
    boots, assigned = list[str](), dict[str, int]()
    for machine in snapshot.inventory.machines:
        channel, said = profiles[machine.profile], snapshot.assigned.get(machine.name)
        if (said.image if said is not None else pointed[channel]) != digest:
            continue
        if not why_gone(machine, channel, profiles, retired=machine.name in retired):
            boots.append(machine.name)
        if said is not None:
            assigned[channel] = assigned.get(channel, 0) + 1
    channels = [
        UsedChannel(
            name=each.name,
            image=pointed[each.name] or "",
            pinned=each.image is not None,
            assigned=assigned.get(each.name, 0),
        )
        for each in snapshot.inventory.channels
        if pointed[each.name] == digest or each.name in assigned
    ]
    runs = [
        name
        for name, state in sorted(states.items())
        for boot in (state.current, state.pending)
        if boot is not None and is_of(boot.boot, digest, boot.script.image if boot.script is not None else None)
    ]
    return Uses(image=digest, channels=tuple(channels), boots=tuple(boots), runs=tuple(dict.fromkeys(runs)))


def _pointed(channel: Channel, repository: ImageRepository) -> str | None:
    try:
        return channel.image or repository.channel(channel.name)
    except ImageError:  # what it points to nobody can tell: its machines boot nothing
        return None
