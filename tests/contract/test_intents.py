"""What is wanted of machines, in memory and in SQLite: the same suite, and a state machine that compares both."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.intents import (
    Change,
    DeclaredBy,
    Exemption,
    Intent,
    IntentStore,
    Order,
    PutOn,
    TakeOff,
    Want,
    marks_of,
)
from netboot.lifecycle.transitions import Mark
from netboot.stores import shared_file
from netboot.stores.intents import HISTORY_KEPT, VERSION, SqliteIntents, make
from netboot.stores.shared_file import EMPTY
from tests.intents import MemoryIntents

NOW = 1_790_000_000_000
HOUR = 3_600_000
HELD = Intent(
    machine="gpu-001", mark=Mark.HELD, owner="operator", who="alice", reason="DIMM 4", since_ms=NOW, until_ms=NOW + HOUR
)


def on_disk(path: Path) -> SqliteIntents:
    make(path).close()
    return SqliteIntents(path)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> IntentStore:
    return MemoryIntents() if request.param == "memory" else on_disk(tmp_path / "intents.db")


def hold(store: IntentStore, until: int | None = NOW + HOUR, who: str = "alice", now: int = NOW) -> Change:
    return store.order("gpu-001", PutOn(Mark.HELD, "DIMM 4", until), who, now)


def acts(store: IntentStore) -> list[tuple[str, str, str]]:
    return [(entry.act, entry.who, entry.reason) for entry in store.history("gpu-001", 10)]


def test_nothing_is_wanted_of_a_machine_nobody_spoke_of(store: IntentStore) -> None:
    assert (store.of("gpu-001", NOW), store.all(NOW), store.history(None, 10)) == ([], [], [])
    assert store.order("gpu-001", TakeOff(Mark.HELD, ""), "alice", NOW) == Change("")
    assert store.history(None, 10) == []


def test_what_is_put_on_stands_until_it_is_taken_off(store: IntentStore) -> None:
    assert hold(store, None).act == "put-on"
    store.order("gpu-001", PutOn(Mark.QUARANTINED, "breach"), "bob", NOW + 1)
    store.order("gpu-002", PutOn(Mark.HELD, ""), "bob", NOW + 2)
    found = store.of("gpu-001", NOW + 10**12)
    assert [(one.mark, one.who, one.reason, one.since_ms) for one in found] == [
        (Mark.QUARANTINED, "bob", "breach", NOW + 1),
        (Mark.HELD, "alice", "DIMM 4", NOW),
    ]
    assert marks_of(found) == {Mark.HELD, Mark.QUARANTINED}
    assert [one.machine for one in store.all(NOW)] == ["gpu-001", "gpu-001", "gpu-002"]
    off = store.order("gpu-001", TakeOff(Mark.HELD, "replaced"), "carol", NOW + 3)
    assert (off.act, [one.who for one in off.concerned]) == ("taken-off", ["alice"])
    assert [one.mark for one in store.of("gpu-001", NOW)] == [Mark.QUARANTINED]
    assert acts(store) == [
        ("taken-off", "carol", "replaced"),
        ("put-on", "bob", "breach"),
        ("put-on", "alice", "DIMM 4"),
    ]
    assert [entry.machine for entry in store.history(None, 2)] == ["gpu-001", "gpu-002"]


def test_an_order_that_is_given_again_changes_nothing(store: IntentStore) -> None:
    hold(store)
    for until in (NOW + HOUR, NOW + 1):  # nobody cuts short what somebody else put on
        again = hold(store, until, who="bob", now=NOW + 5)
        assert (again.act, again.concerned) == ("", (HELD,))
    assert store.of("gpu-001", NOW) == [HELD]
    assert len(store.history(None, 10)) == 1


@pytest.mark.parametrize("until", [NOW + 2 * HOUR, None])
def test_a_later_end_moves_the_end_alone(store: IntentStore, until: int | None) -> None:
    hold(store)
    longer = store.order("gpu-001", PutOn(Mark.HELD, "no spare", until), "bob", NOW + 5)
    assert longer.act == "extended"
    assert store.of("gpu-001", NOW) == [HELD.model_copy(update={"until_ms": until})]
    assert acts(store)[0] == ("extended", "bob", "no spare")


def test_what_has_an_end_ends_by_itself_and_the_history_says_so_later(store: IntentStore) -> None:
    hold(store)
    assert len(store.of("gpu-001", NOW + HOUR - 1)) == 1
    assert (store.of("gpu-001", NOW + HOUR), store.all(NOW + HOUR)) == ([], [])
    assert store.order("gpu-001", TakeOff(Mark.HELD, ""), "alice", NOW + HOUR).act == ""
    assert hold(store, None, who="bob", now=NOW + 2 * HOUR).act == "put-on"
    assert acts(store) == [("put-on", "bob", "DIMM 4"), ("ended", "alice", "DIMM 4"), ("put-on", "alice", "DIMM 4")]
    assert store.history("gpu-001", 2)[1].at_ms == NOW + HOUR


def test_each_owner_s_stands_by_itself(store: IntentStore) -> None:
    hold(store)
    theirs = PutOn(Mark.HELD, "came back on another image", None, "rollout/7")
    assert store.order("gpu-001", theirs, "rollout 7", NOW + 1).act == "put-on"
    assert store.order("gpu-001", TakeOff(Mark.HELD, "done", "remedy"), "remedy", NOW + 2).act == ""
    off = store.order("gpu-001", TakeOff(Mark.HELD, "undone", "rollout/7"), "rollout 7", NOW + 2)
    assert [one.owner for one in off.removed] == ["rollout/7"]
    assert store.of("gpu-001", NOW) == [HELD]
    store.order("gpu-001", theirs, "rollout 7", NOW + 3)
    everybody = store.order("gpu-001", TakeOff(Mark.HELD, "fixed"), "alice", NOW + 4)
    assert [one.owner for one in everybody.removed] == ["operator", "rollout/7"]
    assert store.all(NOW) == []


def test_what_an_object_declares_is_altered_with_it_and_stays_where_a_person_lets_go(store: IntentStore) -> None:
    def declared(reason: str, until: int | None, who: str = "hold/dimm") -> Change:
        return store.order("gpu-001", PutOn(Mark.HELD, reason, until, "kubernetes/dimm", exactly=True), who, NOW)

    assert declared("DIMM 4", None).act == "put-on"
    assert declared("DIMM 4", None) == Change("", stands=tuple(store.of("gpu-001", NOW)))
    assert declared("DIMM 5", NOW + HOUR, "bob (hold/dimm)").act == "altered"
    [stands] = store.of("gpu-001", NOW)
    assert (stands.reason, stands.until_ms, stands.who, stands.since_ms) == (
        "DIMM 5",
        NOW + HOUR,
        "bob (hold/dimm)",
        NOW,
    )
    off = TakeOff(Mark.HELD, "", but="kubernetes/")
    assert store.order("gpu-001", off, "alice", NOW) == Change("", stands=(stands,))
    hold(store)
    change = store.order("gpu-001", off, "alice", NOW)
    assert (change.act, change.stands, [each.owner for each in change.removed]) == (
        "taken-off",
        (stands,),
        ["operator"],
    )
    assert store.of("gpu-001", NOW) == [stands]
    assert store.order("gpu-001", TakeOff(Mark.HELD, ""), "alice", NOW).removed == (stands,)


def test_an_acceptance_stands_beside_marks_and_is_none(store: IntentStore) -> None:
    hold(store)
    accepted = PutOn(Exemption.ACCEPTED, "fan 3", NOW + HOUR)
    assert store.order("gpu-001", accepted, "bob", NOW).act == "put-on"
    standing = store.of("gpu-001", NOW)
    assert [one.mark for one in standing] == [Mark.HELD, Exemption.ACCEPTED]
    assert marks_of(standing) == {Mark.HELD}
    assert store.order("gpu-001", TakeOff(Mark.HELD, ""), "bob", NOW).act == "taken-off"
    assert [one.mark for one in store.all(NOW)] == [Exemption.ACCEPTED]
    assert (store.all(NOW + HOUR), store.history("gpu-001", 1)[0].mark) == ([], Mark.HELD)


def test_history_is_bounded(tmp_path: Path) -> None:
    store = on_disk(tmp_path / "intents.db")
    with closing(sqlite3.connect(tmp_path / "intents.db")) as db, db:
        row = ("gpu-001", "Held", "put-on", "operator", "alice", "")
        db.executemany(
            "INSERT INTO history (at_ms, machine, mark, act, owner, who, reason) VALUES (1, ?, ?, ?, ?, ?, ?)",
            [row] * (HISTORY_KEPT + 40) + [("gpu-002", *row[1:])],
        )
    hold(store)
    assert len(store.history("gpu-001", 10_000)) == HISTORY_KEPT
    assert store.history("gpu-001", 1)[0].at_ms == NOW
    assert len(store.history("gpu-002", 10)) == 1


def test_who_writes_objects_pushes_nobody_else_s_history_out(tmp_path: Path) -> None:
    store = on_disk(tmp_path / "intents.db")
    hold(store)
    with closing(sqlite3.connect(tmp_path / "intents.db")) as db, db:
        row = ("gpu-001", "Held", "put-on", "kubernetes/netboot/dimm", "hold/dimm", "")
        db.executemany(
            "INSERT INTO history (at_ms, machine, mark, act, owner, who, reason) VALUES (1, ?, ?, ?, ?, ?, ?)",
            [row] * (HISTORY_KEPT + 40),
        )
    store.order("gpu-001", PutOn(Mark.HELD, "", None, "kubernetes/netboot/psu", exactly=True), "hold/psu", NOW)
    found = store.history("gpu-001", 10_000)
    assert len(found) == HISTORY_KEPT + 1
    assert (found[0].who, found[-1].who) == ("hold/psu", "alice")


def test_what_object_declares_it_is_kept_and_altered_with_it(store: IntentStore) -> None:
    """By another object of the same name it is altered; rows of before the column have none."""
    by = DeclaredBy(of="ns/crd", uid="u-1", machine="gpu-old")
    order = PutOn(Mark.HELD, "DIMM 4", None, "kubernetes/netboot/dimm", exactly=True, object=by)
    assert store.order("gpu-001", order, "hold/dimm", NOW).act == "put-on"
    assert store.order("gpu-001", order, "hold/dimm", NOW + 1).act == ""
    assert [each.object for each in store.all(NOW)] == [by]
    another = by.model_copy(update={"uid": "u-2"})
    assert store.order("gpu-001", order._replace(object=another), "hold/dimm", NOW + 2).act == "altered"
    assert [(each.object, each.since_ms) for each in store.of("gpu-001", NOW)] == [(another, NOW)]
    hold(store)
    assert [each.object for each in store.all(NOW)] == [another, None]


def test_who_orders_at_once_orders_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread opens the file by itself, as processes do."""
    monkeypatch.setattr(shared_file, "BUSY_SECONDS", 60.0)  # a busy disk is no defect
    path = tmp_path / "intents.db"
    barrier, done, failures = threading.Barrier(8), list[str](), list[Exception]()

    def work(number: int) -> None:
        barrier.wait()
        try:
            make(path).close()
            store = SqliteIntents(path)
            done.append(store.order("shared", PutOn(Mark.HELD, ""), f"operator {number}", NOW).act)
            store.order(f"gpu-{number}", PutOn(Mark.QUARANTINED, ""), "alice", NOW)
        except Exception as error:  # noqa: BLE001 - the test shows it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(done) == [""] * 7 + ["put-on"]
    assert len(SqliteIntents(path).all(NOW)) == 9
    assert path.stat().st_mode & 0o777 == 0o600


