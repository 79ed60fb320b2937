"""What has survived a power cut when it is answered for. SIGKILL cannot tell: what was written stays in the page cache.

Of databases: with which pragmas the live connection commits. Of files: what was fsynced, and in which order.
"""

import asyncio
import shutil
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from netboot.controllers.bound import Bound
from netboot.join.enrolment import Act, OpenWindow
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.lifecycle.transitions import Mark
from netboot.machines.declarations import Judged
from netboot.machines.maintenance import Freeze
from netboot.machines.values import Inventory
from netboot.stores.acceptance import Acceptance
from netboot.stores.backup import write_backup
from netboot.stores.backup_archive import read_backup
from netboot.stores.bootkey import load_or_create
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.freezes import SqliteFreezes
from netboot.stores.intents import SqliteIntents
from netboot.stores.intents import make as make_intents
from netboot.stores.journal import SqliteJournal
from netboot.stores.journal_reader import cursor_path, write_cursor
from netboot.stores.removals import RemovalsFile
from netboot.stores.restore import restore
from netboot.stores.snapshot import write_snapshot
from netboot.stores.state_writer import SqliteProjection
from tests.joining import declared, snapshot_of
from tests.records import event, script
from tests.sites import make_site
from tests.unit.images.faults import recorded

FULL = 2
"""SQLite waits for the disk at each commit; with NORMAL (1) in WAL mode only at a checkpoint, with OFF (0) never."""


class Commit(NamedTuple):
    """The settings of a connection when something of it became permanent."""

    file: str
    synchronous: int
    journal_mode: str


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[Commit]:
    """Each commit of every connection that is made meanwhile, asked of that very connection."""
    seen: list[Commit] = []

    class Watched(sqlite3.Connection):
        """Every statement by itself is a commit, outside a transaction, if it wrote."""

        changes = 0

        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            done = super().execute(sql, *parameters)
            wrote = self.total_changes != self.changes or sql.startswith(("COMMIT", "CREATE", "PRAGMA user_version ="))
            if wrote and not self.in_transaction:
                self.changes = self.total_changes
                seen.append(
                    Commit(Path(self.of("database_list", 2)).name, self.of("synchronous"), self.of("journal_mode"))
                )
            return done

        def of(self, pragma: str, column: int = 0) -> Any:
            return super().execute(f"PRAGMA {pragma}").fetchone()[column]

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **how: connect(*args, **how, factory=Watched))
    return seen


def test_a_record_is_committed_durably_and_its_journal_has_its_name_before_the_answer(
    tmp_path: Path, commits: list[Commit]
) -> None:
    folder = tmp_path / "journal"

    async def use() -> None:
        with recorded() as events:
            journal = SqliteJournal(folder / "boot-0.db")  # whose thread makes the file at once
            await journal.append(script("gpu-001", 1))
            assert ("fsync", str(folder)) in events
        before = len(commits)
        await asyncio.gather(*(journal.append(script("gpu-001", number)) for number in range(200)))
        assert len(commits) > before
        await journal.aclose()

    asyncio.run(use())
    assert set(commits) == {Commit("boot-0.db", FULL, "wal")}


def test_an_order_of_enrolment_is_committed_durably_before_the_answer(tmp_path: Path, commits: list[Commit]) -> None:
    path = tmp_path / "enrolment.db"
    store = SqliteEnrolments(path)
    with recorded() as events:
        store.apply([("gpu-001", OpenWindow("enrol", "w1", 60_000))], Act("alice", ""), 0)
        assert events[-1] == ("fsync", str(tmp_path))
    made = [commit for commit in commits if commit.file != path.name]
    assert made, "it is made under another name, and has its own only when it is whole"
    assert {commit.synchronous for commit in made} == {FULL}
    assert [commit for commit in commits if commit.file == path.name] == [Commit(path.name, FULL, "wal")]
    commits.clear()
    store.propose("gpu-001", "a1" * 32, "", 1)
    store.alert("gpu-001", "other-key", "somebody else", 2)
    assert commits == [Commit(path.name, FULL, "wal")] * 2


