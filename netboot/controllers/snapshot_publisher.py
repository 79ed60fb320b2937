"""The publisher: the only author of `data/snapshot.json`. Inventory, channels and images in; one consistent view out.

What of the inventory is in force, `netboot.controllers.inventory` says; over a restart it is taken from the published
file. Channels and images are looked at on their own account: they move on beside a broken edit.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from images.errors import BusyError, ImageError
from images.values.strict import FaultsError
from netboot.config import Config
from netboot.controllers.assignments import Assignments
from netboot.controllers.changes import Changes
from netboot.controllers.decisions import AT_HAND
from netboot.controllers.inventory import InventoryInForce
from netboot.lifecycle import publish, revocation
from netboot.lifecycle.errors import CannotTellError, NotReadyError, StateUnavailableError
from netboot.lifecycle.image_repository import ImageRepository, ImageRepositoryWriter
from netboot.lifecycle.ports import Clock, States
from netboot.lifecycle.snapshot import NO_REVOCATIONS, BootWindow, Snapshot
from netboot.lifecycle.upstream import fetching
from netboot.logs import Trouble
from netboot.machines.former import present_names
from netboot.machines.values import Inventory
from netboot.status import Condition
from netboot.status.controllers import ImagesStatus, PublisherStatus
from netboot.stores.renamed import Renamed
from netboot.stores.said_enrolments import changes_of
from netboot.stores.snapshot import read_snapshot, write_snapshot

log = logging.getLogger(__name__)

RECHECK_SECONDS = 15.0
"""What is in force is composed anew this often, whether anything looks changed or not."""
BOOTS_LOOKED_AT = 500
Windows = Callable[[Inventory, int], Mapping[str, BootWindow]]


class SnapshotPublisher:
    """`step` as often as you like; it costs a few `stat`s where nothing changed."""

    def __init__(
        self,
        config: Config,
        repository: ImageRepository,
        repository_writer: ImageRepositoryWriter,
        states: States,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        windows: Windows | None = None,
        *,
        in_background: bool = False,
        upstream: Callable[[], Mapping[str, str]] | None = None,
        assignments: Assignments | None = None,
    ) -> None:
        """`in_background`: read the inventory's files in a thread, so that `step` returns soon while there is one in
        force. `windows(inventory, now_ms)`: the open boot windows by machine, or CannotTellError; None: there are none.
        `upstream()`: digests of images that are not here, and why; None: none are fetched from anywhere.
        `assignments` None: there are no rollouts."""
        self._config, self._states = config, states
        self._repository, self._repository_writer = repository, repository_writer
        self._clock, self._monotonic = clock, monotonic
        self._path = config.data / "snapshot.json"
        self._store_changes = Changes(self._store_files, by_content=False)
        self._enrolled = changes_of(config)
        self._assignments = assignments
        self._windows_of = windows
        self._windows_trouble = Trouble(log, "boot windows", "boot windows: they can be told again")
        self._references = Trouble(log, "references of boots are not written", "references of boots are written again")
        self._upstream, self._absent = upstream, dict[str, str]()
        self._at_hand: list[Snapshot] = _last(self._path)
        """What was published last, and before it: boots under way had their scripts by that one, and it is freed here
        (`netboot.controllers.decisions`)."""
        before = self.published.inventory if self.published else None
        self._inventory = InventoryInForce(config, before, monotonic, clock.now_ms, in_background=in_background)
        self._renamed = Renamed(config.data, monotonic, present_names(before) if before else {})
        self._composed = float("-inf")
        self._due: bool = True
        self._trouble = Trouble(log, "snapshot", "snapshot: it is written again", logging.ERROR)

    @property
    def valid(self) -> bool:
        """Whether the inventory's files, as they are now, are in force."""
        return self._inventory.valid

    @property
    def published(self) -> Snapshot | None:
        """What was published last."""
        return self._at_hand[0] if self._at_hand else None

    def inventory(self) -> Inventory | None:
        """What is in force; None: nothing yet."""
        return self._inventory.value

    def step(self, *, now: bool = False) -> bool:
        """Look, and publish where something changed; whether something was published. `now`: do not wait for files
        to settle, and take nothing for unchanged (SIGHUP)."""
        if self._inventory.step(now=now):
            self._due = True
        if self._store_changes.settled(now=True) or self._monotonic() - self._composed >= RECHECK_SECONDS or now:
            self._due = True
        if self._windows_of is not None and self._enrolled.changed():
            self._enrolled.taken()
            self._due = True
        if self._assignments is not None and self._assignments.changed():
            self._due = True
        if self._upstream is not None and (absent := dict(self._upstream())) != self._absent:
            self._absent, self._due = absent, True
        if not self._due or self._inventory.value is None:
            return False
        return self._publish(self._inventory.value)

    def _publish(self, inventory: Inventory) -> bool:
        facts = publish.SiteFacts.of(self._config)
        now = self._clock.now_ms()
        absent = self._why_absent if self._upstream is not None else None
        windows = self._windows(inventory, now)
        assigned = self._assignments.assigned(self.published) if self._assignments is not None else {}
        known = self.published.revocations if self.published is not None else NO_REVOCATIONS
        revoked = revocation.looked_up(known, self._repository)
        snapshot = publish.compose(inventory, self._repository, facts, now, windows, absent, assigned, revoked)
        self._composed = self._monotonic()
        same = publish.same(self.published, snapshot)
        try:
            self._renamed.carry(present_names(inventory))
            if not same:
                write_snapshot(self._path, snapshot)
        except (OSError, StateUnavailableError) as error:
            why = f"{self._path} cannot be written: {error.strerror}" if isinstance(error, OSError) else str(error)
            self._trouble.note(f"{why}; what was published before stays in force")
            return False
        self._trouble.note(None)
        if not same:
            _tell(self.published, snapshot)
            self._at_hand = [snapshot, *self._at_hand][:AT_HAND]
        self._due = False
        self._inventory.published()
        return not same

    def _why_absent(self, digest: str) -> str:
        assert self._config.upstream is not None
        return self._absent.get(digest) or fetching(self._config.upstream.place)

    def _windows(self, inventory: Inventory, now_ms: int) -> Mapping[str, BootWindow]:
        """Those that are open. Where that cannot be told, those of before: they end by themselves, and join asks again
        before it believes in any."""
        if self._windows_of is None:
            return {}
        try:
            windows = self._windows_of(inventory, now_ms)
        except CannotTellError as error:
            self._windows_trouble.note(str(error))
            return self.published.windows if self.published is not None else {}
        self._windows_trouble.note(None)
        return windows

    def protect(self) -> None:
        """Tell the store which images must outlive garbage collection: of boots, of rollouts, and those that the
        inventory pins."""
        channels = self._inventory.value.channels if self._inventory.value is not None else ()
        try:
            present = {image.digest for image in self._repository.images()}
            self._repository_writer.keep("inventory", [image for image in publish.pinned(channels) if image in present])
            self._repository_writer.keep("boots", sorted(self._states.images(BOOTS_LOOKED_AT) & present))
            if self._assignments is not None:
                self._repository_writer.keep("rollouts", sorted(self._assignments.images() & present))
        except BusyError as error:
            log.debug("references: %s", error)
        except (ImageError, CannotTellError) as error:
            self._references.note(str(error))
        else:
            self._references.note(None)

    def status(self) -> PublisherStatus:
        """For `/readyz` and metrics."""
        return PublisherStatus(
            at_ms=self._clock.now_ms(),
            inventory=self._inventory.status(self._trouble.problem),
            images=self._images_status(),
            bundle=self._bundle_status(),
        )

    def _images_status(self) -> ImagesStatus:
        unusable = self.published.unusable if self.published is not None else {}
        assigned = self.published.unusable_images if self.published is not None else {}
        if not unusable and not assigned:
            return ImagesStatus(ok=True, message="every channel that is set can be used", unusable={})
        said = [f"the images of {', '.join(sorted(unusable))}"] if unusable else []
        said += [f"image {digest[:12]}, which a rollout assigned ({why})" for digest, why in sorted(assigned.items())]
        remedy = "set the channel to a usable image" + ("; `--force` ends its rollout" if assigned else "")
        return ImagesStatus(ok=False, message=f"cannot be used: {'; '.join(said)}", unusable=unusable, remedy=remedy)

    def _bundle_status(self) -> Condition:
        remedy = "run `netboot config bundle`, where the private key is"
        try:
            bundle = self._repository.bundle()
        except ImageError as error:
            return Condition(ok=False, message=f"the site bundle: {error}", remedy=remedy)
        if bundle is None:
            message = "there is no signed site bundle: machines will wait for one"
            return Condition(ok=False, message=message, remedy=remedy)
        try:
            differences = publish.differences(bundle, self._config.site_bundle(bundle.issued))
        except FaultsError as error:
            return Condition(ok=False, message=f"the site bundle: {error}", remedy="see `netboot config check`")
        if self.published is not None and bundle.issued < self.published.revocations.issued:
            differences.append("it is older than one that revoked images, which stay revoked")
        message = "; ".join(differences) or "fits the configuration"
        return Condition(ok=not differences, message=message, remedy=remedy)

    def _store_files(self) -> Iterable[Path]:
        root = self._config.store
        yield from (root / "channels").glob("*.json")
        yield from self._config.keys.glob("*.pub")
        yield root / "images"
        yield root / "site" / "bundle.json"
        for image in self.published.images.values() if self.published is not None else ():
            yield root / "images" / image.digest / "manifest.json"
            yield root / "blobs" / image.kernel.sha256
            yield root / "blobs" / image.initrd.sha256


def _last(path: Path) -> list[Snapshot]:
    try:
        return [read_snapshot(path)]
    except NotReadyError as error:
        if path.exists():
            log.warning("snapshot: %s; it is made anew from the inventory", error)
        return []


def _tell(before: Snapshot | None, now: Snapshot) -> None:
    log.info("published: %d machines, %d channels", len(now.inventory.machines), len(now.channels))
    known = before.unusable if before is not None else {}
    for channel, why in now.unusable.items():
        if known.get(channel) != why:
            log.error("channel %s cannot be used: %s", channel, why)
    before_images = before.unusable_images if before is not None else {}
    for digest, why in now.unusable_images.items():
        if before_images.get(digest) != why:
            log.error("image %s, which a rollout assigned, cannot be used: %s", digest[:12], why)
    for channel in known.keys() - now.unusable.keys():
        log.warning("channel %s can be used again", channel)
