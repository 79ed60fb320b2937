"""Remedies in their file: with what they order in one transaction, or not at all."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from netboot.lifecycle.errors import NoSuchRemedyError, StateUnavailableError
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.remedies import DAY_MS, Books, Pause, Remedy, Taking
from netboot.lifecycle.transitions import Mark
from netboot.stores import drains, intents, remedies
from netboot.stores.drains import SqliteDrains
from netboot.stores.intents import SqliteIntents, make
from netboot.stores.remedies import KEPT, SqliteRemedies
from tests.drains import drain
from tests.records import START, boot_id
from tests.remedies import remedy

BOOT = boot_id("gpu-001", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make(tmp_path / "intents.db").close()
    return tmp_path / "intents.db"


def taking(**more: Any) -> Callable[[Books], Taking]:
    return lambda _: Taking(remedy(**{"id": 0, "drain": "", **more}), '{"crash": "panic"}')


def take(path: Path, now_ms: int = START, **more: object) -> Remedy:
    taken = SqliteRemedies(path).take(taking(**more), now_ms)
    assert taken is not None
    return taken


def test_a_reboot_is_written_down_with_its_order(path: Path) -> None:
    taken = take(path)
    (order,) = SqliteDrains(path).standing()
    assert order == drain("gpu-001", taken.drain, "reboot", boot=BOOT, since_ms=START).model_copy(
        update={
            "who": "netboot",
            "reason": "remedy 1: ChecksFailed: a check failed",
            "deadline_ms": START + 1_800_000,
            "owner": "remedy/1",
        }
    )
    books = SqliteRemedies(path).books(START)
    assert (books.taken, books.orders, books.drains) == ([taken], {order.id: order}, {"gpu-001": order})
    assert SqliteRemedies(path).one(1) == (taken, '{"crash": "panic"}')


def test_a_quarantine_is_written_down_with_its_mark_and_any_person_takes_that_off(path: Path) -> None:
    taken = take(path, what="quarantine")
    (mark,) = SqliteIntents(path).all(START)
    assert (mark.mark, mark.owner, mark.who, mark.until_ms) == (Mark.QUARANTINED, "remedy/1", "netboot", None)
    assert mark.reason == "remedy 1: ChecksFailed: a check failed"
    assert SqliteRemedies(path).books(START).intents == {"gpu-001": [mark]}
    assert taken.drain == ""


@pytest.mark.parametrize(
    ("module", "what"), [(drains, "reboot"), (intents, "quarantine"), (remedies, "reboot"), (remedies, "quarantine")]
)
def test_what_fails_in_the_middle_is_as_if_it_had_not_begun(
    path: Path, module: object, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "_order" if module is remedies else "carry_out"
    carry_out = getattr(module, name)

    def killed(*arguments: object) -> None:
        carry_out(*arguments)
        raise sqlite3.OperationalError("killed")

    monkeypatch.setattr(module, name, killed)
    with pytest.raises(StateUnavailableError, match="killed"):
        take(path, what=what)
    assert SqliteRemedies(path).latest(None, 10) == []
    assert SqliteDrains(path).standing() == []
    assert SqliteIntents(path).all(START) == []
    monkeypatch.undo()
    assert take(path, what=what).id == 1


def test_nothing_is_ordered_beside_an_order_that_stands(path: Path) -> None:
    SqliteDrains(path).order(drain("gpu-001", "ann-1", "reboot", boot=BOOT))
    with pytest.raises(StateUnavailableError, match="another order stands of gpu-001"):
        take(path)
    assert SqliteRemedies(path).latest(None, 10) == []


def test_who_looks_first_decides_by_what_is_on_record_then(path: Path) -> None:
    SqliteIntents(path).order("gpu-001", PutOn(Mark.HELD, "DIMM 4"), "ann", START)
    seen = []

    def look(books: Books) -> None:
        seen.append([intent.who for intent in books.intents["gpu-001"]])

    assert SqliteRemedies(path).take(look, START) is None
    assert seen == [["ann"]]


def test_another_remedy_of_a_machine_takes_the_place_of_the_one_before(path: Path) -> None:
    first = take(path)
    SqliteDrains(path).finish(first.drain, "rebooted", "", START + 1)
    other = take(path, machine="gpu-002")
    second = take(path, START + 2, what="quarantine")
    found = {each.id: (each.end, each.ended_ms) for each in SqliteRemedies(path).latest(None, 10)}
    assert found == {second.id: (None, None), other.id: (None, None), first.id: ("replaced", START + 2)}


def test_what_has_ended_is_on_record_for_a_day_and_what_has_not_for_longer(path: Path) -> None:
    store = SqliteRemedies(path)
    first, second = take(path), take(path, machine="gpu-002")
    store.settle({first.id: "back"}, START + 5)
    store.settle({first.id: "gone"}, START + 9)
    assert [(each.end, each.ended_ms) for each in store.books(START).taken] == [("back", START + 5), (None, None)]
    assert [each.id for each in store.books(START + DAY_MS).taken] == [second.id]
    assert [each.id for each in store.taken_after(first.id, 10)] == [second.id]


def test_what_is_withheld_is_noted_once_and_not_for_ever(path: Path) -> None:
    store = SqliteRemedies(path)
    one = remedy(id=0, outcome="withheld", words="frozen", drain="")
    store.note(one)
    store.note(one.model_copy(update={"at_ms": START + 1}))
    assert [each.words for each in store.latest("gpu-001", 10)] == ["frozen"]
    taken = take(path)
    for number in range(KEPT + 5):
        store.note(one.model_copy(update={"words": str(number)}))
    kept = store.latest("gpu-001", 1000)
    assert len(kept) == KEPT + 1
    assert kept[-1] == taken, "no number of others makes one be forgotten that was taken"
    assert store.books(START).taken == [taken]


def test_a_pause_stands_until_it_is_taken_off(path: Path) -> None:
    store = SqliteRemedies(path)
    assert store.books(START).pause is None
    assert not store.pause(Pause(stands=False, who="ann", reason="why", since_ms=START))
    first = Pause(stands=True, who="netboot", reason="three", since_ms=START)
    assert store.pause(first)
    assert not store.pause(Pause(stands=True, who="ann", reason="me too", since_ms=START + 1))
    assert store.books(START).pause == first
    assert store.pause(Pause(stands=False, who="ann", reason="the switch", since_ms=START + 2))
    assert store.books(START).pause == Pause(stands=False, who="ann", reason="the switch", since_ms=START + 2)


def test_there_is_no_remedy_of_another_number(path: Path) -> None:
    for number in (1, 2**64):
        with pytest.raises(NoSuchRemedyError, match=f"there is no remedy {number}"):
            SqliteRemedies(path).one(number)


def test_a_file_of_the_version_before_is_brought_up_to_date(path: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(old)) as db:
        for statements in intents.MIGRATIONS[:2]:
            for statement in statements:
                db.execute(statement)
        db.execute("PRAGMA user_version = 2")
    make(old).close()
    assert SqliteRemedies(old).books(START) == SqliteRemedies(path).books(START)
