"""Whether something was committed to a SQLite file, whatever its files look like."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netboot.reread import AGAIN_SECONDS, look
from netboot.stores.commits import Commits, Replaced
from tests.commits import commit


def _made(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("CREATE TABLE t (a INTEGER)")
    db.execute("INSERT INTO t VALUES (0)")
    return db


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.db"


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    made = _made(path)
    yield made
    made.close()


def _add(db: sqlite3.Connection) -> None:
    db.execute("UPDATE t SET a = a + 1")


def test_what_is_committed_has_changed_until_it_is_taken(path: Path, db: sqlite3.Connection) -> None:
    file = Commits(path)
    assert [file.changed(), file.changed()] == [True, True], "the first time there is something"
    file.taken()
    assert not file.changed()
    _add(db)
    assert [file.changed(), file.changed()] == [True, True]
    file.taken()
    assert not file.changed()
    db.execute("BEGIN IMMEDIATE")
    _add(db)
    assert not file.changed(), "it does not count yet"
    db.execute("ROLLBACK")
    assert not file.changed()


def test_what_comes_between_the_question_and_the_answer_is_another_change(path: Path, db: sqlite3.Connection) -> None:
    file = Commits(path)
    assert file.changed()
    _add(db)
    file.taken()
    assert file.changed()


def test_a_commit_counts_for_who_read_while_it_was_written(path: Path, db: sqlite3.Connection) -> None:
    """A disk takes its time to sync what was written. Who looks then sees files that look new, and reads the row of
    before; when the row is another one, the files look as they did."""
    file, wal = Commits(path), path.with_name("x.db-wal")
    assert file.changed()
    read, looks = [0], list[object]()
    file.taken()
    with commit(path, "UPDATE t SET a = a + 1") as steps:
        before = look(wal)
        for _ in steps:
            looks.append(look(wal))
            if file.changed():
                read += db.execute("SELECT a FROM t").fetchone()
                file.taken()
        assert read == [0]
        assert looks
        assert before not in looks
        assert look(wal) == looks[-1], "nothing of it is to be seen from outside"
        assert file.changed()
        assert db.execute("SELECT a FROM t").fetchone() == (1,)


def test_a_file_that_was_replaced_counts_for_itself(path: Path, db: sqlite3.Connection) -> None:
    other = path.with_name("other.db")
    _made(other).close()
    file = Commits(path)
    assert file.changed()
    file.taken()
    other.replace(path)
    assert file.changed()
    file.taken()
    assert not file.changed()
    with sqlite3.connect(path) as new:
        _add(new)
    new.close()
    assert file.changed()


def test_a_file_that_was_another_one_while_it_was_opened(
    path: Path, db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is the one of before again."""
    other, kept = path.with_name("other.db"), path.with_name("kept.db")
    _made(other).close()
    kept.hardlink_to(path)
    really = sqlite3.connect

    def connect(*arguments: Any, **more: Any) -> Any:
        other.replace(path)
        return really(*arguments, **more)

    file = Commits(path, lambda: 0.0)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(sqlite3, "connect", connect)
        assert file.changed()
    file.taken()
    kept.replace(path)
    assert file.changed()
    file.taken()
    _add(db)
    assert file.changed()


def test_what_cannot_be_asked_is_read_now_and_then(path: Path) -> None:
    """Whoever reads it says why, or can read it all the same."""
    now = 1_000.0
    file = Commits(path, lambda: now)
    for content in (None, b"no database at all, whatever its name says " * 100):
        if content is not None:
            path.write_bytes(content)
        assert [file.changed(), file.changed()] == [True, True]
        file.taken()
        assert not file.changed()
        now += AGAIN_SECONDS
    path.unlink()
    _made(path).close()
    assert file.changed()
    file.taken()
    now += AGAIN_SECONDS
    assert not file.changed(), "it can be asked"
    path.unlink()
    assert file.changed()


def test_a_file_that_is_replaced_whole_goes_by_what_it_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    file = Replaced(path)
    assert [file.changed(), file.changed()] == [True, True]
    file.taken()
    assert not file.changed()
    for content in ("1", "2"):
        (tmp_path / "new").write_text(content)
        (tmp_path / "new").replace(path)
        assert file.changed()
        file.taken()
        assert not file.changed()
    path.unlink()
    assert file.changed()