def cannot_tell(store: SqliteIntents) -> str:
    """What every question is answered with, the same one."""
    said = set()
    for question in (
        lambda: store.of("gpu-001", NOW),
        lambda: store.all(NOW),
        lambda: hold(store),
        lambda: store.history(None, 1),
    ):
        with pytest.raises(StateUnavailableError) as caught:
            question()
        said.add(str(caught.value))
    assert len(said) == 1
    return said.pop()


def test_a_file_that_is_gone_or_damaged_says_nothing_of_nobody(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    store = SqliteIntents(path)
    assert cannot_tell(store) == f"{path} cannot be used: it is not there; what is held cannot be told"
    assert not path.exists()
    path.write_bytes(b"")
    assert cannot_tell(store) == f"{path} cannot be used: {EMPTY}"
    with pytest.raises(StateUnavailableError) as refused:
        make(path)
    assert (str(refused.value), path.read_bytes()) == (EMPTY, b""), "nor is it made into one that says that"
    path.write_bytes(b"this is not a database" * 100)
    assert cannot_tell(store) == f"{path} cannot be used: file is not a database; what is held cannot be told"
    with pytest.raises(sqlite3.DatabaseError, match="file is not a database"):
        make(path)
    path.unlink()
    with closing(make(path)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    assert cannot_tell(store) == (
        f"{path} was written by a newer netboot (schema {VERSION + 1}, this one knows {VERSION}): restart the service, "
        "where that version is installed; otherwise run that version, or restore a backup"
    )
    with pytest.raises(StateUnavailableError, match="written by a newer netboot"):
        make(path)


def test_a_file_that_was_torn_says_so(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    store = on_disk(path)
    for number in range(200):
        store.order(f"gpu-{number:03}", PutOn(Mark.HELD, "x" * 400), "alice", NOW)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2 // 4096 * 4096])
    with pytest.raises(StateUnavailableError, match=r"cannot be used: .*; what is held cannot be told"):
        store.all(NOW)


def test_a_row_that_cannot_be_read_is_not_left_out(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    store = on_disk(path)
    hold(store)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE intents SET mark = 'Hold'")
    for question in (lambda: store.of("gpu-001", NOW), lambda: store.all(NOW), lambda: hold(store)):
        with pytest.raises(StateUnavailableError, match=r"holds what cannot be read \(mark: .*\): restore a backup"):
            question()


def test_a_disk_that_refuses_leaves_all_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    store = on_disk(path)
    hold(store)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON history BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    orders: tuple[Order, ...] = (PutOn(Mark.QUARANTINED, ""), TakeOff(Mark.HELD, ""), PutOn(Mark.HELD, "", None))
    for order in orders:
        with pytest.raises(StateUnavailableError, match="disk full"):
            store.order("gpu-001", order, "bob", NOW)
    assert store.of("gpu-001", NOW) == [HELD]


OWNERS = st.sampled_from(["operator", "remedy", "rollout/1"])
MARKS = st.sampled_from([Mark.HELD, Mark.QUARANTINED, Exemption.ACCEPTED])
MACHINES = st.sampled_from(["gpu-001", "gpu-002"])


class Both(RuleBasedStateMachine):
    """The one on disk against the one in memory, whatever is ordered by whom and however time goes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.disk, self.memory, self.now = on_disk(Path(self.folder.name) / "intents.db"), MemoryIntents(), NOW

    def teardown(self) -> None:
        self.folder.cleanup()

    def order(self, machine: str, order: Order) -> None:
        assert self.disk.order(machine, order, "alice", self.now) == self.memory.order(
            machine, order, "alice", self.now
        )

    @rule(machine=MACHINES, mark=MARKS, owner=OWNERS, more=st.none() | st.integers(1, 5))
    def put_on(self, machine: str, mark: Want, owner: str, more: int | None) -> None:
        before = [one for one in self.memory.of(machine, self.now) if (one.mark, one.owner) != (mark, owner)]
        self.order(machine, PutOn(mark, "r", None if more is None else self.now + more, owner))
        after = self.memory.of(machine, self.now)
        assert [one for one in after if (one.mark, one.owner) != (mark, owner)] == before
        assert any((one.mark, one.owner) == (mark, owner) for one in after)

    @rule(machine=MACHINES, mark=MARKS, owner=st.none() | OWNERS)
    def take_off(self, machine: str, mark: Want, owner: str | None) -> None:
        before = self.memory.of(machine, self.now)
        self.order(machine, TakeOff(mark, "r", owner))
        kept = [one for one in before if one.mark is not mark or owner not in (None, one.owner)]
        assert self.memory.of(machine, self.now) == kept

    @rule(more=st.integers(-2, 3))
    def pass_time(self, more: int) -> None:
        self.now += more

    @invariant()
    def alike(self) -> None:
        assert self.disk.all(self.now) == self.memory.all(self.now)
        assert self.disk.history(None, 1000) == self.memory.history(None, 1000)


TestBoth = Both.TestCase
TestBoth.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
