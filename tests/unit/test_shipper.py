"""Who writes how machines are into their objects: what is written, when, and what becomes of it in any trouble.

With a real API server: `tests/cluster/test_resources.py`, `tests/cluster/test_shipper.py`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from netboot.controllers import object_events
from netboot.controllers.shipped import LEFT_OUT_SECONDS
from netboot.controllers.shipper import LATE_SECONDS, LOOK_SECONDS, STUCK_SECONDS, ShipperController
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.object_events import ObjectEvent
from netboot.lifecycle.object_status import Facts
from netboot.lifecycle.objects import MachineObject, ObjectSeen, ObjectsListed, Seen, Unchanged
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import Reason
from netboot.machines.resources import declared_as
from tests.records import IMAGE, START
from tests.unit.test_object_status import READY, boot, judged

SPEC = {"match": {"macs": ["52:54:00:00:00:01"]}, "profile": "compute"}


class World:
    """What is known, an API server, and a clock."""

    def __init__(self) -> None:
        self.now = 100.0
        self.known = dict[str, Facts | None]()
        self.news: set[str] | None = set()
        self.there = dict[str, MachineObject]()
        self.writes: list[tuple[float, str]] = []
        self.version = 1
        self.looked_at = True
        self.echoes = True
        """The watch brings what is written before the answer comes; else it brings nothing by itself."""
        self.renewed: list[float] = []
        self.refuses = dict[str, Exception]()
        self.problem: Exception | None = None
        self.drops: set[str] = set()
        self.told: list[str] = []
        self.unreadable = set[str]()
        self.deaf: Exception | None = None
        self.forgets = False
        self.controller = ShipperController(self, lambda: self, self, lambda: self.now)
        self.controller._api = self

    def now_ms(self) -> int:
        return START

    def changed(self) -> set[str] | None:
        news, self.news = self.news, set()
        return news

    def facts(self, names: Sequence[str]) -> Mapping[str, Facts | None]:
        if self.unreadable & set(names):
            raise KeyError(*self.unreadable)
        return {name: self.known.get(name) for name in names}

    def watch(self, seconds: float) -> Iterator[Seen]:
        yield ObjectsListed(tuple(self.there.values()))

    def of_now(self) -> bool:
        return self.looked_at

    def write(self, machine: MachineObject, status: Mapping[str, Any]) -> MachineObject:
        self.writes.append((self.now, machine.name))
        if (refusal := self.refuses.get(machine.name, self.problem)) is not None:
            raise refusal
        if machine.name not in self.there:
            raise ConflictError("404 NotFound: it is gone")
        kept = {key: value for key, value in status.items() if key not in self.drops}
        after = self.changes(machine.name, status=kept, writer="netboot-shipper")
        if self.echoes:
            self.controller.take(ObjectSeen(after, there=True))
        return after

    def renew(self, holder: str, at_ms: int) -> None:
        if self.problem is not None:
            raise self.problem
        self.renewed.append(self.now)

    def tell(self, event: ObjectEvent) -> str:
        if self.deaf is not None:
            raise self.deaf
        self.told.append(f"{event.machine} {event.reason}")
        return f"event-{len(self.told)}"

    def tell_again(self, name: str, times: int, at_ms: int) -> None:
        if self.forgets:
            raise ConflictError("the event is gone")
        self.told.append(f"{name} {times}")

    def changes(self, name: str, **what: Any) -> MachineObject:
        self.version += 1
        self.there[name] = self.there[name]._replace(version=str(self.version), **what)
        return self.there[name]

    def object_of(self, name: str) -> None:
        self.version += 1
        self.there[name] = MachineObject(name, f"uid-of-{name}", 1, str(self.version), SPEC, {})

    def says(self, name: str, *phases: Phase, reason: Reason = Reason.JOINING, number: int = 1) -> None:
        machine = declared_as(name, SPEC)
        assert machine is not None
        trace = boot(number, *phases) if phases else None
        self.known[name] = Facts(machine, judged(trace, reason), (trace,) if trace else (), IMAGE)
        self.news = {name} | (self.news or set())

    def lists(self) -> None:
        self.controller.take(ObjectsListed(tuple(self.there.values())))
        self.controller._reflector.problem = None

    def passes(self, seconds: float) -> list[str]:
        """What is written meanwhile."""
        before, end = len(self.writes), self.now + seconds
        while True:
            wait = self.controller.step()
            if self.now + max(wait, 1e-3) > end:
                break
            self.now += max(wait, 1e-3)
        self.now = end
        return [name for _, name in self.writes[before:]]


@pytest.fixture
def world() -> World:
    """With one machine, whose object says how it is."""
    made = World()
    made.object_of("gpu-001")
    made.says("gpu-001")
    made.lists()
    assert made.passes(2) == ["gpu-001"]
    return made


def phase(world: World, name: str = "gpu-001") -> str:
    return str(world.there[name].status.get("phase"))


def test_an_object_says_how_its_machine_is_and_is_left_alone_then(world: World) -> None:
    assert phase(world) == "NeverBooted"
    assert world.there["gpu-001"].status["conditions"][0]["observedGeneration"] == 1
    assert world.passes(700) == []
    said = world.controller.status()
    assert (said.ok, said.behind, said.lag_seconds, said.written) == (True, 0, 0.0, 1)
    assert said.message == "objects of machines say what is known"


def test_a_proof_is_written_at_once_and_what_follows_five_seconds_apart(world: World) -> None:
    world.says("gpu-001", Phase.ATTESTED)
    assert world.passes(LOOK_SECONDS) == ["gpu-001"]
    world.says("gpu-001", Phase.ATTESTED, Phase.TOKEN_ISSUED)
    assert world.passes(4) == []
    world.says("gpu-001", Phase.ATTESTED, Phase.CSR_APPROVED)
    assert world.passes(2) == ["gpu-001"]
    assert phase(world) == "CSRApproved"
    world.says("gpu-001", *READY)
    assert world.passes(LOOK_SECONDS) == ["gpu-001"]


def test_what_anybody_may_claim_is_one_line_a_minute(world: World) -> None:
    world.passes(10)
    written = []
    for second in range(600):
        world.says("gpu-001", Phase.INITRD_STARTED, number=second + 2)
        written += world.passes(1)
    assert len(written) == 10
    assert world.controller.status().ok
    world.says("gpu-001", *READY, number=700)
    assert world.passes(LOOK_SECONDS) == ["gpu-001"]


def test_a_status_that_somebody_wiped_is_written_again(world: World) -> None:
    world.passes(10)
    world.controller.take(ObjectSeen(world.changes("gpu-001", status={}), there=True))
    assert world.passes(LOOK_SECONDS) == ["gpu-001"]
    assert phase(world) == "NeverBooted"
    world.changes("gpu-001", status={"conditions": "none"})
    world.lists()
    assert world.passes(10) == ["gpu-001"]


def test_what_an_api_server_of_older_definitions_drops_is_not_written_for_ever(world: World) -> None:
    world.drops = {"boots"}
    world.passes(10)
    world.says("gpu-001", *READY)
    assert world.passes(60) == ["gpu-001"]
    world.lists()
    assert world.passes(60) == []
    assert world.controller.status().behind == 0


def test_a_word_of_before_is_not_taken_for_a_new_one(world: World) -> None:
    before, world.echoes = world.there["gpu-001"], False
    world.says("gpu-001", *READY)
    world.passes(10)
    world.controller.take(ObjectSeen(before, there=True))
    assert world.passes(10) == []


def test_one_that_is_gone_is_written_no_more(world: World) -> None:
    gone = world.there.pop("gpu-001")
    world.says("gpu-001", *READY)
    assert world.passes(2) == ["gpu-001"]
    assert world.controller.status().ok, "the watch says in a moment that it is gone"
    world.controller.take(ObjectSeen(gone, there=False))
    world.says("gpu-001", *READY, number=2)
    assert world.passes(20) == []
    assert world.controller.status().objects == 0
    world.object_of("gpu-001")
    world.lists()
    assert world.passes(1) == ["gpu-001"]


def test_an_object_that_is_not_in_force_says_so_after_a_while(world: World) -> None:
    world.object_of("gpu-002")
    world.lists()
    assert world.passes(LEFT_OUT_SECONDS - 1) == []
    assert world.passes(6) == ["gpu-002"]
    assert world.there["gpu-002"].status == {"phase": "LeftOut", "reason": "LeftOut"}
    world.says("gpu-002")
    assert world.passes(6) == ["gpu-002"]


def test_a_spec_that_is_not_in_force_yet_is_not_observed(world: World) -> None:
    world.passes(10)
    changed = world.changes("gpu-001", generation=2, spec={**SPEC, "enabled": False})
    world.controller.take(ObjectSeen(changed, there=True))
    assert world.passes(10) == []
    facts, machine = world.known["gpu-001"], declared_as("gpu-001", changed.spec)
    assert facts is not None
    assert machine is not None
    world.known["gpu-001"] = facts._replace(machine=machine)
    world.news = {"gpu-001"}
    assert world.passes(1) == ["gpu-001"]
    assert world.there["gpu-001"].status["conditions"][0]["observedGeneration"] == 2


def test_an_api_server_that_is_away_is_told_later_how_machines_are_then(world: World) -> None:
    world.problem = ClusterUnavailableError("the apiserver cannot be reached")
    world.says("gpu-001", Phase.ATTESTED)
    tried = world.passes(LATE_SECONDS - 5)
    assert 4 < len(tried) < 40
    said = world.controller.status()
    assert (said.ok, said.failed, said.written) == (False, len(tried), 1)
    assert said.message == "the apiserver cannot be reached"
    world.passes(6)
    late, _, why = world.controller.status().message.partition(": ")
    assert late.startswith("objects of machines are behind for 12")
    assert why == said.message
    world.problem = None
    world.says("gpu-001", *READY)
    assert world.passes(60) == ["gpu-001"]
    assert phase(world) == "Ready"
    assert world.controller.status().ok


def test_one_that_the_api_server_does_not_take_keeps_no_other_back(world: World) -> None:
    world.object_of("gpu-002")
    world.lists()
    write = world.write

    def refuses(machine: MachineObject, status: Mapping[str, Any]) -> MachineObject:
        if machine.name == "gpu-001":
            world.writes.append((world.now, "refused"))
            raise ClusterUnavailableError("422")
        return write(machine, status)

    world.write = refuses  # type: ignore[method-assign]
    world.says("gpu-001", *READY)
    world.says("gpu-002", *READY)
    assert "gpu-002" in world.passes(10)


def test_a_defect_is_said_and_ends_nothing(world: World) -> None:
    world.unreadable = {"gpu-001"}
    world.says("gpu-001", *READY)
    world.passes(2)
    assert world.controller.status().message == "a defect; see the log"
    names = [f"gpu-{number:03}" for number in range(2, 203)]
    for name in names:
        world.object_of(name)
        world.says(name)
    world.lists()
    assert set(world.passes(300)) == set(names), "one that cannot be read keeps no others back"
    world.unreadable = set()
    assert "gpu-001" in world.passes(10)
    world.now += STUCK_SECONDS + 1
    assert world.controller.status().message == "nothing has moved for 61 s"


def test_a_storm_is_written_in_less_than_its_phases_and_nothing_is_lost() -> None:
    """Forty machines that go through all phases within a minute: what counts is how they are in the end."""
    world = World()
    names = [f"gpu-{number:03}" for number in range(40)]
    for name in names:
        world.object_of(name)
        world.says(name)
    world.lists()
    phases = [each for each in Phase if each not in (Phase.FAILED, Phase.SCRIPT_SERVED)]
    for count in range(1, len(phases) + 1):
        for name in names:
            world.says(name, *phases[:count])
        world.passes(4)
    world.passes(6)
    assert {phase(world, name) for name in names} == {"Ready"}
    assert world.controller.status().behind == 0
    starts = [at for at, _ in world.writes]
    assert max(sum(begin <= each < begin + 1 for each in starts) for begin in starts) <= 50
    assert len(starts) <= 40 * (1 + 1 + 5)


def test_what_became_another_is_told_once_and_what_comes_again_is_counted(world: World) -> None:
    assert world.told == [], "what is so already when it starts is nobody's news"
    world.passes(10)
    for number in (1, 2, 3):
        world.says("gpu-001", *READY, number=number)
        world.passes(10)
    assert world.told == [
        "gpu-001 Booting",
        "gpu-001 Ready",
        "event-1 2",
        "event-2 2",
        "event-1 3",
        "event-2 3",
    ]
    world.forgets = True
    world.says("gpu-001", *READY, number=4)
    world.passes(10)
    assert world.told[6:] == ["gpu-001 Booting", "gpu-001 Ready"]
    world.controller.take(ObjectSeen(world.changes("gpu-001", status={}), there=True))
    world.passes(400)
    assert len(world.told) == 8, "a status that somebody wiped is no news"
    world.forgets = False
    world.says("gpu-001", *READY, number=5)
    world.passes(10)
    assert world.told[8:] == ["gpu-001 Booting", "gpu-001 Ready"], "a series ends"


def test_events_that_are_not_taken_keep_no_status_back(world: World) -> None:
    world.deaf = ClusterUnavailableError("the account lacks a right")
    world.passes(10)
    world.says("gpu-001", *READY)
    assert world.passes(2) == ["gpu-001"]
    said = world.controller.status()
    assert (said.ok, said.message, said.events_waiting) == (False, "Events: the account lacks a right", 2)
    world.says("gpu-001", *READY, number=2)
    assert world.passes(7) == ["gpu-001"]
    world.passes(40 * object_events.MOST_TRIES * 5)
    said = world.controller.status()
    assert (said.events_waiting, said.events_dropped) == (0, 4)
    world.deaf = None
    world.says("gpu-001", *READY, number=3)
    world.passes(10)
    assert world.controller.status().ok
    assert len(world.told) == 2


def test_no_more_events_wait_than_may(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_events, "MOST_WAITING", 3)
    world.deaf = ClusterUnavailableError("away")
    for number in range(1, 6):
        world.says("gpu-001", *READY, number=number)
        world.passes(5.5)
    said = world.controller.status()
    assert (said.events_waiting, said.events_dropped) == (3, 7)


def test_nothing_is_told_of_a_place_that_was_never_seen() -> None:
    world = World()
    said = world.controller.status()
    assert (said.ok, said.lag_seconds, said.message) == (False, None, "objects of machines have not been looked at yet")
    world.controller.take(Unchanged())
    assert world.controller.status().lag_seconds is None
