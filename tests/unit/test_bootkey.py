"""The boot-id key's file."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores.bootkey import LOOK_SECONDS, BootIdKey, key_of, load_or_create
from tests.sites import make_site


def test_it_is_made_once_private_and_stays(tmp_path: Path) -> None:
    path = tmp_path / "data" / "boot-id.key"
    key = load_or_create(path)
    assert len(key) == 32
    assert load_or_create(path) == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["boot-id.key"]


def test_many_that_start_at_once_get_the_same_one(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: load_or_create(tmp_path / "boot-id.key"), range(64)))
    assert len(keys) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["boot-id.key"]


def test_what_is_no_key_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "boot-id.key"
    path.write_bytes(b"short")
    with pytest.raises(StateUnavailableError) as caught:
        load_or_create(path)
    assert str(caught.value) == (
        f"{path} is not a boot-id key (32 bytes); remove it, and boots under way will not be recognised"
    )
    assert path.read_bytes() == b"short"


def test_a_folder_in_its_place_is_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "boot-id.key"
    path.mkdir()
    with pytest.raises(StateUnavailableError, match="cannot be used: Is a directory"):
        load_or_create(path)


def test_a_key_that_is_named_is_never_made(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site")
    assert len(key_of(config)) == 32
    named = tmp_path / "secrets" / "boot-id.key"
    with pytest.raises(StateUnavailableError) as caught:
        key_of(config.model_copy(update={"boot_id_key": named}))
    assert str(caught.value) == (
        f"boot_id_key names {named}, which is not there: bring the site's key (`netboot restore` does); a new one, "
        f"made with `(umask 077; head -c 32 /dev/urandom > {named})`, recognises no boot under way"
    )
    assert not named.parent.exists()


def test_another_key_in_the_file_is_in_force_without_a_restart(tmp_path: Path) -> None:
    path, now = tmp_path / "boot-id.key", [0.0]
    load_or_create(path)
    key = BootIdKey(path, lambda: now[0])
    first = key.current()
    assert first == path.read_bytes()
    other = tmp_path / "other"
    other.write_bytes(b"n" * 32)
    other.replace(path)
    assert key.current() is first
    now[0] += LOOK_SECONDS
    assert key.current() == b"n" * 32
    assert key.current() is key.current()


def test_a_key_that_is_gone_or_spoilt_leaves_the_one_before_in_force(tmp_path: Path) -> None:
    path, now = tmp_path / "boot-id.key", [0.0]
    load_or_create(path)
    key = BootIdKey(path, lambda: now[0])
    first = key.current()
    for spoil in (path.unlink, lambda: path.write_bytes(b"short")):
        spoil()
        now[0] += 60
        assert key.current() is first
    path.write_bytes(first)
    now[0] += 60
    assert key.current() is first
