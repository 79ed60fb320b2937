"""The projection on real journals: exactly once, whatever happens to journals, cursors and processes."""

import asyncio
import itertools
import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from netboot.controllers import projection
from netboot.controllers.named import NamedMachines
from netboot.controllers.projection import MOST_BYTES, ProjectionController
from netboot.controllers.records import KNOWS, read_record
from netboot.lifecycle import state
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.events import (
    AnyRecord,
    CertificateRecord,
    DiscoveryRecord,
    EventRecord,
    HealthRecord,
    ScriptRecord,
    WaitRecord,
)
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.machines.inventory import load_inventory
from netboot.machines.values import Channel, Inventory, Machine, Match, Profile
from netboot.stores import journal_reader
from netboot.stores.facts import Facts
from netboot.stores.journal import SqliteJournal
from netboot.stores.journal_file import JournalFile
from netboot.stores.journal_reader import cursor_path, read_cursor
from netboot.stores.state import SqliteStates
from netboot.stores.state_writer import SqliteProjection
from tests.records import boot_id, certified, checked, event, script, sighted, waits
from tests.sites import make_site

Record = ScriptRecord | EventRecord | DiscoveryRecord | WaitRecord | HealthRecord | CertificateRecord


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
        self.owned: set[str] = set()
        """Besides those of boot servers."""
        self.controller = self.again()

    def again(self, most_rows: int = 5_000, most_bytes: int = MOST_BYTES) -> ProjectionController:
        """A controller that has just started."""
        controller = ProjectionController(
            self.journals,
            self.projection,
            owned={*(f"boot-{number}.db" for number in range(self.workers)), *self.owned},
            most_rows=most_rows,
            most_bytes=most_bytes,
            monotonic=lambda: self.now,
        )
        self.controller = controller
        return controller

    def write(self, *records: Record, number: int = 0) -> None:
        """As a boot worker does, from its opening to its closing."""

        async def append() -> None:
            journal = SqliteJournal(self.journals / f"boot-{number}.db")
            bodies = ((record.at_ms, record.model_dump_json(by_alias=True)) for record in records)
            await asyncio.gather(*(journal.append_json(*body) for body in bodies))
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


def test_a_journal_that_nobody_has_read_since_the_start_is_not_taken_for_one_that_is_taken_over(tmp_path: Path) -> None:
    site = Site(tmp_path, workers=2)
    for number in range(2):
        site.write(script("gpu-001", number), number=number)
    progress, heard = site.controller.progress, list[tuple[dict[str, int], dict[str, str]]]()
    site.controller.step(lambda: heard.append((progress.lag, progress.problems)))
    unread = {name: f"the journal {name} has not been read yet" for name in ("boot-0.db", "boot-1.db")}
    assert heard[:2] == [({}, unread), ({"boot-0.db": 0}, {"boot-1.db": unread["boot-1.db"]})]
    assert (progress.lag, progress.problems) == ({"boot-0.db": 0, "boot-1.db": 0}, {})
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
    site.owned = {"join-0.db"}
    site.again()
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


def test_a_journal_that_should_be_there_and_is_not_is_named(tmp_path: Path) -> None:
    site = Site(tmp_path, workers=2)
    site.write(script("gpu-001", 1), number=1)
    site.drain()
    words = "the journal {} is not there: its process has not made it, or its folder is gone"
    assert site.controller.progress.problems == {"boot-0.db": words.format("boot-0.db")}
    shutil.rmtree(site.journals)
    site.drain()
    assert site.controller.progress.problems == {
        f"boot-{number}.db": words.format(f"boot-{number}.db") for number in range(2)
    }
    site.projection.close()


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


ENDLESS = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)"
OTHER = "it is not the table that a journal has"
TRAPS = {
    "a table that never ends": (
        f"CREATE VIEW records AS {ENDLESS} SELECT id, 0 AS at_ms, '' AS body FROM n WHERE id < 0",
        OTHER,
    ),
    "one step that never ends": (
        "CREATE VIEW records AS SELECT 1 AS id, 0 AS at_ms, instr(hex(zeroblob(8000000)), 'x') AS body",
        OTHER,
    ),
    "a column that is computed": (
        "CREATE TABLE records (id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER, body TEXT AS (hex(at_ms)))",
        OTHER,
    ),
    "a row that takes all memory": (
        f"{journal_reader.SCHEMA}; INSERT INTO records VALUES (7, 0, zeroblob({2**25}))",
        "string or blob too big",
    ),
}


