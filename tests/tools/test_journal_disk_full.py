"""A journal on a disk that runs full: said in words, used again once there is room. Needs root for a small tmpfs."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.stores import journal_file
from netboot.stores.journal_file import JournalFile
from netboot.stores.journal_reader import read_after

pytestmark = pytest.mark.tools


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", tmp_path], check=True)
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_full_disk_refuses_in_words_and_is_used_again_when_there_is_room(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_file, "HOUSEKEEPING_SECONDS", 0.0)
    path = small_disk / "boot-0.db"
    file = JournalFile(path, 10**6, 10**9)
    assert file.commit([(0, "before")]) is None
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as out, pytest.raises(OSError, match="No space left"):
        while True:
            out.write(bytes(4096))
    assert file.commit([(1, "x" * 50_000)]) == (
        f"the journal {path} cannot be written: database or disk is full; free space on its file system"
    )
    assert file.commit([(2, "x" * 50_000)]) is not None
    filler.unlink()
    assert file.commit([(3, "after")]) is None
    file.close()
    assert [row.body for row in read_after(path, 0)] == ["before", "after"]
