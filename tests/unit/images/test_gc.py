"""Garbage collection: the plan as a table, and the whole against a model."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from images.errors import InUseError
from images.store.check import check_image
from images.store.gc import Collected, collect, plan, remove
from images.store.store import Store
from tests.unit.images.faults import recorded
from tests.unit.images.samples import KEY, add

GRACE = 60


@pytest.mark.parametrize(
    ("keep", "seen", "gone", "marks"),
    [
        (set(), {}, (), {"a": 100, "b": 100}),
        ({"a"}, {"a": 0, "b": 39}, ("b",), {}),
        (set(), {"a": 40, "b": 41}, ("a",), {"b": 41}),
        (set(), {"a": 999, "b": 100}, (), {"a": 100, "b": 100}),
        ({"a", "b"}, {"a": 0, "b": 0}, (), {}),
        (set(), {"a": 0, "c": 0}, ("a",), {"b": 100}),
    ],
    ids=["first seen", "needed", "at the grace", "a clock that went back", "all needed", "gone already"],
)
def test_plan(keep: set[str], seen: dict[str, int], gone: tuple[str, ...], marks: dict[str, int]) -> None:
    assert plan(("a", "b"), frozenset(keep), seen, 100, GRACE) == (gone, marks)


names = st.sampled_from("abcd")


@given(st.sets(names), st.sets(names), st.dictionaries(names, st.integers(0, 300)), st.integers(0, 300))
def test_a_plan_divides_what_is_not_needed(there: set[str], keep: set[str], seen: dict[str, int], now: int) -> None:
    gone, waiting = plan(tuple(there), frozenset(keep), seen, now, GRACE)
    assert set(gone) | set(waiting) == there - keep
    assert not set(gone) & set(waiting)
    assert all(now - seen[name] >= GRACE for name in gone)
    assert all(now - GRACE < since <= now for since in waiting.values())


def test_that_an_image_is_gone_is_durable_before_its_parts_go_and_then_they_are(tmp_path: Path) -> None:
    """A power cut leaves blobs of no image, never an image without its blobs."""
    now = 2_000_000_000
    store = Store(tmp_path / "store", now=lambda: now)
    digest = add(store, tmp_path, "a")
    assert collect(store, now, GRACE).removed == ()
    with recorded() as events:
        assert collect(store, now + GRACE, GRACE).removed == (digest,)
    images = store.root / "images"
    synced = [path for what, path in events if what == "fsync"]
    assert synced[:3] == [str(images / digest), str(images), str(store.root / "blobs")]


class Collection(RuleBasedStateMachine):
    """What is needed, or was within the grace, is there and whole; what is not goes in two runs a grace apart."""

    images = Bundle("images")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.path = Path(self._folder.name)
        self.now, self.count = 2_000_000_000, 0
        self.store = Store(self.path / "store", now=lambda: self.now)
        self.channels: dict[str, tuple[str, str | None]] = {}
        self.boots: frozenset[str] = frozenset()
        self.free: dict[str, int] = {}
        """Every image that should be there → since when nobody has needed it, or when it was added last."""

    def teardown(self) -> None:
        self._folder.cleanup()

    def needed(self) -> set[str]:
        pointed = {digest for pair in self.channels.values() for digest in pair if digest}
        return pointed | self.boots

    def add(self, text: str) -> str:
        digest = add(self.store, self.path, text)
        for _, artifact in self.store.manifest(digest).artifacts:
            os.utime(self.store.blob_path(artifact.sha256), (self.now, self.now))
        os.utime(self.store.root / "images" / digest / "manifest.json", (self.now, self.now))
        self.free[digest] = self.now
        return digest

    @rule(target=images)
    def build(self) -> str:
        self.count += 1
        return self.add(str(self.count))

    @precondition(lambda self: self.count)
    @rule(number=st.integers(1, 100))
    def build_again(self, number: int) -> None:
        self.add(str(number % self.count + 1))

    @rule(digest=images, name=st.sampled_from(["stable", "next"]))
    def point(self, digest: str, name: str) -> None:
        if digest not in self.free:
            return
        self.store.set_channel(name, digest)
        before, old = self.needed(), self.channels.get(name)
        if old is None or old[0] != digest:
            self.channels[name] = (digest, old[0] if old else None)
        self.free |= dict.fromkeys(before - self.needed(), self.now)

    @rule(digests=st.lists(images, max_size=2))
    def boot(self, digests: list[str]) -> None:
        before = self.needed()
        self.boots = frozenset(digests) & frozenset(self.free)
        self.store.set_references("boots", self.boots)
        self.free |= dict.fromkeys(before - self.needed(), self.now)

    @rule(seconds=st.sampled_from([1, GRACE - 1, GRACE, GRACE + 1]))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(dry_run=st.booleans())
    def collect(self, dry_run: bool) -> None:
        removed = collect(self.store, self.now, GRACE, dry_run=dry_run).removed
        assert not set(removed) & self.needed()
        assert all(self.now - self.free[digest] >= GRACE for digest in removed)
        if not dry_run:
            self.free = {digest: since for digest, since in self.free.items() if digest not in removed}

    @rule()
    def collect_twice(self) -> None:
        self.collect(dry_run=False)
        self.now += GRACE
        self.collect(dry_run=False)
        assert set(self.free) == self.needed()
        manifests = [self.store.manifest(digest) for digest in self.free]
        used = {artifact.sha256 for manifest in manifests for _, artifact in manifest.artifacts}
        assert set(os.listdir(self.store.root / "blobs")) == used
        assert collect(self.store, self.now, GRACE) == Collected((), {}, 0, 0)

    @rule(digest=images)
    def remove(self, digest: str) -> None:
        if digest not in self.free:
            return
        try:
            remove(self.store, digest)
        except InUseError:
            assert digest in self.needed()
        else:
            assert digest not in self.needed()
            del self.free[digest]

    @invariant()
    def what_should_be_there_is_there_and_whole(self) -> None:
        assert set(self.store.digests()) == set(self.free)
        for digest in self.free:
            assert check_image(self.store, digest, [KEY.public]) == ()


Collection.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestCollection = Collection.TestCase
