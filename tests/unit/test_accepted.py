"""Which machines are accepted now, read no more often than it must be."""

import pytest

from netboot.controllers.nodes.accepted import LOOK_SECONDS, AcceptedNow
from netboot.lifecycle.intents import Exemption, PutOn, TakeOff
from netboot.lifecycle.transitions import Mark
from tests.commits import Told
from tests.intents import MemoryIntents

NOW = 1_000
ACCEPTED = Exemption.ACCEPTED


class Stage:
    def __init__(self) -> None:
        self.file, self.intents, self.up, self.now_ms = Told(), MemoryIntents(), 0.0, NOW
        self.accepted = AcceptedNow(self.file, self.intents, lambda: self.now_ms, lambda: self.up)

    def order(self, machine: str, order: PutOn | TakeOff) -> None:
        self.intents.order(machine, order, "alice", self.now_ms)
        self.file.touch()

    def later(self) -> frozenset[str] | None:
        self.up += LOOK_SECONDS
        return self.accepted.machines()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_who_is_accepted_until_its_end(stage: Stage) -> None:
    assert stage.later() == frozenset()
    stage.order("a", PutOn(ACCEPTED, "fan 3", NOW + 100))
    stage.order("b", PutOn(ACCEPTED, "fan 4", NOW + 200))
    stage.order("c", PutOn(Mark.HELD, "DIMM 4"))
    assert stage.accepted.machines() == frozenset(), "not looked at again yet"
    assert stage.later() == frozenset({"a", "b"})
    stage.now_ms += 100
    assert stage.accepted.machines() == frozenset({"b"}), "an end needs no look"
    stage.order("b", TakeOff(ACCEPTED, ""))
    assert stage.later() == frozenset()


def test_what_cannot_be_told_is_as_it_was(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.intents.broken = True
    assert stage.later() is None
    stage.intents.broken = False
    stage.order("a", PutOn(ACCEPTED, "fan 3", NOW + 100))
    assert stage.later() == frozenset({"a"})
    stage.intents.broken = True
    stage.file.touch()
    assert stage.later() == frozenset({"a"})
    stage.now_ms += 100
    assert stage.later() == frozenset(), "its end is known"
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING", "ERROR"]
