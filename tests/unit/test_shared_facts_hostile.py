"""What the object of a machine says of its boots, where that is made up, or by a clock that is wrong: it costs nothing
but itself."""

from typing import Any

import pytest

from netboot.lifecycle.arrivals import AHEAD_MS, credible
from netboot.lifecycle.events import LATEST_MS, HealthRecord, SharedRecord
from netboot.lifecycle.object_health import REFRESH_MS, CheckTold, HealthTold, health_told, later
from netboot.lifecycle.object_shared import SKEW_MS, learnt, together
from netboot.lifecycle.object_status import ConditionTold, ObjectStatus
from netboot.lifecycle.objects import MachineObject
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.proof import proof_of
from netboot.lifecycle.trace import apply
from tests.records import START, boot_id, checked, event, script
from tests.replicas import NAME, SPEC, Replica, Site

LAST = 1_000 * LATEST_MS + 10**15
"""The last number that there is."""
AHEAD = (START + AHEAD_MS) * 1_000
"""The last that is believed at START."""


def made_up(**other: object) -> dict[str, Any]:
    """Of a boot that nobody made."""
    steps = [{"phase": "Attested", "at": 1, "digest": "d" * 64}]
    about = {"id": boot_id(NAME, 99), "phase": "Attested", "proven": True, "started": "x", "reached": "x"}
    return about | {"since": "5", "steps": steps} | other


def current(replica: Replica) -> str:
    state = replica.states.machines([NAME])[NAME]
    assert state.current is not None
    return state.current.boot


def in_object(site: Site) -> list[str]:
    return [each["id"] for each in site.status["boots"]]


def test_a_number_that_no_clock_gives_is_not_taken_over_and_goes_out_of_the_object() -> None:
    site = Site(2)
    a, b = site.replicas
    a.told(script(NAME, 1))
    a.told(event(NAME, 1, Phase.ATTESTED))
    site.heal()
    boots = site.status["boots"]
    for number in (LAST, AHEAD + 1):
        site.status = {**site.status, "boots": [made_up(since=str(number)), *boots]}
        assert [each.boot for each in learnt(NAME, site.status, START)] == [boot_id(NAME, 1)]
        site.heal()
        assert in_object(site) == [boot_id(NAME, 1)]
    b.told(script(NAME, 2))
    b.told(event(NAME, 2, Phase.ATTESTED))
    site.heal()
    assert in_object(site) == [boot_id(NAME, 2), boot_id(NAME, 1)]
    assert [current(each) for each in site.replicas] == [boot_id(NAME, 2)] * 2


def test_what_a_clock_may_give_is_believed_and_what_comes_after_is_newer() -> None:
    site = Site(2)
    _, b = site.replicas
    site.status = {"boots": [made_up(since=str(AHEAD))]}
    site.heal()
    assert current(b) == boot_id(NAME, 99)
    b.told(script(NAME, 2))
    b.told(event(NAME, 2, Phase.ATTESTED))
    assert current(b) == boot_id(NAME, 2)
    assert [credible(number, START) for number in (0, 1, AHEAD, AHEAD + 1)] == [False, True, True, False]


@pytest.mark.parametrize("arrived", ["0", "9" * 18, str(AHEAD + 1)])
def test_a_report_that_is_numbered_wrongly_costs_the_report_alone(arrived: str) -> None:
    checks = [{"name": "cpus", "status": "pass", "severity": "minor"}]
    health = {"boot": boot_id(NAME, 99), "at": 1, "arrived": arrived, "checks": checks}
    status = {"boots": [made_up()], "health": health}
    (record,) = learnt(NAME, status, START)
    assert record.health is None
    assert SharedRecord.model_validate_json(record.model_dump_json()) == record
    mine = ObjectStatus(health=HealthTold(boot=boot_id(NAME, 99), at=START, arrived="7"))
    said = together(MachineObject(NAME, "uid", 1, "1", SPEC, status), mine, leads=True, now_ms=START)
    assert said.health == mine.health, "it keeps no true one out"


CHECKS = (CheckTold(name="cpus", status="pass", severity="minor"),)


