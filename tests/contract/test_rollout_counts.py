"""What the list of rollouts says of their machines is what these are, whoever wrote them, in whatever order."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.rollout import Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_counts import ByRack, Counts, RackRuns, RolloutRun, by_rack, counted
from netboot.lifecycle.rollout_store import After, Members, Note
from netboot.machines.positions import standing
from netboot.stores import rollouts, shared_file
from netboot.stores.renamed import carry
from netboot.stores.rollout_schema import MIGRATIONS
from netboot.stores.rollouts import SqliteRollouts, make
from tests.rollouts import OLD, OTHER, rollout

NOTE = Note(5, "alice", "start", "CVE")
NAMES = tuple(f"m{number}" for number in range(6))
S = MemberState
MADE = st.builds(
    Member,
    machine=st.just("m"),
    rack=st.sampled_from(("", "r1", "r2")),
    domain=st.sampled_from(("", "d1", "d2")),
    named=st.booleans(),
    previous=st.sampled_from((OLD, OTHER)),
    state=st.sampled_from(S),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteRollouts]:
    with closing(make(tmp_path / "rollouts.db")):
        yield SqliteRollouts(tmp_path / "rollouts.db")


def waiting(*names: str) -> Members:
    return {name: Member(machine=name, previous=OLD) for name in names}


def by_hand(path: Path, *statements: str) -> None:
    """As another program writes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for each in statements:
            db.execute(each)


def kept(path: Path) -> list[int]:
    """Rollouts whose counts need no look at their machines."""
    with closing(sqlite3.connect(path)) as db:
        return [number for (number,) in db.execute("SELECT rollout FROM counts ORDER BY rollout")]


def to(state: MemberState, begun: Rollout, those: Members) -> tuple[Rollout, Members]:
    """All of them, and the rollout has ended."""
    now = {name: each.model_copy(update={"state": state}) for name, each in those.items()}
    return begun.model_copy(update={"state": RolloutState.COMPLETE}), now


def test_what_follows_from_machines() -> None:
    of = [
        Member(machine="a", rack="r1", domain="d1", previous=OLD, state=S.ASSIGNED),
        Member(machine="b", rack="r2", domain="d1", previous=OLD, state=S.LEFT),
        Member(machine="c", rack="r2", domain="d1", previous=OLD, state=S.KEPT),
        Member(machine="d", rack="r2", domain="d2", previous=OLD, state=S.ASSIGNED),
        Member(machine="e", rack="r2", named=True, previous=OTHER, state=S.ASSIGNED),
        Member(machine="f", rack="r3", named=True, previous=OLD, state=S.KEPT),
        Member(machine="g", previous=OLD, state=S.DONE),
    ]
    found = counted({each.machine: each for each in of})
    assert found == Counts(
        machines=dict.fromkeys(S, 0) | {S.ASSIGNED: 3, S.LEFT: 1, S.KEPT: 2, S.DONE: 1},
        racks=3,
        domains={"d1": 2},
        named=("e",),
        kept=("c", "f"),
        largest=1,
        assigned={"a": OLD, "d": OLD, "e": OTHER},
    )
    assert (found.of, found.going) == (5, 4)


def test_machines_rack_by_rack() -> None:
    of = {"b": ("r10", S.DONE), "a": ("r10", S.DONE), "d": ("r9", S.OUT), "c": ("r10", S.LEFT), "e": ("r10", S.DONE)}
    found = by_rack({name: Member(machine=name, rack=rack, previous=OLD, state=to) for name, (rack, to) in of.items()})
    runs = [
        RolloutRun(state=S.DONE, first="a", count=2),
        RolloutRun(state=S.LEFT, first="c", count=1),
        RolloutRun(state=S.DONE, first="e", count=1),
    ]
    out = RackRuns(rack="r9", machines=1, runs=(RolloutRun(state=S.OUT, first="d", count=1),))
    assert found == ByRack(racks=(out, RackRuns(rack="r10", machines=4, runs=tuple(runs))))


def test_machines_of_a_rack_as_they_stand() -> None:
    """The highest first, a gap told; those that say no unit after them, in runs of their own."""
    of = {"a": 1, "b": 3, "c": None, "d": 2, "e": 9, "b10": None, "b9": None}
    members = {name: Member(machine=name, rack="r", position=unit, previous=OLD) for name, unit in of.items()}
    (found,) = by_rack(members).racks
    assert found.runs == (
        RolloutRun(state=S.WAITING, first="e", count=1, position=9),
        RolloutRun(state=S.WAITING, first="b", count=3, position=3, gap=True),
        RolloutRun(state=S.WAITING, first="b9", count=3),
    )
    order = sorted(members.values(), key=lambda each: standing(each.rack, each.position, each.machine))
    assert [each.machine for each in order] == ["e", "b", "d", "a", "b9", "b10", "c"]


