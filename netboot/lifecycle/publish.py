"""From what is declared and what the store holds to the snapshot that is published. Pure but for the store's port."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from images.artifact.bundle import SiteBundle
from images.artifact.manifest import Manifest
from images.errors import CorruptError, ImageError, NotFoundError
from images.values.strict import Strict
from images.values.types import HttpUrl
from netboot.config import Config
from netboot.lifecycle.image_repository import ImageRepository
from netboot.lifecycle.rollout import Assigned
from netboot.lifecycle.snapshot import Assignment, BootWindow, ImageFacts, Snapshot
from netboot.machines.values import Channel, Inventory


class SiteFacts(Strict):
    """What the configuration adds to a snapshot."""

    site: str
    url: HttpUrl
    origins: tuple[HttpUrl, ...]
    kernel_from_origins: bool = False
    minimum_epoch: int = 0

    @classmethod
    def of(cls, config: Config) -> Self:
        """Those of a site."""
        return cls(
            site=config.site,
            url=config.provisioning.url,
            origins=config.all_origins,
            kernel_from_origins=config.kernel_from_origins,
            minimum_epoch=config.minimum_epoch,
        )


def compose(
    inventory: Inventory,
    repository: ImageRepository,
    facts: SiteFacts,
    now_ms: int,
    windows: Mapping[str, BootWindow] | None = None,
    absent: Callable[[str], str] | None = None,
    assigned: Mapping[str, Assigned] | None = None,
) -> Snapshot:
    """The snapshot of this moment: images only where the signature, every blob's size and the epoch are in order.

    `windows`: open boot windows by machine. `absent`: why an image is not here that upstream may have; None: there is
    no upstream. `assigned`: machine → what a rollout assigned to it; of one that left the channel, or where the
    inventory pins that, it is none.
    """
    channels: dict[str, str | None] = {}
    unusable: dict[str, str] = {}
    images: dict[str, ImageFacts] = {}
    for channel in inventory.channels:
        digest, fault = _channel(channel, repository, images, facts.minimum_epoch, absent)
        channels[channel.name] = digest
        if fault is not None:
            unusable[channel.name] = fault
    assignments = _assignments(inventory, assigned or {})
    faults = {
        digest: fault
        for digest in sorted({each.image for each in assignments.values()})
        if (fault := _resolved(digest, repository, images, facts.minimum_epoch, absent)) is not None
    }
    in_force = {*channels.values(), *(each.image for each in assignments.values())} - faults.keys()
    return Snapshot(
        site=facts.site,
        published_ms=now_ms,
        inventory=inventory,
        channels=channels,
        unusable=unusable,
        images={digest: image for digest, image in images.items() if digest in in_force},
        url=facts.url,
        origins=facts.origins,
        kernel_from_origins=facts.kernel_from_origins,
        windows=dict(windows or {}),
        assigned=assignments,
        unusable_images=faults,
    )


def _assignments(inventory: Inventory, assigned: Mapping[str, Assigned]) -> dict[str, Assignment]:
    """Of machines that still use the channel of which it was said, unless the inventory pins that."""
    pins = {channel.name for channel in inventory.channels if channel.image is not None}
    channels = {profile.name: profile.channel for profile in inventory.profiles} if assigned else {}
    return {
        machine.name: Assignment(image=said.image, rollout=said.rollout)
        for machine in (inventory.machines if assigned else ())
        if (said := assigned.get(machine.name)) is not None
        and said.channel == channels[machine.profile]
        and said.channel not in pins
    }


def assigned_before(published: Snapshot | None) -> dict[str, Assigned]:
    """What was assigned in a published snapshot."""
    if published is None or not published.assigned:
        return {}
    before = {profile.name: profile.channel for profile in published.inventory.profiles}
    channels = {machine.name: before[machine.profile] for machine in published.inventory.machines}
    return {
        name: Assigned(channels[name], said.image, said.rollout)
        for name, said in published.assigned.items()
        if name in channels
    }


def _channel(
    channel: Channel,
    repository: ImageRepository,
    images: dict[str, ImageFacts],
    minimum_epoch: int,
    absent: Callable[[str], str] | None,
) -> tuple[str | None, str | None]:
    """The image that machines of the channel get, and why the one that is set cannot be used; both None: none is set.

    `images`: those verified so far; this one is added.
    """
    try:
        digest = channel.image or repository.channel(channel.name)
    except ImageError as error:
        return None, str(error)
    if digest is None:
        return None, None
    fault = _resolved(digest, repository, images, minimum_epoch, absent)
    return (digest, None) if fault is None else (None, fault)


def _resolved(
    digest: str,
    repository: ImageRepository,
    images: dict[str, ImageFacts],
    minimum_epoch: int,
    absent: Callable[[str], str] | None,
) -> str | None:
    """Why an image cannot be used; None: it can, and is in `images` now."""
    try:
        if digest not in images:
            images[digest] = image_facts(digest, repository.verified(digest))
    except ImageError as error:
        if absent is not None and isinstance(error, NotFoundError | CorruptError):
            return absent(digest)
        return str(error)
    return _too_old(images[digest], minimum_epoch)


def fault_of(digest: str, repository: ImageRepository, minimum_epoch: int, *, fetched: bool = False) -> str | None:
    """Why an image cannot be used, in words; None: it can. `fetched`: one that is not here would be, from upstream."""
    return _resolved(digest, repository, {}, minimum_epoch, (lambda _: "") if fetched else None) or None


def image_facts(digest: str, manifest: Manifest) -> ImageFacts:
    """What the boot server must know of an image that was verified."""
    return ImageFacts(
        digest=digest,
        name=manifest.name,
        architecture=manifest.architecture,
        epoch=manifest.epoch,
        kernel=manifest.artifacts.kernel,
        initrd=manifest.artifacts.initrd,
        kernel_arguments=manifest.kernel_arguments,
        ram_mib=manifest.ram_mib,
    )


def _too_old(image: ImageFacts, minimum: int) -> str | None:
    if image.epoch >= minimum:
        return None
    return f"its epoch is {image.epoch}, below the site's minimum_epoch {minimum}: build a newer image"


def same(before: Snapshot | None, after: Snapshot) -> bool:
    """Whether publishing `after` would change nothing but the time."""
    return before is not None and before.model_copy(update={"published_ms": after.published_ms}) == after


def pinned(channels: Sequence[Channel]) -> list[str]:
    """Images that the inventory itself names."""
    return sorted({channel.image for channel in channels if channel.image is not None})


def differences(signed: SiteBundle, configured: SiteBundle) -> list[str]:
    """Where the signed bundle is not what the configuration says, in words."""
    is_now, should_be = signed.model_dump(mode="json"), configured.model_dump(mode="json")
    names = [name for name in SiteBundle.model_fields if name not in ("schema_", "issued")]
    return [
        f"{name} is {_shown(is_now[name])} in the bundle and {_shown(should_be[name])} in the configuration"
        for name in names
        if is_now[name] != should_be[name]
    ]


def _shown(value: object) -> str:
    if isinstance(value, list) and any("-----BEGIN" in str(item) for item in value):
        digests = (hashlib.sha256(str(item).encode()).hexdigest()[:12] for item in value)
        return ", ".join(f"certificate {digest}" for digest in digests)
    if value is None or value == []:
        return "nothing"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
