"""What is kept of a machine's boot with its remedy: enough to tell what it was, and bounded."""

import json

from netboot.controllers.evidence import MOST_BYTES, Evidence
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.state import Batch
from tests.records import START, checked, event, found_crash, script
from tests.remedies import ailment
from tests.states import MemoryStates


def judged(message: str) -> Judged:
    condition = MachineCondition.of(ConditionType.BOOTED, Reason.BOOTED, message, START)
    return Judged(machine="gpu-001", conditions=(condition,), timers={})


def evidence(states: MemoryStates, message: str = "it is up") -> str:
    return Evidence(states, lambda _: {"gpu-001": judged(message)}).of("gpu-001", ailment())


def test_the_boot_its_conditions_what_failed_and_the_end_of_a_crash_are_kept() -> None:
    states = MemoryStates()
    crash = found_crash("gpu-001", 1, text="oops\n" * 2000)
    failures = [event("gpu-001", 1, Phase.FAILED, 500 + number, f"try {number}") for number in range(6)]
    records: list[AnyRecord] = [script("gpu-001", 1), *failures, checked("gpu-001", 1, "fail"), crash]
    states.take(Batch("boot-0.db", 1, 9, records))
    found = json.loads(evidence(states))
    assert found["conditions"][0]["message"] == "it is up"
    assert found["boot"]["phases"] == ["ScriptServed 2023-11-14T22:13:21Z"]
    assert [each["detail"] for each in found["boot"]["failures"]] == ["try 2", "try 3", "try 4", "try 5"]
    assert [(each["name"], each["status"]) for each in found["health"]] == [("cpus", "fail")]
    assert len(found["crash"]) == 6 * 1024
    assert found["crash"].endswith("oops\n")


def test_of_what_nothing_is_known_nothing_is_kept() -> None:
    found = json.loads(Evidence(MemoryStates(), lambda _: {}).of("gpu-001", ailment()))
    assert found == {"conditions": [], "boot": None, "health": None, "crash": ""}


def test_what_is_too_long_goes_the_longest_first() -> None:
    states = MemoryStates()
    states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), checked("gpu-001", 1, "fail")]))
    text = evidence(states, "x" * MOST_BYTES)
    assert len(text) <= MOST_BYTES
    found = json.loads(text)
    assert found["conditions"] == "too long to be kept"
    assert found["health"]
