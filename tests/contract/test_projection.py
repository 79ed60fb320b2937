"""The projection on real journals: exactly once, whatever happens to journals, cursors and processes."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.controllers.projection import ProjectionController
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.events import DiscoveryRecord, EventRecord, ScriptRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.stores.facts import Facts
from netboot.stores.journal import SqliteJournal
from netboot.stores.journal_reader import cursor_path, read_cursor
from netboot.stores.state import SqliteStates
from netboot.stores.state_writer import SqliteProjection
from tests.records import boot_id, event, script, sighted

Record = ScriptRecord | EventRecord | DiscoveryRecord


class Site:
    """Journals, the projection and what it made."""

    def __init__(self, folder: Path, workers: int = 1) -> None:
        self.journals, self.state = folder / "journal", folder / "state.db"
        self.journals.mkdir(exist_ok=True)
        self.projection = SqliteProjection(self.state)
        self.projection.cursor("")
        self.states = SqliteStates(self.state)
        self.now = 0.0
        self.workers = workers
        self.controller = self.again()

    def again(self, most_rows: int = 5_000) -> ProjectionController:
        """A controller that has just started."""
        controller = ProjectionController(
            self.journals,
            self.projection,
            owned={*(f"boot-{number}.db" for number in range(self.workers)), "join-0.db"},
            most_rows=most_rows,
            monotonic=lambda: self.now,
        )
        self.controller = controller
        return controller

    def write(self, *records: Record, number: int = 0) -> None:
        """As a boot worker does, from its opening to its closing."""

        async def append() -> None:
            journal = SqliteJournal(self.journals / f"boot-{number}.db")
            await asyncio.gather(*(journal.append(record) for record in records))
            await journal.aclose()

        asyncio.run(append())

    def drain(self) -> None:
        self.now += 5
        while self.controller.step():
            pass

    def served(self, machine: str = "gpu-001") -> int:
        found = self.states.machines([machine])
        return found[machine].claims.served if machine in found else 0

    def rows(self, number: int = 0) -> int:
        db = sqlite3.connect(self.journals / f"boot-{number}.db")
        try:
            return int(db.execute("SELECT count(*) FROM records").fetchone()[0])
        finally:
            db.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.projection.close()


def test_what_is_journalled_becomes_state_and_is_purged(site: Site) -> None:
    site.write(script("gpu-001", 1), event("gpu-001", 1, Phase.INITRD_STARTED), sighted("52:54:00:00:00:99"))
    site.drain()
    assert site.states.machines()["gpu-001"].current is not None
    assert [one.mac for one in site.states.discovered(5)] == ["52:54:00:00:00:99"]
    assert read_cursor(cursor_path(site.journals / "boot-0.db")) == 3
    assert (site.controller.progress.taken, site.controller.progress.lag) == (3, {"boot-0.db": 0})
    site.write()  # its owner opens it, and purges
    assert site.rows() == 0


def test_several_journals_in_several_batches(tmp_path: Path) -> None:
    site = Site(tmp_path, workers=3)
    for number in range(3):
        site.write(*(script("gpu-001", 100 * number + one) for one in range(25)), number=number)
    site.again(most_rows=4)
    site.drain()
    assert site.served() == 75
    site.projection.close()


def test_a_projection_killed_between_commit_and_cursor_counts_nothing_twice(site: Site) -> None:
    site.write(*(script("gpu-001", one) for one in range(10)))
    site.drain()
    cursor_path(site.journals / "boot-0.db").unlink()
    site.again()
    site.drain()
    site.write(script("gpu-001", 20))
    site.drain()
    assert site.served() == 11
    assert read_cursor(cursor_path(site.journals / "boot-0.db")) == 11


def test_a_journal_that_was_deleted_and_begun_anew_loses_nothing(site: Site) -> None:
    site.write(*(script("gpu-001", one) for one in range(10)))
    site.drain()
    for path in site.journals.iterdir():
        path.unlink()
    site.drain()
    site.write(*(script("gpu-001", 50 + one) for one in range(12)))
    site.drain()
    assert site.served() == 22
    assert site.states.boot(boot_id("gpu-001", 50)) is not None


def test_a_state_that_was_deleted_is_made_from_what_the_journals_still_hold(site: Site) -> None:
    site.write(script("gpu-001", 1))
    site.drain()
    site.projection.close()
    for path in site.state.parent.glob("state.db*"):
        path.unlink()
    site.write(script("gpu-001", 2))
    site.again()
    site.drain()
    assert site.states.boot(boot_id("gpu-001", 2)) is not None


def test_what_a_worker_left_behind_that_is_not_there_any_more(tmp_path: Path) -> None:
    site = Site(tmp_path, workers=1)
    site.write(script("gpu-001", 1), number=4)
    site.drain()
    assert site.served() == 1
    assert list(site.journals.iterdir()) == []
    site.write(script("gpu-001", 2), number=4)
    site.drain()
    assert site.served() == 2
    site.projection.close()


def test_what_join_and_the_approver_learnt_is_followed_too(site: Site) -> None:
    for name in ("join-0", "approver-default"):
        facts = Facts(site.journals / f"{name}.db")
        phase = Phase.ATTESTED if name == "join-0" else Phase.CSR_APPROVED
        facts.append(event("gpu-001", 1, phase))
        facts.close()
    site.drain()
    trace = site.states.boot(boot_id("gpu-001", 1))
    assert trace is not None
    assert [one.phase for one in trace.reached] == [Phase.ATTESTED, Phase.CSR_APPROVED]
    assert [path.name for path in site.journals.glob("*.db")] == ["join-0.db"]  # the approver's has no owner here


def test_a_damaged_journal_is_named_and_holds_nobody_up(tmp_path: Path) -> None:
    site = Site(tmp_path, workers=2)
    (site.journals / "boot-0.db").write_bytes(b"not a database at all" * 400)
    site.write(script("gpu-001", 1), number=1)
    site.drain()
    assert site.served() == 1
    path = site.journals / "boot-0.db"
    assert site.controller.progress.problems == {
        "boot-0.db": f"the journal {path} cannot be read: file is not a database; it is tried again"
    }
    site.projection.close()


def test_a_record_that_is_none_is_counted_and_passed(site: Site) -> None:
    site.write(script("gpu-001", 1))
    db = sqlite3.connect(site.journals / "boot-0.db")
    db.execute('INSERT INTO records (at_ms, body) VALUES (1, \'{"kind": "from the future"}\')')
    db.commit()
    db.close()
    site.write(script("gpu-001", 2))
    site.drain()
    assert (site.served(), site.controller.progress.unreadable) == (2, 1)


class Refusing:
    """A projection on a disk that refuses, until it does not."""

    def __init__(self, real: SqliteProjection) -> None:
        self.real, self.refuses = real, True

    def cursor(self, journal: str) -> tuple[int, int]:
        return self.real.cursor(journal)

    def take(self, batch: Batch) -> None:
        if self.refuses:
            raise StateUnavailableError("state.db cannot be written: disk full")
        self.real.take(batch)


def test_while_the_state_refuses_nothing_is_purged(site: Site) -> None:
    refusing = Refusing(site.projection)
    site.controller = ProjectionController(site.journals, refusing, owned={"boot-0.db"}, monotonic=lambda: site.now)
    site.write(script("gpu-001", 1))
    site.drain()
    assert site.controller.progress.problems == {"boot-0.db": "state.db cannot be written: disk full"}
    site.write()
    assert site.rows() == 1
    refusing.refuses = False
    site.drain()
    assert (site.served(), site.controller.progress.problems) == (1, {})


def test_a_look_at_unchanged_journals_reads_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write(script("gpu-001", 1))
    site.drain()
    site.drain()  # SQLite made its own files beside a journal that nobody else had open
    looked: list[object] = []
    monkeypatch.setattr("netboot.stores.journal_reader.end_of", looked.append)
    for _ in range(10):
        site.controller.step()
    assert looked == []
