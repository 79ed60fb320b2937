"""What is written down of a boot once it has proven itself, and when: each boot is counted once."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from netboot.controllers.boot_records import AT_MOST_MS, BootRecords, Noticed
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.state import Batch
from netboot.stores.history import SqliteHistory
from netboot.stores.history_writer import HistoryFile
from tests.conditions import MemoryJudged
from tests.records import START, boot_id, event, script
from tests.states import MemoryStates


class World:
    """A service in which time passes when it is told so."""

    def __init__(self, root: Path) -> None:
        self.states, self.root = MemoryStates(), root
        self.noticed = Noticed(MemoryJudged(), self)
        self.shown = SqliteHistory(root / "history.db")
        self.caught_up = True
        self.now = START
        self.seconds = 0.0
        self.taken = 0
        self.start()

    def start(self) -> None:
        self.history = HistoryFile(self.root / "history.db")
        self.records = BootRecords(
            self.states,
            self.noticed,
            self.history,
            self.classes,
            lambda: self.caught_up,
            self,
            lambda: self.seconds,
        )

    def classes(self) -> Mapping[str, str]:
        return {"gpu-001": "hgx"}

    def now_ms(self) -> int:
        return self.now

    def take(self, *records: Any) -> None:
        self.taken += len(records)
        self.states.take(Batch("boot-0.db", 1, self.taken, list(records)))
        self.records.told({record.machine for record in records})

    def step(self, seconds: float = 0.0) -> None:
        self.seconds += seconds
        self.now += int(seconds * 1000)
        self.records.step()
        assert self.records.problem == ""

    def judge(self, reason: Reason, number: int, machine: str = "gpu-001") -> None:
        condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, "said", self.now)
        boot = boot_id(machine, number)
        self.noticed.keep([Judged(machine=machine, conditions=(condition,), timers={}, boot=boot)], (), {})

    def counted(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Target and class → boots, milliseconds, and of these unaccounted for."""
        return {
            (each.target, each.hardware): (sum(each.counts), each.ms, each.unaccounted_ms)
            for each in self.shown.durations()
        }


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.history.close()


def ready(number: int = 0, machine: str = "gpu-001") -> list[Any]:
    """A boot that is Ready 20 s after its script, and of which nothing is known between its initrd and that."""
    return [
        script(machine, number),
        event(machine, number, Phase.INITRD_STARTED, 4_000),
        event(machine, number, Phase.ATTESTED, 15_000),
        event(machine, number, Phase.READY, 20_000),
    ]


def test_a_boot_is_counted_as_ready_and_later_as_in_service_and_once_each(world: World) -> None:
    world.take(*ready())
    world.step()
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)}
    world.now = START + 25_000
    world.judge(Reason.HEALTH_GATED, 0)
    world.step(3.0)
    world.judge(Reason.IN_SERVICE, 0)
    world.step()
    both = {("Ready", "hgx"): (1, 20_000, 16_000), ("InService", "hgx"): (1, 28_000, 16_000)}
    assert world.counted() == both
    for _ in range(3):
        world.judge(Reason.NODE_NOT_READY, 0)
        world.step(5.0)
        world.judge(Reason.IN_SERVICE, 0)
        world.take(event("gpu-001", 0, Phase.READY, 20_000))
        world.step(5.0)
    assert (world.counted(), world.history.under_way()) == (both, [])


def test_a_restart_in_between_counts_nothing_twice_and_forgets_nothing(world: World) -> None:
    world.take(*ready()[:3])
    world.step()
    world.history.close()
    world.start()
    world.take(ready()[3])
    world.step()
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)}
    world.history.close()
    world.start()
    world.step()
    world.judge(Reason.IN_SERVICE, 0)
    world.now += 25_000
    world.step()
    assert {key: count for key, (count, _, _) in world.counted().items()} == {
        ("Ready", "hgx"): 1,
        ("InService", "hgx"): 1,
    }


def test_what_was_judged_just_before_a_crash_is_found_after_it(world: World) -> None:
    world.take(*ready())
    world.step()
    kept = MemoryJudged()
    world.judge(Reason.IN_SERVICE, 0)
    kept.kept = {each.machine: each for each, _ in world.noticed.take()}
    world.noticed = Noticed(kept, world)
    world.history.close()
    world.start()
    world.now = START + 30_000
    world.step()
    assert world.counted()["InService", "hgx"] == (1, 30_000, 16_000)


def test_a_boot_waits_for_journals_that_are_not_read_to_their_end_but_not_for_ever(world: World) -> None:
    world.caught_up = False
    world.take(*ready())
    world.now = START + 21_000
    world.step()
    assert world.counted() == {}
    world.step(60.0)
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)}


def test_a_boot_after_which_another_proved_itself_is_over_and_machines_without_a_class_are_counted(
    world: World,
) -> None:
    world.take(*ready(machine="gpu-002"))
    world.step()
    world.take(*ready(1, machine="gpu-002"))
    world.step()
    assert world.counted() == {("Ready", ""): (2, 40_000, 32_000)}
    assert [each.boot for each in world.history.under_way()] == [boot_id("gpu-002", 1)]
    world.step(AT_MOST_MS / 1000 + 60)
    assert world.history.under_way() == []


def test_a_disk_that_refuses_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise StateUnavailableError("no space left")

    world.take(*ready())
    for method in ("begin", "note", "count"):
        with monkeypatch.context() as patched:
            patched.setattr(world.history, method, refused)
            if method == "note":
                world.judge(Reason.IN_SERVICE, 0)
            world.records.step()
            assert world.records.problem == "no space left"
    world.seconds += 60
    world.step()
    assert {key: count for key, (count, _, _) in world.counted().items()} == {
        ("Ready", "hgx"): 1,
        ("InService", "hgx"): 1,
    }
