"""Who writes how machines are into their objects, where several replicas do: one object, in an API server that knows
versions, and a state, a journal and a shipper for each. With a real one: `tests/cluster/test_shared_facts.py`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from netboot.controllers.overwritten import MANY
from netboot.controllers.several import Several
from netboot.controllers.sharing import AGAIN_SECONDS, Sharing
from netboot.controllers.shipper import LOOK_SECONDS, ShipperController
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.object_events import ObjectEvent
from netboot.lifecycle.object_status import Facts
from netboot.lifecycle.objects import MachineObject, ObjectSeen, ObjectsListed, Seen
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.machines.resources import declared_as
from tests.records import IMAGE, START, boot_id, event, script
from tests.replicas import NAME, SPEC
from tests.states import MemoryStates
from tests.unit.test_object_status import judged

MANAGER = "netboot-shipper"


class ApiServer:
    """With the one object; each write is told to all that watch."""

    def __init__(self) -> None:
        self.now = 100.0
        self.machine = MachineObject(NAME, "uid", 1, "1", SPEC, {})
        self.writes: list[tuple[float, str]] = []
        self.conflicts = 0
        self.replicas = [One(self, name) for name in "abc"]
        self.leader = "a"
        self.away = set[str]()
        self.deaf = set[str]()
        """What these watch brings nothing."""
        for each in self.replicas:
            each.controller.take(ObjectsListed((self.machine,)))
            each.controller._reflector.problem = None

    def write(self, machine: MachineObject, status: Mapping[str, Any], by: str) -> MachineObject:
        if by in self.away:
            raise ClusterUnavailableError("the apiserver cannot be reached")
        if machine.version != self.machine.version:
            self.conflicts += 1
            raise ConflictError("409 Conflict: the object has been modified")
        self.writes.append((self.now, by))
        self.becomes(status)
        return self.machine

    def becomes(self, status: Mapping[str, Any], writer: str = MANAGER) -> None:
        version = str(int(self.machine.version) + 1)
        self.machine = self.machine._replace(status=status, version=version, writer=writer)
        for each in self.replicas:
            if each.name not in self.away | self.deaf:
                each.controller.take(ObjectSeen(self.machine, there=True))

    def heals(self) -> None:
        self.away, self.deaf = set(), set()
        for each in self.replicas:
            each.controller.take(ObjectsListed((self.machine,)))

    def passes(self, seconds: float) -> list[str]:
        """Who wrote meanwhile."""
        before, end = len(self.writes), self.now + seconds
        while self.now < end:
            for each in self.replicas:
                each.controller.step()
            self.now += LOOK_SECONDS / 2
        return [name for _, name in self.writes[before:]]


class One:
    """A replica."""

    def __init__(self, api: ApiServer, name: str) -> None:
        self.api, self.name, self.states = api, name, MemoryStates()
        self.news: set[str] | None = set()
        self.full, self.appended = False, 0
        self._rows: dict[str, int] = {}
        self._sharing = Sharing(self.states, self, self, lambda: api.now)
        several = Several(MANAGER, lambda: api.leader == name, 3, self._sharing)
        self.controller = ShipperController(self, lambda: self, self, lambda: api.now, several)
        self.controller._api = self

    def now_ms(self) -> int:
        return START

    def append(self, *records: AnyRecord) -> None:
        if self.full:
            raise JournalUnavailableError("the disk is full")
        for each in records:
            self.appended += 1
            self.told(each, "shipper.db")

    def told(self, record: AnyRecord, journal: str = "boot-0.db") -> None:
        row = self._rows[journal] = self._rows.get(journal, 0) + 1
        self.states.take(Batch(journal, 1, row, [record]))
        self.states.settle()
        self.news = {NAME}

    def says(self, number: int, *phases: Phase) -> None:
        self.told(script(NAME, number))
        for place, phase in enumerate(phases):
            self.told(event(NAME, number, phase, 500 + place))

    def changed(self) -> set[str] | None:
        news, self.news = self.news, set()
        return news

    def facts(self, names: Sequence[str]) -> Mapping[str, Facts | None]:
        machine, state = declared_as(NAME, SPEC), self.states.machines([NAME]).get(NAME)
        assert machine is not None
        proven = self.states.proven([NAME]).get(NAME, ())[::-1]
        under_way = state.pending or state.current if state is not None else None
        first = [under_way] if under_way is not None and under_way.boot not in proven else []
        boots = (*first, *(each for boot in proven if (each := self.states.boot(boot)) is not None))
        since = {boot: each for boot, (each, _) in self.states.numbers([each.boot for each in boots]).items()}
        found = judged(state.current if state is not None else None, message=f"as {self.name} sees it")
        return {name: Facts(machine, found, boots, IMAGE, since=since) for name in names}

    def of_now(self) -> bool:
        return True

    def watch(self, seconds: float) -> Iterator[Seen]:
        yield ObjectsListed((self.api.machine,))

    def write(self, machine: MachineObject, status: Mapping[str, Any]) -> MachineObject:
        return self.api.write(machine, status, self.name)

    def renew(self, holder: str, at_ms: int) -> None:
        if self.name in self.api.away:
            raise ClusterUnavailableError("the apiserver cannot be reached")
        assert self.name == self.api.leader

    def tell(self, event: ObjectEvent) -> str:
        return "event"

    def tell_again(self, name: str, times: int, at_ms: int) -> None:
        """It is counted."""


@pytest.fixture
def api() -> ApiServer:
    """Where the leader has written how the machine is."""
    made = ApiServer()
    assert made.passes(2) == ["a"]
    made.passes(60)
    return made


def steps(api: ApiServer, number: int = 1) -> list[str]:
    found = [each for each in api.machine.status.get("boots", ()) if each["id"] == boot_id(NAME, number)]
    return [each["phase"] for boot in found for each in boot["steps"]]


def known(one: One, number: int = 1) -> list[Phase]:
    trace = one.states.boot(boot_id(NAME, number))
    return [each.phase for each in trace.reached] if trace is not None else []


def test_who_does_not_lead_writes_facts_of_boots_and_leaves_all_else(api: ApiServer) -> None:
    _, b, c = api.replicas
    before = api.machine.status
    api.leader = "nobody"
    b.says(1, Phase.ATTESTED)
    assert api.passes(2) == ["b"]
    assert steps(api) == ["ScriptServed", "Attested"]
    assert {key: value for key, value in api.machine.status.items() if key != "boots"} == before
    assert known(c) == [Phase.SCRIPT_SERVED, Phase.ATTESTED]
    api.leader = "c"
    assert "c" in api.passes(7)
    assert api.machine.status["boot"] == boot_id(NAME, 1)
    assert api.machine.status["conditions"][0]["message"] == "as c sees it"
    assert {one.controller.status().overwritten for one in api.replicas} == {0}


def test_a_boot_that_was_told_in_parts_during_a_partition_ends_equal_everywhere(api: ApiServer) -> None:
    a, b, c = api.replicas
    api.away = {"a", "b", "c"}
    a.says(1, Phase.INITRD_STARTED, Phase.IMAGE_FETCHED)
    b.says(1, Phase.SWITCHED, Phase.ATTESTED)
    c.says(1, Phase.NODE_REGISTERED, Phase.READY)
    assert api.passes(30) == []
    assert "cannot be reached" in b.controller.status().message
    api.heals()
    api.passes(120)
    whole = ["ScriptServed", "InitrdStarted", "ImageFetched", "Switched", "Attested", "NodeRegistered", "Ready"]
    assert steps(api) == whole
    for one in api.replicas:
        assert known(one) == [Phase(each) for each in whole]
        assert one.states.numbers([boot_id(NAME, 1)]) == a.states.numbers([boot_id(NAME, 1)])
        assert one.controller.status().ok
    assert api.passes(700) == [], "nobody writes on and on"


def test_a_conflict_is_seen_merged_and_written_again(api: ApiServer) -> None:
    _, b, c = api.replicas
    api.deaf = {"b"}
    c.says(1, Phase.ATTESTED)
    assert "c" in api.passes(1)
    b.says(2, Phase.ATTESTED)
    b.controller.step()
    assert api.conflicts == 1
    assert steps(api, 2) == []
    api.deaf = set()
    b.controller.take(ObjectSeen(api.machine, there=True))
    api.passes(7)
    assert (steps(api, 1), steps(api, 2)) == (["ScriptServed", "Attested"], ["ScriptServed", "Attested"])
    assert b.controller.status().ok


def test_what_comes_while_a_replica_looks_at_what_was_before_is_learnt_at_once(api: ApiServer) -> None:
    """Not only when all are listed again, ten minutes later."""
    _, b, c = api.replicas
    api.leader = "nobody"
    facts = b.facts

    def meanwhile(names: Sequence[str]) -> Mapping[str, Facts | None]:
        b.facts = facts  # type: ignore[method-assign]
        found = facts(names)
        c.says(1, Phase.SWITCHED, Phase.ATTESTED)
        c.controller.step()
        assert steps(api) == ["ScriptServed", "Switched", "Attested"]
        return found

    b.news = {NAME}
    b.facts = meanwhile  # type: ignore[method-assign]
    api.passes(10)
    assert b.facts is facts
    assert known(b) == [Phase.SCRIPT_SERVED, Phase.SWITCHED, Phase.ATTESTED]


def test_a_status_that_was_wiped_is_written_again_by_whoever_knows(api: ApiServer) -> None:
    for number, one in enumerate(api.replicas, 1):
        one.says(number, Phase.ATTESTED)
        api.passes(120)
    whole = api.machine.status
    api.becomes({}, "kubectl")
    api.passes(120)
    assert api.machine.status == whole


def test_claims_at_three_replicas_are_one_line_a_minute(api: ApiServer) -> None:
    for each in api.replicas:
        each.says(1, Phase.ATTESTED)
    api.passes(120)
    written = 0
    for second in range(600):
        one = api.replicas[second % 3]
        one.says(second + 10, Phase.INITRD_STARTED)
        written += len(api.passes(1))
    assert 0 < written <= 11
    api.replicas[1].says(700, Phase.ATTESTED)
    assert "b" in api.passes(1)


def test_what_cannot_be_written_down_is_said_and_facts_are_told_all_the_same(api: ApiServer) -> None:
    _, b, c = api.replicas
    b.full = True
    c.says(1, Phase.ATTESTED)
    api.passes(7)
    assert known(b) == []
    problem = "what other replicas told of boots cannot be written down: the disk is full"
    assert b.controller.status().message == problem
    b.says(2, Phase.ATTESTED)
    api.passes(7)
    assert steps(api, 2) == ["ScriptServed", "Attested"]
    b.full = False
    b.controller.take(ObjectsListed((api.machine,)))
    api.passes(2)
    assert known(b) == [Phase.SCRIPT_SERVED, Phase.ATTESTED]


def test_what_the_projection_has_not_taken_yet_is_written_down_once_a_minute(api: ApiServer) -> None:
    _, b, c = api.replicas
    b.append = lambda *records: setattr(b, "appended", b.appended + len(records))  # type: ignore[method-assign]
    c.says(1, Phase.ATTESTED)
    for _ in range(20):
        b.news = {NAME}
        api.passes(1)
    assert b.appended <= 2, "the boot proved itself, and the leader learnt of it"
    b.news, before = {NAME}, b.appended
    api.now += AGAIN_SECONDS
    api.passes(1)
    assert b.appended == before + 1


def test_others_that_write_there_are_said(api: ApiServer) -> None:
    for _ in range(MANY + 1):
        api.becomes({**api.machine.status, "phase": "Other"}, "kubectl")
        api.passes(62)
    assert "is overwritten: by kubectl" in api.replicas[0].controller.status().message
