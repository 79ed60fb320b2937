"""From what is declared and what the store holds to the snapshot that is published. Pure but for the store's port."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Self

from images.artifact.bundle import SiteBundle
from images.artifact.manifest import Manifest
from images.errors import CorruptError, ImageError, NotFoundError
from images.values.strict import Strict
from images.values.types import HttpUrl
from netboot.config import Config
from netboot.lifecycle.image_repository import ImageRepository
from netboot.lifecycle.revocation import REVOKED
from netboot.lifecycle.rollout import Assigned
from netboot.lifecycle.snapshot import NO_REVOCATIONS, Assignment, BootWindow, ImageFacts, Revocations, Snapshot
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
    revocations: Revocations = NO_REVOCATIONS,
) -> Snapshot:
    """The snapshot of this moment: images only where the signature, every blob's size and the epoch are in order, and
    that are not revoked.

    `windows`: open boot windows by machine. `absent`: why an image is not here that upstream may have; None: there is
    no upstream. `assigned`: machine → what a rollout assigned to it; of one that left the channel, or where the
    inventory pins that, it is none.
    """
    usable = _Usable(repository, facts.minimum_epoch, revocations.images)
    channels: dict[str, str | None] = {}
    unusable: dict[str, str] = {}
    for channel in inventory.channels:
        digest, fault = _channel(channel, usable, absent)
        channels[channel.name] = digest
        if fault is not None:
            unusable[channel.name] = fault
    assignments = _assignments(inventory, assigned or {})
    faults = {
        digest: fault
        for digest in sorted({each.image for each in assignments.values()})
        if (fault := usable.fault(digest, absent)) is not None
    }
    in_force = {*channels.values(), *(each.image for each in assignments.values())} - faults.keys()
    return Snapshot(
        site=facts.site,
        published_ms=now_ms,
        inventory=inventory,
        channels=channels,
        unusable=unusable,
        images={digest: image for digest, image in usable.images.items() if digest in in_force},
        url=facts.url,
        origins=facts.origins,
        kernel_from_origins=facts.kernel_from_origins,
        windows=dict(windows or {}),
        assigned=assignments,
        unusable_images=faults,
        revocations=revocations,
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


class _Usable:
    """Looks at each image once. `images`: those verified so far."""

    def __init__(self, repository: ImageRepository, minimum_epoch: int, revoked: Collection[str]) -> None:
        self.repository, self._minimum_epoch, self._revoked = repository, minimum_epoch, frozenset(revoked)
        self.images: dict[str, ImageFacts] = {}

    def fault(self, digest: str, absent: Callable[[str], str] | None) -> str | None:
        """Why an image cannot be used; None: it can, and is in `images` now."""
        if digest in self._revoked:
            return REVOKED
        try:
            if digest not in self.images:
                self.images[digest] = image_facts(digest, self.repository.verified(digest))
        except ImageError as error:
            if absent is not None and isinstance(error, NotFoundError | CorruptError):
                return absent(digest)
            return str(error)
        return _too_old(self.images[digest], self._minimum_epoch)


def _channel(channel: Channel, usable: _Usable, absent: Callable[[str], str] | None) -> tuple[str | None, str | None]:
    """The image that machines of the channel get, and why what is set cannot be used; both None: none is set."""
    try:
        digest = channel.image or usable.repository.channel(channel.name)
    except ImageError as error:
        return None, str(error)
    if digest is None:
        return None, None
    fault = usable.fault(digest, absent)
    return (digest, None) if fault is None else (None, fault)


def fault_of(
    digest: str,
    repository: ImageRepository,
    minimum_epoch: int,
    revoked: Callable[[], Collection[str]],
    *,
    fetched: bool = False,
) -> str | None:
    """Why an image cannot be used, in words; None: it can. `fetched`: one that is not here would be, from upstream."""
    usable = _Usable(repository, minimum_epoch, revoked())
    return usable.fault(digest, (lambda _: "") if fetched else None) or None


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
    """Where the signed bundle is not what the configuration says, in words. Of revocations it says nothing."""
    is_now, should_be = signed.model_dump(mode="json"), configured.model_dump(mode="json")
    names = [name for name in SiteBundle.model_fields if name not in ("schema_", "issued", "images_revoked")]
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
