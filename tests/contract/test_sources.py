"""What every source of images does the same: a real registry, a plain HTTP origin, a folder."""

import contextlib
import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from images.artifact.manifest import Artifact
from images.artifact.signing import SigningKey, signers_of
from images.errors import UnknownSignerError
from images.registry.artifact import write_artifact
from images.registry.errors import AbsentError, DamagedError
from images.registry.folder import export
from images.registry.pull import announce, missing, pull
from images.registry.push import absent, push
from images.registry.reference import Origin
from images.registry.sources import FolderSource, OriginSource, RegistrySource, Source
from images.store.store import Store
from lab.registry import Registry, registry
from lab.servers import Misbehaving, misbehaving
from tests.registries import IMPATIENT, repository
from tests.unit.images.samples import KEY, add

TRUSTED = (KEY.public,)
ROOT = bytes(range(256)) * 12_289  # three blocks and a rest


def quiet(_step: int) -> None:
    """Nobody looks."""


class World:
    """A place with images: the same acts on each."""

    source: Source

    def put(self, store: Store, digest: str) -> None:
        """Publish an image of a store."""
        raise AssertionError

    def blob(self, sha256: str) -> Path:
        """The file with a blob's bytes."""
        raise AssertionError

    def rename(self, store: Store, digest: str, other: str) -> None:
        """Let the image `digest` be found as `other`."""
        raise AssertionError


class Folder(World):
    """What `export` writes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source: Source = FolderSource(root)

    def put(self, store: Store, digest: str) -> None:
        export(store, digest, self.root, TRUSTED, quiet)

    def blob(self, sha256: str) -> Path:
        return self.root / "blobs" / sha256

    def rename(self, store: Store, digest: str, other: str) -> None:
        shutil.copytree(self.root / "images" / digest, self.root / "images" / other)


class Plain(Folder):
    """The same behind a file server."""

    def __init__(self, root: Path, url: str) -> None:
        super().__init__(root)
        self.source = OriginSource(Origin(f"{url}/v1"))


class Real(World):
    """Debian's docker-registry."""

    def __init__(self, real: Registry, stack: contextlib.ExitStack) -> None:
        self.real = real
        self.client = stack.enter_context(repository(real))
        self.source: Source = RegistrySource(self.client)

    def put(self, store: Store, digest: str) -> None:
        manifest = store.manifest(digest)
        wanted = absent(self.client, manifest, IMPATIENT)
        push(store, manifest, self.client, "stable", wanted, IMPATIENT, quiet)

    def blob(self, sha256: str) -> Path:
        return self.real.blob(sha256)

    def rename(self, store: Store, digest: str, other: str) -> None:
        signed = store.manifest_bytes(digest), store.signature(digest)
        self.client.put_manifest(other, write_artifact(*signed, store.manifest(digest)))


@pytest.fixture(params=["registry", "origin", "folder"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    root = tmp_path / "there"
    root.mkdir()
    with contextlib.ExitStack() as stack:
        if request.param == "registry":
            yield Real(stack.enter_context(registry(root)), stack)
        elif request.param == "origin":
            server = stack.enter_context(misbehaving(Misbehaving(root, "none"), "127.0.0.1"))
            plain = Plain(root, server.url)
            assert isinstance(plain.source, OriginSource)
            stack.callback(plain.source.close)
            yield plain
        else:
            yield Folder(root)


@pytest.fixture
def built(tmp_path: Path) -> Store:
    store = Store(tmp_path / "built")
    add(store, tmp_path / "parts", "one", root=ROOT)
    return store


@pytest.fixture
def here(tmp_path: Path) -> Store:
    return Store(tmp_path / "here")


def root_of(store: Store) -> Artifact:
    return store.images()[0].manifest.artifacts.root


def spoil(path: Path, data: bytes) -> None:
    """Other bytes in a file that may be read-only, and may be a link."""
    path.unlink()
    path.write_bytes(data)


def all_of(folder: Path) -> list[str]:
    """Everything below a folder but what every writer makes."""
    kept = {"lock", "tmp", "blobs", "images", "channels", "refs", "bundles", "incoming"}
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if str(one.relative_to(folder)) not in kept)


def fetch(world: World, store: Store, digest: str) -> int:
    found = announce(world.source, digest, TRUSTED, IMPATIENT)
    return pull(world.source, found, store, missing(store, found.manifest), IMPATIENT, quiet)


def test_what_is_published_comes_back_the_same(world: World, built: Store, here: Store) -> None:
    digest = built.digests()[0]
    world.put(built, digest)
    signed = world.source.signed(digest)
    assert signed == (built.manifest_bytes(digest), built.signature(digest))
    assert fetch(world, here, digest) == built.image(digest).size
    assert here.digests() == (digest,)
    for _, artifact in built.manifest(digest).artifacts:
        data = here.blob_path(artifact.sha256).read_bytes()
        assert hashlib.sha256(data).hexdigest() == artifact.sha256
    assert list((here.root / "incoming").iterdir()) == []
    assert fetch(world, here, digest) == 0


def test_publishing_again_changes_nothing(world: World, built: Store) -> None:
    digest = built.digests()[0]
    world.put(built, digest)
    before = world.blob(root_of(built).sha256).stat()
    world.put(built, digest)
    after = world.blob(root_of(built).sha256).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize("offset", [0, 1, 1 << 20, len(ROOT) - 1])
def test_a_blob_from_anywhere_on(world: World, built: Store, offset: int) -> None:
    world.put(built, built.digests()[0])
    with world.source.blob(root_of(built), "root", offset) as stream:
        assert stream.start == offset
        assert b"".join(stream.blocks) == ROOT[offset:]


def test_only_what_is_missing_is_fetched(world: World, built: Store, here: Store, tmp_path: Path) -> None:
    digest = built.digests()[0]
    world.put(built, digest)
    add(here, tmp_path / "parts", "two")  # the same kernel
    kernel = built.manifest(digest).artifacts.kernel
    assert fetch(world, here, digest) == built.image(digest).size - kernel.size


def test_several_at_once_into_one_store(world: World, built: Store, here: Store) -> None:
    """Replicas that share a store: one writes at a time, and all succeed."""
    digest = built.digests()[0]
    world.put(built, digest)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: fetch(world, Store(here.root, wait=120), digest), range(4)))
    assert len(done) == 4
    assert here.digests() == (digest,)
    assert all_of(here.root / "blobs") == sorted({artifact.sha256 for _, artifact in built.manifest(digest).artifacts})
    assert list((here.root / "incoming").iterdir()) == []


