"""The node collector: to which boot a Node belongs, and what is written down of it, once."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.values.backoff import Backoff
from netboot.controllers import reflector
from netboot.controllers.nodes import collector as module
from netboot.controllers.nodes.attribution import SKEW_MS, belongs, facts, seen
from netboot.controllers.nodes.caught_up import joins_read_up_ms
from netboot.controllers.nodes.collector import Collector
from netboot.controllers.nodes.gating import GateStatus
from netboot.controllers.progress import Progress
from netboot.join.errors import ClusterUnavailableError
from netboot.join.ports import NodeView
from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.known import Node
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.lifecycle.trace import Trace, apply
from netboot.machines.values import Machine, Match
from netboot.status import up_ms
from netboot.stores.status import StatusFolder, write_status
from tests.kube_fake import FakeCluster
from tests.processes import wait_for
from tests.records import START, boot_id, certified, event, script
from tests.states import MemoryStates

MACHINE = Machine(name="gpu-001", match=Match(serial="S1"), profile="compute")
ATTESTED = START + 1_500


def node(
    uid: str = "new", created_ms: int = ATTESTED + 4_000, ready: bool = False, since: int | None = None
) -> NodeView:
    return NodeView("gpu-001", uid, ready, "", created_ms, since)


def boot(number: int = 1, uid: str | None = None, *phases: Phase) -> Trace:
    """A boot that attested; with `uid` it registered that Node."""
    trace = apply(apply(None, script("gpu-001", number)), event("gpu-001", number, Phase.ATTESTED))
    if uid is not None:
        trace = apply(trace, event("gpu-001", number, Phase.NODE_REGISTERED, 5_000, f"node gpu-001 uid {uid}"))
    for phase in phases:
        trace = apply(trace, event("gpu-001", number, phase, 9_000))
    return trace


@pytest.mark.parametrize(
    ("view", "current", "others", "ours"),
    [
        (node(), boot(), [], True),
        (node(created_ms=ATTESTED - SKEW_MS), boot(), [], True),
        (node(created_ms=ATTESTED - SKEW_MS - 1), boot(), [], False),
        (node("old"), boot(2), [boot(1, "old")], False),
        (node("new"), boot(2), [boot(1, "old")], True),
        (node("new"), boot(2, "new"), [boot(1, "old")], True),
        (node("again"), boot(2, "new"), [boot(1, "old")], True),
        (node(), apply(None, event("gpu-001", 1, Phase.BOOTED)), [], False),
    ],
    ids=[
        "made after the boot attested",
        "clocks differ",
        "made before the boot attested",
        "registered by the boot before",
        "another than the boot before registered",
        "known",
        "deleted and made again in the same boot",
        "a boot that never attested",
    ],
)
def test_whose_a_node_is(view: NodeView, current: Trace, others: list[Trace], ours: bool) -> None:
    assert belongs(view, current, others) is ours


def test_what_is_missing_is_written_down_with_the_time_at_which_it_was_seen() -> None:
    at = ATTESTED + 4_200
    one = seen(None, node(), at)
    assert [(r.phase, r.at_ms, r.detail) for r in facts(one, boot())] == [
        (Phase.NODE_REGISTERED, at, "node gpu-001 uid new")
    ]
    one = seen(one, node(ready=True, since=at + 900), at + 1_000)
    assert [(r.phase, r.at_ms) for r in facts(one, boot())] == [
        (Phase.NODE_REGISTERED, at),
        (Phase.READY, at + 1_000),
    ]
    one = seen(one, node(ready=True, since=at + 900), at + 90_000)
    assert [(r.phase, r.at_ms) for r in facts(one, boot(1, "new"))] == [(Phase.READY, at + 1_000)]
    assert facts(one, boot(1, "new", Phase.READY)) == []


def test_what_was_seen_late_has_the_cluster_s_own_time() -> None:
    one = seen(None, node(ready=True, since=ATTESTED + 9_000), ATTESTED + 600_000)
    assert [r.at_ms for r in facts(one, boot())] == [ATTESTED + 4_000, ATTESTED + 9_000]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.booleans(), st.integers(-50_000, 50_000)), min_size=1, max_size=8),
    st.integers(0, 50_000),
)
def test_times_never_run_backwards(views: list[tuple[str, bool, int]], step: int) -> None:
    one, now = None, ATTESTED
    for uid, ready, offset in views:
        now += step
        one = seen(one, node(uid, ATTESTED + offset, ready, ATTESTED - offset), now)
    assert one is not None
    times = [record.at_ms for record in facts(one, boot())]
    assert times == sorted(times)
    assert all(time >= ATTESTED for time in times)


class Journal:
    """Takes records into the state at once, as the projection does a little later."""

    def __init__(self, states: MemoryStates) -> None:
        self.states, self.records, self.failure = states, list[EventRecord](), False

    def append(self, record: EventRecord) -> None:
        if self.failure:
            raise JournalUnavailableError("no space left")
        self.records.append(record)


class NoGate:
    """Leaves every Node as it is."""

    def begin_round(self, *, well: bool) -> None:
        pass

    def take(self, node: NodeView) -> None:
        pass

    problem = ""

    def step(self, *, followed: bool) -> None:
        if self.problem:
            raise ClusterUnavailableError(self.problem)

    def status(self) -> GateStatus:
        return GateStatus({}, {}, 0)


class Stage:
    """A cluster, the state, and a collector that runs."""

    def __init__(self) -> None:
        self.cluster, self.states = FakeCluster(), MemoryStates()
        self.journal = Journal(self.states)
        self.now = ATTESTED + 4_000
        self._taken = 0
        self.read_up_ms, self.gate, self.several = up_ms, NoGate(), False
        self.collector = self.again()

    def now_ms(self) -> int:
        return self.now

    def again(self, *, start: bool = True) -> Collector:
        """A collector that has just started, or is about to."""
        machines = {"gpu-001": MACHINE}
        self.collector = Collector(
            lambda: self.cluster.nodes,
            lambda: machines,
            self.states,
            self.journal,
            self.gate,
            self,
            lambda: self.read_up_ms(),
            several=self.several,
        )
        if start:
            self.collector.start()
        return self.collector

    def know(self, *records: object) -> None:
        """The projection has taken these over."""
        self._taken += len(records)
        self.states.take(Batch("join-0.db", 1, self._taken, records))  # type: ignore[arg-type]

    def phases(self) -> list[tuple[str, Phase]]:
        return [(record.boot, record.phase) for record in self.journal.records]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector, "AGAIN", Backoff(0.01, 0.05))
    monkeypatch.setattr(reflector, "SHORT_SECONDS", 0.05)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(module, "LOOKS", Backoff(0.01, 0.01))


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.collector.stop()


FIRST, SECOND = boot_id("gpu-001", 1), boot_id("gpu-001", 2)


def test_a_node_registers_becomes_ready_and_is_written_down_once(stage: Stage) -> None:
    stage.know(script("gpu-001", 1), event("gpu-001", 1, Phase.ATTESTED))
    stage.cluster.make_node("gpu-001", created_ms=stage.now)
    stage.cluster.make_node("a-stranger", ready=True, created_ms=stage.now)
    wait_for(lambda: stage.phases() == [(FIRST, Phase.NODE_REGISTERED)])
    stage.cluster.make_node("gpu-001", ready=True)
    wait_for(lambda: len(stage.journal.records) == 2)
    assert stage.phases() == [(FIRST, Phase.NODE_REGISTERED), (FIRST, Phase.READY)]
    wait_for(lambda: (said := stage.collector.status()).ok and said.ready == 1)  # a round begins with none
    stage.know(*stage.journal.records)
    stage.collector.stop()
    stage.again()  # a collector that starts anew finds it written down
    wait_for(lambda: (said := stage.collector.status()).ready == said.registered == 1 and not stage.collector._open)
    assert len(stage.journal.records) == 2


def test_a_node_of_the_boot_before_is_not_this_one_s(stage: Stage) -> None:
    stage.know(*records_of(1), event("gpu-001", 2, Phase.ATTESTED, 100_000))
    old = stage.cluster.make_node("gpu-001", ready=True, created_ms=ATTESTED + 4_000)
    wait_for(lambda: stage.collector.status().registered == 1)
    stage.cluster.remove_node("gpu-001")
    stage.now = START + 2_000 + 105_000
    new = stage.cluster.make_node("gpu-001", created_ms=stage.now)
    assert new.uid != old.uid
    wait_for(lambda: stage.phases() == [(SECOND, Phase.NODE_REGISTERED)])


def records_of(number: int) -> list[object]:
    """A boot whose Node was registered and ready long ago; by which uid is not known any more."""
    return [event("gpu-001", number, phase) for phase in (Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)]


def test_the_state_may_learn_of_the_attestation_later_than_the_cluster_of_the_node(stage: Stage) -> None:
    stage.cluster.make_node("gpu-001", ready=True, created_ms=stage.now)
    wait_for(lambda: stage.collector.status().registered == 1)
    assert stage.journal.records == []
    stage.know(script("gpu-001", 1), event("gpu-001", 1, Phase.ATTESTED))
    wait_for(lambda: len(stage.journal.records) == 2)


def test_a_node_that_the_state_may_not_know_the_boot_of_is_not_given_to_the_one_before(stage: Stage) -> None:
    """The boot before attested and never registered; of the next, whose Node this is, the state hears later."""
    stage.collector.stop()
    read_up_ms, collector = up_ms() - 1, stage.again(start=False)
    stage.read_up_ms = lambda: read_up_ms
    stage.know(script("gpu-001", 1), event("gpu-001", 1, Phase.ATTESTED))
    collector.take(stage.cluster.make_node("gpu-001", created_ms=START + 2_000 + 105_000))
    collector.step()
    assert stage.phases() == []
    first = up_ms()
    wait_for(lambda: up_ms() > first)
    collector.take(stage.cluster.make_node("gpu-001", ready=True))  # as it is seen later it is no other
    stage.know(event("gpu-001", 2, Phase.ATTESTED, 100_000))
    read_up_ms = first
    collector.step()
    assert stage.phases() == [(SECOND, Phase.NODE_REGISTERED), (SECOND, Phase.READY)]


def test_how_far_the_state_is_the_projection_says(tmp_path: Path) -> None:
    assert joins_read_up_ms(StatusFolder(tmp_path)) == 0
    write_status(tmp_path, "projection", dataclasses.replace(Progress(), joins_read_up_ms=7).status(1))
    assert joins_read_up_ms(StatusFolder(tmp_path)) == 7
    (tmp_path / "projection.json").write_text("{")
    assert joins_read_up_ms(StatusFolder(tmp_path)) == 0


def test_a_gate_that_cannot_be_moved_is_said_and_nodes_are_followed_all_the_same(stage: Stage) -> None:
    wait_for(lambda: stage.collector.status().ok)
    stage.gate.problem = "the taints of the Node gpu-001 cannot be changed: 422"
    wait_for(lambda: not stage.collector.status().ok)
    said = stage.collector.status()
    assert (said.message, said.gate_problem, said.followed) == (stage.gate.problem, stage.gate.problem, True)
    stage.cluster.down = "the apiserver does not answer"
    stage.cluster.make_node("gpu-001", created_ms=stage.now)
    wait_for(lambda: not stage.collector.status().followed)
    assert stage.collector.status().message == "the apiserver does not answer"


def test_a_disk_that_refuses_and_an_apiserver_that_does_not_answer(stage: Stage) -> None:
    stage.know(script("gpu-001", 1), event("gpu-001", 1, Phase.ATTESTED))
    stage.journal.failure = True
    stage.cluster.make_node("gpu-001", created_ms=stage.now)
    wait_for(lambda: stage.collector.status().message == "no space left")
    stage.journal.failure = False
    wait_for(lambda: stage.journal.records)
    wait_for(lambda: stage.collector.status().ok)
    stage.cluster.down = "the apiserver does not answer"
    stage.cluster.make_node("gpu-001", ready=True)
    wait_for(lambda: stage.collector.status().message == "the apiserver does not answer")
    stage.cluster.down = ""
    wait_for(lambda: len(stage.journal.records) == 2)


def _shows(collector: Collector, nodes: Mapping[str, Node]) -> bool:
    return collector.nodes() == nodes


def test_nodes_are_told_as_they_are_once_all_were_listed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUND_SECONDS", 0.05)
    stage.collector.stop()
    stage.cluster.down = "the apiserver does not answer"
    stage.cluster.make_node("gpu-001", created_ms=stage.now)
    stage.cluster.make_node("a-stranger", ready=True, created_ms=stage.now)
    collector = stage.again()
    wait_for(lambda: collector.status().message == "the apiserver does not answer")
    assert collector.nodes() is None
    stage.cluster.down = ""
    wait_for(lambda: collector.nodes() == {"gpu-001": Node.NOT_READY})
    stage.cluster.make_node("gpu-001", ready=True, gated=True)
    wait_for(lambda: collector.nodes() == {"gpu-001": Node.GATED})
    stage.cluster.make_node("gpu-001", ready=True)
    wait_for(lambda: collector.nodes() == {"gpu-001": Node.IN_SERVICE})
    in_service = stage.cluster.make_node("gpu-001", ready=True)
    for view, node in (
        (in_service._replace(cordoned=True), Node.CORDONED),
        (in_service._replace(cordoned=True, gated=True), Node.GATED),
        (in_service._replace(cordoned=True, ready=False), Node.NOT_READY),
        (in_service, Node.IN_SERVICE),
    ):
        stage.cluster.put_node(view)
        wait_for(functools.partial(_shows, collector, {"gpu-001": node}))
    stage.cluster.down = "the apiserver does not answer"
    failures = collector.status().unavailable
    wait_for(lambda: collector.status().unavailable > failures + 3)
    assert collector.nodes() == {"gpu-001": Node.IN_SERVICE}, "as it was seen last"
    stage.cluster.down = ""
    stage.cluster.remove_node("gpu-001")
    wait_for(lambda: collector.nodes() == {})


def test_with_replicas_a_node_is_of_the_boot_that_got_the_last_certificate() -> None:
    """Another replica was told of boot 2, and this one does not know yet: its Node is not one of boot 1."""
    first, second = boot(1), apply(None, certified("gpu-001", 2))
    assert belongs(node(), first, [])
    assert not belongs(node(), first, [], several=True)
    first = apply(first, certified("gpu-001", 1))
    assert belongs(node(), first, [], several=True)
    assert not belongs(node(), first, [second], several=True)
    assert belongs(node(), apply(boot(2), certified("gpu-001", 2)), [first], several=True)
    assert belongs(node(), boot(1, "new"), [second], several=True), "that it is of this one is on record"
    assert not belongs(node(), first, [boot(2, "new")], several=True)


def test_with_replicas_the_collector_waits_for_the_certificate(stage: Stage) -> None:
    stage.collector.stop()
    stage.several = True
    stage.know(script("gpu-001", 1), event("gpu-001", 1, Phase.ATTESTED))
    collector = stage.again(start=False)
    collector.take(stage.cluster.make_node("gpu-001", created_ms=stage.now))
    collector.step()
    assert stage.phases() == []
    stage.know(certified("gpu-001", 1))

    def written() -> bool:
        collector.step()
        return bool(stage.phases())

    wait_for(written)
    assert stage.phases() == [(boot_id("gpu-001", 1), Phase.NODE_REGISTERED)]
