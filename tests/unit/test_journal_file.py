"""The file behind a journal: purging, failures in words, coming back by itself; and its reader."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from netboot.lifecycle.errors import JournalUnavailableError
from netboot.stores import journal_file
from netboot.stores.journal import SqliteJournal
from netboot.stores.journal_file import JournalFile
from netboot.stores.journal_reader import cursor_path, read_after, read_cursor, write_cursor
from tests.records import script


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(journal_file, "HOUSEKEEPING_SECONDS", 0.0)
    monkeypatch.setattr(journal_file, "LOCK_SECONDS", 0.05)
    return tmp_path / "journal" / "boot-0.db"


def file_at(path: Path, most_rows: int = 1_000, most_bytes: int = 10**9) -> JournalFile:
    return JournalFile(path, most_rows, most_bytes)


def rows(count: int, size: int = 10) -> list[tuple[int, str]]:
    return [(number, "x" * size) for number in range(count)]


def test_what_the_projection_has_taken_over_is_purged_by_the_owner(path: Path) -> None:
    file = file_at(path)
    assert file.commit(rows(10)) is None
    write_cursor(cursor_path(path), 7)
    assert file.commit([]) is None
    assert [row.id for row in read_after(path, 0)] == [8, 9, 10]
    assert file.unshipped == 3
    file.close()


def test_purging_goes_in_steps_and_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_file, "PURGE_ROWS", 4)
    file = file_at(path)
    assert file.commit(rows(10)) is None
    write_cursor(cursor_path(path), 10)
    left = []
    for _ in range(4):
        assert file.commit([]) is None
        left.append(len(read_after(path, 0)))
    assert left == [6, 2, 0, 0]
    file.close()


def test_whoever_waits_for_a_commit_waits_for_a_small_piece_of_a_purge_in_the_same_transaction(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_file, "PURGE_BESIDE", 4)
    file, statements = file_at(path), list[str]()
    assert file.commit(rows(10)) is None
    write_cursor(cursor_path(path), 10)
    assert file._db is not None
    file._db.set_trace_callback(lambda statement: statements.append(statement.split()[0]))
    left = []
    for _ in range(3):
        assert file.commit(rows(1)) is None
        left.append([row.id for row in read_after(path, 0)])
    assert left == [[7, 8, 9, 10, 11], [11, 12], [11, 12, 13]]
    written = [statement for statement in statements if statement != "PRAGMA"]
    assert written == 2 * ["BEGIN", "DELETE", "INSERT", "COMMIT"] + ["INSERT"]
    file.close()


def test_a_journal_that_was_empty_when_it_was_opened_purges_from_there_on(path: Path) -> None:
    """Not from the first id that it ever had: that would take a commit for each few of millions."""
    file = file_at(path)
    assert file.commit(rows(1_000)) is None
    write_cursor(cursor_path(path), 1_000)
    file.close()
    file = file_at(path)
    assert file.commit([]) is None
    assert [row.id for row in read_after(path, 0)] == []
    file.close()
    file = file_at(path)
    assert file.commit(rows(1)) is None
    write_cursor(cursor_path(path), 1_001)
    assert file.commit(rows(1)) is None
    assert [row.id for row in read_after(path, 0)] == [1_002]
    file.close()


def test_with_little_room_what_was_taken_over_makes_room_before_anything_is_written(path: Path) -> None:
    file = file_at(path, most_bytes=400_000)
    assert file.commit(rows(80, size=3_000)) is None
    assert file.commit([]) is None, "measured: more than half"
    write_cursor(cursor_path(path), 80)
    assert file.commit(rows(1)) is None
    assert [row.id for row in read_after(path, 0)] == [81]
    file.close()


def test_ids_rise_without_reuse_after_everything_was_purged_and_the_file_opened_again(path: Path) -> None:
    file = file_at(path)
    assert file.commit(rows(3)) is None
    write_cursor(cursor_path(path), 3)
    assert file.commit([]) is None
    file.close()
    again = file_at(path)
    assert again.commit(rows(1)) is None
    assert [row.id for row in read_after(path, 3)] == [4]
    again.close()


def test_a_lost_file_gives_no_id_that_the_projection_has_passed(path: Path) -> None:
    file = file_at(path)
    assert file.commit(rows(5)) is None
    write_cursor(cursor_path(path), 5)
    path.unlink()
    words = file.commit(rows(1))
    assert words is not None and str(path) in words
    assert file.commit(rows(1)) is None
    assert [row.id for row in read_after(path, 5)] == [6]
    file.close()


def test_a_locked_file_is_said_to_be_locked_and_used_again_afterwards(path: Path) -> None:
    file = file_at(path)
    assert file.commit(rows(1)) is None
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert file.commit(rows(1)) == (
            f"the journal {path} cannot be written: database is locked; end the other program that has it open"
        )
        assert file.commit([]) is not None, "idle, it still cannot be written"
        other.execute("ROLLBACK")
    assert file.commit([]) is None
    assert file.commit(rows(1)) is None
    assert len(read_after(path, 0)) == 2
    file.close()


def test_too_many_bytes_are_as_full_as_too_many_rows(path: Path) -> None:
    file = file_at(path, most_bytes=200_000)
    assert file.commit(rows(100, size=3_000)) is None
    words = file.commit(rows(1))
    assert words is not None and words.startswith("the journal boot-0.db is full: 100 records (")
    assert words.endswith(
        "wait for the projection; look why `netboot serve` does not run its controllers process, or why that one fails"
    )
    write_cursor(cursor_path(path), 100)
    assert file.commit(rows(1)) is None
    file.close()


def test_a_folder_that_cannot_be_made_is_an_answer_and_no_exception(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("in the way")
    file = file_at(tmp_path / "journal" / "boot-0.db")
    assert file.commit(rows(1)) == (
        f"the journal {tmp_path}/journal/boot-0.db cannot be written: File exists; "
        "check the disk; it is tried again with the next record"
    )


def test_what_is_no_database_is_an_answer_and_no_exception(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database, and longer than a header " * 10)
    assert file_at(path).commit(rows(1)) == (
        f"the journal {path} cannot be written: file is not a database; "
        "check the disk; it is tried again with the next record"
    )


def test_the_journal_fails_its_appends_while_the_file_does_and_says_so_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def use() -> None:
        journal = SqliteJournal(path)
        await journal.append(script("n1", 1))
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for number in (2, 3):
                with pytest.raises(JournalUnavailableError, match="database is locked"):
                    await journal.append(script("n1", number))
            assert journal.failure is not None
            other.execute("ROLLBACK")
        await journal.append(script("n1", 4))
        assert journal.failure is None
        await journal.aclose()

    asyncio.run(use())
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


@pytest.mark.parametrize("text", ["", "seven", "-1", "1" * 30, "²"])
def test_a_cursor_that_makes_no_sense_only_means_reading_again(tmp_path: Path, text: str) -> None:
    (tmp_path / "boot-0.cursor").write_text(text)
    assert read_cursor(tmp_path / "boot-0.cursor") == 0


def test_reading_a_journal_that_is_not_there_yet_gives_nothing(tmp_path: Path) -> None:
    assert read_after(tmp_path / "boot-0.db", 0) == []


_VICTIM = """
import asyncio, os, sys
from pathlib import Path
from netboot.stores.journal import SqliteJournal

