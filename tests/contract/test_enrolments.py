"""Enrolment, in memory, in SQLite and in objects: the same suite, and a state machine that compares them."""

import itertools
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from netboot.join.enrolment import (
    ALERTS_KEPT_MS,
    Act,
    Alert,
    Approve,
    EnrolmentStore,
    Entry,
    Import,
    OpenWindow,
    Order,
    OrdersRefusedError,
    Owner,
    Propose,
    Record,
    Reinstate,
    Release,
    Replace,
    Retire,
)
from netboot.join.errors import RefusedError
from netboot.join.object_enrolments import ObjectEnrolments
from netboot.join.ports import Enrolment
from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores import shared_file
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.enrolment_schema import MIGRATIONS, VERSION
from tests.enrolment_objects import MemoryObjects
from tests.enrolments import MemoryEnrolments

NOW = 1_790_000_000_000
A, B = "a1" * 32, "b2" * 32
ALICE = Act("alice", "new board")


@pytest.fixture(params=["memory", "sqlite", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EnrolmentStore]:
    stores: dict[str, Callable[[], EnrolmentStore]] = {
        "memory": MemoryEnrolments,
        "sqlite": lambda: SqliteEnrolments(tmp_path / "enrolment.db"),
        "objects": lambda: ObjectEnrolments(MemoryObjects(NOW)),
    }
    yield stores[request.param]()


@pytest.fixture(params=["memory", "sqlite"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EnrolmentStore]:
    """One that has a history."""
    yield MemoryEnrolments() if request.param == "memory" else SqliteEnrolments(tmp_path / "enrolment.db")


def noted(store: EnrolmentStore, machine: str | None = None, limit: int = 100) -> list[Entry] | None:
    """Its history; None: who did what is in the API server's audit log."""
    return None if isinstance(store, ObjectEnrolments) else store.history(machine, limit)


def do(store: EnrolmentStore, machine: str, order: Order, now: int = NOW) -> Record:
    return store.apply([(machine, order)], ALICE, now)[0].record


def window(store: EnrolmentStore, machine: str = "gpu-001", kind: str = "enrol") -> Record:
    assert kind in ("enrol", "boot")
    return do(store, machine, OpenWindow(kind, f"w-{machine}", NOW + 60_000))  # type: ignore[arg-type]


def refused(store: EnrolmentStore, machine: str, order: Order, now: int = NOW) -> str:
    before = store.records(), store.history(None, 100)
    with pytest.raises(RefusedError) as caught:
        do(store, machine, order, now)
    assert (store.records(), store.history(None, 100)) == before
    return str(caught.value)


def test_nothing_is_on_record_of_a_machine_nobody_spoke_of(store: EnrolmentStore) -> None:
    assert store.of("gpu-001") == Enrolment(machine="gpu-001")
    assert store.by_ek(A) is None
    assert store.owner(A) is None
    assert (store.records(), store.history(None, 10)) == ([], [])
    assert store.use_window("gpu-001", "", NOW) is False


def test_alerts_are_one_of_a_kind_whatever_key_it_was(kept: EnrolmentStore) -> None:
    opened = window(kept)
    for at in range(500):
        kept.alert("gpu-001", "other-key", f"another key ({at:064x})", NOW + at)
    kept.alert("gpu-001", "counters", "cleared?" * 1000, NOW + 9)
    kept.alert("gpu-002", "other-key", "a thief", NOW)
    other, counters = kept.alerts("gpu-001")
    assert other == Alert(
        machine="gpu-001", kind="other-key", first_ms=NOW, last_ms=NOW + 499, count=500,
        said=f"another key ({499:064x})",
    )  # fmt: skip
    assert (counters.kind, counters.count, len(counters.said)) == ("counters", 1, 1000)
    assert [one.count for one in kept.alerts("gpu-002")] == [1]
    assert kept.alerts("gpu-009") == []
    assert kept.record("gpu-001") == opened
    assert [one.act for one in kept.history(None, 100)] == ["window-opened"]


def test_an_alert_that_is_long_ago_is_forgotten(kept: EnrolmentStore) -> None:
    kept.alert("gone-001", "other-key", "a thief", NOW)
    kept.alert("gpu-001", "other-key", "a thief", NOW + 1)
    kept.alert("gpu-001", "counters", "cleared?", NOW + ALERTS_KEPT_MS)
    assert [len(kept.alerts(name)) for name in ("gone-001", "gpu-001")] == [1, 2]
    kept.alert("gpu-001", "counters", "cleared?", NOW + ALERTS_KEPT_MS + 1)
    assert [len(kept.alerts(name)) for name in ("gone-001", "gpu-001")] == [0, 2]
    kept.alert("gpu-001", "counters", "cleared?", NOW + ALERTS_KEPT_MS + 2)
    assert [(one.kind, one.count) for one in kept.alerts("gpu-001")] == [("counters", 3)]


def test_from_window_to_pending_to_approved_to_retired_and_back(store: EnrolmentStore) -> None:
    opened = window(store)
    assert (opened.state, opened.window, opened.window_until_ms) == ("none", "enrol", NOW + 60_000)
    assert store.propose("gpu-001", A, '{"serial": "S1"}', NOW + 1) == store.of("gpu-001")
    pending = store.of("gpu-001")
    assert pending == Enrolment(machine="gpu-001", ek_sha256=A, state="pending", source="first-use")
    assert store.by_ek(A) == pending
    assert store.record("gpu-001").details == '{"serial": "S1"}'
    assert do(store, "gpu-001", Approve(A, store.record("gpu-001").revision)).state == "approved"
    assert do(store, "gpu-001", Retire()).state == "retired"
    retired = store.by_ek(A)
    assert retired is not None
    assert (retired.machine, retired.state) == ("gpu-001", "retired")
    back = do(store, "gpu-001", Reinstate(store.record("gpu-001").revision))
    assert (back.state, back.generation, back.source, back.retired_from) == ("approved", 1, "first-use", "none")
    if noted(store) is None:
        return
    said = [(one.act, one.operator, one.reason, one.ek_sha256) for one in store.history("gpu-001", 10)]
    assert said == [
        ("returned", "alice", "new board", A),
        ("retired", "alice", "new board", A),
        ("approved", "alice", "new board", A),
        ("proposed", "", "", A),
        ("window-opened", "alice", "new board", None),
    ]
    assert [one.act for one in store.history(None, 2)] == ["returned", "retired"]


def test_no_window_no_enrolment(store: EnrolmentStore) -> None:
    words = "no window is open in which gpu-001 could enrol; `netboot machine enroll gpu-001` opens one"
    assert refused(store, "gpu-001", Propose(A, "")) == words
    window(store)
    assert refused(store, "gpu-001", Propose(A, ""), NOW + 60_000) == words
    window(store, "gpu-002", "boot")
    assert refused(store, "gpu-002", Propose(A, "")).startswith("no window is open in which gpu-002 could enrol")


def test_one_window_takes_one_tpm(store: EnrolmentStore) -> None:
    window(store)
    assert store.propose("gpu-001", A, "", NOW).state == "pending"
    assert store.propose("gpu-001", A, "again", NOW + 90_000) == store.of("gpu-001")
    assert store.record("gpu-001").details == ""
    assert "no window is open" in refused(store, "gpu-001", Propose(B, ""))


def test_an_ek_is_one_machines_and_a_conflict_names_both(store: EnrolmentStore) -> None:
    do(store, "gpu-001", Import(A))
    window(store, "gpu-002")
    both = "gpu-002 shows the TPM of gpu-001 (EK a1a1a1a1a1a1a1a1...): an EK belongs to one machine"
    assert refused(store, "gpu-002", Propose(A, "")) == both
    both = "EK a1a1a1a1a1a1a1a1... is the TPM of gpu-001, not of gpu-002: an EK belongs to one machine"
    assert refused(store, "gpu-002", Import(A)) == both
    do(store, "gpu-001", Retire())
    assert refused(store, "gpu-002", Import(A)) == both


def test_what_is_another_machines_tpm_is_approved_of_none() -> None:
    """Where two are pending by one EK, as replicas that race may have it."""
    objects = MemoryObjects(NOW)
    store = ObjectEnrolments(objects)
    for name in ("gpu-001", "gpu-002"):
        window(store, name)
    store.propose("gpu-001", A, "", NOW)
    status = objects.objects["gpu-001"].status
    objects.objects["gpu-002"] = objects.objects["gpu-002"]._replace(status=status)
    words = "EK a1a1a1a1a1a1a1a1... is the TPM of {}, not of {}: an EK belongs to one machine"
    assert refused(store, "gpu-001", Approve(A)) == words.format("gpu-002", "gpu-001")
    do(store, "gpu-002", Replace("w2", NOW + 60_000))
    assert do(store, "gpu-001", Approve(A)).state == "approved"


def test_a_tpm_that_became_anothers_is_not_approved_on_disk(tmp_path: Path) -> None:
    store = SqliteEnrolments(tmp_path / "enrolment.db")
    window(store)
    store.propose("gpu-001", A, "", NOW)
    with sqlite3.connect(tmp_path / "enrolment.db") as db:
        db.execute("UPDATE eks SET machine = 'gpu-002'")
    words = "EK a1a1a1a1a1a1a1a1... is the TPM of gpu-002, not of gpu-001: an EK belongs to one machine"
    assert refused(store, "gpu-001", Approve(A)) == words


def test_what_is_approved_is_what_was_shown(store: EnrolmentStore) -> None:
    assert refused(store, "gpu-001", Approve(A)) == (
        "nothing of gpu-001 waits for approval; `netboot machine enroll gpu-001` opens a window"
    )
    window(store)
    store.propose("gpu-001", A, "", NOW)
    shown = store.record("gpu-001").revision
    changed = "the enrolment of gpu-001 is not what was shown: its EK is {} now; look again"
    assert refused(store, "gpu-001", Approve(B)) == changed.format("a1a1a1a1a1a1a1a1...")
    do(store, "gpu-001", Replace("w2", NOW + 60_000))
    store.propose("gpu-001", B, "", NOW)
    assert refused(store, "gpu-001", Approve(A, shown)) == changed.format("b2b2b2b2b2b2b2b2...")
    assert refused(store, "gpu-001", Approve(B, shown)) == changed.format("b2b2b2b2b2b2b2b2...")


def test_a_replaced_tpm_comes_back_through_no_window(store: EnrolmentStore) -> None:
    do(store, "gpu-001", Import(A))
    replaced = do(store, "gpu-001", Replace("w2", NOW + 60_000))
    assert (replaced.state, replaced.ek_sha256, replaced.generation, replaced.window) == ("none", None, 1, "enrol")
    old = store.by_ek(A)
    assert old is not None
    assert (old.machine, old.state, old.ek_sha256, old.window) == ("gpu-001", "retired", A, None)
    assert refused(store, "gpu-001", Propose(A, "")) == (
        "gpu-001 shows a TPM that was taken out of it by an operator's word (EK a1a1a1a1a1a1a1a1...)"
    )
    window(store, "gpu-002")
    assert "the TPM of gpu-001" in refused(store, "gpu-002", Propose(A, ""))
    store.propose("gpu-001", B, "", NOW)
    moved = do(store, "gpu-002", Import(A))
    assert (moved.state, moved.source) == ("approved", "imported")
    assert store.owner(A) == Owner("gpu-002", replaced=False)
    found = noted(store, "gpu-002", 1)
    assert found is None or found[0].said == "taken out of gpu-001 before"
    assert store.by_ek(B) == store.of("gpu-001")


def test_windows_are_for_machines_without_a_tpm_on_record(store: EnrolmentStore) -> None:
    do(store, "gpu-001", Import(A))
    assert refused(store, "gpu-001", OpenWindow("enrol", "w", NOW + 1_000)) == (
        "gpu-001 has an approved TPM (EK a1a1a1a1a1a1a1a1...); if it has another one now: "
        "`netboot machine replace gpu-001 --part tpm`"
    )
    assert refused(store, "gpu-001", OpenWindow("boot", "w", NOW + 1_000)) == (
        "gpu-001 has a TPM on record (EK a1a1a1a1a1a1a1a1...) and never joins without it"
    )
    window(store, "gpu-002")
    store.propose("gpu-002", B, "", NOW)
    assert refused(store, "gpu-002", OpenWindow("enrol", "w", NOW + 1_000)) == (
        "gpu-002 has a TPM pending (EK b2b2b2b2b2b2b2b2...): `netboot machine approve gpu-002` if it is the right one; "
        "if not, `netboot machine replace gpu-002 --part tpm` refuses it for ever and opens a new window"
    )
    assert refused(store, "gpu-003", OpenWindow("enrol", "w", NOW)) == "a window must end in the future"


def test_a_boot_window_is_used_once(store: EnrolmentStore) -> None:
    window(store, "gpu-001", "boot")
    assert store.of("gpu-001").window_id == "w-gpu-001"
    assert store.use_window("gpu-001", "another", NOW) is False
    assert store.use_window("gpu-001", "w-gpu-001", NOW + 60_000) is False
    assert store.use_window("gpu-001", "w-gpu-001", NOW + 59_999) is True
    assert store.use_window("gpu-001", "w-gpu-001", NOW + 59_999) is False
    assert store.of("gpu-001") == Enrolment(machine="gpu-001")


def test_retired_is_out_of_everything_until_approved_again(store: EnrolmentStore) -> None:
    window(store)
    assert do(store, "gpu-001", Retire()).window is None
    again = store.record("gpu-001")
    assert do(store, "gpu-001", Retire()) == again
    words = "gpu-001 is retired; `netboot machine approve gpu-001` brings it back"
    assert refused(store, "gpu-001", OpenWindow("enrol", "w", NOW + 1_000)) == words
    assert refused(store, "gpu-001", Import(A)) == words
    assert refused(store, "gpu-001", Replace("w", NOW + 1_000)) == f"{words} first"
    assert do(store, "gpu-001", Reinstate(again.revision)).state == "none"


def test_who_comes_back_is_what_it_was_before(store: EnrolmentStore) -> None:
    window(store)
    store.propose("gpu-001", A, "", NOW)
    pending = store.record("gpu-001").revision
    retired = do(store, "gpu-001", Retire())
    assert (retired.state, retired.retired_from, retired.revision) == ("retired", "pending", pending + 1)
    words = "the enrolment of gpu-001 is not what was shown: its EK is a1a1a1a1a1a1a1a1... now; look again"
    assert refused(store, "gpu-001", Approve(A)) == words  # it was pending when it was shown
    assert refused(store, "gpu-001", Reinstate(pending)) == words
    back = do(store, "gpu-001", Reinstate(retired.revision))
    assert (back.state, back.ek_sha256, back.approved_ek) == ("pending", A, None)
    found = noted(store, "gpu-001", 1)
    assert found is None or found[0].said == "in service again, as before: pending"
    assert refused(store, "gpu-001", Reinstate(back.revision)) == words
    assert do(store, "gpu-001", Approve(A)).approved_ek == A
    assert do(store, "gpu-001", Retire()).approved_ek is None


def test_release_and_replace_raise_the_generation(store: EnrolmentStore) -> None:
    assert do(store, "gpu-001", Release()).generation == 1
    do(store, "gpu-001", Import(A))
    assert do(store, "gpu-001", Release()).generation == 2
    assert store.of("gpu-001").state == "approved"
    assert do(store, "gpu-001", Replace("w", NOW + 1_000)).generation == 3
    assert refused(store, "gpu-001", Replace("w", NOW + 1_000)) == (
        "gpu-001 has no TPM on record; `netboot machine enroll gpu-001` opens a window for one"
    )


def test_orders_given_together_are_all_or_nothing(store: EnrolmentStore) -> None:
    with pytest.raises(OrdersRefusedError) as caught:
        store.apply([("gpu-001", Import(A)), ("gpu-002", Import(A)), ("gpu-001", Import(B))], ALICE, NOW)
    assert [position for position, _ in caught.value.refusals] == [1, 2]
    assert store.records() == []
    done = store.apply([("gpu-002", Import(B)), ("gpu-001", Import(A))], ALICE, NOW)
    assert [(one.record.machine, one.act) for one in done] == [("gpu-002", "imported"), ("gpu-001", "imported")]
    again = store.apply([("gpu-001", Import(A))], ALICE, NOW + 5)
    assert [(one.record, one.act) for one in again] == [(store.record("gpu-001"), "")]
    found = noted(store)
    assert found is None or len(found) == 2


def test_only_a_changed_state_changes_its_since(kept: EnrolmentStore) -> None:
    do(kept, "gpu-001", Import(A), NOW)
    do(kept, "gpu-001", Release(), NOW + 5)
    assert (kept.record("gpu-001").since_ms, kept.record("gpu-001").revision) == (NOW, 2)


def test_processes_that_start_together_share_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread opens the file by itself, as processes do; one of them makes it."""
    monkeypatch.setattr(shared_file, "BUSY_SECONDS", 60.0)  # a busy disk is no defect
    barrier, failures = threading.Barrier(8), []

    def work(number: int) -> None:
        mine = SqliteEnrolments(tmp_path / "enrolment.db")
        barrier.wait()
        try:
            do(mine, f"gpu-{number}", Release())
            do(mine, "shared", Release())
        except Exception as error:  # noqa: BLE001 - the test shows it
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store = SqliteEnrolments(tmp_path / "enrolment.db")
    assert store.of("shared").generation == 8
    assert len(store.records()) == 9
    assert (tmp_path / "enrolment.db").stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(tmp_path / "enrolment.db") as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_one_window_lets_one_of_many_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_file, "BUSY_SECONDS", 60.0)  # a busy disk is no defect
    path = tmp_path / "enrolment.db"
    window(SqliteEnrolments(path), "gpu-001", "boot")
    barrier, won = threading.Barrier(6), []

    def work() -> None:
        barrier.wait()
        won.append(SqliteEnrolments(path).use_window("gpu-001", "w-gpu-001", NOW))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == [False] * 5 + [True]


def test_a_disk_that_refuses_cannot_tell(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "enrolment.db"
    with pytest.raises(StateUnavailableError, match=r"enrolment\.db cannot be used: No such file or directory"):
        SqliteEnrolments(path).of("gpu-001")
    path = tmp_path / "enrolment.db"
    path.write_bytes(b"this is not a database" * 100)
    with pytest.raises(StateUnavailableError, match="cannot be used: file is not a database"):
        SqliteEnrolments(path).by_ek(A)
    path.unlink()
    store = SqliteEnrolments(path)
    do(store, "gpu-001", Import(A))
    with sqlite3.connect(path) as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON history BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    db.close()
    with pytest.raises(StateUnavailableError, match="disk full"):
        do(store, "gpu-001", Retire())
    with pytest.raises(StateUnavailableError, match="disk full"):
        window(store, "gpu-002", "boot")
    assert store.of("gpu-001").state == "approved"
    assert store.of("gpu-002") == Enrolment(machine="gpu-002")


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "enrolment.db"
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    db.close()
    with pytest.raises(StateUnavailableError, match="written by a newer netboot"):
        SqliteEnrolments(path).of("gpu-001")


def test_the_first_schema_is_put_right(tmp_path: Path) -> None:
    """It made `approved` of whatever was on record of who came back, and each alert was a line of its history."""
    path = tmp_path / "enrolment.db"
    with sqlite3.connect(path) as db:
        for statement in MIGRATIONS[0]:
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
        acts = {
            "shown": ("approved", "proposed approved retired returned"),
            "imported": ("approved", "imported retired returned"),
            "unseen": ("approved", "proposed retired returned"),
            "out": ("retired", "proposed approved retired"),
            "out-unseen": ("retired", "proposed retired"),
        }
        for number, (machine, (state, history)) in enumerate(acts.items()):
            ek = f"{number:064x}"
            row = (machine, ek, state, "first-use", 0, None, "", 0, "", NOW, 3)
            db.execute(f"INSERT INTO machines VALUES ({', '.join('?' * 11)})", row)
            for act in history.split():
                note = "INSERT INTO history (at_ms, machine, act, operator, reason, ek_sha256, said)"
                db.execute(f"{note} VALUES (?, ?, ?, '', '', ?, '')", (NOW, machine, act, ek))
        for at, (machine, said) in enumerate((("shown", "key a"), ("out", "key b"), ("shown", "key c"))):
            note = "INSERT INTO history (at_ms, machine, act, operator, reason, ek_sha256, said)"
            db.execute(f"{note} VALUES (?, ?, 'alert', '', '', NULL, ?)", (NOW + at, machine, said))
        db.execute("INSERT INTO machines VALUES ('empty', NULL, 'retired', '', 0, NULL, '', 0, '', 0, 1)")
    db.close()
    found = {one.machine: (one.state, one.retired_from) for one in SqliteEnrolments(path).records()}
    assert found == {
        "shown": ("approved", "none"),
        "imported": ("approved", "none"),
        "unseen": ("pending", "none"),
        "out": ("retired", "approved"),
        "out-unseen": ("retired", "pending"),
        "empty": ("retired", "none"),
    }
    store = SqliteEnrolments(path)
    (alert,) = store.alerts("shown")
    assert (alert.kind, alert.first_ms, alert.last_ms, alert.count, alert.said) == ("earlier", NOW, NOW + 2, 2, "key c")
    assert {one.act for one in store.history(None, 100)} == {"proposed", "approved", "imported", "retired", "returned"}


def told(record: Record | None) -> dict[str, object] | None:
    """Without what is counted or timed otherwise, and the form of what the machine said."""
    return record.model_dump(exclude={"revision", "since_ms", "details"}) if record is not None else None


MACHINES = st.sampled_from(["gpu-001", "gpu-002", "gpu-003"])
EKS = st.sampled_from([A, B, "c3" * 32])


class Enrolling(RuleBasedStateMachine):
    """Any orders in any order: both stores agree, and what must never be never is."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.disk, self.memory = SqliteEnrolments(Path(self._folder.name) / "e.db"), MemoryEnrolments()
        self.objects = ObjectEnrolments(MemoryObjects(NOW))
        self.now, self.windows, self.gone = NOW, 0, set[tuple[str, str]]()
        self.generations: dict[str, int] = {}

    def teardown(self) -> None:
        self._folder.cleanup()

    def order(self, machine: str, order: Order) -> Record | None:
        """By both stores; what a dry run says before is what it comes to, and it leaves everything as it was."""
        said: list[tuple[Record | None, str]] = []
        for store, dry_run in itertools.product((self.memory, self.disk), (True, False)):
            before = store.records()
            try:
                said.append((store.apply([(machine, order)], ALICE, self.now, dry_run=dry_run)[0].record, ""))
            except RefusedError as error:
                said.append((None, str(error)))
            assert not dry_run or store.records() == before
        assert said == [said[0]] * 4
        for dry_run in (True, False):
            kept = self.objects.records()
            try:
                done = self.objects.apply([(machine, order)], ALICE, self.now, dry_run=dry_run)[0].record
                assert told(done) == told(said[0][0])
            except RefusedError as error:
                assert (said[0][0], str(error)) == (None, said[0][1])
            assert not dry_run or self.objects.records() == kept
        return said[0][0]

    @rule(seconds=st.integers(1, 90))
    def wait(self, seconds: int) -> None:
        self.now += seconds * 1000

    @rule(machine=MACHINES, kind=st.sampled_from(["enrol", "boot"]))
    def opened(self, machine: str, kind: str) -> None:
        self.windows += 1
        before = self.memory.of(machine)
        if self.order(machine, OpenWindow(kind, f"w{self.windows}", self.now + 60_000)):  # type: ignore[arg-type]
            assert before.state == "none"

    @rule(machine=MACHINES, ek=EKS)
    def proposed(self, machine: str, ek: str) -> None:
        before = self.memory.record(machine)
        after = self.order(machine, Propose(ek, "said"))
        if after is not None and after != before:
            assert (before.state, before.open_window(self.now), after.state) == ("none", "enrol", "pending")
            assert (machine, ek) not in self.gone

    @rule(machine=MACHINES, ek=EKS)
    def approved(self, machine: str, ek: str) -> None:
        before = self.memory.of(machine)
        if self.order(machine, Approve(ek)):
            assert before.ek_sha256 == ek

    @rule(machine=MACHINES)
    def returned(self, machine: str) -> None:
        before = self.memory.record(machine)
        after = self.order(machine, Reinstate(before.revision))
        if after is not None:
            assert (before.state, after.state, after.ek_sha256) == ("retired", before.retired_from, before.ek_sha256)

    @rule(machine=MACHINES, ek=EKS)
    def imported(self, machine: str, ek: str) -> None:
        if self.order(machine, Import(ek)):
            self.gone.discard((machine, ek))

    @rule(machine=MACHINES)
    def released(self, machine: str) -> None:
        assert self.order(machine, Release())

    @rule(machine=MACHINES)
    def replaced(self, machine: str) -> None:
        self.windows += 1
        old = self.memory.of(machine).ek_sha256
        if self.order(machine, Replace(f"w{self.windows}", self.now + 60_000)):
            assert old is not None
            self.gone.add((machine, old))

    @rule(machine=MACHINES)
    def retired(self, machine: str) -> None:
        assert self.order(machine, Retire())

    @rule(machine=MACHINES, number=st.integers(0, 3))
    def used(self, machine: str, number: int) -> None:
        window_id = f"w{self.windows - number}"
        stores = (self.disk, self.memory, self.objects)
        assert len({store.use_window(machine, window_id, self.now) for store in stores}) == 1

    @invariant()
    def both_say_the_same(self) -> None:
        assert self.disk.records() == self.memory.records()
        assert self.disk.history(None, 1000) == self.memory.history(None, 1000)

    @invariant()
    def objects_say_the_same(self) -> None:
        """Of machines of which anything is on record; how often that changed, objects count otherwise."""
        assert {one.machine: told(self.objects.record(one.machine)) for one in self.memory.records()} == {
            one.machine: told(one) for one in self.memory.records()
        }
        for ek in (A, B, "c3" * 32):
            ours, theirs = self.objects.by_ek(ek), self.memory.by_ek(ek)
            assert (ours and (ours.machine, ours.state)) == (theirs and (theirs.machine, theirs.state))

    @invariant()
    def an_ek_is_one_machines(self) -> None:
        held = [one.ek_sha256 for one in self.memory.records() if one.ek_sha256 is not None]
        assert len(held) == len(set(held))
        for ek in (A, B, "c3" * 32):
            found = self.disk.by_ek(ek)
            assert found == self.memory.by_ek(ek)
            if found is not None and found.state in ("pending", "approved"):
                assert self.memory.of(found.machine).ek_sha256 == ek

    @invariant()
    def generations_never_fall(self) -> None:
        for one in self.memory.records():
            assert one.generation >= self.generations.get(one.machine, 0)
            self.generations[one.machine] = one.generation


Enrolling.TestCase.settings = settings(max_examples=12, stateful_step_count=15, deadline=None)
TestEnrolling = Enrolling.TestCase
