"""The controller that helps machines with all that it looks at set by hand, and its real file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from netboot.controllers.remedies import RemedyController, Surveyed
from netboot.lifecycle.ailments import Ailing
from netboot.lifecycle.conditions import Ailment, Judged, MachineCondition
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.known import Declared
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.remedies import Books, End, Pause, RemediesStatus, Remedy, Taking
from netboot.machines.maintenance import Freeze, Signal
from netboot.status.controllers import LifecycleStatus
from netboot.stores.drains import SqliteDrains
from netboot.stores.intents import SqliteIntents, make
from netboot.stores.remedies import SqliteRemedies
from tests.lifecycle_world import declared
from tests.records import START, boot_id
from tests.remedies import ailment, rules

STEP_MS = 10_000
"""As long a pause as is taken for time in which it was looked at (`seen_time.LONGEST_STEP_MS`)."""
PLACE = "nodes/default/hgx"


class KilledError(Exception):
    """The process ends here."""


class Killable:
    """The store, and a process that ends before or after the `at`-th call that writes."""

    def __init__(self, store: SqliteRemedies) -> None:
        self._store, self.calls, self.at, self.after = store, 0, 0, False

    def _call(self, write: Callable[[], Any]) -> Any:
        self.calls += 1
        if self.calls == self.at and not self.after:
            raise KilledError
        done = write()
        if self.calls == self.at:
            raise KilledError
        return done

    def books(self, now_ms: int) -> Books:
        return self._store.books(now_ms)

    def latest(self, machine: str | None, limit: int, before: int | None = None) -> list[Remedy]:
        return self._store.latest(machine, limit, before)

    def one(self, number: int) -> tuple[Remedy, str]:
        return self._store.one(number)

    def taken_after(self, number: int, limit: int) -> list[Remedy]:
        return self._store.taken_after(number, limit)

    def take(self, look: Callable[[Books], Taking | None], now_ms: int) -> Remedy | None:
        found: Remedy | None = self._call(lambda: self._store.take(look, now_ms))
        return found

    def note(self, withheld: Remedy) -> None:
        self._call(lambda: self._store.note(withheld))

    def settle(self, ends: Mapping[int, End], now_ms: int) -> None:
        self._call(lambda: self._store.settle(ends, now_ms))

    def pause(self, pause: Pause) -> bool:
        new: bool = self._call(lambda: self._store.pause(pause))
        return new


class Outside:
    """What somebody outside says."""

    def __init__(self) -> None:
        self.signal: Signal | None = None

    def said(self) -> Signal | None:
        return self.signal


class World:
    """437 machines in racks of eight; `ill(...)` and `well(...)` say how they are."""

    def __init__(self, folder: Path, machines: int = 437, **said: Any) -> None:
        self.names = [f"m{number:03}" for number in range(machines)]
        self.rules = rules(**said)
        self.declared: dict[str, Declared] = {
            name: declared(name, rack=f"r{number // 8}", rules=self.rules) for number, name in enumerate(self.names)
        }
        self.ailing: dict[str, Ailing] | None = {}
        self.boots = dict.fromkeys(self.names, 1)
        self.in_service: dict[str, Reason] = {}
        self.rollouts: dict[str, str] = {}
        self.out: set[str] = set()
        """Those that are out of service, whoever brought it about."""
        self.unseen: tuple[str, ...] = ()
        self.silent, self.evidence_lost = False, False
        self.torn: set[str] = set()
        """Machines of which what is at hand cannot be read."""
        self.freeze: Freeze | None = None
        self.outside = Outside()
        self.now_ms_, self.up = START, 1_000
        self.path = folder / "intents.db"
        make(self.path).close()
        self.drains, self.intents = SqliteDrains(self.path), SqliteIntents(self.path)
        self.store = Killable(SqliteRemedies(self.path))
        self.said = RemediesStatus(at_ms=0)
        self.control: set[str] = set()
        """Machines of a control plane."""
        self.start()

    def start(self) -> None:
        """The process begins anew."""
        seen = Surveyed(
            lambda: self.ailing,
            lambda: self.declared,
            self.judged,
            self.lifecycle,
            lambda: self.rollouts,
            tuple,
            self.evidence,
            lambda: self.out,
            lambda: self.control,
        )
        self.controller = RemedyController(self.store, seen, self, self.outside, self, lambda: self.up, self.say)

    def say(self, status: RemediesStatus) -> None:
        self.said = status

    def now_ms(self) -> int:
        return self.now_ms_

    def standing(self, now_ms: int) -> Freeze | None:
        return self.freeze if self.freeze is not None and self.freeze.stands(now_ms) else None

    def evidence(self, machine: str, ailment: Ailment) -> str:
        if self.evidence_lost or machine in self.torn:
            raise StateUnavailableError("state.db cannot be read")
        return f'"{machine} {ailment.boot}"'

    def lifecycle(self) -> LifecycleStatus | None:
        if self.silent:
            return None
        status = LifecycleStatus(at_ms=0, conditions=(), overdue={}, waiting=0, unseen=self.unseen)
        return status.model_copy(update={"up_ms": self.up})

    def judged(self, names: Sequence[str]) -> Mapping[str, Judged]:
        return {name: self._judged(name) for name in names if name in self.declared}

    def _judged(self, name: str) -> Judged:
        reason = self.in_service.get(name, Reason.NODE_NOT_READY)
        condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, "", START)
        return Judged(machine=name, conditions=(condition,), timers={}, boot=boot_id(name, self.boots[name]))

    def ill(self, *names: str, reason: Reason = Reason.CHECKS_FAILED, holder: str = "") -> None:
        assert self.ailing is not None
        for name in names:
            boot = boot_id(name, self.boots[name])
            found = ailment(name, reason, boot=boot, since_ms=self.now_ms_)
            ready = reason is Reason.CHECKS_FAILED
            self.ailing[name] = Ailing(found, self.declared[name], ready=ready, holder=holder)

    def well(self, *names: str) -> None:
        assert self.ailing is not None
        for name in names:
            self.ailing.pop(name, None)
            self.in_service[name] = Reason.IN_SERVICE

    def rebooted(self, name: str) -> None:
        """It took the order, and is in another boot."""
        (order,) = [each for each in self.drains.standing() if each.machine == name]
        self.drains.finish(order.id, "rebooted", "", self.now_ms_)
        self.boots[name] += 1

    def run(self, minutes: float) -> None:
        for _ in range(round(minutes * 60_000 / STEP_MS)):
            self.up += STEP_MS
            self.now_ms_ += STEP_MS
            self.controller.step()

    def done(self) -> list[tuple[str, str]]:
        return [(each.machine, each.what) for each in self.taken()]

    def taken(self) -> list[Remedy]:
        return self.store.taken_after(0, 1000)

    def words(self, name: str) -> str:
        return next(each.words for each in self.said.machines if each.machine == name)
