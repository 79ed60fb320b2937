"""Channels, as operators see and move them."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Literal

from images.artifact.manifest import Manifest
from images.errors import CorruptError, NotFoundError
from images.values.strict import Strict
from netboot.lifecycle.errors import ChannelPinnedError, NoSuchChannelError, NoSuchImageError, UnfitImageError
from netboot.lifecycle.image_repository import ImageRepository, ListedImage
from netboot.lifecycle.revocation import refuse
from netboot.lifecycle.rollout_facts import why_gone
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.fit import Candidate, misfits
from netboot.machines.values import Channel

LEAST_PREFIX = 4
"""Digits of a digest that are enough, where they are of one image only."""


class ChannelState(Strict):
    """Where a channel points. `image`: what is set; `in_force`: what machines get; `unusable`: why not the former."""

    name: str
    description: str = ""
    pinned: bool = False
    image: str | None = None
    image_name: str | None = None
    in_force: str | None = None
    unusable: str | None = None
    machines: int = 0
    """How many machines boot it: those that use it, and are neither disabled nor retired."""
    source: Literal["inventory", "store"] = "store"


def users_of(snapshot: Snapshot, retired: Container[str]) -> dict[str, int]:
    """Channel → how many machines boot it; without those that none boots. `retired`: names of those that are."""
    of_profile = {profile.name: profile.channel for profile in snapshot.inventory.profiles}
    users: dict[str, int] = {}
    for machine in snapshot.inventory.machines:
        channel = of_profile[machine.profile]
        if not why_gone(machine, channel, of_profile, retired=machine.name in retired):
            users[channel] = users.get(channel, 0) + 1
    return users


def channel_states(snapshot: Snapshot, repository: ImageRepository, users: Mapping[str, int]) -> list[ChannelState]:
    """Every declared channel, in the order of the inventory. `users`: see `users_of`."""
    names = {image.digest: image.name for image in repository.images()}
    return [
        _state(channel, snapshot, _where(channel, repository), names, users) for channel in snapshot.inventory.channels
    ]


def _state(
    channel: Channel, snapshot: Snapshot, image: str | None, names: dict[str, str], users: Mapping[str, int]
) -> ChannelState:
    return ChannelState(
        name=channel.name,
        description=channel.description,
        pinned=channel.image is not None,
        image=image,
        image_name=names.get(image) if image else None,
        in_force=snapshot.channels.get(channel.name),
        unusable=snapshot.unusable.get(channel.name),
        machines=users.get(channel.name, 0),
        source="inventory" if channel.image is not None else "store",
    )


def _where(channel: Channel, repository: ImageRepository) -> str | None:
    try:
        return channel.image or repository.channel(channel.name)
    except CorruptError:
        return None  # the snapshot's `unusable` says so


def declared(snapshot: Snapshot, name: str) -> Channel:
    """The declaration of a channel.

    Raises:
        NoSuchChannelError: naming those that there are.
    """
    for channel in snapshot.inventory.channels:
        if channel.name == name:
            return channel
    names = ", ".join(channel.name for channel in snapshot.inventory.channels) or "none at all"
    raise NoSuchChannelError(f"the inventory declares no such channel; declared: {names}")


def resolve(images: Sequence[ListedImage], reference: str) -> ListedImage:
    """The image that an operator means: by digest, by the beginning of one, or by name (the newest of that name).

    Raises:
        NoSuchImageError: nothing, or more than one, is meant.
    """
    named = [image for image in images if image.name == reference]
    if named:
        return max(named, key=lambda image: image.added_ms)
    matching = [image for image in images if len(reference) >= LEAST_PREFIX and image.digest.startswith(reference)]
    if len(matching) > 1:
        raise NoSuchImageError(f"{len(matching)} images begin with {reference}: give more digits")
    if not matching:
        names = ", ".join(sorted({image.name for image in images})) or "none yet; build one with `netboot image build`"
        raise NoSuchImageError(f"no image of the store has that name or digest; images: {names}")
    return matching[0]


def move(
    snapshot: Snapshot,
    repository: ImageRepository,
    point: Callable[[str, str], object] | None,
    name: str,
    reference: str,
    pinned_at: str,
    users: Mapping[str, int],
    *,
    force: bool = False,
    first: Callable[[], None] = lambda: None,
) -> ChannelState:
    """Let a channel point to an image that machines may boot. `pinned_at`: where the inventory declares the channel.
    `force`: whatever the architecture of its machines is. `first()`: called once it is sure that it may, before it is.
    `point(channel, image)`: moves it; None: nothing is written, and the channel is given as it would be. `users`: see
    `users_of`.

    Raises:
        NoSuchChannelError, NoSuchImageError, ChannelPinnedError: see there.
        RevokedImageError: whatever is forced. UnfitImageError: machines of another architecture use the channel.
        images.errors.ImageError: the image cannot be used (signature, missing or damaged blobs), or the store is busy.
    """
    channel = declared(snapshot, name)
    if channel.image is not None:
        raise ChannelPinnedError(f"channel {name} is pinned to {channel.image[:12]} in {pinned_at}: edit it there")
    image = resolve(repository.images(), reference)
    refuse(image.digest, snapshot, repository)
    try:
        manifest = repository.verified(image.digest)
    except NotFoundError as error:
        raise NoSuchImageError(str(error)) from None
    if not force:
        _fits(snapshot, name, manifest)
    first()
    if point is not None:
        point(name, image.digest)
    states = {state.name: state for state in channel_states(snapshot, repository, users)}
    return states[name].model_copy(update={"image": image.digest, "image_name": image.name})


def _fits(snapshot: Snapshot, channel: str, manifest: Manifest) -> None:
    """By what the service knows of an image: memory and drivers the command line judges, which can run a shell."""
    found = misfits(snapshot.inventory, channel, Candidate(manifest.name, manifest.architecture))
    refused = [str(misfit) for misfit in found if misfit.outcome == "refuse"]
    if refused:
        raise UnfitImageError("\n".join(refused))