def test_a_damaged_blob_of_ours_is_fetched_again(world: World, built: Store, here: Store) -> None:
    digest, artifact = built.digests()[0], root_of(built)
    world.put(built, digest)
    fetch(world, here, digest)
    spoil(here.blob_path(artifact.sha256), b"x" * artifact.size)
    assert fetch(world, here, digest) == artifact.size
    assert here.blob_path(artifact.sha256).read_bytes() == ROOT


def test_no_such_image(world: World, built: Store) -> None:
    world.put(built, built.digests()[0])
    with pytest.raises(AbsentError) as error:
        announce(world.source, "ab" * 32, TRUSTED, IMPATIENT)
    assert str(error.value) == f"{world.source.where} has no image abababababab"


def test_no_such_blob(world: World, built: Store, here: Store) -> None:
    digest, artifact = built.digests()[0], root_of(built)
    world.put(built, digest)
    world.blob(artifact.sha256).unlink()
    with pytest.raises(AbsentError) as error:
        fetch(world, here, digest)
    assert str(error.value) == f"{world.source.where} has no root (blob {artifact.sha256[:12]})"
    assert all_of(here.root) == []


def test_a_truncated_blob(world: World, built: Store, here: Store) -> None:
    digest, artifact = built.digests()[0], root_of(built)
    world.put(built, digest)
    spoil(world.blob(artifact.sha256), ROOT[:1000])
    with pytest.raises(DamagedError) as error:
        fetch(world, here, digest)
    assert str(error.value) == (
        f"root (blob {artifact.sha256[:12]}) of {world.source.where} is damaged: "
        f"it has 1000 bytes there, {len(ROOT)} were signed"
    )
    assert all_of(here.root) == []


def test_other_bytes_of_the_same_length(world: World, built: Store, here: Store) -> None:
    digest, artifact = built.digests()[0], root_of(built)
    world.put(built, digest)
    spoil(world.blob(artifact.sha256), b"\xff" + ROOT[1:])
    with pytest.raises(DamagedError) as error:
        fetch(world, here, digest)
    assert str(error.value) == (
        f"root (blob {artifact.sha256[:12]}) of {world.source.where} is damaged: "
        "its bytes are not those that were signed"
    )
    assert all_of(here.root) == []


def test_signed_by_a_key_that_is_not_trusted(world: World, built: Store, here: Store) -> None:
    digest = built.digests()[0]
    world.put(built, digest)
    with pytest.raises(UnknownSignerError) as error:
        announce(world.source, digest, (SigningKey.generate().public,), IMPATIENT)
    assert str(error.value) == f"signed by key {KEY.public.id}, which is not trusted here (see `netboot key list`)"
    assert not here.root.exists()


def test_signatures_of_several_keys(world: World, built: Store, here: Store) -> None:
    """They travel; and one that only we have stays, for machines may believe no other."""
    digest, second, third = built.digests()[0], SigningKey.generate(), SigningKey.generate()
    manifest = built.manifest_bytes(digest)
    built.add_signature(digest, second.sign(manifest))
    world.put(built, digest)
    fetch(world, here, digest)
    assert signers_of(here.signature(digest)) == (KEY.public.id, second.public.id)
    here.add_signature(digest, third.sign(manifest))
    fetch(world, here, digest)
    assert signers_of(here.signature(digest)) == (KEY.public.id, second.public.id, third.public.id)


def test_another_image_under_that_digest(world: World, built: Store) -> None:
    digest, other = built.digests()[0], "cd" * 32
    world.put(built, digest)
    world.rename(built, digest, other)
    with pytest.raises(DamagedError) as error:
        announce(world.source, other, TRUSTED, IMPATIENT)
    assert str(error.value) == (
        f"{world.source.where} gives image {digest[:12]} as cdcdcdcdcdcd: it is damaged, or deceives"
    )
