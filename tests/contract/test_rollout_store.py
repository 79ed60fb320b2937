"""Rollouts of one service, and shared ones: one of a channel at a time, changes whole or not at all, what is kept."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from netboot.config_outside import InKubernetes
from netboot.confine.access import access_of
from netboot.lifecycle.errors import NoSuchRolloutError, RolloutRefusedError, StateUnavailableError
from netboot.lifecycle.rollout import Assigned, Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_counts import counted
from netboot.lifecycle.rollout_orders import cancelled
from netboot.lifecycle.rollout_store import Change, Listed, Members, Note
from netboot.processes import supervisor
from netboot.stores import rollout_rows
from netboot.stores.rollout_schema import VERSION
from netboot.stores.rollouts import SqliteRollouts, end_all, make
from netboot.stores.shared_rollouts import SharedRollouts
from tests.rollout_objects import AnyImages, MemoryRolloutObjects
from tests.rollouts import NEW, OLD, rollout
from tests.sites import make_site

NOTE = Note(5, "alice", "start", "CVE")


def members(*names: str) -> Members:
    return {name: Member(machine=name, previous=OLD) for name in names}


@pytest.fixture(params=["one", "shared"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SqliteRollouts]:
    with closing(make(path := tmp_path / "rollouts.db")):
        shared = SharedRollouts(path, MemoryRolloutObjects(), cast("Any", AnyImages()), dict, int)
        yield SqliteRollouts(path) if request.param == "one" else shared


def after() -> Rollout:
    """The next one, to another image, once one is complete."""
    return rollout().model_copy(update={"base": NEW, "image": "f" * 64})


def ended(state: RolloutState) -> Change:
    return lambda begun, those: (begun.model_copy(update={"state": state}), those)


def test_what_was_begun_is_read_and_its_number_never_comes_again(store: SqliteRollouts) -> None:
    first = store.start(rollout(), members("a", "b"), NOTE)
    assert first == rollout().model_copy(update={"number": 1})
    assert (store.under_way(), store.listed(9), store.rollout(1)) == (
        [first],
        [Listed(first, counted(store.members(1)))],
        first,
    )
    assert store.members(1) == members("a", "b")
    assert [entry.model_dump() for entry in store.history(1, 9)] == [
        {"at_ms": 5, "rollout": 1, "who": "alice", "act": "start", "said": "CVE"}
    ]
    store.change(1, ended(RolloutState.COMPLETE), lambda *_: None)
    assert store.under_way() == []
    assert store.start(after(), members("a"), NOTE).number == 2
    with pytest.raises(NoSuchRolloutError, match="there is no rollout 9"):
        store.rollout(9)


def test_one_of_a_channel_at_a_time(store: SqliteRollouts) -> None:
    store.start(rollout(), members("a"), NOTE)
    store.start(rollout().model_copy(update={"channel": "other"}), members("b"), NOTE)
    said = "rollout 1 of channel stable is running: one at a time; let it end, or undo it"
    with pytest.raises(RolloutRefusedError, match=said):
        store.start(rollout(), members("c"), NOTE)
    assert store.assigned().keys() == {"a", "b"}


def test_a_change_is_whole_or_not_at_all(store: SqliteRollouts) -> None:
    store.start(rollout(), members("a", "b"), NOTE)

    def half(begun: Rollout, those: Members) -> tuple[Rollout, Members]:
        those["a"] = those["a"].model_copy(update={"state": MemberState.DONE})
        raise LookupError

    with pytest.raises(LookupError):
        store.change(1, half, lambda *_: None)
    assert store.members(1) == members("a", "b")

    def done(begun: Rollout, those: Members) -> tuple[Rollout, Members]:
        return begun, those | {"a": those["a"].model_copy(update={"state": MemberState.DONE})}

    store.change(1, done, lambda before, after: Note(6, "netboot", "looked"))
    assert store.assigned() == {"a": Assigned("stable", NEW, 1), "b": Assigned("stable", OLD, 1)}
    assert [entry.act for entry in store.history(1, 9)] == ["looked", "start"]


def test_only_the_newest_of_a_channel_has_a_say_and_none_that_was_released(store: SqliteRollouts) -> None:
    store.start(rollout(), members("a", "b"), NOTE)

    def failed(begun: Rollout, those: Members) -> tuple[Rollout, Members]:
        states = {"a": MemberState.FAILED, "b": MemberState.DONE}
        gone = {name: each.model_copy(update={"state": states[name]}) for name, each in those.items()}
        return begun.model_copy(update={"state": RolloutState.COMPLETE}), gone

    store.change(1, failed, lambda *_: None)
    assert store.assigned() == {"a": Assigned("stable", OLD, 1)}
    assert store.images() == {OLD, NEW}
    store.start(after(), members("b"), NOTE)
    assert store.assigned().keys() == {"b"}
    store.change(2, lambda begun, those: (cancelled(begun, "alice", 7), those), lambda *_: None)
    assert store.assigned() == {}
    store.start(after(), members("a", "b"), NOTE)
    store.change(3, failed, lambda *_: None)
    store.release("stable")
    assert store.assigned() == {}
    assert store.images() == set()


def test_of_old_ones_only_those_with_a_say_are_kept(store: SqliteRollouts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_rows, "KEPT", 3)
    store.start(rollout().model_copy(update={"channel": "other"}), members("z"), NOTE)
    for number in range(2, 8):
        store.start(rollout(), members("a"), NOTE)
        store.change(number, ended(RolloutState.UNDONE), lambda *_: None)
    store.start(rollout(), members("a"), NOTE)
    assert [each.rollout.number for each in store.listed(99)] == [8, 7, 6, 1]
    assert (store.members(2), store.history(2, 9)) == ({}, [])


def test_it_is_durable_and_private_and_what_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"
    with closing(make(path)):
        assert path.stat().st_mode & 0o777 == 0o600
        store = SqliteRollouts(path)
        store.start(rollout(), members("a"), NOTE)
    path.unlink()
    said = f"{path} cannot be used: it is not there; rollouts stand still"
    for ask in (store.under_way, store.assigned, store.images, lambda: store.release("stable")):
        with pytest.raises(StateUnavailableError) as raised:
            ask()
        assert str(raised.value) == said
    assert not path.exists()


def test_what_cannot_be_read_is_said(store: SqliteRollouts, tmp_path: Path) -> None:
    store.start(rollout(), members("a"), NOTE)
    path = tmp_path / "rollouts.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE members SET body = '{}'")
        db.commit()
    with pytest.raises(StateUnavailableError, match=r"holds what cannot be read \(machine: Field required\): restore"):
        store.assigned()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 9")
    with pytest.raises(
        StateUnavailableError, match=rf"was written by a newer netboot \(schema 9, this one knows {VERSION}\): restart"
    ):
        store.under_way()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1")
    with pytest.raises(
        StateUnavailableError, match=f"has schema 1, and this netboot knows {VERSION}: restart the service"
    ):
        store.under_way()


def test_what_is_no_database_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.db"
    path.write_bytes(b"")
    with pytest.raises(StateUnavailableError, match=r"rollouts\.db cannot be used: it has nothing in it"):
        SqliteRollouts(path).under_way()
    with pytest.raises(StateUnavailableError, match="it has nothing in it, as after a full disk"):
        make(path)
    path.write_bytes(b"this is not a database" * 1000)
    with pytest.raises(StateUnavailableError, match="file is not a database; rollouts stand still"):
        SqliteRollouts(path).under_way()


def test_all_are_over_where_replicas_share_theirs_from_now_on(tmp_path: Path) -> None:
    make(tmp_path / "rollouts.db").close()
    store = SqliteRollouts(tmp_path / "rollouts.db")
    store.start(rollout(), members("a"), NOTE)
    store.change(
        1, lambda was, those: (was, {"a": those["a"].model_copy(update={"state": MemberState.FAILED})}), lambda *_: None
    )
    store.change(1, ended(RolloutState.COMPLETE), lambda *_: None)
    store.start(rollout().model_copy(update={"channel": "other"}), members("b"), NOTE)
    assert store.assigned().keys() == {"a", "b"}
    for now_ms in (7, 9):
        end_all(tmp_path / "rollouts.db", "they are objects now", now_ms)
        assert (store.under_way(), store.assigned(), store.images()) == ([], {}, set())
        over = store.rollout(2)
        assert (over.state, over.why, over.ended_ms) == (RolloutState.CANCELLED, "they are objects now", 7)
        assert store.rollout(1).state is RolloutState.COMPLETE
        assert [each.act for each in store.history(2, 9)] == ["cancel", "start"]


def test_with_the_key_a_service_ends_those_of_its_own_file_and_without_it_none(tmp_path: Path) -> None:
    one = make_site(tmp_path / "site")
    one.data.mkdir()
    shared = one.model_copy(
        update={"inventory_kubernetes": InKubernetes(shipper=Path("shipper"), orders=Path("orders"))}
    )
    supervisor._end_own(shared)
    assert not (one.data / "rollouts.db").exists(), "and makes none"
    make(one.data / "rollouts.db").close()
    store = SqliteRollouts(one.data / "rollouts.db")
    store.start(rollout(), members("a"), NOTE)
    supervisor._end_own(one)
    assert [each.number for each in store.under_way()] == [1]
    supervisor._end_own(shared)
    assert (store.under_way(), store.rollout(1).why) == ([], "rollouts are objects now (inventory_kubernetes.orders)")


def test_no_process_makes_the_file_of_rollouts_that_is_not_in_force(tmp_path: Path) -> None:
    one = make_site(tmp_path / "site")
    shared = one.model_copy(
        update={"inventory_kubernetes": InKubernetes(shipper=Path("shipper"), orders=Path("orders"))}
    )
    for config, there, other in (
        (one, "rollouts.db", "shared-rollouts.db"),
        (shared, "shared-rollouts.db", "rollouts.db"),
    ):
        databases = access_of("management", "management", "", config).databases
        assert config.data / there in databases
        assert config.data / other not in databases