@pytest.mark.parametrize("what", TRAPS)
def test_a_journal_that_its_owner_made_a_trap_of_holds_nobody_up(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_reader, "CPU_SECONDS", 0.1)
    trap, why = TRAPS[what]
    site = Site(tmp_path, workers=2)
    path = site.journals / "boot-0.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE other (id INTEGER PRIMARY KEY AUTOINCREMENT)")
        db.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('records', 7)")
        for statement in trap.split("; "):
            db.execute(statement)
    site.write(script("gpu-001", 1), number=1)
    site.drain()
    assert site.served() == 1
    assert site.controller.progress.problems == {
        "boot-0.db": f"the journal {path} cannot be read: {why}; it is tried again"
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
    assert (site.served(), site.controller.progress.set_aside) == (2, {"boot-0.db": 1})


def body(record: Record, **changes: object) -> str:
    return json.dumps(json.loads(record.model_dump_json()) | changes)


EVENT = event("gpu-001", 1, Phase.BOOTED)
BAD = {
    "a phase of another version": (body(EVENT, phase="Teleported"), b"Teleported", "event.phase: Input should be"),
    "a kind of another version": (body(EVENT, kind="oracle"), b"oracle", "Input tag 'oracle' found"),
    "a moment beyond all calendars": (body(EVENT, at_ms=2**70), b"", "event.at_ms: Input should be less than"),
    "half a line": ('{"kind": "event", "at', b"", "Invalid JSON: EOF while parsing"),
    "NUL": ("\0" * 10, b"\0" * 10, "Invalid JSON: expected value"),
    "nothing": ("", b"", "Invalid JSON: EOF while parsing"),
    "a blob": (b"\xff\xfe", b"\xff\xfe", "Invalid JSON"),
    "a number": (b"7.5", b"7.5", "should be"),
    "huge": ("x" * 3_000_000, b"x" * state.SET_ASIDE_BYTES, "it has 3000000 characters"),
}


@pytest.mark.parametrize("what", [*BAD, "text that is not UTF-8"])
def test_a_row_that_is_no_record_is_set_aside_and_blocks_nothing(
    site: Site, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad, kept, reason = BAD.get(what, (b"\xff\xfe", b"\xff\xfe", "unable to parse raw data as a unicode string"))
    site.write(script("gpu-001", 1))
    with closing(sqlite3.connect(site.journals / "boot-0.db")) as db, db:
        value = "?" if what in BAD else "CAST(? AS TEXT)"
        db.execute(f"INSERT INTO records (at_ms, body) VALUES (1, {value})", (bad,))
    site.write(script("gpu-001", 2))
    site.drain()
    assert (site.served(), site.controller.progress.set_aside) == (2, {"boot-0.db": 1})
    assert site.controller.progress.problems == {}
    ((origin, row, why, stored),) = aside(site.state)
    assert (origin, row) == ("boot-0.db", "record 2")
    assert reason in why
    assert kept in stored
    assert f"1 rows of boot-0.db are set aside; the first: record 2: {why}" in caplog.text


NOT_THEIRS = "{} is not for the owner of this journal to say: it cannot know it"
FOREIGN: dict[str, tuple[str, Record, str]] = {
    "a boot server that attests": ("boot-0", event("gpu-001", 1, Phase.ATTESTED), "Attested"),
    "a boot server that issues": ("boot-0", event("gpu-001", 1, Phase.TOKEN_ISSUED), "TokenIssued"),
    "a boot server that approves": ("boot-0", event("gpu-001", 1, Phase.CSR_APPROVED), "CSRApproved"),
    "a boot server that sees a node": ("boot-0", event("gpu-001", 1, Phase.NODE_REGISTERED), "NodeRegistered"),
    "a boot server that sees it ready": ("boot-0", event("gpu-001", 1, Phase.READY), "Ready"),
    "join that sees a node": ("join-0", event("gpu-001", 1, Phase.READY), "Ready"),
    "join that reports for a machine": ("join-0", event("gpu-001", 1, Phase.FAILED), "Failed"),
    "join that serves a script": ("join-0", script("gpu-001", 1), "a script record"),
    "join that was asked by a stranger": ("join-0", sighted("52:54:00:00:00:99"), "a discovery record"),
    "join that tells to wait": ("join-0", waits("gpu-001"), "a wait record"),
    "join that knows certificates": ("join-0", certified("gpu-001", 1), "a certificate record"),
    "a boot server that knows them": ("boot-0", certified("gpu-001", 1), "a certificate record"),
    "an approver that attests": ("approver-default", event("gpu-001", 1, Phase.ATTESTED), "Attested"),
    "an approver that checks hardware": ("approver-default", checked("gpu-001", 1), "a health record"),
    "a collector that approves": ("nodes-default", event("gpu-001", 1, Phase.CSR_APPROVED), "CSRApproved"),
    "a journal of nobody's": ("tested", event("gpu-001", 1, Phase.BOOTED), "Booted"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_what_the_owner_of_a_journal_cannot_know_is_set_aside(site: Site, what: str) -> None:
    name, record, said = FOREIGN[what]
    journal = JournalFile(site.journals / f"{name}.db", 10, 2**20)
    assert journal.commit([(record.at_ms, record.model_dump_json(by_alias=True))]) is None
    journal.close()
    site.drain()
    assert [found[:3] for found in aside(site.state)] == [(f"{name}.db", "record 1", NOT_THEIRS.format(said))]
    assert site.controller.progress.set_aside == {f"{name}.db": 1}
    assert (site.states.machines(), site.states.discovered(5), site.states.feed(None, 5)) == ({}, [], [])
    assert site.states.health(boot_id("gpu-001", 1)) is None


def test_a_record_by_a_former_name_is_of_the_machine_that_had_it(tmp_path: Path) -> None:
    match = Match(macs=("52:54:00:00:00:01",))
    machine = Machine(name="r7-1", former_names=("gpu-001",), match=match, profile="compute")
    profiles, channels = (Profile(name="compute", channel="stable"),), (Channel(name="stable"),)
    inventory = Inventory(machines=(machine,), profiles=profiles, channels=channels)
    projection = SqliteProjection(tmp_path / "state.db")
    named = NamedMachines(projection, lambda: inventory, lambda: 0.0)
    named.rename()
    assert named.present(waits("gpu-001")) == waits("r7-1")
    assert named.present(sighted("52:54:00:00:00:99")) == sighted("52:54:00:00:00:99")
    projection.close()


def test_each_phase_is_for_one_kind_of_process_to_journal() -> None:
    assert sorted(phase for phases in KNOWS.values() for phase in phases) == sorted(Phase)


def aside(path: Path) -> list[tuple[str, str, str, bytes]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT origin, row, reason, body FROM set_aside ORDER BY id").fetchall()


def test_of_what_is_set_aside_the_latest_is_kept(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "SET_ASIDE_KEPT", 3)
    site.write(script("gpu-001", 1))
    with closing(sqlite3.connect(site.journals / "boot-0.db")) as db, db:
        db.executemany("INSERT INTO records (at_ms, body) VALUES (1, ?)", [(f"no {n}",) for n in range(20)])
    site.again(most_rows=6)
    site.drain()
    assert site.controller.progress.set_aside == {"boot-0.db": 20}
    assert [stored for *_, stored in aside(site.state)] == [b"no 17", b"no 18", b"no 19"]


def copy(site: Site, source: Path, target: Path) -> None:
    for path in target.glob("*"):
        path.unlink()
    shutil.copytree(source, target, dirs_exist_ok=True)


def test_a_journal_that_is_older_than_the_state_is_read_again_and_counted_once(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.write(*(script("gpu-001", one) for one in range(10)))
    copy(site, site.journals, tmp_path / "backup")
    site.drain()
    site.write(*(script("gpu-001", one) for one in range(10, 30)), sighted("52:54:00:00:00:99"))
    site.drain()
    assert site.served() == 30
    copy(site, tmp_path / "backup", site.journals)
    site.drain()
    assert site.served() == 30
    assert site.controller.progress.replaced == {"boot-0.db": 1}
    assert (
        "journal boot-0.db ends at record 10, 31 were taken over: it was replaced by an older copy of itself, and is "
        "read again from its beginning"
    ) in caplog.text
    site.write(*(script("gpu-001", one) for one in range(40, 45)), sighted("52:54:00:00:00:99"))
    site.drain()
    assert site.served() == 35
    assert site.states.boot(boot_id("gpu-001", 44)) is not None
    assert [seen.mac for seen in site.states.discovered(5)] == ["52:54:00:00:00:99"]
    assert site.controller.progress.replaced == {"boot-0.db": 1}


def test_what_was_written_after_the_restore_and_before_the_look_is_counted(site: Site, tmp_path: Path) -> None:
    site.write(*(script("gpu-001", one) for one in range(10)))
    copy(site, site.journals, tmp_path / "backup")
    site.drain()
    site.write(*(script("gpu-001", one) for one in range(10, 30)))
    site.drain()
    copy(site, tmp_path / "backup", site.journals)
    site.write(*(script("gpu-001", one) for one in range(40, 45)))
    site.again(most_rows=4)
    site.drain()
    kept = 10 + state.CLAIMS_KEPT + 5  # of each batch of claims the newest are in the feed
    assert (site.served(), len(site.states.feed(0, 100))) == (35, kept)


class Refusing(SqliteProjection):
    """A projection on a disk that refuses, until it does not."""

    refusal: Exception | None = StateUnavailableError("state.db cannot be written: disk full")
    journal = ""
    """Only this one; empty: all."""

    def take(self, batch: Batch) -> Mapping[str, int]:
        if self.refusal is not None and self.journal in ("", batch.journal):
            raise self.refusal
        return super().take(batch)


class Slow(SqliteProjection):
    """Every commit takes `seconds` of the site's clock."""

    def __init__(self, site: Site, seconds: float) -> None:
        super().__init__(site.state)
        self.site, self.seconds, self.sizes = site, seconds, list[int]()

    def take(self, batch: Batch) -> Mapping[str, int]:
        self.site.now += self.seconds
        self.sizes.append(len(batch.records))
        return super().take(batch)


def slowly(site: Site, seconds: float, long_seconds: float = projection.LONG_SECONDS) -> Slow:
    """The site's controller on a disk of which each commit takes so long."""
    slow = Slow(site, seconds)
    owned = {f"boot-{number}.db" for number in range(site.workers)}
    site.controller = ProjectionController(
        site.journals, slow, owned=owned, long_seconds=long_seconds, monotonic=lambda: site.now
    )
    return slow


def test_a_projection_whose_commits_take_ten_seconds_is_heard_between_any_two(tmp_path: Path) -> None:
    site = Site(tmp_path, workers=8)
    for number in range(8):
        site.write(script("gpu-001", number), number=number)
    slow = slowly(site, 10.0)
    heard = [site.now]
    while site.controller.step(lambda: heard.append(site.now)):
        pass
    heard.append(site.now)
    assert (site.served(), site.now) == (8, 80.0)
    assert max(after - before for before, after in itertools.pairwise(heard)) == 10.0
    assert site.controller.progress.lag == {f"boot-{number}.db": 0 for number in range(8)}
    slow.close()
    site.projection.close()


def test_a_batch_has_twice_as_many_rows_as_the_one_before_unless_that_took_long(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection, "LEAST_ROWS", 4)
    site.write(*(script("gpu-001", one) for one in range(60)))
    slow = slowly(site, 10.0)
    site.drain()
    assert slow.sizes == [4, 8, 16, 32], "a slow disk has its price for each commit"
    site.write(*(script("gpu-001", 100 + one) for one in range(20)))
    slow.seconds, slow.sizes = 40.0, []
    site.drain()
    assert slow.sizes == [20]
    site.write(*(script("gpu-001", 200 + one) for one in range(25)))
    slow.sizes = []
    site.drain()
    assert slow.sizes == [10, 5, 4, 4, 2]
    slow.close()


def test_while_the_state_refuses_nothing_is_purged(site: Site) -> None:
    refusing = Refusing(site.state)
    site.controller = ProjectionController(site.journals, refusing, owned={"boot-0.db"}, monotonic=lambda: site.now)
    site.write(script("gpu-001", 1))
    site.drain()
    assert site.controller.progress.problems == {"boot-0.db": "state.db cannot be written: disk full"}
    site.write()
    assert site.rows() == 1
    refusing.refusal = None
    site.drain()
    assert (site.served(), site.controller.progress.problems) == (1, {})
    refusing.close()


def test_a_failure_that_nobody_foresaw_stops_one_journal(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Site(tmp_path, workers=2)
    refusing = Refusing(site.state)
    refusing.refusal, refusing.journal = LookupError("a mistake of ours"), "boot-0.db"
    owned = {"boot-0.db", "boot-1.db"}
    site.controller = ProjectionController(site.journals, refusing, owned=owned, monotonic=lambda: site.now)
    site.write(script("gpu-001", 1))
    site.write(script("gpu-002", 1), number=1)
    site.drain()
    assert (site.served("gpu-001"), site.served("gpu-002")) == (0, 1)
    words = "the journal boot-0.db cannot be taken over: LookupError('a mistake of ours'); it is tried again"
    assert site.controller.progress.problems == {"boot-0.db": words}
    site.controller.step()
    assert site.controller.progress.problems == {"boot-0.db": words}, "it rests, and is not well"
    refusing.refusal = None
    site.drain()
    assert (site.served("gpu-001"), site.controller.progress.problems) == (1, {})
    assert caplog.text.count("Traceback") == 1
    refusing.close()
    site.projection.close()


def test_a_look_at_unchanged_journals_reads_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write(script("gpu-001", 1))
    site.drain()
    site.drain()  # SQLite made its own files beside a journal that nobody else had open
    looked: list[object] = []
    monkeypatch.setattr("netboot.stores.journal_reader.end_of", looked.append)
    for _ in range(10):
        site.controller.step()
    assert looked == []


def test_what_is_written_after_every_journal_was_read_is_newer_whatever_its_clock_says(tmp_path: Path) -> None:
    site = Site(tmp_path, workers=2)
    ahead = script("gpu-001", 1).at_ms + 365 * 86_400_000
    site.write(script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED).model_copy(update={"at_ms": ahead}))
    site.drain()
    site.write(script("gpu-001", 2), event("gpu-001", 2, Phase.BOOTED), number=1)
    site.drain()
    current = site.states.machines(["gpu-001"])["gpu-001"].current
    assert current is not None
    assert current.boot == boot_id("gpu-001", 2)
    site.projection.close()


def test_of_which_machines_facts_were_taken_over_is_told_and_whether_any_are_waiting(tmp_path: Path) -> None:
    site, told = Site(tmp_path), list[str]()
    site.controller = ProjectionController(
        site.journals, site.projection, owned={"boot-0.db"}, told=told.extend, most_rows=2, monotonic=lambda: site.now
    )
    site.controller.step()
    assert site.controller.caught_up() is False, "its journal is not there yet"
    site.write(script("gpu-001", 1), sighted("52:54:00:00:00:99"), checked("gpu-002", 1))
    assert site.controller.step() is True
    assert (told, site.controller.caught_up()) == (["gpu-001"], False)
    site.drain()
    assert (told, site.controller.caught_up()) == (["gpu-001", "gpu-002"], True)
    site.now += 10.5
    assert site.controller.caught_up() is False, "nobody has looked since"
    site.controller.step()
    assert site.controller.caught_up() is True
    site.projection.close()


def test_up_to_when_what_join_wrote_down_is_in_the_state_whatever_becomes_of_other_journals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, now = Site(tmp_path), 100_000
    monkeypatch.setattr("netboot.controllers.projection.up_ms", lambda: now)
    owned = {"boot-0.db", "join-0.db"}
    site.controller = ProjectionController(
        site.journals, site.projection, owned=owned, most_rows=2, monotonic=lambda: now / 1000
    )
    progress = site.controller.progress

    def read_up_ms() -> int:
        site.controller.step()
        return progress.status(1).joins_read_up_ms

    assert read_up_ms() == 0, "its journal is not there yet"
    join = JournalFile(site.journals / "join-0.db", 100, 2**20)
    for number in range(5):
        join.commit([(1, event("gpu-001", number, Phase.ATTESTED).model_dump_json())])
    assert read_up_ms() == 0
    now += 2_000
    assert read_up_ms() == 0
    now += 2_000
    assert read_up_ms() == now - 1_000, "a file that looks as it did is not looked into for so long"
    assert progress.problems.keys() == {"boot-0.db"}
    join.commit([(1, event("gpu-001", 9, Phase.ATTESTED).model_dump_json()) for _ in range(3)])
    now += 2_000
    assert read_up_ms() == now - 3_000
    join.close()
    site.projection.close()


def test_whether_all_that_join_wrote_before_a_moment_is_in_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, now = Site(tmp_path), 100_000
    monkeypatch.setattr("netboot.controllers.projection.up_ms", lambda: now)
    controller = ProjectionController(site.journals, site.projection, owned={"join-0.db"}, monotonic=lambda: now / 1000)
    join = JournalFile(site.journals / "join-0.db", 100, 2**20)
    join.commit([(1, event("gpu-001", 1, Phase.ATTESTED).model_dump_json())])
    for _ in range(3):
        now += 2_000
        controller.step()
    assert controller.progress.problems == {}
    read = controller.progress.joins_read_up_ms
    assert read > 0
    assert [controller.joins_read_to(moment) for moment in (0, read, read + 1)] == [True, True, False]
    join.close()
    site.projection.close()


def test_machines_that_left_the_inventory_are_told_to_the_state(tmp_path: Path) -> None:
    site = Site(tmp_path)
    in_force = [load_inventory(make_site(tmp_path / "site").inventory)]
    site.controller = ProjectionController(
        site.journals, site.projection, owned={"boot-0.db"}, inventory=lambda: in_force[0], monotonic=lambda: site.now
    )
    site.write(script("gpu-001", 1), script("gone-001", 1))
    site.drain()
    site.drain()
    assert site.states.removed() == 1
    site.now += state.REMOVED_KEPT_SECONDS
    site.drain()
    assert (site.states.removed(), site.served("gone-001"), site.served("gpu-001")) == (0, 0, 1)
    site.projection.close()


def test_a_batch_is_bounded_by_bytes_and_of_a_boot_s_health_reports_only_the_latest_is_parsed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    batches: list[Batch] = []
    record, take = read_record, site.projection.take

    def parse(body: object) -> AnyRecord:
        parsed.append(str(body))
        return record(body)

    def take_over(batch: Batch) -> Mapping[str, int]:
        batches.append(batch)
        return take(batch)

    monkeypatch.setattr(projection, "read_record", parse)
    monkeypatch.setattr(site.projection, "take", take_over)
    reports = [checked("gpu-001", 1, after_ms=1_000 + number) for number in range(400)]
    site.write(*reports, *(script("gpu-002", number) for number in range(40)))
    site.again(most_bytes=20_000)
    site.drain()
    size = max(len(record.model_dump_json(by_alias=True)) for record in reports)
    assert sum(len(body) for body in parsed) < 40_000, "not 400 reports"
    assert (
        max(sum(len(one.model_dump_json(by_alias=True)) for one in batch.records) for batch in batches) <= 20_000 + size
    )
    assert len(batches) >= 400 * (size - 50) // 20_000
    latest = site.states.health(boot_id("gpu-001", 1))
    assert latest is not None
    assert latest.at_ms == reports[-1].at_ms
    assert site.served("gpu-002") == 40
    assert site.controller.progress.taken == 440


def test_a_health_report_that_cannot_be_read_hides_none_before_it(site: Site) -> None:
    site.write(checked("gpu-001", 1, status="warn"))
    body = checked("gpu-001", 1, after_ms=900).model_dump_json(by_alias=True).replace('"pass"', '"splendid"')
    with closing(sqlite3.connect(site.journals / "boot-0.db")) as db, db:
        db.execute("INSERT INTO records (at_ms, body) VALUES (1, ?)", (body,))
    site.drain()
    latest = site.states.health(boot_id("gpu-001", 1))
    assert latest is not None
    assert latest.report.status == "warn"
    assert site.controller.progress.set_aside == {"boot-0.db": 1}