@pytest.mark.parametrize("ahead_ms", [0, 900_000, 86_400_000, -900_000])
def test_what_says_the_same_is_told_again_before_it_is_stale_whatever_the_other_clock_said(ahead_ms: int) -> None:
    said = HealthTold(boot="b", at=START + ahead_ms, arrived="10", checks=CHECKS)
    ages = [minutes for minutes in range(5, 60, 5) if told_again(said, minutes)]
    assert ages[0] <= REFRESH_MS // 60_000


def told_again(said: HealthTold, minutes: int) -> bool:
    mine = HealthTold(boot="b", at=START + minutes * 60_000, arrived=str(10 + minutes), checks=CHECKS)
    return later(said, mine, "b") is mine


def test_by_one_clock_what_says_the_same_is_not_told_again_before() -> None:
    said = HealthTold(boot="b", at=START, arrived="10", checks=CHECKS)
    assert [told_again(said, minutes) for minutes in (1, 9, 10, 11)] == [False, False, True, True]


def test_of_checks_that_fail_alike_the_graver_ones_are_told() -> None:
    checks = [{"name": f"a-{n}", "status": "fail", "severity": "minor"} for n in range(7)]
    checks += [{"name": "gpu-xid", "status": "fail", "severity": "critical"}]
    checks += [{"name": "disks", "status": "fail", "severity": "major"}]
    data = checked(NAME, 1).model_dump(by_alias=True)
    record = HealthRecord.model_validate(data | {"report": data["report"] | {"checks": checks}})
    told = health_told(record, 5)
    assert [each.name for each in told.checks] == ["gpu-xid", "disks", "a-0", "a-1", "a-2", "a-3"]


def test_a_boot_that_is_under_way_no_more_is_not_told_as_one_that_is() -> None:
    site = Site(2)
    a, b = site.replicas
    a.told(script(NAME, 1))
    a.told(event(NAME, 1, Phase.INITRD_STARTED))
    site.heal()
    assert in_object(site) == [boot_id(NAME, 1)]
    b.told(script(NAME, 2))
    b.told(event(NAME, 2, Phase.ATTESTED))
    site.heal()
    assert in_object(site) == [boot_id(NAME, 2)]


def condition(status: str, at: str, kind: str = "Ready") -> ConditionTold:
    return ConditionTold.model_validate(
        {"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": at}
    )


@pytest.mark.parametrize(
    ("said", "status", "told"),
    [
        ("2023-11-14T22:00:00Z", "True", "2023-11-14T22:00:00Z"),
        ("2023-11-14T22:15:00Z", "True", "2023-11-14T22:15:00Z"),
        ("2023-11-14T22:00:00Z", "False", "2023-11-14T22:10:00Z"),
        ("2099-11-14T22:00:00Z", "True", "2023-11-14T22:10:00Z"),
        ("2023-11-14T22:00:00+00:00", "True", "2023-11-14T22:10:00Z"),
        ("then", "True", "2023-11-14T22:10:00Z"),
    ],
    ids=["it stays", "by another clock", "it changed", "to come", "another form", "no moment"],
)
def test_a_condition_that_stays_keeps_the_time_that_its_object_says(said: str, status: str, told: str) -> None:
    assert SKEW_MS == 86_400_000
    there = ObjectStatus(conditions=(condition(status, said), condition("True", said, "Other")))
    mine = ObjectStatus(conditions=(condition("True", "2023-11-14T22:10:00Z"),))
    machine = MachineObject(NAME, "uid", 1, "1", SPEC, there.document())
    found = together(machine, mine, leads=True, now_ms=START)
    assert [each.lastTransitionTime for each in found.conditions] == [told]
    assert together(machine, mine, leads=False, now_ms=START).conditions == there.conditions


def test_of_a_boot_that_an_object_alone_knows_nothing_is_signed() -> None:
    (record,) = learnt(NAME, {"boots": [made_up()]}, START)
    trace = apply(None, record)
    assert trace.phase(Phase.ATTESTED) is not None
    assert proof_of(trace, None, None, "test", START) is None
    own = apply(trace, event(NAME, 99, Phase.ATTESTED, 500, "by tpm, PCR policy: 7"))
    assert proof_of(own, None, None, "test", START) is None, "what was made up is the earlier"
