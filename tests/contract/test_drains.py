"""Where orders to drain and to reboot are kept: the file and the fake, and what the file does besides."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from netboot.controllers.drains import finish, settled
from netboot.lifecycle.drains import DrainsStatus, DrainStore, State
from netboot.lifecycle.errors import StateUnavailableError
from netboot.stores.drains import KEPT, SqliteDrains
from netboot.stores.intents import MIGRATIONS, make
from netboot.stores.shared_drains import SharedDrains
from tests.drains import START, MemoryDrains, drain
from tests.order_objects import MemoryOrders


@pytest.fixture(params=["file", "memory", "objects"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> DrainStore:
    if request.param == "memory":
        return MemoryDrains()
    make(tmp_path / "intents.db").close()
    if request.param == "objects":
        return SharedDrains(tmp_path / "intents.db", MemoryOrders(), dict, lambda: START)
    return SqliteDrains(tmp_path / "intents.db")


def test_an_order_stands_until_it_ends_and_is_remembered(store: DrainStore) -> None:
    asked = drain("b", "1", bare=True)
    assert store.order(asked).did
    assert store.order(drain("a", "2", "reboot")).did
    assert [one.id for one in store.standing()] == ["2", "1"]
    assert (store.stands("b"), store.stands("c")) == (asked, None)
    assert store.of("b", 5) == [asked]
    ended = store.finish("1", "taken-off", "by alice", START + 1)
    assert ended == asked.model_copy(update={"end": "taken-off", "words": "by alice", "ended_ms": START + 1})
    assert store.finish("1", "undone", "late", START + 2) is None, "it has ended, and so it stays"
    assert store.of("b", 5) == [ended]
    assert store.order(drain("b", "3")).did
    assert [one.id for one in store.of("b", 5)] == ["3", "1"]
    assert [one.id for one in store.of("b", 1)] == ["3"]


@pytest.mark.parametrize(
    ("stands", "asked", "does"),
    [
        (("drain", {}), ("drain", {"deadline_ms": START + 10_000_000}), "stands"),
        (("drain", {"boot": "b" * 36}), ("drain", {}), "stands"),
        (("drain", {}), ("drain", {"bare": True}), "replaced"),
        (("reboot", {}), ("reboot", {"local": True}), "replaced"),
        (("reboot", {"local": True}), ("reboot", {}), "stands"),
        (("drain", {}), ("reboot", {}), "replaced"),
        (("reboot", {}), ("drain", {}), "stands"),
        (("reboot", {"boot": "b" * 36}), ("reboot", {}), "replaced"),
        (("reboot", {"boot": "b" * 36}), ("drain", {}), "replaced"),
        (("reboot", {"owner": "rollout/1"}), ("drain", {}), "replaced"),
        (("reboot", {"owner": "rollout/1"}), ("reboot", {}), "stands"),
        (("reboot", {"owner": "rollout/1"}), ("reboot", {"bare": True}), "replaced"),
    ],
)
def test_what_is_ordered_again(
    store: DrainStore, stands: tuple[str, dict[str, object]], asked: tuple[str, dict[str, object]], does: str
) -> None:
    first = drain("a", "1", stands[0], **stands[1])
    second = drain("a", "2", asked[0], who="bob", since_ms=START + 5, **asked[1])
    store.order(first)
    change = store.order(second)
    if does == "stands":
        assert (change.did, change.drain, store.standing()) == (False, first, [first])
        return
    assert (change.did, change.drain, change.replaced, store.standing()) == (True, second, first, [second])
    was = store.of("a", 5)[1]
    assert (was.end, was.words, was.ended_ms) == ("replaced", f"{asked[0]} was ordered by bob", START + 5)


def test_what_acts_by_itself_takes_no_order_over_and_reserves_by_what_it_counted(store: DrainStore) -> None:
    mine, other = drain("a", "1"), drain("b", "2", owner="rollout/2")
    store.order(mine)
    wanted = [drain(name, f"of-{name}", "reboot", owner="rollout/1") for name in ("a", "b", "c")]
    assert store.reserve(wanted, set()) == [], "an order stands that it did not know"
    assert store.standing() == [mine]
    assert store.reserve([other], {"1"}) == [other]
    assert store.reserve(wanted, {"1"}) == []
    assert store.reserve(wanted, {"1", "2"}) == [wanted[2]], "of each machine one"
    assert store.standing() == [mine, other, wanted[2]]


def test_the_last_order_of_an_owner(store: DrainStore) -> None:
    first, second = (drain("a", str(number), owner="rollout/1") for number in (1, 2))
    for one in (first, second):
        store.reserve([one], set())
        store.finish(one.id, "withdrawn", "paused", START)
    store.reserve([drain("b", "3", owner="rollout/1")], set())
    store.order(drain("a", "4"))
    ended = second.model_copy(update={"end": "withdrawn", "ended_ms": START, "words": "paused"})
    assert store.last("rollout/1", ["a", "c"]) == {"a": ended}
    assert store.last("rollout/2", ["a"]) == {}
    assert list(store.last("rollout/1", ["a", "b"])) == ["a", "b"]


def test_what_is_said_to_be_over_is_ended_once(store: DrainStore) -> None:
    for name in ("a", "b", "c"):
        store.order(drain(name, f"of-{name}", "reboot"))
    store.finish("of-c", "taken-off", "by alice", START)
    said = {
        "a": State(id="of-a", state="undone", words="Pods were left", since_ms=START),
        "b": State(id="of-b", state="ordered", words="told", since_ms=START),
        "c": State(id="of-c", state="rebooted", words="its boot is another", since_ms=START),
    }
    status = DrainsStatus(at_ms=START, drains=said)
    assert [one.machine for one in finish(store, settled([status]), START + 1)] == ["a"]
    assert finish(store, settled([status]), START + 2) == []
    ended = store.of("a", 1)[0]
    assert (ended.end, ended.words, ended.ended_ms) == ("undone", "Pods were left", START + 1)
    assert [one.id for one in store.standing()] == ["of-b"]


def test_the_file_forgets_the_oldest_and_never_what_stands(tmp_path: Path) -> None:
    make(tmp_path / "intents.db").close()
    store = SqliteDrains(tmp_path / "intents.db")
    store.order(drain("other", "o"))
    for number in range(KEPT + 20):
        store.order(drain("a", str(number)))
        store.finish(str(number), "taken-off", "", START)
    store.order(drain("a", "last"))
    assert len(store.of("a", 1000)) == KEPT
    assert [one.id for one in store.standing()] == ["last", "o"]


def test_a_file_that_is_gone_says_of_nobody_that_nothing_is_ordered(tmp_path: Path) -> None:
    store = SqliteDrains(tmp_path / "intents.db")
    for ask in (store.standing, lambda: store.of("a", 1), lambda: store.order(drain("a", "1"))):
        with pytest.raises(StateUnavailableError, match="it is not there"):
            ask()


def test_one_of_a_netboot_before_this_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    with closing(sqlite3.connect(path)) as db:
        for statement in MIGRATIONS[0]:
            db.execute(statement)
        db.execute("PRAGMA user_version = 1")
    make(path).close()
    assert SqliteDrains(path).standing() == []


def test_orders_of_a_netboot_before_this_are_of_operators(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    with closing(sqlite3.connect(path)) as db:
        for statement in (*MIGRATIONS[0], *MIGRATIONS[1]):
            db.execute(statement)
        row = "'1', 'a', 'drain', 'b', 'alice', 'DIMM 4', 1, 2, 0, 1, NULL, NULL, ''"
        db.execute(f"INSERT INTO drains VALUES ({row})")
        db.execute("PRAGMA user_version = 2")
        db.commit()
    make(path).close()
    (one,) = SqliteDrains(path).standing()
    assert (one.machine, one.owner, one.local) == ("a", "operator", True)
