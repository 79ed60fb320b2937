"""The key ring: what is trusted, what signs, and what a folder may hold that is neither."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.artifact.keyring import KeyRing
from images.artifact.signing import MOST, SigningKey, verify
from images.errors import NotFoundError, SignatureError, StoreError
from tests.unit.images import faults


@pytest.fixture
def ring(tmp_path: Path) -> KeyRing:
    made = KeyRing(tmp_path / "keys")
    made.create()
    return made


@pytest.fixture
def fast(tmp_path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)


def test_a_private_key_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        info = KeyRing(tmp_path).create()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {f"{info.id}.key": 0o600, f"{info.id}.pub": 0o644, "active": 0o644}


def test_what_was_signed_before_a_rotation_is_trusted_until_its_key_is_retired(ring: KeyRing) -> None:
    old = ring.signing_key()
    signature = old.sign(b"m")
    ring.rotate()
    assert verify(b"m", signature, ring.trusted()).id == old.public.id
    assert len(ring.public_files()) == 2
    ring.retire(old.public.id)
    with pytest.raises(SignatureError):
        verify(b"m", signature, ring.trusted())
    assert len(ring.public_files()) == 1
    assert ring.public_bytes(old.public.id) == old.public.to_bytes()


def test_a_key_is_durably_retired_and_restored(ring: KeyRing) -> None:
    """After a power cut it is not trusted again, and then it is."""
    old = ring.signing_key().public.id
    ring.rotate()
    for act, name in ((ring.retire, f"{old}.retired"), (ring.restore, f"{old}.pub")):
        with faults.recorded() as events:
            act(old)
        assert [path for _, path in events] == [str(ring.folder / name), str(ring.folder)]
        assert events[-1][0] == "fsync"


def test_a_key_under_another_s_name_is_not_taken(ring: KeyRing) -> None:
    """Else a retired key could go on as a copy."""
    mine = ring.signing_key().public
    other = SigningKey.generate()
    path = ring.folder / "copy.pub"
    path.write_bytes(other.public.to_bytes())
    for read in (ring.trusted, ring.public_files):
        with pytest.raises(SignatureError) as caught:
            read()
        assert str(caught.value) == (
            f"{path}: holds key {other.public.id}, not the one of its name: call it {other.public.id}.pub"
        )
    (ring.folder / f"{mine.id}.key").write_bytes(other.to_pem())
    with pytest.raises(SignatureError) as caught:
        ring.signing_key()
    assert str(caught.value) == (
        f"{ring.folder}/{mine.id}.key: holds key {other.public.id}, not the one of its name: give it its own name"
    )


def test_other_files_in_the_folder_are_no_keys(ring: KeyRing) -> None:
    for name in ("README", "ca.key", "ca.crt", "backup.retired"):
        (ring.folder / name).write_text("something")
    assert len(ring.infos()) == len(ring.trusted()) == 1


@pytest.mark.parametrize("data", [b"", b"x" * 5000, b"untrusted comment: x\n", b"untrusted comment: x\nRWQ=\n"])
def test_a_file_that_is_no_key_is_named(ring: KeyRing, data: bytes) -> None:
    (active,) = ring.public_files()
    for path, read in ((active, ring.trusted), (active.with_suffix(".key"), ring.signing_key)):
        path.write_bytes(data)
        with pytest.raises(SignatureError) as caught:
            read()
        assert str(caught.value).startswith(f"{path}: not a")


def test_a_folder_that_cannot_be_read_is_not_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a file in its place")
    ring = KeyRing(tmp_path / "keys")
    with pytest.raises(SignatureError) as caught:
        ring.trusted()
    assert str(caught.value) == f"cannot read {tmp_path}/keys: Not a directory"
    with pytest.raises(StoreError):
        ring.infos()
    with pytest.raises(StoreError, match="cannot make"):
        ring.create()


def test_without_a_private_half_nothing_is_signed_here(ring: KeyRing) -> None:
    (active,) = ring.infos()
    (ring.folder / f"{active.id}.key").unlink()
    with pytest.raises(NotFoundError) as caught:
        ring.signing_key()
    assert str(caught.value) == (
        f"no private key to sign with in {ring.folder}: run `netboot key create` here, "
        "or sign where the private key is kept"
    )
    assert [(info.active, info.private, info.trusted) for info in ring.infos()] == [(True, False, True)]


@pytest.mark.parametrize("name", ["", "..", "../keys/x", "0" * 16, "active", "0" * 15 + "\n"])
def test_only_ids_name_keys(ring: KeyRing, name: str) -> None:
    for act in (ring.retire, ring.restore, ring.public_bytes):
        with pytest.raises(NotFoundError):
            act(name)
    assert len(ring.trusted()) == 1


def test_nothing_shows_a_private_key(ring: KeyRing) -> None:
    assert repr(ring.signing_key()) == "SigningKey()"
    assert repr(ring) == f"KeyRing({str(ring.folder)!r})"
    assert "KEY" not in repr(ring.infos())


def test_a_rotation_killed_or_refused_at_any_step_leaves_a_key_that_signs(fast: Path) -> None:
    KeyRing(fast / "count").create()
    count = faults.steps(fast, KeyRing(fast / "count").rotate)
    assert count > 10
    for step in range(1, count + 1):
        for name in ("killed", "refused"):
            ring = KeyRing(fast / f"{name}-{step}")
            ring.create()
            if name == "killed":
                assert faults.killed_at(step, fast, ring.rotate) == faults.KILLED
            else:
                assert faults.refused_at(step, fast, ring.rotate, errno.EIO, lasting=False) != faults.WRONG
            key = ring.signing_key()
            assert verify(b"m", key.sign(b"m"), ring.trusted()) == key.public
            assert all(not path.stat().st_mode & 0o077 for path in ring.folder.glob("*.key*"))
            ring.rotate()


def test_all_trusted_keys_sign_the_active_one_last_and_never_more_than_a_file_may_have(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "keys")
    ids = [ring.create().id, *(ring.rotate().id for _ in range(MOST + 2))]
    for at, name in enumerate(ids):
        for path in ring.folder.glob(f"{name}.*"):
            os.utime(path, (at, at))
    ring.retire(ids[-2])
    (ring.folder / f"{ids[-3]}.key").unlink()
    found = ring.signing_keys()
    assert [key.public.id for key in found] == [*ids[1:-3], ids[-1]]
    assert len(found) == MOST