def test_what_is_wanted_of_machines_is_committed_durably_before_the_answer(
    tmp_path: Path, commits: list[Commit]
) -> None:
    path = tmp_path / "intents.db"
    make_intents(path).close()
    commits.clear()
    SqliteIntents(path).order("gpu-001", PutOn(Mark.QUARANTINED, "breach"), "alice", 1)
    SqliteFreezes(path).put(Freeze(who="alice", reason="power work", since_ms=1))
    assert commits == [Commit(path.name, FULL, "wal")] * 2


def test_the_projection_commits_durably_before_a_journal_is_purged_behind_it(
    tmp_path: Path, commits: list[Commit]
) -> None:
    projection = SqliteProjection(tmp_path / "state.db")
    projection.take(Batch("boot-0.db", 7, 1, (script("gpu-001", 1),)))
    before = len(commits)
    projection.take(Batch("boot-0.db", 7, 2, (event("gpu-001", 1, Phase.KERNEL_FETCHED),)))
    assert len(commits) == before + 1
    projection.close()
    assert set(commits) == {Commit("state.db", FULL, "wal")}


def test_the_projection_s_place_in_a_journal_is_whole_whatever_happens(tmp_path: Path) -> None:
    path = cursor_path(tmp_path / "boot-0.db")
    with recorded() as events:
        write_cursor(path, 7)
    assert events == [("fsync", str(path.with_suffix(".cursor-new"))), ("rename", str(path))]


def test_a_snapshot_is_durable_before_it_has_its_name_and_its_name_before_it_counts(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    with recorded() as events:
        write_snapshot(path, snapshot_of(declared()))
    staged = str(tmp_path / "snapshot.json-new")
    assert events == [("fsync", staged), ("rename", str(path)), ("fsync", str(tmp_path))]


def test_the_boot_id_key_is_durable_before_a_boot_is_named_by_it(tmp_path: Path) -> None:
    path = tmp_path / "boot-id.key"
    with recorded() as events:
        load_or_create(path)
    (what, staged), *rest = events
    assert what == "fsync" and Path(staged).name.startswith("boot-id.key.")
    assert rest == [("rename", str(path)), ("fsync", str(tmp_path))]


def test_what_an_operator_accepted_is_durable_before_the_answer(tmp_path: Path) -> None:
    folder = tmp_path / "accepted"
    folder.mkdir()  # as the service does at its start
    with recorded() as events:
        Acceptance(tmp_path).write("a1" * 32)
    staged, path = str(folder / "inventory.json-new"), str(folder / "inventory.json")
    assert events == [("fsync", staged), ("rename", path), ("fsync", str(folder))]


def test_who_went_is_durable_before_it_is_published_who_is_left(tmp_path: Path) -> None:
    config = make_site(tmp_path / "site")
    config.data.mkdir()
    bound = Bound(config.inventory_limits, RemovalsFile(config.data), lambda: 0.0, lambda: 0)
    bound.took(Inventory(machines=(declared(),)), Judged(Inventory()))
    with recorded() as events:
        bound.keep()
        bound.keep()
    assert [(what, Path(path).name) for what, path in events[1:]] == [
        ("rename", "removals.json"),
        ("fsync", config.data.name),
    ]
    assert (events[0][0], len(events)) == ("fsync", 3)


def test_a_restore_is_durable_before_its_marker_goes_and_the_marker_before_anything_changes(tmp_path: Path) -> None:
    root, file, unpacked = tmp_path / "site", tmp_path / "backup", tmp_path / "unpacked"
    config = make_site(root)
    config.data.mkdir(exist_ok=True)
    load_or_create(config.data / "boot-id.key")
    with file.open("wb") as out:
        write_backup(config, root / "netboot.yaml", out, 0)
    shutil.rmtree(root)
    unpacked.mkdir()
    with file.open("rb") as data:
        contents = read_backup(data, unpacked)
    with recorded() as events:
        targets = restore(contents, unpacked, root / "netboot.yaml")
    data_folder = ("fsync", str(config.data))
    places = [events.index(("rename", str(target))) for target in targets]  # each of a file that was fsynced
    assert events.index(data_folder) < min(places)
    folders = {("fsync", str(target.parent)) for target in targets}
    assert data_folder in folders
    assert folders <= set(events[max(places) :])
    assert (events[-1], events.count(data_folder)) == (data_folder, 3)
