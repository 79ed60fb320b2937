"""What every artifact store promises. One adapter so far: the folder. How it keeps it: `tests/unit/images`."""

import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from images.artifact.bundle import SiteBundle
from images.artifact.manifest import CHUNK_SIZE
from images.artifact.signing import SigningKey
from images.errors import BusyError, CorruptError, InUseError, NotFoundError, StoreError
from images.store.check import check_bundle, check_image, check_signature
from images.store.gc import Collected, collect, remove
from images.store.lookup import resolve
from images.store.store import Store
from tests.unit.images import samples
from tests.unit.images.samples import KEY, add


def _folder(path: Path) -> Store:
    return Store(path / "store")


ADAPTERS: dict[str, Callable[[Path], Store]] = {"folder": _folder}


@pytest.fixture(params=list(ADAPTERS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return ADAPTERS[request.param](tmp_path)


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
        f"root: blob {blob.name[:12]} is not what its digest says: damaged in chunk 2 of 4 "
        "(counted from 0; from byte 8388608 on); "
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


@pytest.mark.parametrize("other", [b"other", b"root X"], ids=["of another length", "of the same length"])
def test_a_file_that_is_not_what_the_manifest_lists_is_not_taken(store: Store, tmp_path: Path, other: bytes) -> None:
    files = samples.parts(tmp_path / "x", "x")
    data = samples.manifest(files).to_bytes()
    files["root"].write_bytes(other)
    with pytest.raises(CorruptError, match="is not the root that the manifest lists"):
        store.add_image(data, KEY.sign(data), files)
    assert store.digests() == ()
    assert hashlib.sha256(b"root x").hexdigest() not in {path.name for path in (store.root / "blobs").iterdir()}
    assert list((store.root / "tmp").iterdir()) == []


def test_a_blob_with_other_bytes_of_the_same_length_is_replaced(store: Store, tmp_path: Path) -> None:
    digest = add(store, tmp_path, "x")
    blob = store.blob_path(store.manifest(digest).artifacts.root.sha256)
    blob.chmod(0o644)
    blob.write_bytes(b"root X")
    assert add(store, tmp_path, "x") == digest
    assert blob.read_bytes() == b"root x"


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


def test_the_newest_of_a_recipe_s_images_is_meant_by_its_name(store: Store, tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        newest = add(store, tmp_path, text)
        assert resolve(store, "sample") == newest
        assert store.images()[0].digest == newest
    other = add(store, tmp_path, "one", name="other")
    assert (resolve(store, "sample"), resolve(store, "other")) == (newest, other)


def test_an_ambiguous_beginning_names_the_candidates(store: Store, tmp_path: Path) -> None:
    """Two digests that begin alike are made by hand: nobody finds eight equal digits by chance."""
    digest = add(store, tmp_path, "one")
    twin = digest[:20] + "0" * 44
    (store.root / "images" / digest).rename(store.root / "images" / twin)
    add(store, tmp_path, "one")
    with pytest.raises(NotFoundError) as caught:
        resolve(store, digest[:8])
    first, second = sorted((digest, twin))
    names = {digest: "sample", twin: "damaged"}
    assert str(caught.value) == (
        f"{digest[:8]} begins more than one image: {first[:16]} ({names[first]}), {second[:16]} ({names[second]}); "
        "give more of the digest"
    )
    assert resolve(store, digest) == digest


def test_digests_of_chunks_that_no_machine_could_use_are_found(store: Store, tmp_path: Path) -> None:
    files = samples.parts(tmp_path / "x", "x", bytes(CHUNK_SIZE + 1))
    good = samples.manifest(files)
    chunks = good.artifacts.root.chunks
    for wrong in ((), chunks[:1], (*chunks, chunks[0]), chunks[::-1]):
        root = good.artifacts.root.model_copy(update={"chunks": wrong})
        data = good.model_copy(update={"artifacts": good.artifacts.model_copy(update={"root": root})}).to_bytes()
        found = check_image(store, store.add_image(data, KEY.sign(data), files), [KEY.public])
        assert [str(one) for one in found] == [
            (
                f"root: the manifest's digests of chunks are not those of blob {root.sha256[:12]}: "
                "no machine can boot it; build the image again"
            )
        ]


def test_a_damaged_or_unsigned_manifest_is_found(store: Store, tmp_path: Path) -> None:
    digest = add(store, tmp_path, "one")
    (store.root / "images" / digest / "manifest.sig").unlink()
    assert [str(one) for one in check_image(store, digest, [KEY.public])] == [
        "manifest: its signature is missing; do not boot it unless you know why"
    ]
    manifest = store.root / "images" / digest / "manifest.json"
    data = manifest.read_bytes()
    manifest.chmod(0o644)
    manifest.write_bytes(data.replace(b'"epoch":0', b'"epoch":9'))
    assert [str(one) for one in check_image(store, digest, [KEY.public])] == [
        (
            f"manifest: the manifest of image {digest[:12]} is not what its digest says: remove the image; "
            f"run `netboot image rm {digest}` and build or fetch it again"
        )
    ]
    assert store.images() == ()
    with pytest.raises(CorruptError, match="is not what its digest says"):
        store.set_channel("stable", digest)
    remove(store, digest)
    assert store.digests() == ()


def _point(store: Store, one: str, two: str, three: str) -> None:
    for digest in (one, two, three):
        store.set_channel("stable", digest)


def _refer(store: Store, one: str, two: str, three: str) -> None:
    _point(store, two, two, three)
    store.set_references("boots", frozenset({one}))
    store.set_references("boots", frozenset())


@pytest.mark.parametrize("need", [_point, _refer])
def test_an_image_waits_its_whole_grace_each_time_it_is_let_go(
    store: Store, tmp_path: Path, need: Callable[[Store, str, str, str], None]
) -> None:
    """Unneeded long ago, needed since, let go again, and no collection in between."""
    one, two, three = (add(store, tmp_path, text) for text in ("one", "two", "three"))
    start = store.image(three).added + 1
    collect(store, start, grace=60)
    need(store, one, two, three)
    assert collect(store, start + 1000, grace=60) == Collected((), {one: 60}, 0, 0)
    assert collect(store, start + 1059, grace=60).waiting == {one: 1}
    assert collect(store, start + 1060, grace=60).removed == (one,)


def test_an_image_that_was_added_again_waits_from_then_on(store: Store, tmp_path: Path) -> None:
    digest = add(store, tmp_path, "one")
    added = store.image(digest).added
    assert collect(store, added - 1000, grace=60).waiting == {digest: 60}
    add(store, tmp_path, "one")
    assert collect(store, added + 59, grace=60).removed == ()
    assert collect(store, added + 70, grace=60).removed == (digest,)


def test_a_blob_waits_for_its_image(store: Store) -> None:
    """One whose writer was killed before the manifest was there."""
    with store.writing():
        pass
    blob = store.root / "blobs" / hashlib.sha256(b"blob").hexdigest()
    blob.write_bytes(b"blob")
    left = int(blob.stat().st_mtime)
    assert collect(store, left + 59, grace=60).blobs == 0
    assert blob.read_bytes() == b"blob"
    os.utime(blob, (0, 0))
    assert collect(store, left, grace=60) == Collected((), {}, 1, 4)
    with pytest.raises(NotFoundError):
        store.blob_path(blob.name)


def test_the_site_bundle_is_replaced_with_its_signature(store: Store) -> None:
    with pytest.raises(NotFoundError) as caught:
        store.bundle()
    assert str(caught.value) == f"no signed site bundle in {store.root}: run `netboot config bundle`"
    for number in (1, 2):
        bundle = SiteBundle(
            site="home", issued=number, minimum_epoch=0, origins=("http://192.0.2.1",), report="http://192.0.2.1"
        )
        data = bundle.to_bytes()
        store.set_bundle(data, KEY.sign(data))
        assert check_bundle(*store.bundle(), [KEY.public]) == bundle
        assert (
            (store.root / "site" / "bundle.json").read_bytes(),
            (store.root / "site" / "bundle.sig").read_bytes(),
        ) == (
            data,
            KEY.sign(data),
        )
    for wrong in (b"", b"{}", data[:-1], b"[" * 10**5):
        with pytest.raises(CorruptError, match="not a site bundle"):
            store.set_bundle(wrong, KEY.sign(wrong))
    assert check_bundle(*store.bundle(), [KEY.public]) == bundle


@pytest.mark.parametrize("owner", ["", "..", "a/b", "A", "x" * 64])
def test_an_owner_s_name_is_a_name(store: Store, owner: str) -> None:
    with pytest.raises(StoreError, match="cannot be an owner's name"):
        store.set_references(owner, frozenset())


def test_references_are_digests(store: Store) -> None:
    with pytest.raises(StoreError) as caught:
        store.set_references("boots", frozenset({"stable"}))
    assert str(caught.value) == "references of boots must be digests of images"
    assert store.references() == {}


def test_a_writer_can_wait_for_another(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one ends when it sees that this one waits."""
    held, waiting = threading.Event(), threading.Event()

    def hold() -> None:
        with store.writing():
            held.set()
            assert waiting.wait(180)

    other = threading.Thread(target=hold)
    other.start()
    assert held.wait(180)
    monkeypatch.setattr("time.sleep", lambda seconds: waiting.set())
    with Store(store.root, wait=180).writing():
        assert waiting.is_set()
    other.join()
