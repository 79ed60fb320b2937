"""The store killed, or refused by the file system, at every step of every kind of write."""

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle
from images.artifact.manifest import read_manifest
from images.artifact.signing import SigningKey
from images.errors import NotFoundError, StoreError
from images.store.check import check_bundle, check_image
from images.store.gc import collect, needed, remove
from images.store.store import Store
from tests.unit.images import faults, samples
from tests.unit.images.samples import KEY, add

LATER = 4_000_000_000
Act = Callable[[Store], object]


def bundle(number: int) -> tuple[bytes, bytes]:
    data = SiteBundle(
        site="home",
        issued=number,
        minimum_epoch=0,
        origins=("http://192.0.2.1/v1",),
        report="http://192.0.2.1",
    ).to_bytes()
    return data, KEY.sign(data)


def second() -> int:
    """The clock of stores that acts write to; a function of the module, for it goes to another process."""
    return 2


class World:
    """A store with a bit of everything, and what can be done to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "template"
        store = Store(self.path, now=lambda: 1)
        self.old, self.new, self.idle = (add(store, folder, text) for text in ("old", "new", "idle"))
        store.set_channel("stable", self.new)
        store.set_channel("stable", self.old)
        store.set_references("boots", frozenset({self.old}))
        store.set_bundle(*bundle(1))
        collect(store, LATER - 100, grace=10**9)  # `idle` is marked as unneeded
        self.files = samples.parts(folder / "next", "next")
        self.next = samples.manifest(self.files).to_bytes()
        self.manifest = (self.path / "images" / self.old / "manifest.json").read_bytes()
        self.parts = samples.parts(folder / "old", "old")
        self.signature = SigningKey.generate().sign(self.manifest)
        """By another key."""

    def act(self, name: str, store: Store) -> object:
        return self.acts()[name](store)

    def acts(self) -> dict[str, Act]:
        old = self.manifest

        def rm(store: Store) -> None:
            if self.idle in store.digests():
                remove(store, self.idle)

        return {
            "add": lambda store: store.add_image(self.next, KEY.sign(self.next), self.files),
            "add again": lambda store: store.add_image(old, KEY.sign(old), self.parts),
            "sign again": lambda store: store.add_image(old, self.signature, self.parts),
            "sign too": lambda store: store.add_signature(self.old, self.signature),
            "channel": lambda store: store.set_channel("stable", self.new),
            "new channel": lambda store: store.set_channel("next", self.idle),
            "references": lambda store: store.set_references("boots", frozenset({self.new, self.idle})),
            "bundle": lambda store: store.set_bundle(*bundle(2)),
            "collect": lambda store: collect(store, LATER, grace=60),
            "remove": rm,
        }

    def fresh(self) -> Store:
        target = self.folder / "store"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.path, target, symlinks=True)
        return Store(target, now=second)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield World(Path(folder))


def state(store: Store) -> object:
    """All that readers can see, but for the times at which images were added."""
    signatures = {digest: store.signature(digest) for digest in store.digests()}
    return signatures, store.channels(), store.references(), store.bundle(), sorted(os.listdir(store.root / "blobs"))


def visible(store: Store) -> object:
    """The same without the blobs, which are there before and after the image that lists them."""
    return state(store)[:-1]  # type: ignore[index]


def assert_sound(store: Store, world: World) -> None:
    """Every listed image is whole, every pointer leads to one, the bundle fits its signature."""
    trusted = [KEY.public]
    for digest in store.digests():
        assert [one for one in check_image(store, digest, trusted) if one.part != "manifest"] == []
    assert {world.old} <= set(needed(store)) <= set(store.digests())
    check_bundle(*store.bundle(), trusted)


NAMES = [
    "add",
    "add again",
    "bundle",
    "channel",
    "collect",
    "new channel",
    "references",
    "remove",
    "sign again",
    "sign too",
]


def test_every_act_is_tried(world: World) -> None:
    assert sorted(world.acts()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_killed_at_every_step_the_store_is_as_before_or_after(world: World, name: str) -> None:
    act = partial(world.act, name)
    store = world.fresh()
    before = visible(store)
    act(store)
    after, whole = visible(store), state(store)
    count = faults.steps(world.folder, partial(act, world.fresh()))
    assert count > 10
    for step in range(1, count + 1):
        store = world.fresh()
        assert faults.killed_at(step, world.folder, partial(act, store)) == faults.KILLED
        assert_sound(store, world)
        assert visible(store) in (before, after)
        act(store)  # the next writer sweeps up and does it again
        assert os.listdir(store.root / "tmp") == []
        if name not in ("collect", "remove"):  # these two leave blobs to a later collection
            assert state(store) == whole
        assert visible(store) == after


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("name", NAMES)
def test_refused_at_every_step_the_error_is_ours_and_the_store_sound(world: World, name: str, lasting: bool) -> None:
    act = partial(world.act, name)
    for step in range(1, faults.steps(world.folder, partial(act, world.fresh())) + 1):
        store = world.fresh()
        outcome = faults.refused_at(step, world.folder, partial(act, store), errno.EIO, lasting=lasting)
        assert outcome in (faults.DONE, faults.REFUSED)
        assert_sound(store, world)
        act(store)
        assert os.listdir(store.root / "tmp") == []


def test_blobs_that_a_killed_collection_left_go_with_the_next(world: World) -> None:
    store = world.fresh()
    collect(store, LATER, grace=60)
    want = state(store)
    act = partial(world.act, "collect")
    for step in range(1, faults.steps(world.folder, partial(act, world.fresh())) + 1):
        store = world.fresh()
        faults.killed_at(step, world.folder, partial(act, store))
        act(store)
        assert state(store) == want


def test_folders_that_a_killed_writer_left_go_with_a_collection(world: World) -> None:
    store, act, left = world.fresh(), partial(world.act, "add"), 0
    for step in range(1, faults.steps(world.folder, partial(act, world.fresh())) + 1):
        store = world.fresh()
        faults.killed_at(step, world.folder, partial(act, store))
        left += set(os.listdir(store.root / "images")) != set(store.digests())
        collect(store, LATER, grace=60)
        assert set(os.listdir(store.root / "images")) == set(store.digests())
    assert left


def test_a_manifest_appears_only_after_all_that_it_needs_is_durable(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    with faults.recorded() as events:
        digest = add(store, tmp_path, "one")
    root = str(store.root)
    manifest = f"{root}/images/{digest}/manifest.json"
    shown = events.index(("rename", manifest))
    names = [f"{root}/blobs/{part.sha256}" for _, part in read_manifest(Path(manifest).read_bytes()).artifacts]
    for path in (*names, f"{root}/images/{digest}/manifest.sig"):
        assert ("fsync", os.path.dirname(path)) in events[events.index(("rename", path)) : shown]
    for path in (f"{root}/images/{digest}", f"{root}/images", f"{root}/blobs"):
        assert ("fsync", os.path.dirname(path)) in events[events.index(("mkdir", path)) : shown]
    assert ("fsync", os.path.dirname(manifest)) in events[shown:]


def test_blobs_whose_writer_was_killed_become_durable_before_the_manifest(tmp_path: Path) -> None:
    """Their names may be known to this kernel alone."""
    store = Store(tmp_path / "store")
    files = samples.parts(tmp_path / "x", "x")
    data = samples.manifest(files).to_bytes()
    digest = store.add_image(data, KEY.sign(data), files)
    shutil.rmtree(store.root / "images" / digest)
    with faults.recorded() as events:
        digest = store.add_image(data, KEY.sign(data), files)
    shown = events.index(("rename", f"{store.root}/images/{digest}/manifest.json"))
    assert ("fsync", f"{store.root}/blobs") in events[:shown]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_takes_its_name_before_its_bytes_are_durable(world: World, name: str) -> None:
    store = world.fresh()
    with faults.recorded() as events:
        world.acts()[name](store)
    for number, (kind, path) in enumerate(events):
        assert kind != "rename unsynced"
        if kind == "rename":
            assert ("fsync", os.path.dirname(path)) in events[number:]


def test_a_bundle_s_files_are_durable_before_the_link_to_them(world: World) -> None:
    store = world.fresh()
    with faults.recorded() as events:
        store.set_bundle(*bundle(2))
    folder = os.path.realpath(store.root / "site")
    until = events[: events.index(("rename", str(store.root / "site")))]
    for name in ("bundle.json", "bundle.sig"):
        assert ("fsync", folder) in until[until.index(("rename", f"{folder}/{name}")) :]
    assert ("fsync", os.path.dirname(folder)) in until[until.index(("mkdir", folder)) :]


def test_a_folder_made_by_hand_becomes_a_link(world: World) -> None:
    store = world.fresh()
    (store.root / "site").unlink()
    (store.root / "site").mkdir()
    (store.root / "site" / "bundle.json").write_bytes(b"by hand")
    store.set_bundle(*bundle(3))
    assert store.bundle() == bundle(3)
    assert len(os.listdir(store.root / "bundles")) == 1


def test_what_cannot_be_read_is_not_absent(world: World) -> None:
    """A folder in the place of a file stands for a disk that fails: the root account can read all else."""
    store = world.fresh()
    path = store.root / "images" / world.old / "manifest.sig"
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError) as caught:
        store.signature(world.old)
    assert not isinstance(caught.value, NotFoundError)
    assert str(caught.value) == f"cannot read {path}: Is a directory"
    shutil.rmtree(store.root / "channels")
    (store.root / "channels").write_text("")
    with pytest.raises(StoreError) as caught:
        store.channels()
    assert str(caught.value) == f"cannot read {store.root}/channels: Not a directory"
    with pytest.raises(StoreError):
        collect(store, LATER, grace=0)
    assert world.old in store.digests()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "1" * 5000, '{"image": "x", "previous": null, "at": 1}', '{"images": "abc"}', "[" * 10**5],
)
def test_damaged_pointers_stop_gc_and_are_mended_by_the_next_write(world: World, text: str) -> None:
    mending: dict[tuple[str, str], Act] = {
        ("channels", "stable"): lambda store: store.set_channel("stable", world.old),
        ("refs", "boots"): lambda store: store.set_references("boots", frozenset({world.old})),
    }
    for (folder, name), mend in mending.items():
        store = world.fresh()
        (store.root / folder / f"{name}.json").write_text(text)
        with pytest.raises(StoreError, match="is damaged"):
            collect(store, LATER, grace=0)
        mend(store)
        assert collect(store, LATER, grace=60).removed == ()  # what it had pointed to may be anything: all wait again
        assert world.idle in collect(store, LATER + 60, grace=60).removed


def test_marks_are_only_a_waiting_time(world: World) -> None:
    store = world.fresh()
    (store.root / "unneeded.json").write_text(json.dumps({world.idle: "yesterday", "x": 1}))
    assert collect(store, LATER, grace=60).removed == ()
