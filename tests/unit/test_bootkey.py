"""The boot-id key's file."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores.bootkey import load_or_create


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
