"""What every artifact store promises. One adapter so far: the folder."""

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from images.check import check_image, check_signature
from images.collect import collect, needed, remove
from images.errors import BusyError, CorruptError, InUseError, NotFoundError, StoreError
from images.manifest import CHUNK_SIZE
from images.resolve import resolve
from images.signing import SigningKey
from images.store import Store
from tests.unit.images import samples
from tests.unit.images.samples import KEY, add


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def test_an_image_comes_back_whole(store: Store, tmp_path: Path) -> None:
    digest = add(store, tmp_path, "one")
    assert store.digests() == (digest,)
    assert hashlib.sha256(store.manifest_bytes(digest)).hexdigest() == digest
    assert check_signature(store, digest, [KEY.public]) == KEY.public
    assert check_image(store, digest, [KEY.public]) == ()
    blob = store.blob_path(store.manifest(digest).artifacts.root.sha256)
    assert (blob.read_bytes(), blob.stat().st_mode & 0o777) == (b"root one", 0o444)
    assert add(store, tmp_path, "one") == digest


def test_names_and_prefixes_resolve_or_say_what_there_is(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        resolve(store, "sample")
    assert str(caught.value) == "no image 'sample'; the store has no image at all"
    one = add(store, tmp_path, "one")
    assert resolve(store, "sample") == resolve(store, one[:8]) == resolve(store, one) == one
    with pytest.raises(NotFoundError) as caught:
        resolve(store, "other")
    assert str(caught.value) == "no image 'other'; the store has sample"
    with pytest.raises(NotFoundError, match="no image of the store begins with"):
        resolve(store, "0" * 64 if one[0] != "0" else "1" * 64)


@pytest.mark.parametrize("name", ["../lock", "..", "", "A" * 64, "0" * 63, "0" * 64, "0" * 64 + "\n"])
def test_what_is_not_a_blob_s_digest_never_reaches_the_file_system(store: Store, name: str) -> None:
    with pytest.raises(NotFoundError):
        store.blob_path(name)
    with pytest.raises(NotFoundError):
        store.manifest_bytes(name)


def test_a_flipped_byte_is_found_with_its_chunk(store: Store, tmp_path: Path) -> None:
    digest = add(store, tmp_path, "big", root=bytes(3 * CHUNK_SIZE + 17))
    blob = store.blob_path(store.manifest(digest).artifacts.root.sha256)
    blob.chmod(0o644)
    with blob.open("r+b") as file:
        file.seek(2 * CHUNK_SIZE + 5)
        file.write(b"\x01")
    found = check_image(store, digest, [KEY.public])
    assert len(found) == 1
    assert str(found[0]) == (
        f"root: blob {blob.name[:12]} is not what its digest says: damaged in chunk 2 of 4; "
        "build or fetch the image again: a good blob takes its place"
    )
    assert add(store, tmp_path, "big", root=bytes(3 * CHUNK_SIZE + 17)) == digest
    assert check_image(store, digest, [KEY.public]) == ()


def test_missing_short_and_foreign_parts_are_found(store: Store, tmp_path: Path) -> None:
    digest = add(store, tmp_path, "one")
    parts = store.manifest(digest).artifacts
    store.blob_path(parts.kernel.sha256).unlink()
    blob = store.blob_path(parts.root.sha256)
    blob.chmod(0o644)
    blob.write_bytes(b"root")
    again = "build or fetch the image again: a good blob takes its place"
    untrusted = f"signed by key {KEY.public.id}, which is not trusted here (see `netboot key list`)"
    stranger = SigningKey.generate().public
    assert [str(one) for one in check_image(store, digest, [stranger])] == [
        f"manifest: {untrusted}; do not boot it unless you know why",
        f"kernel: blob {parts.kernel.sha256[:12]} is missing; {again}",
        f"root: blob {parts.root.sha256[:12]} has 4 bytes, 8 were signed; {again}",
    ]


def test_a_file_that_is_not_what_the_manifest_lists_is_not_taken(store: Store, tmp_path: Path) -> None:
    files = samples.parts(tmp_path / "x", "x")
    data = samples.manifest(files).to_bytes()
    files["root"].write_bytes(b"other")
    with pytest.raises(CorruptError, match="is not the root that the manifest lists"):
        store.add_image(data, KEY.sign(data), files)
    assert store.digests() == ()
    assert list((store.root / "tmp").iterdir()) == []


def test_one_writer_at_a_time_and_the_other_is_named(store: Store) -> None:
    with store.writing(), pytest.raises(BusyError) as caught, Store(store.root).writing():
        pass
    assert str(caught.value) == (f"another process (pid {os.getpid()}) is writing to the store {store.root}: try again")


def test_channels_remember_where_they_pointed_before(store: Store, tmp_path: Path) -> None:
    one, two = add(store, tmp_path, "one"), add(store, tmp_path, "two")
    assert store.set_channel("stable", one).previous is None
    assert store.set_channel("stable", two).previous == one
    assert store.set_channel("stable", two).previous == one
    with pytest.raises(NotFoundError):
        store.set_channel("stable", "0" * 64)
    with pytest.raises(StoreError, match="cannot be a channel's name"):
        store.set_channel("../stable", two)
    assert store.channels()["stable"].image == two
    (store.root / "channels" / "stable.json").write_text("{")
    with pytest.raises(CorruptError, match="set the channel again"):
        store.channels()


def test_removal_refuses_what_is_needed_and_says_by_whom(store: Store, tmp_path: Path) -> None:
    one, two, three = (add(store, tmp_path, text) for text in ("one", "two", "three"))
    store.set_channel("stable", one)
    store.set_channel("stable", two)
    store.set_references("boots", frozenset({three}))
    for digest, why in (
        (one, "channel stable pointed to it before"),
        (two, "channel stable points to it"),
        (three, "boots refer to it"),
    ):
        with pytest.raises(InUseError) as caught:
            remove(store, digest)
        assert str(caught.value) == f"image {digest[:12]} is in use: {why}"
    far = int(store.image(one).added) + 10**6
    assert collect(store, far, grace=60).removed == ()
    store.set_references("boots", frozenset())
    remove(store, three)
    assert set(store.digests()) == {one, two}


def test_a_damaged_reference_stops_every_removal(store: Store, tmp_path: Path) -> None:
    digest = add(store, tmp_path, "one")
    store.set_references("boots", frozenset({digest}))
    (store.root / "refs" / "boots.json").write_text("[]")
    with pytest.raises(CorruptError, match="is damaged"):
        collect(store, 10**10, grace=0)
    assert store.digests() == (digest,)


def test_a_shared_blob_survives_and_a_reader_reads_on(store: Store, tmp_path: Path) -> None:
    one, two = add(store, tmp_path, "one"), add(store, tmp_path, "two")
    store.set_channel("stable", two)
    now = store.image(one).added + 10
    with store.blob_path(store.manifest(one).artifacts.root.sha256).open("rb") as reader:
        assert collect(store, now, grace=5).waiting == {one: 5}
        done = collect(store, now + 5, grace=5)
        assert (done.removed, done.blobs) == ((one,), 3)
        assert reader.read() == b"root one"
    assert check_image(store, two, [KEY.public]) == ()


def test_a_dry_run_removes_nothing(store: Store, tmp_path: Path) -> None:
    digest = add(store, tmp_path, "one")
    assert collect(store, 10**10, grace=0, dry_run=True).removed == (digest,)
    assert check_image(store, digest, [KEY.public]) == ()


WRITER = """
import sys
import tempfile
from pathlib import Path
from images.store import Store
from tests.unit.images.samples import add
store, folder, number = Store(Path(sys.argv[1])), Path(sys.argv[2]), 0
print("ready", flush=True)
while True:
    number += 1
    digest = add(store, folder, f"{sys.argv[3]}-{number}", root=bytes([number % 256]) * 200_000)
    store.set_channel("stable", digest)
"""


def test_a_writer_killed_at_any_moment_leaves_whole_images(store: Store, tmp_path: Path) -> None:
    """Killed 25 times in the middle of adding images as fast as it can."""
    for turn in range(25):
        argv = [sys.executable, "-c", WRITER, str(store.root), str(tmp_path / "parts"), str(turn)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            try:
                writer.wait(timeout=0.01 * turn)
            except subprocess.TimeoutExpired:
                writer.send_signal(signal.SIGKILL)
        for digest in store.digests():
            assert check_image(store, digest, [KEY.public]) == ()
        for state in store.channels().values():
            assert state.image in store.digests()
    digest = add(store, tmp_path, "after")
    assert digest in store.digests()
    assert list((store.root / "tmp").iterdir()) == []


SMALL_DISK = """
import resource, signal, sys
from pathlib import Path
from images.store import Store
from tests.contract.test_store import add_ready
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
add_ready(Store(Path(sys.argv[1])), Path(sys.argv[2]))
"""


def add_ready(store: Store, folder: Path) -> str:
    """Add an image whose files are there already."""
    files = {name: folder / name for name in ("kernel", "initrd", "root", "packages")}
    data = samples.manifest(files).to_bytes()
    return store.add_image(data, KEY.sign(data), files)


def test_a_write_that_the_disk_refuses_leaves_nothing_half_written(store: Store, tmp_path: Path) -> None:
    one = add(store, tmp_path, "one")
    samples.parts(tmp_path / "large", "large", bytes(200_000))
    argv = [sys.executable, "-c", SMALL_DISK, str(store.root), str(tmp_path / "large")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=60)
    assert f"images.errors.StoreError: cannot write {store.root}/blobs/" in done.stderr
    assert "File too large" in done.stderr
    assert store.digests() == (one,)
    assert list((store.root / "tmp").iterdir()) == []


class Collection(RuleBasedStateMachine):
    """Garbage collection against a simple model: what is needed is always whole."""

    images = Bundle("images")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name)
        self.store = Store(self.path / "store")
        self.now, self.count = 2_000_000_000, 0

    def teardown(self) -> None:
        self._folder.cleanup()

    @rule(target=images)
    def build(self) -> str:
        self.count += 1
        digest = add(self.store, self.path, f"{self.count}")
        os.utime(self.store.root / "images" / digest / "manifest.json", (self.now, self.now))
        for _, artifact in self.store.manifest(digest).artifacts:
            os.utime(self.store.blob_path(artifact.sha256), (self.now, self.now))
        return digest

    @rule(digest=images, name=st.sampled_from(["stable", "next"]))
    def point(self, digest: str, name: str) -> None:
        if digest in self.store.digests():
            self.store.set_channel(name, digest)

    @rule(digests=st.lists(images, max_size=2))
    def boot(self, digests: list[str]) -> None:
        self.store.set_references("boots", frozenset(digests) & frozenset(self.store.digests()))

    @rule(seconds=st.integers(0, 100))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @precondition(lambda self: self.count)
    @rule()
    def collect(self) -> None:
        before, keep = set(self.store.digests()), set(needed(self.store))
        removed = set(collect(self.store, self.now, grace=60).removed)
        assert not removed & keep
        assert set(self.store.digests()) == before - removed

    @invariant()
    def everything_listed_is_whole(self) -> None:
        for digest in self.store.digests():
            assert check_image(self.store, digest, [KEY.public]) == ()


Collection.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestCollection = Collection.TestCase