async def main():
    journal = SqliteJournal(Path(sys.argv[1]))
    async def one(number):
        while True:
            await journal.append_json(number, f"record {number}")
            os.write(1, b"%d\\n" % number)
            number += 1000
    await asyncio.gather(*(one(number) for number in range(1000)))

asyncio.run(main())
"""


def test_killed_under_a_thousand_writers_it_has_every_record_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "boot-0.db"
    victim = subprocess.Popen([sys.executable, "-c", _VICTIM, str(path)], stdout=subprocess.PIPE, cwd=Path.cwd())
    assert victim.stdout is not None
    with victim.stdout as stdout:
        said = b""
        while said.count(b"\n") < 3_000:
            piece = os.read(stdout.fileno(), 65_536)
            assert piece, "it ended by itself"
            said += piece
        victim.send_signal(signal.SIGKILL)
        said += stdout.read()
    assert victim.wait(180) == -signal.SIGKILL
    acknowledged = {int(line) for line in said.decode().split("\n")[:-1]}
    written = {int(row.body.removeprefix("record ")) for row in read_after(path, 0, most=10**9)}
    assert len(acknowledged) >= 3_000
    assert acknowledged <= written


def test_without_records_the_disk_is_tried_now_and_then(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_at(path)
    assert file.commit(rows(1)) is None
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert file.commit([]) is None, "it has just been written"
        monkeypatch.setattr(journal_file, "PROBE_SECONDS", 0.0)
        failure = file.commit([])
        assert failure is not None
        assert "database is locked" in failure
        db.execute("ROLLBACK")
    assert file.commit([]) is None
    file.close()