def test_one_reads_no_machine_but_the_part_that_is_asked_for(store: SqliteRollouts, tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"
    store.start(rollout(), waiting("a", "b"), NOTE)
    by_hand(path, "DELETE FROM counts")
    said = store.summed(1)
    assert said == (store.rollout(1), counted(waiting("a", "b")), by_rack(waiting("a", "b")))
    by_hand(path, "DROP TRIGGER counts_before_a_member_changed", "UPDATE members SET body = '{}' WHERE machine = 'a'")
    assert store.summed(1) == said
    assert [each.machine for each in store.part(1, (S.WAITING, S.OUT), None, 9)] == ["b"]
    assert [each.machine for each in store.part(1, (), After(None, "a"), 9)] == ["b"]
    for spoiled in ("json_set(racks, '$.rule', 0)", "''", "NULL"):
        by_hand(path, f"UPDATE counts SET racks = {spoiled}")
        with pytest.raises(StateUnavailableError, match="machine: Field required"):
            store.summed(1)


@given(
    states=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(S), min_size=1),
    asked=st.lists(st.sampled_from(S), unique=True),
    limit=st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_parts_of_any_size_are_the_whole(states: dict[str, MemberState], asked: list[MemberState], limit: int) -> None:
    with TemporaryDirectory() as folder, closing(make(Path(folder) / "rollouts.db")):
        store = SqliteRollouts(Path(folder) / "rollouts.db")
        those = {name: Member(machine=name, previous=OLD, state=state) for name, state in states.items()}
        store.start(rollout(), those, NOTE)
        other = rollout().model_copy(update={"channel": "other"})
        store.start(other, {name: Member(machine=name, previous=OTHER) for name in NAMES}, NOTE)
        found: list[Member] = []
        while part := store.part(
            1, asked, After(found[-1].state if asked else None, found[-1].machine) if found else None, limit
        ):
            assert len(part) <= limit
            found += part
        by_name = [those[name] for name in sorted(those)]
        whole = [each for state in asked for each in by_name if each.state is state] if asked else by_name
        assert found == whole


def test_a_list_reads_no_machine_and_what_was_written_is_counted_by_then(store: SqliteRollouts, tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"
    store.start(rollout(), waiting("a", "b"), NOTE)
    store.change(1, lambda begun, those: to(S.DONE, begun, those), lambda *_: None)
    assert kept(path) == [1]
    said = store.listed(9)
    assert said[0].counts == counted(store.members(1))
    assert said[0].counts.machines[S.DONE] == 2
    by_hand(path, "DROP TRIGGER counts_before_a_member_changed", "UPDATE members SET body = '{}'")
    assert store.listed(9) == said


def test_one_that_was_not_counted_is_once(tmp_path: Path) -> None:
    """As those of a netboot before this one, after an update or from its backup; or by another rule."""
    path = tmp_path / "rollouts.db"
    begun, those = rollout().model_copy(update={"number": 1}), waiting("a", "b")
    with closing(shared_file.connect(path, MIGRATIONS[:1])) as db:
        db.execute(
            "INSERT INTO rollouts (number, channel, under_way, body) VALUES (1, 's', 1, ?)", (begun.model_dump_json(),)
        )
        for name, each in those.items():
            db.execute("INSERT INTO members VALUES (1, ?, ?)", (name, each.model_dump_json()))
    make(path).close()
    store = SqliteRollouts(path)
    for spoiled in (
        "DELETE FROM counts",
        "UPDATE counts SET body = json_set(body, '$.rule', 0)",
        "UPDATE counts SET body = json_remove(body, '$.machines.kept')",
        "UPDATE counts SET body = ''",
    ):
        by_hand(path, spoiled)
        assert store.listed(9) == [(begun, counted(those))]
        assert kept(path) == [1]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT body FROM counts").fetchall() == [(counted(those).model_dump_json(),)]


def test_it_is_shown_where_it_cannot_be_kept_and_what_is_stale_is_never_kept(
    store: SqliteRollouts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rollouts.db"
    store.start(rollout(), waiting("a", "b"), NOTE)
    by_hand(path, "DELETE FROM counts")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store.listed(9)[0].counts == counted(waiting("a", "b"))
    assert kept(path) == []

    def meanwhile(those: Members) -> Counts:
        by_hand(path, "DELETE FROM members WHERE machine = 'b'")
        return counted(those)

    with monkeypatch.context() as patched:
        patched.setattr(rollouts, "counted", meanwhile)
        assert store.listed(9)[0].counts == counted(waiting("a", "b"))
    assert kept(path) == []
    assert store.listed(9)[0].counts == counted(waiting("a"))
    assert kept(path) == [1]


@pytest.mark.parametrize(
    ("written", "left"),
    [
        ("INSERT OR REPLACE INTO members SELECT 1, machine, body FROM members WHERE rollout = 2", [2]),
        ("UPDATE members SET body = json_set(body, '$.rack', 'r9') WHERE machine = 'a'", [2]),
        ("UPDATE members SET rollout = 2 WHERE machine = 'a'", []),
        ("DELETE FROM members WHERE machine = 'a'", [2]),
        ("UPDATE rollouts SET released = 1", [1, 2]),
    ],
)
def test_who_writes_a_member_takes_away_what_was_counted(
    store: SqliteRollouts, tmp_path: Path, written: str, left: list[int]
) -> None:
    path = tmp_path / "rollouts.db"
    store.start(rollout(), waiting("a", "b"), NOTE)
    store.start(rollout().model_copy(update={"channel": "other"}), waiting("b", "c"), NOTE)
    assert kept(path) == [1, 2]
    by_hand(path, written)
    assert kept(path) == left
    assert {each.rollout.number: each.counts for each in store.listed(9)} == {
        number: counted(store.members(number)) for number in (1, 2)
    }


class Writers(RuleBasedStateMachine):
    """Operators, controllers, the publisher that renames machines, people with sqlite3, and whoever looks."""

    numbers: Bundle[int] = Bundle("numbers")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "rollouts.db"
        self.file, self.store, self.begun = make(self.path), SqliteRollouts(self.path), 0

    def teardown(self) -> None:
        self.file.close()
        self.folder.cleanup()

    @rule(target=numbers, those=st.dictionaries(st.sampled_from(NAMES), MADE, min_size=1))
    def begin(self, those: Members) -> int:
        members = {name: each.model_copy(update={"machine": name}) for name, each in those.items()}
        self.begun += 1
        channel = rollout().model_copy(update={"channel": f"c{self.begun}"})
        return self.store.start(channel, members, NOTE).number

    @rule(number=numbers, states=st.dictionaries(st.sampled_from(NAMES), st.sampled_from(S)), clock=st.integers(0, 9))
    def change(self, number: int, states: dict[str, MemberState], clock: int) -> None:
        def look(begun: Rollout, those: Members) -> tuple[Rollout, Members]:
            now = {n: each.model_copy(update={"state": states[n]}) for n, each in those.items() if n in states}
            return begun.model_copy(update={"clock_ms": clock}), now if clock % 2 else those | now

        self.store.change(number, look, lambda *_: None)

    @rule(former=st.sampled_from(NAMES), now=st.sampled_from((*NAMES, "n1", "n2")))
    def rename(self, former: str, now: str) -> None:
        carry(self.path.parent, {former: now})

    @rule(number=numbers, name=st.sampled_from(NAMES), made=MADE)
    def restore(self, number: int, name: str, made: Member) -> None:
        body = made.model_copy(update={"machine": name}).model_dump_json()
        by_hand(self.path, f"INSERT OR REPLACE INTO members VALUES ({number}, '{name}', '{body}')")

    @rule(number=numbers, name=st.sampled_from(NAMES), to=numbers)
    def move(self, number: int, name: str, to: int) -> None:
        by_hand(
            self.path, f"UPDATE OR IGNORE members SET rollout = {to} WHERE machine = '{name}' AND rollout = {number}"
        )

    @rule(name=st.sampled_from(NAMES))
    def forget(self, name: str) -> None:
        by_hand(self.path, f"DELETE FROM members WHERE machine = '{name}'")

    @rule()
    def look(self) -> None:
        """So that all of them are kept."""
        listed = self.store.listed(200)
        assert kept(self.path) == sorted(each.rollout.number for each in listed)

    @invariant()
    def what_is_kept_is_so(self) -> None:
        with closing(sqlite3.connect(self.path)) as db:
            for number, body, racks in db.execute("SELECT rollout, body, racks FROM counts").fetchall():
                members = self.store.members(number)
                assert Counts.model_validate_json(body) == counted(members)
                assert ByRack.model_validate_json(racks) == by_rack(members)


def test_whoever_writes_in_whatever_order() -> None:
    run_state_machine_as_test(Writers, settings=settings(max_examples=60, stateful_step_count=15, deadline=None))


def test_a_row_that_is_no_json_stands_in_no_way_of_a_newer_netboot(tmp_path: Path) -> None:
    """Its index of states is made all the same, and the other machines are read by it."""
    path = tmp_path / "rollouts.db"
    begun, those = rollout().model_copy(update={"number": 1}), waiting("a", "b")
    with closing(shared_file.connect(path, MIGRATIONS[:2])) as db:
        db.execute(
            "INSERT INTO rollouts (number, channel, under_way, body) VALUES (1, 's', 1, ?)", (begun.model_dump_json(),)
        )
        for name, body in ({name: each.model_dump_json() for name, each in those.items()} | {"c": "garbage"}).items():
            db.execute("INSERT INTO members VALUES (1, ?, ?)", (name, body))
    make(path).close()
    assert [each.machine for each in SqliteRollouts(path).part(1, (S.WAITING,), None, 9)] == ["a", "b"]
