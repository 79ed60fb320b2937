"""Several replicas, each with a state of its own in memory, and the one object by which they tell each other of boots:
what `netboot.controllers.shipper` does, without an API server and without a clock that goes by itself."""

from collections.abc import Mapping
from typing import Any

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.object_boots import BootTold, boot_told
from netboot.lifecycle.object_health import health_told
from netboot.lifecycle.object_shared import lacks, learnt, together
from netboot.lifecycle.object_status import Facts, status_of
from netboot.lifecycle.objects import MachineObject
from netboot.lifecycle.reasons import STATUSES, ConditionType
from netboot.lifecycle.state import Batch
from netboot.lifecycle.trace import Trace
from netboot.machines.resources import declared_as
from tests.records import START
from tests.states import MemoryStates

NAME = "gpu-001"
SPEC = {"match": {"macs": ["52:54:00:00:00:01"]}, "profile": "compute"}


class Site:
    """The object, which any of the replicas may read and write."""

    def __init__(self, replicas: int) -> None:
        self.status: Mapping[str, Any] = {}
        self.replicas = [Replica(self) for _ in range(replicas)]

    def heal(self) -> None:
        """All see and write it until nobody has anything to say, which has an end."""
        for _ in range(10):
            quiet = True
            for each in self.replicas:
                before = self.status
                each.exchange()
                found = sum(one.learns() for one in self.replicas)
                quiet = quiet and before == self.status and not found
            if quiet:
                return
        raise AssertionError("replicas write on and on")

    @property
    def object(self) -> MachineObject:
        return MachineObject(NAME, "uid", 1, "1", SPEC, self.status)


class Replica:
    """One of them; `ahead_ms`: its clock is wrong by so much."""

    def __init__(self, site: Site, ahead_ms: int = 0) -> None:
        self.site, self.states, self.ahead_ms = site, MemoryStates(), ahead_ms
        self._rows: dict[str, int] = {}

    def told(self, record: AnyRecord, journal: str = "boot-0.db") -> None:
        """It is told something, and has read all that it was told before."""
        row = self._rows[journal] = self._rows.get(journal, 0) + 1
        self.states.take(Batch(journal, 1, row, [record]))
        self.states.settle()

    def exchange(self) -> None:
        """It looks at the object, and writes what that lacks."""
        self.learns()
        self.writes()

    def learns(self) -> int:
        """How much of what the object says it did not know."""
        found = 0
        for record in learnt(NAME, self.site.status, START + self.ahead_ms):
            since, arrived = self.states.numbers([record.boot]).get(record.boot, (0, 0))
            if lacks(record, self.states.boot(record.boot), since, arrived):
                self.told(record, "shipper.db")
                found += 1
        return found

    def writes(self, *, leads: bool = False) -> None:
        """What it knows is in the object."""
        state = self.states.machines([NAME]).get(NAME)
        under_way = state.pending or state.current if state is not None else None
        proven = self.states.proven([NAME]).get(NAME, ())[::-1]
        traces = [trace for each in proven[:5] if (trace := self.states.boot(each)) is not None]
        boots = (*([under_way] if under_way is not None and under_way.boot not in proven else []), *traces)
        machine = declared_as(NAME, SPEC)
        assert machine is not None
        facts = Facts(machine, self._judged(), boots, "a" * 64, since=self._since(boots))
        if state is not None and state.current is not None:
            report = self.states.health(state.current.boot)
            if report is not None:
                arrived = self.states.numbers([report.boot])[report.boot][1]
                facts = facts._replace(health=health_told(report, arrived))
        mine, known = status_of(facts, 1), self._known()
        self.site.status = together(self.site.object, mine, known, leads=leads, now_ms=START + self.ahead_ms).document()

    def _known(self) -> list[BootTold]:
        said = [self.states.boot(each["id"]) for each in self.site.status.get("boots", ())]
        there = [each for each in said if each is not None]
        found = [boot_told(each, self._since((each,))[each.boot]) for each in there]
        return [each for each in found if each is not None]

    def _since(self, boots: tuple[Trace, ...]) -> dict[str, int]:
        return {boot: since for boot, (since, _) in self.states.numbers([each.boot for each in boots]).items()}

    def _judged(self) -> Judged:
        found = [MachineCondition.of(kind, next(iter(STATUSES[kind])), "m" * 900, START) for kind in ConditionType]
        return Judged(machine=NAME, conditions=tuple(found), timers={}, step="Ready", boot="", image="a" * 64)
