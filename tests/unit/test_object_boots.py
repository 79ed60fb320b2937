"""What objects say of boots, where several replicas say it: in whatever order they are told and tell, all end equal."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from netboot.lifecycle.events import EventRecord, SharedRecord
from netboot.lifecycle.object_boots import BootTold, boot_told, record_of
from netboot.lifecycle.object_merged import merged
from netboot.lifecycle.object_status import MOST_BYTES
from netboot.lifecycle.phases import OBSERVED_PHASES, Phase
from netboot.lifecycle.reached import ORDER
from netboot.lifecycle.trace import Trace, apply
from tests.records import START, boot_id, checked, event, script
from tests.replicas import NAME, Replica, Site
from tests.unit.test_object_status import READY, boot

PHASES = [each for each in Phase if each is not Phase.SCRIPT_SERVED]
details = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300)
facts = st.tuples(st.integers(1, 4), st.sampled_from(PHASES), st.integers(0, 3), details)


def record(number: int, phase: Phase, place: int, detail: str) -> EventRecord:
    return event(NAME, number, phase, 500 + place, detail)


def told_of(some: list[Any], least: int) -> tuple[BootTold, ...]:
    """Of boots of which these facts are known; a boot that has less than another has another number."""
    traces = dict[int, Trace]()
    for number, *what in some:
        traces[number] = apply(traces.get(number) or apply(None, script(NAME, number)), record(number, *what))
    boots = [boot_told(trace, least + number) for number, trace in traces.items()]
    return merged([each for each in boots if each is not None], (), NAME, START)


@given(st.lists(facts, max_size=8), st.integers(1, 9))
def test_what_is_told_of_a_boot_is_told_again_of_what_it_is_read_as(
    some: list[tuple[int, Phase, int, str]], least: int
) -> None:
    for told in told_of(some, least):
        read = record_of(told, NAME, START)
        assert read is not None
        assert boot_told(apply(None, read), read.since) == told
        assert SharedRecord.model_validate_json(read.model_dump_json()) == read


sides = st.tuples(st.lists(facts, max_size=8), st.integers(1, 9))


@given(sides, sides, sides)
def test_in_whatever_order_sides_are_merged_the_same_is_told(one: Any, two: Any, three: Any) -> None:
    """Of one boot, and but for failures, of which the first and the last are told: of what is left out there, whoever
    knows it tells it again."""
    sides = [
        ([each for each in some if each[0] == 1 and each[1] is not Phase.FAILED], least)
        for some, least in (one, two, three)
    ]
    a, b, c = (told_of(some, least) for some, least in sides)
    assert merged(a, b, NAME, START) == merged(b, a, NAME, START)
    assert merged(merged(a, b, NAME, START), c, NAME, START) == merged(a, merged(b, c, NAME, START), NAME, START)
    both = merged(a, b, NAME, START)
    assert merged(both, a, NAME, START) == merged(both, both, NAME, START) == both


def test_of_one_standing_the_least_number_counts_and_of_a_higher_one_its_own() -> None:
    reported, proven = boot(1, Phase.BOOTED), boot(1, Phase.BOOTED, Phase.ATTESTED)

    def both(one: Trace, mine: int, other: Trace, its: int) -> str:
        a, b = boot_told(one, mine), boot_told(other, its)
        assert a is not None
        assert b is not None
        (found,) = merged([a], [b], NAME, START)
        return found.since

    assert both(reported, 5, reported, 7) == "5"
    assert both(reported, 5, proven, 7) == both(proven, 7, reported, 5) == "7"
    assert both(proven, 9, proven, 7) == "7"


def test_what_is_not_of_our_making_is_no_fact() -> None:
    told = boot_told(boot(1, *READY), 7)
    assert told is not None
    for change in (
        {"since": ""},
        {"since": "9" * 18},
        {"id": "one"},
        {"proven": False},
        {"steps": told.steps[:2]},
        {"steps": tuple(each.model_copy(update={"phase": "Landed"}) for each in told.steps)},
        {"steps": tuple(each.model_copy(update={"digest": "ab"}) for each in told.steps)},
        {"image": "latest"},
    ):
        assert record_of(told.model_copy(update=change), NAME, START) is None, change
    assert merged([told], [told.model_copy(update={"since": ""})], NAME, START) == (told,)


def test_no_status_is_larger_than_it_may_be_with_all_that_replicas_tell() -> None:
    site = Site(1)
    replica, long = site.replicas[0], "\\" * 300
    for number in range(1, 8):
        phases = [each for each in ORDER if number < 7 or each not in OBSERVED_PHASES]
        about = {"cluster": "c" * 63, "profile": "p" * 63, "channel": "h" * 63, "class_name": "k" * 63}
        about |= {"decision": "d" * 16, "script": "e" * 16, "arguments": "f" * 16}
        replica.told(script(NAME, number).model_copy(update=about))
        for place, phase in enumerate(phases):
            reached = event(NAME, number, phase, place, long).model_copy(update={"uptime_ms": 10**12})
            replica.told(reached.model_copy(update={"sha256": "a" * 64} if phase is Phase.ATTESTED else {}))
        for place in range(3):
            replica.told(event(NAME, number, Phase.FAILED, 10**9 + place, long))
    report = checked(NAME, 6)
    checks = [{"name": "n" * 38 + f"{n:02}", "status": "unknown", "severity": "critical"} for n in range(64)]
    checks = [each | {"summary": long} for each in checks]
    data = report.model_dump(by_alias=True)
    replica.told(type(report).model_validate(data | {"report": data["report"] | {"checks": checks}}))
    replica.writes(leads=True)
    size = len(json.dumps(site.status, ensure_ascii=False).encode())
    assert 15_000 < size <= MOST_BYTES


# -- several replicas -------------------------------------------------------------------------------------------------

told = st.tuples(st.integers(0, 2), facts)
steps = st.lists(st.one_of(told, st.tuples(st.integers(0, 2), st.none())), max_size=30)
clocks = st.tuples(*[st.sampled_from([0, -86_400_000, 86_400_000 * 400])] * 3)


def known_to(replica: Replica) -> Any:
    """What one knows of the machine, as far as it is told: the boot that counts, the one under way, and all others."""
    state = replica.states.machines([NAME]).get(NAME)
    pair = (state.current, state.pending) if state is not None else (None, None)
    counted = tuple(boot.boot if boot is not None else "" for boot in pair)
    boots = replica.states.boots(NAME, 50)
    numbers = replica.states.numbers([each.boot for each in boots])
    return counted, [boot_told(each, numbers[each.boot][0]) for each in boots]


@settings(deadline=None, max_examples=60)
@given(steps, clocks)
def test_replicas_that_are_told_parts_of_boots_end_equal(did: list[Any], ahead: tuple[int, int, int]) -> None:
    """Whoever tells whom, in whatever order, whatever their clocks say. Of a boot nobody reported, nothing is told."""
    site = Site(3)
    for replica, ahead_ms in zip(site.replicas, ahead, strict=True):
        replica.ahead_ms = ahead_ms
    for which, what in did:
        replica = site.replicas[which]
        if what is None:
            replica.exchange()
            continue
        number, *said = what
        if said[0] is Phase.FAILED:
            continue  # of these the first and the last are told
        replica.told(script(NAME, number))
        fact = record(number, *said)
        replica.told(fact.model_copy(update={"at_ms": fact.at_ms + replica.ahead_ms}), "join-0.db")
    site.heal()
    one, *others = ([known_to(each)[0], site.status] for each in site.replicas)
    assert all(each == one for each in others)
    boots = {each["id"]: each for each in site.status.get("boots", ())}
    for replica in site.replicas:
        assert not replica.learns()
        for each in known_to(replica)[1]:
            assert each is not None
            if each.id in boots:
                assert each.model_dump(exclude_defaults=True, mode="json") == boots[each.id]


@settings(deadline=None, max_examples=60)
@given(steps, clocks, st.integers(0, 2))
def test_a_boot_that_proves_itself_after_all_had_exchanged_is_the_newest_whatever_clocks_say(
    did: list[Any], ahead: tuple[int, int, int], last: int
) -> None:
    site = Site(3)
    for replica, ahead_ms in zip(site.replicas, ahead, strict=True):
        replica.ahead_ms = ahead_ms
    for which, what in did:
        if what is not None:
            number, *said = what
            fact = record(number, *said)
            replica = site.replicas[which]
            replica.told(fact.model_copy(update={"at_ms": fact.at_ms + replica.ahead_ms}))
    site.heal()
    replica = site.replicas[last]
    replica.told(event(NAME, 9, Phase.ATTESTED).model_copy(update={"at_ms": START + replica.ahead_ms}), "join-0.db")
    site.heal()
    assert {known_to(each)[0][0] for each in site.replicas} == {boot_id(NAME, 9)}


def test_an_old_boot_that_arrives_late_is_not_the_current_one() -> None:
    site = Site(2)
    old, new = site.replicas
    old.told(script(NAME, 1))
    old.told(event(NAME, 1, Phase.ATTESTED))
    new.told(script(NAME, 2))
    new.told(event(NAME, 2, Phase.ATTESTED))
    new.told(checked(NAME, 2, "fail"))
    site.heal()
    for each in site.replicas:
        assert known_to(each)[0] == (boot_id(NAME, 2), "")
        found = each.states.machines([NAME])[NAME].checked
        assert found is not None
        assert found.status == "fail"
    assert [each["id"] for each in site.status["boots"]] == [boot_id(NAME, 2), boot_id(NAME, 1)]
    site.status = {}
    site.heal()
    assert [each["id"] for each in site.status["boots"]] == [boot_id(NAME, 2), boot_id(NAME, 1)], "it was wiped"
