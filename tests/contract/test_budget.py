"""Rollouts, remedies and people who take machines of one rack at once, over the real file: two that act by themselves
never both take the last place."""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netboot.lifecycle.budget import Out, Places, by_whom, slots
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.intents import PutOn, TakeOff
from netboot.lifecycle.remedies import Books, Fleet, Remedy, Taking
from netboot.lifecycle.remedy_policy import decide, recorded
from netboot.lifecycle.transitions import Mark
from netboot.stores import drains, shared_file
from netboot.stores.drains import SqliteDrains
from netboot.stores.intents import SqliteIntents, make
from netboot.stores.remedies import SqliteRemedies
from tests.drains import drain
from tests.records import START
from tests.remedies import case, rules

MACHINES = tuple(f"gpu-{number:03}" for number in range(6))
RACKS = dict.fromkeys(MACHINES, "r1")


class Site:
    """One rack, of which `most` may be out. Each of these has connections of its own, as processes have."""

    def __init__(self, folder: Path, most: int) -> None:
        make(folder / "intents.db").close()
        self.drains, self.intents = SqliteDrains(folder / "intents.db"), SqliteIntents(folder / "intents.db")
        self.remedies, self.most, self.orders = SqliteRemedies(folder / "intents.db"), most, 0

    def out(self) -> dict[str, str]:
        return by_whom(self.drains.standing(), self.intents.all(START))

    def counted(self, rollout: int) -> tuple[list[Drain], set[str]]:
        """Those whose turn it is, and by what that was counted."""
        standing, marked, asked = self.drains.standing(), self.intents.all(START), list[Drain]()
        out = {name: Out("r1", by) for name, by in by_whom(standing, marked).items()}
        places = Places(len(MACHINES), self.most, out)
        for name in MACHINES:
            if places.fits("r1") and name not in out:
                self.orders += 1
                who = f"rollout {rollout} of channel stable"
                asked.append(drain(name, str(self.orders), "reboot", owner=f"rollout/{rollout}", who=who))
                places.take(name, Out("r1", ""))
        return asked, slots(standing, marked)

    def reserve(self, turn: tuple[Sequence[Drain], set[str]]) -> list[Drain]:
        return self.drains.reserve(*turn)

    def remedy(self, machine: str, *, ready: bool = True) -> Remedy | None:
        one = case(machine, ready=ready, rules=rules(per_rack=self.most, fleet=len(MACHINES)))

        def look(books: Books) -> Taking | None:
            decision = decide(one, books, Fleet(len(MACHINES), RACKS))
            return Taking(recorded(one, decision, "taken", START), "{}") if decision.acts else None

        return self.remedies.take(look, START)

    def person(self, machine: str, what: str) -> None:
        if what == "drain":
            self.orders += 1
            self.drains.order(drain(machine, str(self.orders)))
        else:
            order = PutOn(Mark.HELD, "DIMM 4") if what == "hold" else TakeOff(Mark.HELD, "")
            self.intents.order(machine, order, "bob", START)

    def over(self, machine: str) -> None:
        """Its order has come to its end, and it is back."""
        for one in self.drains.standing():
            if one.machine == machine:
                self.drains.finish(one.id, "rebooted", "", START)
        taken = self.remedies.books(START).taken
        self.remedies.settle({one.id: "back" for one in taken if one.machine == machine and one.drain}, START)


@pytest.mark.parametrize("meanwhile", ["reboot", "quarantine", "drain", "hold"])
def test_who_counted_before_another_took_the_last_place_orders_nothing(tmp_path: Path, meanwhile: str) -> None:
    site = Site(tmp_path, 1)
    turn = site.counted(1)
    if meanwhile in ("reboot", "quarantine"):
        assert site.remedy("gpu-003", ready=meanwhile == "reboot") is not None
    else:
        site.person("gpu-003", meanwhile)
    assert (site.reserve(turn), list(site.out())) == ([], ["gpu-003"])
    assert site.remedy("gpu-004") is None


def test_what_ended_since_it_was_counted_keeps_nobody(tmp_path: Path) -> None:
    site = Site(tmp_path, 2)
    site.person("gpu-003", "hold")
    turn = site.counted(1)
    site.person("gpu-003", "unhold")
    assert [one.machine for one in site.reserve(turn)] == ["gpu-000"]


def test_a_remedy_sees_what_a_rollout_reserved_a_moment_ago(tmp_path: Path) -> None:
    site = Site(tmp_path, 1)
    assert len(site.reserve(site.counted(1))) == 1
    assert site.remedy("gpu-004") is None
    assert site.reserve(site.counted(2)) == []


def test_two_at_once_never_both_take_the_last_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_file, "BUSY_SECONDS", 60.0)  # a busy disk is no defect
    site = Site(tmp_path, 1)
    for _ in range(6):
        start = threading.Barrier(3)
        turns = [site.counted(1), site.counted(2)]

        def act(number: int, start: threading.Barrier = start, turns: list[Any] = turns) -> None:
            start.wait(180)
            if number < 2:
                site.reserve(turns[number])
            else:
                site.remedy("gpu-005")

        threads = [threading.Thread(target=act, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(180)
        (machine,) = site.out()
        site.over(machine)
        site.intents.order(machine, TakeOff(Mark.QUARANTINED, ""), "bob", START)


def test_killed_while_it_reserves_none_of_its_orders_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(tmp_path, 3)
    insert, written = drains._insert, list[str]()

    def killed(db: sqlite3.Connection, one: Drain) -> None:
        insert(db, one)
        written.append(one.machine)
        if len(written) == 2:
            raise sqlite3.OperationalError("killed")

    turn = site.counted(1)
    monkeypatch.setattr(drains, "_insert", killed)
    with pytest.raises(StateUnavailableError):
        site.reserve(turn)
    assert (len(written), site.out()) == (2, {})
    monkeypatch.undo()
    assert len(site.reserve(turn)) == 3


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["count 1", "count 2", "reserve 1", "reserve 2", "remedy", "drain", "hold", "unhold", "over"]),
        st.sampled_from(MACHINES),
    ),
    max_size=12,
)


@settings(max_examples=15, deadline=None)
@given(ACTS, st.integers(1, 3))
def test_whoever_acts_in_whatever_order_nothing_takes_more_than_may_be_by_itself(
    acts: list[tuple[str, str]], most: int
) -> None:
    with TemporaryDirectory() as folder:
        site, turns = Site(Path(folder), most), dict[str, tuple[list[Drain], set[str]]]()
        for act, machine in acts:
            what, _, rollout = act.partition(" ")
            wrote: object = None
            if what == "count":
                turns[rollout] = site.counted(int(rollout))
            elif what == "reserve" and rollout in turns:
                wrote = site.reserve(turns.pop(rollout))
            elif what == "remedy":
                wrote = site.remedy(machine, ready=machine < MACHINES[3])
            elif what == "over":
                site.over(machine)
            elif what in ("drain", "hold", "unhold"):
                site.person(machine, what)
            if wrote:
                assert len(site.out()) <= most
