"""Facts on a real file: durable when `append` returns, whatever the threads, the disk and the projection do."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.phases import Phase
from netboot.stores import journal_file
from netboot.stores.facts import Facts
from netboot.stores.journal_file import STANDING, JournalFile, Rows
from netboot.stores.journal_reader import cursor_path, read_after, write_cursor
from tests.processes import wait_for
from tests.records import event


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "join-0.db"


@pytest.fixture
def facts(path: Path) -> Iterator[Facts]:
    made = Facts(path)
    yield made
    made.close()


def rows(path: Path) -> int:
    db = sqlite3.connect(path)
    try:
        return int(db.execute("SELECT count(*) FROM records").fetchone()[0])
    finally:
        db.close()


def test_what_was_appended_is_there_for_others_at_once(facts: Facts, path: Path) -> None:
    record = event("gpu-001", 1, Phase.ATTESTED)
    facts.append(record)
    (row,) = read_after(path, 0)
    assert row.body == record.model_dump_json()


def test_many_threads_lose_nothing(facts: Facts, path: Path) -> None:
    def write(number: int) -> None:
        for one in range(20):
            facts.append(event("gpu-001", number * 100 + one, Phase.ATTESTED))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({row.body for row in read_after(path, 0)}) == 160


def test_what_the_projection_took_is_purged_without_another_append(facts: Facts, path: Path) -> None:
    facts.append(event("gpu-001", 1, Phase.ATTESTED))
    write_cursor(cursor_path(path), 1)
    wait_for(lambda: rows(path) == 0)


def test_a_disk_that_refuses_is_said_and_used_again_when_it_does_not(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("in the way")
    facts = Facts(tmp_path / "journal" / "join-0.db")
    with pytest.raises(JournalUnavailableError, match=r"the journal .*join-0.db cannot be written"):
        facts.append(event("gpu-001", 1, Phase.ATTESTED))
    (tmp_path / "journal").unlink()
    facts.append(event("gpu-001", 2, Phase.ATTESTED))
    assert facts.failure is None
    facts.close()
    assert len(read_after(tmp_path / "journal" / "join-0.db", 0)) == 1


def test_a_full_journal_says_what_to_look_at(path: Path) -> None:
    facts = Facts(path, most_rows=1)
    facts.append(event("gpu-001", 1, Phase.ATTESTED))
    with pytest.raises(JournalUnavailableError, match=r"is full: 1 records .* wait for the projection"):
        facts.append(event("gpu-001", 2, Phase.ATTESTED))
    facts.close()


def test_after_the_end_nothing_is_taken(path: Path) -> None:
    facts = Facts(path)
    facts.append(event("gpu-001", 1, Phase.ATTESTED))
    facts.close()
    with pytest.raises(JournalUnavailableError, match="the service is stopping"):
        facts.append(event("gpu-001", 2, Phase.ATTESTED))
    assert rows(path) == 1


def test_on_a_disk_that_stands_still_nobody_waits_without_an_end(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stands, goes_on, commit = threading.Event(), threading.Event(), JournalFile.commit
    on_their_way: list[int] = []

    def slow(file: JournalFile, rows: Rows) -> str | None:
        if stands.is_set():
            on_their_way.append(len(rows))
            goes_on.wait(180)
        return commit(file, rows)

    monkeypatch.setattr(JournalFile, "commit", slow)
    monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 180)
    facts = Facts(path)
    facts.append(event("gpu-001", 1, Phase.ATTESTED))
    stands.set()
    refused: list[str] = []

    def write(number: int) -> None:
        with pytest.raises(JournalUnavailableError) as error:
            facts.append(event("gpu-001", number, Phase.ATTESTED))
        refused.append(str(error.value))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2, 10)]
    for thread in threads:
        thread.start()
    wait_for(lambda: sum(on_their_way) + facts._queue.qsize() == 8)  # the idle thread's own commit has no rows
    monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 0.01)
    for thread in threads:
        thread.join(180)
    assert (refused, facts.failure) == ([STANDING] * 8, STANDING)
    write(10)
    assert sum(on_their_way) + facts._queue.qsize() == 8, "at once: nobody waits behind it"
    monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 180)
    stands.clear()
    goes_on.set()
    wait_for(lambda: facts.failure is None)
    facts.append(event("gpu-001", 11, Phase.ATTESTED))
    facts.close()
    said = [record.getMessage() for record in caplog.records]
    assert said == [f"journal: {STANDING}", "journal: records are written down again"]
    assert len(read_after(path, 0)) == 10, "those without an answer too, but for the one who was not let in"


def test_an_idle_journal_finds_out_by_itself_that_its_disk_stands_still(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_file, "PROBE_SECONDS", 0.0)
    facts = Facts(path)
    facts.append(event("gpu-001", 1, Phase.ATTESTED))  # then the file is whole
    monkeypatch.setattr(journal_file, "DEADLINE_SECONDS", 0.2)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        wait_for(lambda: _locked(db))  # whoever writes waits, and whoever only reads does not
        wait_for(lambda: facts.failure == STANDING)
        db.execute("ROLLBACK")
    wait_for(lambda: facts.failure is None)
    facts.close()


def _locked(db: sqlite3.Connection) -> bool:
    try:
        db.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return False
    return True
