"""The publisher on real files: what is published, what stays in force, what it says about it."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from images.artifact.keyring import KeyRing
from images.artifact.signing import SigningKey
from images.errors import BusyError
from images.store.store import Store
from netboot.config import Config
from netboot.config_outside import UpstreamPlace
from netboot.controllers.assignments import Assignments
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.join.enrolment import Act, OpenWindow
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.publish import fault_of
from netboot.lifecycle.published import image_of
from netboot.lifecycle.rollout import Member
from netboot.lifecycle.rollout_store import Note
from netboot.lifecycle.snapshot import Assignment, BootWindow, Revocations, Snapshot
from netboot.lifecycle.state import Batch
from netboot.lifecycle.upstream import missing
from netboot.machines.values import Inventory
from netboot.status import Condition
from netboot.status.controllers import InventoryStatus
from netboot.stores.commits import Commits
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.rollouts import SqliteRollouts, make
from netboot.stores.snapshot import read_snapshot
from tests.records import event, script
from tests.rollouts import rollout
from tests.sites import INVENTORY, add_image, make_site
from tests.states import MemoryStates


class Fixed:
    """A clock that stands still."""

    def now_ms(self) -> int:
        return 1_700_000_000_000


class Kept:
    """A site and its publisher."""

    def __init__(self, root: Path) -> None:
        self.config: Config = make_site(root / "site")
        self.config.data.mkdir()
        self.store = Store(self.config.store)
        self.states = MemoryStates()
        self.now = 0.0
        self.publisher = self.again()

    def again(self) -> SnapshotPublisher:
        repository = StoreImageRepository(self.store, KeyRing(self.config.keys))
        self.publisher = SnapshotPublisher(
            self.config, repository, repository, self.states, Fixed(), monotonic=lambda: self.now
        )
        return self.publisher

    @property
    def file(self) -> Path:
        return self.config.inventory / "site.yaml"

    def published(self) -> Snapshot:
        return read_snapshot(self.config.data / "snapshot.json")

    def look(self) -> bool:
        """Twice, for an edit counts when it has settled; whether something was published."""
        return any([self.publisher.step(), self.publisher.step()])


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path)


def test_the_first_look_publishes_and_the_next_changes_nothing(kept: Kept) -> None:
    assert kept.publisher.step()
    before = (kept.config.data / "snapshot.json").stat().st_ino
    assert not kept.look()
    kept.now += 3600
    assert not kept.look()
    assert (kept.config.data / "snapshot.json").stat().st_ino == before
    snapshot = kept.published()
    assert [machine.name for machine in snapshot.inventory.machines] == ["gpu-001", "gpu-002", "off-001"]
    assert (snapshot.channels, snapshot.unusable) == ({"stable": None}, {})
    assert snapshot.url == kept.config.provisioning.url


def test_an_edit_is_published_when_it_has_settled(kept: Kept) -> None:
    kept.publisher.step()
    kept.file.write_text(INVENTORY.replace("gpu-002", "gpu-020"))
    assert not kept.publisher.step()
    kept.file.write_text(INVENTORY.replace("gpu-002", "gpu-0200"))
    assert not kept.publisher.step()
    assert kept.publisher.step()
    assert kept.published().inventory.machines[1].name == "gpu-0200"


def test_on_a_signal_an_edit_is_published_at_once(kept: Kept) -> None:
    kept.publisher.step()
    kept.file.write_text(INVENTORY.replace("gpu-002", "gpu-020"))
    assert kept.publisher.step(now=True)


def test_a_broken_edit_leaves_the_old_one_in_force_and_says_so(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    kept.publisher.step()
    kept.file.write_text(INVENTORY.replace("profile: compute}", "profile: copmute}", 1))
    with caplog.at_level(logging.ERROR):
        assert not kept.look()
        assert not kept.look()
    fault = f"{kept.file}:2: machines[0].profile: no profile is named 'copmute'; did you mean 'compute'?"
    assert [record.getMessage() for record in caplog.records] == [
        "inventory: 1 faults; the one before stays in force",
        "inventory: a fault",
    ]
    assert caplog.records[1].fields == {"machine": "gpu-001", "fault": fault}  # type: ignore[attr-defined]
    assert kept.publisher.status().inventory == InventoryStatus(
        ok=False,
        valid=False,
        message="1 faults; the one before stays in force",
        faults=(fault,),
        remedy="run `netboot config check`",
    )
    kept.file.write_text(INVENTORY)
    kept.look()
    assert kept.publisher.status().inventory == InventoryStatus(ok=True, valid=True, message="in force")


def test_a_broken_inventory_over_a_restart(kept: Kept) -> None:
    kept.publisher.step()
    digest = add_image(kept.config)
    kept.file.write_text("machines: [")
    kept.again()
    kept.publisher.step()
    assert not kept.publisher.valid
    kept.store.set_channel("stable", digest)
    assert kept.publisher.step()
    assert kept.published().channels == {"stable": digest}
    assert len(kept.published().inventory.machines) == 3


def test_without_any_usable_inventory_nothing_is_published(kept: Kept) -> None:
    kept.file.write_text("machines: [")
    assert not kept.publisher.step()
    assert not (kept.config.data / "snapshot.json").exists()
    assert kept.publisher.status().inventory.message == "1 faults; nothing is in force"


def test_a_channel_that_is_set_is_in_force_with_the_facts_of_its_image(kept: Kept) -> None:
    kept.publisher.step()
    digest = add_image(kept.config)
    kept.store.set_channel("stable", digest)
    assert kept.publisher.step()
    snapshot = kept.published()
    assert snapshot.channels == {"stable": digest}
    assert snapshot.images[digest].name == "tiny"
    assert snapshot.images[digest].kernel_arguments == ("console=ttyS0",)


def unusable(kept: Kept) -> str:
    """Why the image of `stable` cannot be used; it is not in force then."""
    snapshot = kept.published()
    assert (snapshot.channels, snapshot.images) == ({"stable": None}, {})
    assert kept.publisher.status().images.unusable == snapshot.unusable
    return snapshot.unusable["stable"]


def test_an_image_signed_by_a_stranger_is_not_admitted(kept: Kept) -> None:
    stranger = SigningKey.generate()
    kept.store.set_channel("stable", add_image(kept.config, key=stranger))
    kept.publisher.step()
    assert unusable(kept) == f"signed by key {stranger.public.id}, which is not trusted here (see `netboot key list`)"


def test_a_signature_that_does_not_fit_is_not_admitted(kept: Kept) -> None:
    digest, other = add_image(kept.config), add_image(kept.config, salt="other")
    folder = kept.config.store / "images"
    (folder / digest / "manifest.sig").unlink()
    (folder / digest / "manifest.sig").write_bytes((folder / other / "manifest.sig").read_bytes())
    kept.store.set_channel("stable", digest)
    kept.publisher.step()
    assert unusable(kept).endswith("does not fit: altered after it was signed")


@pytest.mark.parametrize(("part", "words"), [("kernel", "is missing"), ("root", "has 5 bytes, 1300 were signed")])
def test_an_image_whose_blobs_are_not_whole_is_not_admitted(kept: Kept, part: str, words: str) -> None:
    digest = add_image(kept.config)
    blob = kept.store.blob_path(getattr(kept.store.manifest(digest).artifacts, part).sha256)
    blob.unlink()
    if part == "root":
        blob.write_bytes(b"short")
    kept.store.set_channel("stable", digest)
    kept.publisher.step()
    assert f"{part}: blob {blob.name[:12]} {words}" in unusable(kept)


def test_an_image_below_the_minimum_epoch_is_not_admitted(kept: Kept) -> None:
    kept.config = kept.config.model_copy(update={"minimum_epoch": 3})
    kept.store.set_channel("stable", add_image(kept.config, epoch=2))
    kept.again().step()
    assert unusable(kept) == "its epoch is 2, below the site's minimum_epoch 3: build a newer image"
    kept.store.set_channel("stable", add_image(kept.config, epoch=3, salt="newer"))
    assert kept.publisher.step()
    assert kept.published().unusable == {}


def test_a_retired_key_stops_its_images(kept: Kept) -> None:
    ring = KeyRing(kept.config.keys)
    old = ring.infos()[0].id
    kept.store.set_channel("stable", add_image(kept.config))
    kept.publisher.step()
    assert kept.published().unusable == {}
    ring.rotate()
    ring.retire(old)
    assert kept.publisher.step()
    assert unusable(kept).startswith(f"signed by key {old}, which is not trusted here")


def test_a_file_that_is_no_key_stops_nothing(kept: Kept) -> None:
    kept.store.set_channel("stable", add_image(kept.config))
    kept.publisher.step()
    (kept.config.keys / "notes.pub").write_text("not a key\n")
    kept.now += 60
    kept.look()
    assert kept.published().unusable == {}


def test_a_blob_that_goes_missing_later_is_noticed(kept: Kept) -> None:
    digest = add_image(kept.config)
    kept.store.set_channel("stable", digest)
    kept.publisher.step()
    kept.store.blob_path(kept.store.manifest(digest).artifacts.kernel.sha256).unlink()
    assert kept.publisher.step()
    assert "is missing" in unusable(kept)


def test_a_snapshot_that_cannot_be_written_is_tried_again(kept: Kept) -> None:
    target = kept.config.data / "snapshot.json"
    target.mkdir()
    assert not kept.publisher.step()
    assert not kept.publisher.status().inventory.ok
    target.rmdir()
    assert kept.publisher.step()
    assert kept.publisher.status().inventory.ok


def test_the_bundle_must_fit_the_configuration(kept: Kept) -> None:
    assert kept.publisher.status().bundle.ok
    kept.config = kept.config.model_copy(update={"minimum_epoch": 4, "origins": ("http://192.0.2.1",)})
    said = kept.again().status().bundle
    url = kept.config.provisioning.url
    assert said == Condition(
        ok=False,
        message=f"minimum_epoch is 0 in the bundle and 4 in the configuration; origins is {url} in the bundle and "
        f"http://192.0.2.1, {url} in the configuration",
        remedy="run `netboot config bundle`, where the private key is",
    )
    (kept.config.store / "site" / "bundle.json").unlink()
    assert kept.publisher.status().bundle.message == "there is no signed site bundle: machines will wait for one"


def sign(kept: Kept, issued: int, *revoked: str) -> None:
    """The site bundle of this moment."""
    data = kept.config.site_bundle(issued, revoked).to_bytes()
    kept.store.set_bundle(data, KeyRing(kept.config.keys).signing_key().sign(data))


def test_a_revoked_image_is_not_admitted_until_a_newer_bundle_takes_it_back(kept: Kept) -> None:
    digest, issued = add_image(kept.config), 1_700_000_000
    kept.store.set_channel("stable", digest)
    kept.publisher.step()
    assert kept.published().channels == {"stable": digest}
    assert "revocations" not in (kept.config.data / "snapshot.json").read_text()
    sign(kept, issued + 10, digest)
    assert kept.publisher.step()
    assert unusable(kept) == "it is revoked at this site: `netboot image revocations` says why"
    assert kept.published().revocations == Revocations(issued=issued + 10, images=(digest,))
    assert kept.publisher.status().bundle.ok
    sign(kept, issued + 11)
    assert kept.publisher.step()
    assert kept.published().channels == {"stable": digest}
    assert kept.published().revocations == Revocations()


def test_no_bundle_that_is_older_damaged_a_strangers_or_gone_takes_a_revocation_back(kept: Kept) -> None:
    digest, issued = add_image(kept.config), 1_700_000_000
    kept.store.set_channel("stable", digest)
    sign(kept, issued + 10, digest)
    kept.publisher.step()
    before = kept.published()
    sign(kept, issued)  # replayed
    kept.again().step()
    assert kept.publisher.status().bundle == Condition(
        ok=False,
        message="it is older than one that revoked images, which stay revoked",
        remedy="run `netboot config bundle`, where the private key is",
    )
    data = kept.config.site_bundle(issued + 11).to_bytes()
    kept.store.set_bundle(data, SigningKey.generate().sign(data))
    kept.again().step()
    (kept.config.store / "site" / "bundle.json").chmod(0o644)
    (kept.config.store / "site" / "bundle.json").write_text("{")
    kept.again().step()
    (kept.config.store / "site" / "bundle.json").unlink()
    kept.again().step()
    assert kept.published().model_copy(update={"published_ms": before.published_ms}) == before


def test_images_of_boots_and_of_pinned_channels_outlive_garbage_collection(kept: Kept) -> None:
    booted, pinned = add_image(kept.config), add_image(kept.config, salt="pinned")
    kept.file.write_text(INVENTORY + f"  - {{name: frozen, image: {pinned}}}\n")
    kept.publisher.step()
    claim = script("gpu-001", 1).model_copy(update={"image": booted})
    gone = script("gpu-002", 1).model_copy(update={"image": "f" * 64})
    kept.states.take(Batch("boot-0.db", 1, 3, [claim, event("gpu-001", 1, Phase.BOOTED), gone]))
    kept.publisher.protect()
    assert kept.store.references() == {"boots": frozenset({booted}), "inventory": frozenset({pinned})}


class Busy(StoreImageRepository):
    """A store that another writer holds."""

    def keep(self, owner: str, digests: Sequence[str]) -> None:
        raise BusyError("another process is writing")


def test_a_busy_store_is_left_for_later(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    repository = Busy(kept.store, KeyRing(kept.config.keys))
    publisher = SnapshotPublisher(kept.config, repository, repository, kept.states, Fixed())
    with caplog.at_level(logging.INFO):
        publisher.protect()
    assert caplog.records == []


def test_what_rollouts_assign_is_published_kept_from_gc_and_stays_where_it_cannot_be_read(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    old, new = add_image(kept.config), add_image(kept.config, name="next", salt="2")
    kept.store.set_channel("stable", old)
    path = kept.config.data / "rollouts.db"
    repository, store = StoreImageRepository(kept.store, KeyRing(kept.config.keys)), SqliteRollouts(path)
    make(path).close()
    publisher = SnapshotPublisher(
        kept.config,
        repository,
        repository,
        kept.states,
        Fixed(),
        monotonic=lambda: kept.now,
        assignments=Assignments(Commits(path), store),
    )
    assert publisher.step()
    assert kept.published().assigned == {}
    assert "assigned" not in (kept.config.data / "snapshot.json").read_text(), "as versions before it read it"
    names = {"gpu-001": new, "gpu-002": "d" * 64, "gone": new}
    begun = rollout().model_copy(update={"image": new, "base": old})
    store.start(begun, {name: Member(machine=name, previous=image) for name, image in names.items()}, Note(1, "a", "b"))
    assert publisher.step()
    assert kept.published().assigned == {
        "gpu-001": Assignment(image=new, rollout=1),
        "gpu-002": Assignment(image="d" * 64, rollout=1),
    }
    assert kept.published().images.keys() == {old, new}
    assert list(kept.published().unusable_images) == ["d" * 64]
    images = publisher.status().images
    assert (images.ok, images.message) == (
        False,
        f"cannot be used: image dddddddddddd, which a rollout assigned (no image {'d' * 64} in {kept.store.root})",
    )
    assert images.remedy == "set the channel to a usable image; `--force` ends its rollout"
    publisher.protect()
    assert kept.store.references()["rollouts"] == {old, new}
    path.rename(path.with_name("aside.db"))
    kept.store.set_channel("stable", new)
    publisher.step()
    booted = script("gpu-001", 1).model_copy(update={"image": new})
    kept.states.take(Batch("boot-0.db", 1, 3, [booted, event("gpu-001", 1, Phase.BOOTED)]))
    publisher.protect()
    assert kept.store.references()["boots"] == {new}, "whatever rollouts say"
    assert kept.published().channels == {"stable": new}
    assert kept.published().assigned["gpu-001"] == Assignment(image=new, rollout=1)
    again = [one.getMessage() for one in caplog.records if "assignments" in one.getMessage()]
    assert again == [f"assignments: {path} cannot be used: it is not there; rollouts stand still"]
    path.with_name("aside.db").rename(path)
    kept.file.write_text(
        INVENTORY.replace("serial: S2}, profile: compute", "serial: S2}, profile: spare").replace(
            "profiles:", "profiles:\n  - {name: spare, channel: other}"
        )
        + "  - {name: other}\n"
    )
    publisher.step()
    publisher.step()
    assert kept.published().assigned.keys() == {"gpu-001"}, "who uses another channel left"
    text = kept.file.read_text()
    kept.file.write_text(text.replace("{name: stable,", f"{{name: stable, image: {old},"))
    publisher.step()
    publisher.step()
    pinned = kept.published()
    assert (pinned.assigned, image_of(pinned, "gpu-001", "stable")) == ({}, old), "the inventory says what it boots"
    kept.file.write_text(text)
    publisher.step()
    publisher.step()
    assert kept.published().assigned.keys() == {"gpu-001"}


class Windows:
    """Boot windows that a test opens and closes; counts how often it is asked."""

    def __init__(self) -> None:
        self.open: dict[str, BootWindow] = {}
        self.asked = 0
        self.broken = False

    def __call__(self, _inventory: Inventory, _now_ms: int) -> dict[str, BootWindow]:
        self.asked += 1
        if self.broken:
            raise StateUnavailableError("enrolment.db cannot be used: disk I/O error")
        return self.open


def test_boot_windows_are_published_at_the_next_look_after_a_change(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    repository, windows = StoreImageRepository(kept.store, KeyRing(kept.config.keys)), Windows()
    publisher = SnapshotPublisher(
        kept.config, repository, repository, kept.states, Fixed(), monotonic=lambda: kept.now, windows=windows
    )
    enrolments = SqliteEnrolments(kept.config.data / "enrolment.db")
    until = Fixed().now_ms() + 60_000
    assert publisher.step()
    assert kept.published().windows == {}
    assert not publisher.step()
    before = windows.asked
    assert not publisher.step()
    assert windows.asked == before, "nothing is read where nothing changed"

    enrolments.apply([("gpu-001", OpenWindow("boot", "w", until))], Act(), 1)
    windows.open = {"gpu-001": BootWindow(id="w", until_ms=until)}
    assert publisher.step()
    assert kept.published().windows == windows.open

    windows.broken = True
    enrolments.use_window("gpu-001", "w", 2)
    kept.store.set_channel("stable", add_image(kept.config))
    assert publisher.step()
    assert kept.published().windows == windows.open, "it ends by itself"
    assert kept.published().channels["stable"] is not None
    kept.now += 60
    publisher.step()
    assert [one.getMessage() for one in caplog.records if "windows" in one.getMessage()] == [
        "boot windows: enrolment.db cannot be used: disk I/O error"
    ]
    windows.broken, windows.open = False, {}
    kept.now += 60
    assert publisher.step()
    assert kept.published().windows == {}
    assert [one.getMessage() for one in caplog.records if "windows" in one.getMessage()][1:] == [
        "boot windows: they can be told again"
    ]


def fetching(kept: Kept, words: dict[str, str]) -> SnapshotPublisher:
    """The publisher of a site with an upstream, whose fetcher says `words`."""
    repository = StoreImageRepository(kept.store, KeyRing(kept.config.keys))
    config = kept.config.model_copy(update={"upstream": UpstreamPlace(place="registry.example/images")})
    return SnapshotPublisher(
        config, repository, repository, kept.states, Fixed(), monotonic=lambda: kept.now, upstream=lambda: words
    )


def test_an_image_that_upstream_may_have_is_being_fetched(kept: Kept) -> None:
    digest, words = "ab" * 32, dict[str, str]()
    kept.file.write_text(INVENTORY.replace("{name: stable,", f"{{name: stable, image: {digest},"))
    publisher = fetching(kept, words)
    assert publisher.step()
    coming = "it is not here yet: being fetched from registry.example/images"
    assert kept.published().unusable == {"stable": coming}
    words[digest] = "it is not here yet, tried again: it rains"
    assert publisher.step()
    assert kept.published().unusable == {"stable": "it is not here yet, tried again: it rains"}
    assert not publisher.step()


def test_a_blob_that_is_gone_is_being_fetched_and_then_in_force(kept: Kept) -> None:
    digest = add_image(kept.config)
    kept.store.set_channel("stable", digest)
    publisher = fetching(kept, {})
    assert publisher.step()
    assert kept.published().channels == {"stable": digest}
    kernel = kept.store.blob_path(kept.store.manifest(digest).artifacts.kernel.sha256)
    data = kernel.read_bytes()
    kernel.unlink()
    assert publisher.step()
    assert kept.published().unusable == {"stable": "it is not here yet: being fetched from registry.example/images"}
    kernel.write_bytes(data)
    assert publisher.step()
    assert kept.published().channels == {"stable": digest}


def test_upstream_does_not_help_against_a_signature(kept: Kept) -> None:
    """Fetching it again would bring the same one."""
    digest = add_image(kept.config, key=SigningKey.generate())
    kept.store.set_channel("stable", digest)
    publisher = fetching(kept, {})
    assert publisher.step()
    assert "which is not trusted here" in kept.published().unusable["stable"]
    untrusted = StoreImageRepository(kept.store, KeyRing(kept.config.keys))
    assert "which is not trusted here" in (fault_of(digest, untrusted, 0, tuple, fetched=True) or "")
    assert fault_of("d" * 64, untrusted, 0, tuple, fetched=True) is None
    assert fault_of("d" * 64, untrusted, 0, lambda: ["d" * 64], fetched=True) is not None
    assert missing(kept.published(), StoreImageRepository(kept.store, KeyRing(kept.config.keys))) == []


def test_what_is_to_be_fetched(kept: Kept) -> None:
    repository = StoreImageRepository(kept.store, KeyRing(kept.config.keys))
    kept.publisher.step()
    snapshot = kept.published()
    assert missing(snapshot, repository) == []  # not set
    digest = add_image(kept.config)
    kept.store.set_channel("stable", digest)
    assert missing(snapshot, repository) == []
    kept.store.blob_path(kept.store.manifest(digest).artifacts.root.sha256).unlink()
    assert missing(snapshot, repository) == [digest]
    revoked = snapshot.model_copy(update={"revocations": Revocations(issued=1, images=(digest,))})
    assert missing(revoked, repository) == []
    (kept.config.store / "channels" / "stable.json").write_text("{")
    assert missing(snapshot, repository) == []  # nobody can tell what it was
    assigned = {"gpu-001": Assignment(image=digest, rollout=1), "gpu-002": Assignment(image="d" * 64, rollout=1)}
    assert missing(snapshot.model_copy(update={"assigned": assigned}), repository) == [digest, "d" * 64]
