"""Modes of a store are its own, whatever the umask: a file server of another account can read it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.registry.staging import staging
from images.store import modes
from images.store.store import Store
from tests.unit.images.samples import add


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """UMask=0027 of deploy/netboot.service."""
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


def found(root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix() or ".": mode(path) for path in (root, *root.rglob("*"))}


def test_under_a_strict_umask_everybody_can_read(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    digest = add(store, tmp_path, "one")
    with staging(store.root):
        pass
    everything = found(store.root)
    folders = {".", *modes.FOLDERS, "incoming", "images", f"images/{digest}"}
    assert {name: everything[name] for name in folders} == dict.fromkeys(folders, "0755")
    assert {everything[name] for name in everything if name.startswith(("blobs/", f"images/{digest}/"))} == {"0444"}
    assert everything["lock"] == "0644"
    assert modes.unreadable(store.root) == ()


def test_folders_that_an_older_netboot_made_for_itself_alone_are_opened_by_the_next_write(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    digest = add(store, tmp_path, "one")
    for name in ("blobs", "images", f"images/{digest}"):
        (store.root / name).chmod(0o750)
    assert [path.name for path in modes.unreadable(store.root)] == ["blobs", "images", digest]
    add(store, tmp_path, "one")
    assert modes.unreadable(store.root) == ()


def test_what_somebody_chose_for_the_store_itself_stays(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.mkdir(mode=0o700)
    add(Store(root), tmp_path, "one")
    assert mode(root) == "0700"
    assert [path.name for path in modes.unreadable(root)] == ["store"]


def test_a_group_writes_where_the_store_s_folder_says_so(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.mkdir()
    root.chmod(0o2775)
    digest = add(Store(root), tmp_path, "one")
    everything = found(root)
    assert {everything[name] for name in ("blobs", "images", "tmp", f"images/{digest}")} == {"2775"}
    assert everything["lock"] == "0664"
    ours = root.stat()
    assert modes.unwritable(root, ours.st_uid + 4242, ours.st_gid) == ()


def test_who_may_not_write_is_told_where(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    digest = add(store, tmp_path, "one")
    ours = store.root.stat()
    assert modes.unwritable(store.root, ours.st_uid, ours.st_gid) == ()
    closed = modes.unwritable(store.root, ours.st_uid + 4242, ours.st_gid + 4242)
    names = ["store", *modes.FOLDERS, "lock", digest]
    assert [path.name for path in closed] == names


def test_folders_above_a_store_that_are_made_with_it_can_be_entered(tmp_path: Path) -> None:
    os.umask(0o077)
    add(Store(tmp_path / "srv/netboot/store"), tmp_path, "one")
    assert [mode(tmp_path / name) for name in ("srv", "srv/netboot", "srv/netboot/store")] == ["0755"] * 3
