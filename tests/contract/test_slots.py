"""The ledger: never more out of service than may be, and no slot lost for good, wherever a process ends."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.slots import Budget, Reserved, Slot, Standing
from netboot.stores.intents import make
from netboot.stores.slots import SqliteLedger

NOW, HOUR = 1_790_000_000_000, 3_600_000
FLEET = {f"gpu-{number}": Standing(f"r{number // 5}", f"boot-{number}", up=True) for number in range(10)}
BUDGET = Budget(max_unavailable="2", attempts=2)


@pytest.fixture
def ledger(tmp_path: Path) -> SqliteLedger:
    return on_disk(tmp_path / "intents.db")


def on_disk(path: Path) -> SqliteLedger:
    make(path).close()
    return SqliteLedger(path)


def wanted(number: int, owner: str = "rollout/1", now: int = NOW) -> Slot:
    name = f"gpu-{number}"
    return Slot(machine=name, owner=owner, boot=FLEET[name].boot, since_ms=now, expires_ms=now + HOUR)


def down(*numbers: int) -> dict[str, Standing]:
    return FLEET | {f"gpu-{number}": FLEET[f"gpu-{number}"]._replace(up=False) for number in numbers}


def why(ledger: SqliteLedger, slot: Slot, budget: Budget = BUDGET, now: int = NOW, fleet: Any = FLEET) -> str:
    before = ledger.all()
    found = ledger.reserve(slot, fleet, budget, now)
    assert (found.slot, ledger.all()) == (None, before)
    return found.why


def test_a_slot_is_reserved_once_and_the_same_owner_gets_it_again(ledger: SqliteLedger) -> None:
    first = ledger.reserve(wanted(1), FLEET, BUDGET, NOW)
    assert first == Reserved(wanted(1))
    assert ledger.reserve(wanted(1, now=NOW + 5), FLEET, BUDGET, NOW + 5) == first
    assert why(ledger, wanted(1, "remedy")) == "gpu-1 is being seen to by rollout/1"
    assert ledger.all() == [wanted(1)]
    assert [ledger.free("gpu-1", "remedy"), ledger.free("gpu-1", "rollout/1")] == [False, True]
    assert ledger.all() == []


def test_what_is_not_in_service_fills_the_budget(ledger: SqliteLedger) -> None:
    assert why(ledger, wanted(1), fleet=down(2, 3)) == "2 machines may be out of service, and gpu-2, gpu-3 are"
    assert why(ledger, wanted(1), fleet=down(2, 3, 4, 5)) == (
        "2 machines may be out of service, and gpu-2, gpu-3, gpu-4 and 1 more are"
    )
    assert ledger.reserve(wanted(1), down(2), BUDGET, NOW).slot is not None
    assert why(ledger, wanted(3), fleet=down(2)) == "2 machines may be out of service, and gpu-1, gpu-2 are"
    assert ledger.reserve(wanted(2, "remedy"), down(2), BUDGET, NOW).slot is not None  # it is out already


def test_a_rack_has_a_budget_of_its_own(ledger: SqliteLedger) -> None:
    budget = Budget(max_unavailable="50%", per_rack=1)
    assert ledger.reserve(wanted(1), FLEET, budget, NOW).slot is not None
    assert why(ledger, wanted(2), budget) == "1 of rack r0 may be out of service, and gpu-1 are"
    assert ledger.reserve(wanted(6), FLEET, budget, NOW).slot is not None


@pytest.mark.parametrize(("share", "machines", "most"), [("5%", 437, 21), ("5%", 3, 1), ("100%", 7, 7), ("3", 437, 3)])
def test_shares(share: str, machines: int, most: int) -> None:
    assert Budget(max_unavailable=share).most(machines) == most


def test_one_machine_is_not_tried_for_ever(ledger: SqliteLedger) -> None:
    for at in (NOW, NOW + 1):
        assert ledger.reserve(wanted(1, now=at), FLEET, BUDGET, at).slot is not None
        ledger.free("gpu-1", "rollout/1")
    assert why(ledger, wanted(1, now=NOW + 2), now=NOW + 2) == "gpu-1 was tried 2 times within 24 h"
    later = NOW + 24 * HOUR
    assert ledger.reserve(wanted(1, now=later), FLEET, BUDGET, later).slot is not None


def test_an_order_that_was_delayed_is_dead(ledger: SqliteLedger) -> None:
    words = "gpu-1 has another boot than the order names, or the order has expired"
    assert why(ledger, wanted(1), now=NOW + HOUR) == words
    rebooted = FLEET | {"gpu-1": Standing("r0", "boot-99", up=True)}
    assert why(ledger, wanted(1), fleet=rebooted) == words
    left = {name: each for name, each in FLEET.items() if name != "gpu-1"}
    assert why(ledger, wanted(1), fleet=left) == "gpu-1 is not declared, disabled or retired"


@pytest.mark.parametrize(
    ("standing", "at", "freed"),
    [
        (Standing("r0", "boot-1", up=True), NOW, False),  # the order is on its way
        (Standing("r0", "boot-1", up=True), NOW + HOUR, True),  # it never came
        (Standing("r0", "boot-1", up=False), NOW + 99 * HOUR, False),  # unreachable
        (Standing("r0", "boot-99", up=False), NOW + 99 * HOUR, False),
        (Standing("r0", "boot-99", up=True), NOW, True),
        (None, NOW, True),  # retired
    ],
)
def test_a_slot_is_kept_until_the_machine_is_back(
    ledger: SqliteLedger, standing: Standing | None, at: int, freed: bool
) -> None:
    ledger.reserve(wanted(1), FLEET, BUDGET, NOW)
    fleet = {name: each for name, each in FLEET.items() if name != "gpu-1"}
    fleet |= {"gpu-1": standing} if standing is not None else {}
    assert ledger.settle(fleet, at) == ([wanted(1)] if freed else [])
    assert ledger.all() == ([] if freed else [wanted(1)])


def test_what_cannot_be_told_reserves_nothing(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "intents.db")
    for ask in (ledger.all, lambda: ledger.reserve(wanted(1), FLEET, BUDGET, NOW), lambda: ledger.settle(FLEET, NOW)):
        with pytest.raises(StateUnavailableError, match="it is not there"):
            ask()


# -- whatever happens in whatever order, and wherever a process ends ---------------------------------------------------


class EndedError(Exception):
    """The process ends here."""


@contextmanager
def ended_at(statement: int) -> Iterator[None]:
    """Before this statement of a connection; what was not committed is gone with it."""
    connect, count = sqlite3.connect, 0

    class Ending(sqlite3.Connection):
        def _count(self) -> None:
            nonlocal count
            count += 1
            if count > statement:
                raise EndedError

        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            self._count()
            return super().execute(*arguments)

        def executemany(self, *arguments: Any) -> sqlite3.Cursor:
            self._count()
            return super().executemany(*arguments)

    sqlite3.connect = lambda *args, **how: connect(*args, **how, factory=Ending)  # type: ignore[assignment]
    try:
        yield
    except EndedError:
        pass
    finally:
        sqlite3.connect = connect


NAMES = [f"m{number}" for number in range(6)]
MACHINES, OWNERS, ENDS = st.sampled_from(NAMES), st.sampled_from(["rollout/1", "remedy"]), st.none() | st.integers(0, 9)


class Fleet(RuleBasedStateMachine):
    """Six machines in two racks, of which two may be out, one in each rack."""

    budget = Budget(max_unavailable="2", per_rack=1, attempts=100)

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.ledger = on_disk(Path(self.folder.name) / "intents.db")
        self.now, self.boots = NOW, 0
        self.fleet = {name: Standing(f"r{place % 2}", f"{name}-0", up=True) for place, name in enumerate(NAMES)}

    def teardown(self) -> None:
        self.folder.cleanup()

    def busy(self) -> set[str]:
        open_ = [slot for slot in self.ledger.all() if slot.machine in self.fleet and not self.ended(slot)]
        reserved = {slot.machine for slot in open_}
        return {name for name, each in self.fleet.items() if not each.up} | reserved

    def ended(self, slot: Slot) -> bool:
        """It came back by another boot, or its order is dead and it never went."""
        standing = self.fleet[slot.machine]
        return standing.up and (standing.boot != slot.boot or self.now >= slot.expires_ms)

    @rule(name=MACHINES, owner=OWNERS, end=ENDS)
    def ask(self, name: str, owner: str, end: int | None) -> None:
        boot = self.fleet[name].boot if name in self.fleet else ""
        slot = Slot(machine=name, owner=owner, boot=boot, since_ms=self.now, expires_ms=self.now + 3)
        before, busy, found = self.ledger.all(), self.busy(), None
        with ended_at(end if end is not None else 10**6):
            found = self.ledger.reserve(slot, self.fleet, self.budget, self.now)
        after = self.ledger.all()
        if after != before or (found is not None and found.slot is not None and found.slot not in before):
            assert len(busy | {name}) <= 2
            racks = [self.fleet[each].rack for each in busy | {name}]
            assert racks.count(self.fleet[name].rack) <= 1
        if found is not None and found.slot is not None:
            assert found.slot in after
            assert found.slot.owner == owner

    @rule(name=MACHINES)
    def go(self, name: str) -> None:
        if name in self.fleet:
            self.fleet[name] = self.fleet[name]._replace(up=False)

    @rule(name=MACHINES)
    def come(self, name: str) -> None:
        if name in self.fleet and not self.fleet[name].up:
            self.boots += 1
            self.fleet[name] = self.fleet[name]._replace(up=True, boot=f"{name}-{self.boots}")

    @rule(name=MACHINES, end=ENDS)
    def settle(self, name: str, end: int | None) -> None:
        kept = {slot.machine for slot in self.ledger.all() if not self._up(slot.machine)}
        with ended_at(end if end is not None else 10**6):
            self.ledger.settle(self.fleet, self.now)
        assert kept <= {slot.machine for slot in self.ledger.all()}, "who is unreachable keeps its slot"

    def _up(self, name: str) -> bool:
        return name not in self.fleet or self.fleet[name].up

    @precondition(lambda self: len(self.fleet) > 3)
    @rule(name=MACHINES)
    def retire(self, name: str) -> None:
        self.fleet.pop(name, None)

    @rule(more=st.integers(1, 4))
    def pass_time(self, more: int) -> None:
        self.now += more

    @invariant()
    def one_slot_for_each_machine(self) -> None:
        names = [slot.machine for slot in self.ledger.all()]
        assert len(names) == len(set(names))

    @rule()
    def none_is_lost_for_good(self) -> None:
        """Once all are back and the orders are dead, nothing is reserved."""
        for name in list(self.fleet):
            self.come(name)
        self.now += 3
        self.ledger.settle(self.fleet, self.now)
        assert self.ledger.all() == []


TestFleet = Fleet.TestCase
TestFleet.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


def test_the_file_before_it_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "intents.db"
    make(path).close()
    with closing(sqlite3.connect(path)) as db, db:
        for table in ("slots", "tries"):
            db.execute(f"DROP TABLE {table}")
        db.execute("PRAGMA user_version = 1")
    assert on_disk(path).reserve(wanted(1), FLEET, BUDGET, NOW).slot is not None
