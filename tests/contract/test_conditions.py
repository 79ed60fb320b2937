"""What was found of machines, as it is kept: by the one process that judges, for those that show it."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from netboot.lifecycle.conditions import Conditions, Judged, JudgedMachines, MachineCondition, Timer
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.transitions import Trouble
from netboot.stores.conditions import JudgedFile, SqliteConditions
from tests.conditions import MemoryJudged


def judged(name: str, reason: Reason = Reason.BOOTING) -> Judged:
    condition = MachineCondition.of(ConditionType.BOOTED, reason, "said", 5_000)
    timer = Timer(of="boot", place="reports", since=7)
    return Judged(machine=name, conditions=(condition,), timers={"step": timer}, step="Switched", trouble=Trouble.STUCK)


@pytest.fixture(params=["memory", "file"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[JudgedMachines, Conditions]]:
    if request.param == "memory":
        memory = MemoryJudged()
        yield memory, memory
        return
    file = JudgedFile(tmp_path / "conditions.db")
    yield file, SqliteConditions(tmp_path / "conditions.db")
    file.close()


def test_what_was_kept_is_read_by_both_sides(both: tuple[JudgedMachines, Conditions]) -> None:
    kept, shown = both
    assert (kept.names(), kept.seen_time(), kept.judged(["a"])) == (set(), {}, {})
    kept.keep([judged("a"), judged("b")], (), {"reports": 9})
    assert kept.judged(["a", "c"]) == {"a": judged("a")}
    assert (kept.names(), kept.seen_time()) == ({"a", "b"}, {"reports": 9})
    assert shown.conditions() == {name: judged(name).conditions for name in "ab"}
    assert shown.conditions(["b", "c"]) == {"b": judged("b").conditions}


def test_the_latest_takes_the_place_of_what_was_and_the_forgotten_go(both: tuple[JudgedMachines, Conditions]) -> None:
    kept, shown = both
    kept.keep([judged("a"), judged("b")], (), {"reports": 9, "cluster/default": 1})
    kept.keep([judged("a", Reason.STUCK)], ["b"], {"reports": 10})
    assert shown.conditions() == {"a": judged("a", Reason.STUCK).conditions}
    assert kept.seen_time() == {"reports": 10, "cluster/default": 1}


def test_summaries_follow_what_is_found_and_are_the_same_value_where_nothing_else_was(
    both: tuple[JudgedMachines, Conditions],
) -> None:
    kept, shown = both
    assert isinstance(shown, MemoryJudged | SqliteConditions)
    kept.keep([judged("a"), judged("b")], (), {})
    first = shown.summaries()
    assert {name: (each.status, each.reason) for name, each in first.items()} == {
        "a": ("coming", "Booting"),
        "b": ("coming", "Booting"),
    }
    kept.keep([judged("a")], (), {"reports": 10})
    assert shown.summaries() == first
    if isinstance(shown, SqliteConditions):
        assert shown.summaries() is first
    kept.keep([judged("a", Reason.STUCK)], ["b"], {})
    assert {name: (each.status, each.message) for name, each in shown.summaries().items()} == {"a": ("late", "said")}


def test_it_outlives_the_process(tmp_path: Path) -> None:
    file = JudgedFile(tmp_path / "conditions.db")
    file.keep([judged("a")], (), {"reports": 9})
    file.close()
    again = JudgedFile(tmp_path / "conditions.db")
    assert (again.judged(["a"]), again.seen_time()) == ({"a": judged("a")}, {"reports": 9})
    again.close()


def test_a_row_that_cannot_be_read_is_as_if_it_were_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = JudgedFile(tmp_path / "conditions.db")
    file.keep([judged("a"), judged("b")], (), {})
    with closing(sqlite3.connect(tmp_path / "conditions.db", isolation_level=None)) as db:
        db.execute("UPDATE judged SET body = '{}' WHERE machine = 'a'")
    assert set(SqliteConditions(tmp_path / "conditions.db").conditions()) == {"b"}
    assert file.judged(["a"]) == {}
    assert "conditions of a cannot be read and are found anew" in caplog.text
    file.keep([judged("a")], (), {})
    assert file.judged(["a"]) == {"a": judged("a")}
    file.close()


@pytest.mark.parametrize(
    "content", [b"no database at all, for sure" * 100, None], ids=["damaged", "of another version"]
)
def test_a_file_that_cannot_be_used_is_made_anew(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "conditions.db"
    if content is not None:
        path.write_bytes(content)
    else:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("CREATE TABLE judged (else_ TEXT)")
            db.execute("PRAGMA user_version = 99")
    with pytest.raises(StateUnavailableError):
        SqliteConditions(path).conditions()
    file = JudgedFile(path)
    file.keep([judged("a")], (), {})
    assert set(SqliteConditions(path).conditions()) == {"a"}
    file.close()


def test_a_file_with_a_damaged_page_is_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, names = tmp_path / "conditions.db", [f"gpu-{number:03}" for number in range(500)]
    file = JudgedFile(path)
    file.keep([judged(name) for name in names], (), {})
    file.close()
    content = bytearray(path.read_bytes())
    for page in range(2 * 4096, len(content), 4096):  # all but the schema's, and the first table's root
        content[page : page + 200] = b"\xff" * 200
    path.write_bytes(content)
    with pytest.raises(StateUnavailableError, match="malformed"):
        file.judged(names)
    assert file.judged(names) == {}
    file.keep([judged("gpu-001")], (), {})
    assert set(SqliteConditions(path).conditions()) == {"gpu-001"}
    assert "it is made anew, and moments of transitions are lost" in caplog.text
    file.close()


def test_a_file_that_is_not_there_yet_cannot_tell(tmp_path: Path) -> None:
    with pytest.raises(StateUnavailableError, match="is not there yet: the controllers make it within a minute"):
        SqliteConditions(tmp_path / "conditions.db").conditions()


@pytest.mark.parametrize("instead", [None, b"", b"an older copy"], ids=["removed", "emptied", "an older copy"])
def test_a_file_that_is_removed_or_replaced_while_it_is_in_use_is_made_anew(
    tmp_path: Path, instead: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    path, away = tmp_path / "conditions.db", tmp_path / "away"
    file = JudgedFile(path)
    file.keep([judged("older")], (), {"reports": 1})
    file.close()
    shutil.copy(path, away)
    file.keep([judged("a")], (), {"reports": 9})
    path.unlink()
    if instead is not None:
        shutil.copy(away, path) if instead else path.touch()
    with pytest.raises(StateUnavailableError, match="was removed or replaced; it is made anew"):
        file.keep([judged("b")], (), {"reports": 10})
    assert (file.names(), file.seen_time()) == (set(), {})
    file.keep([judged("c")], (), {"reports": 11})
    assert set(SqliteConditions(path).conditions()) == {"c"}
    assert (
        "removed or replaced while it was in use; it is made anew, and moments of transitions are lost" in caplog.text
    )
    file.close()


def test_a_disk_that_refuses_is_tried_again(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    file = JudgedFile(folder / "conditions.db")
    with pytest.raises(StateUnavailableError, match="it is tried again"):
        file.names()
    folder.mkdir()
    assert file.names() == set()
    file.close()
