"""Events on Nodes: one for each time that a condition becomes another, in the words of the condition."""

from collections import deque

import pytest

from netboot.controllers.nodes import telling
from netboot.controllers.nodes.telling import Teller
from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.join.node_events import NodeEvent
from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.remedies import Remedy
from tests.records import START
from tests.remedies import remedy

BOOTED, IN_SERVICE = ConditionType.BOOTED, ConditionType.IN_SERVICE
Found = dict[str, tuple[MachineCondition, ...]]


def found(booted: Reason, in_service: Reason = Reason.NOT_JOINED, machine: str = "gpu-001") -> Found:
    made = ((BOOTED, booted), (IN_SERVICE, in_service))
    return {machine: tuple(MachineCondition.of(kind, reason, f"it is {reason}", START) for kind, reason in made)}


class Stage:
    """What is found, and what the cluster was told."""

    def __init__(self) -> None:
        self.found: Found | None = None
        self.events: list[NodeEvent] = []
        self.counts: list[tuple[str, int]] = []
        self.down, self.gone, self.seconds = "", False, 0.0
        where = {"gpu-001": ("node-1", "uid-1")}
        self.taken: list[Remedy] = []
        self.teller = Teller(
            lambda: self, lambda: self.found, lambda: where, lambda: START, self.news, lambda: self.seconds
        )

    def news(self) -> list[Remedy]:
        taken, self.taken = self.taken, []
        return taken

    def create(self, event: NodeEvent) -> str:
        if self.down:
            raise ClusterUnavailableError(self.down)
        self.events.append(event)
        return f"event-{len(self.events)}"

    def count(self, name: str, times: int, at_ms: int) -> None:
        assert at_ms == START
        if self.gone:
            raise ConflictError("the event is gone")
        self.counts.append((name, times))

    def becomes(self, now: Found | None) -> list[tuple[str, str]]:
        """What came of it."""
        before = len(self.events)
        self.found = now
        self.teller.step()
        return [(event.about, event.reason) for event in self.events[before:]]


def test_each_transition_is_an_event_with_the_sentence_of_the_condition() -> None:
    stage = Stage()
    assert stage.becomes(None) == []
    assert stage.becomes(found(Reason.BOOTING)) == [], "what is so already is nobody's news"
    assert stage.becomes(found(Reason.STUCK)) == [("Booted", "Stuck")]
    assert stage.becomes(found(Reason.STUCK)) == []
    assert stage.becomes(found(Reason.BOOTED, Reason.IN_SERVICE)) == [("Booted", "Booted"), ("InService", "InService")]
    assert stage.events[0] == NodeEvent("node-1", "uid-1", BOOTED, "False", Reason.STUCK, "it is Stuck", START)
    assert stage.becomes(found(Reason.STUCK) | found(Reason.STUCK, machine="of-no-cluster")) == [
        ("InService", "NotJoined")
    ], "and Stuck was counted"


def test_a_remedy_that_is_taken_is_an_event() -> None:
    stage = Stage()
    stage.taken = [remedy(), remedy("gpu-009", id=8)]
    assert stage.becomes(None) == []
    assert stage.becomes(None) == [("Remedy", "Reboot")]
    note = "remedy 7: a check failed"
    assert stage.events == [NodeEvent("node-1", "uid-1", "Remedy", "False", "Reboot", note, START)]


def test_what_comes_again_within_minutes_is_counted() -> None:
    stage = Stage()
    for _ in range(3):
        stage.becomes(found(Reason.BOOTING))
        stage.becomes(found(Reason.STUCK))
    assert [event.reason for event in stage.events] == [Reason.STUCK, Reason.BOOTING]
    assert stage.counts == [("event-1", 2), ("event-2", 2), ("event-1", 3)]
    stage.seconds += telling.SERIES_SECONDS
    assert stage.becomes(found(Reason.BOOTING)) == [("Booted", "Booting")]
    stage.gone = True
    stage.becomes(found(Reason.STUCK))
    stage.becomes(found(Reason.BOOTING))
    assert [event.reason for event in stage.events[-2:]] == [Reason.STUCK, Reason.BOOTING], "somebody deleted it"


def test_what_cannot_be_written_is_tried_again_up_to_a_number() -> None:
    stage = Stage()
    stage.becomes(found(Reason.BOOTING))
    stage.down, stage.found = "no route to host", found(Reason.STUCK)
    for _ in range(3):
        try_to_step(stage)
    stage.down = ""
    stage.teller.step()
    assert [event.reason for event in stage.events] == [Reason.STUCK]
    stage.down, stage.found = "it is refused", found(Reason.BOOTED)
    for _ in range(telling.MOST_TRIES + 1):
        try_to_step(stage)
    stage.down = ""
    assert stage.becomes(found(Reason.FAILED)) == [("Booted", "Failed")]


def test_what_there_is_no_room_for_is_said(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.teller._waiting = deque(maxlen=3)
    monkeypatch.setattr(telling, "MOST_WAITING", 3)
    stage.becomes(found(Reason.BOOTING))
    stage.down = "no route to host"
    for reason in (Reason.STUCK, Reason.BOOTED, Reason.FAILED, Reason.BOOTING, Reason.STUCK):
        stage.found = found(reason)
        try_to_step(stage)
    assert [record.getMessage() for record in caplog.records] == [
        "1 events are not written, the oldest: more than 3 wait"
    ] * 2


def try_to_step(stage: Stage) -> None:
    try:
        stage.teller.step()
    except ClusterUnavailableError as error:
        assert str(error) == stage.down
