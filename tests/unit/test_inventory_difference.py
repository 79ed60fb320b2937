"""What an edit changes, and the rule by which a removal is too large to be believed."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netboot.machines.another import became_others
from netboot.machines.difference import Difference, differences, digest_of, names, too_many_of
from netboot.machines.values import Channel, Inventory, Machine, Match, Profile, Rack

BEFORE = Inventory(
    machines=tuple(Machine(name=name, match=Match(serial=f"S-{name}"), profile="p") for name in ("a", "b", "c")),
    profiles=(Profile(name="p", channel="stable"),),
    channels=(Channel(name="stable"), Channel(name="old")),
)
AFTER = Inventory(
    machines=(*BEFORE.machines[:1], BEFORE.machines[1].model_copy(update={"enabled": False, "cluster": "lab"})),
    profiles=(*BEFORE.profiles, Profile(name="q", channel="stable")),
    channels=(Channel(name="stable", description="all"),),
    racks=(Rack(name="r1"),),
)

MACHINES = st.frozensets(st.integers(0, 60).map(str))
LIMITS = {"percent": st.integers(0, 100), "minimum": st.integers(0, 40)}


def too_many(before: frozenset[str], after: frozenset[str], percent: int, minimum: int) -> bool:
    return too_many_of(len(before - after), len(before), percent, minimum, left=bool(after))


def test_added_changed_and_removed() -> None:
    nothing = Difference(added=(), changed={}, removed=())
    assert differences(BEFORE, AFTER) == {
        "machines": Difference(
            added=(), changed={"b": {"cluster": ("default", "lab"), "enabled": (True, False)}}, removed=("c",)
        ),
        "profiles": Difference(added=("q",), changed={}, removed=()),
        "channels": Difference(added=(), changed={"stable": {"description": ("", "all")}}, removed=("old",)),
        "classes": nothing,
        "racks": Difference(added=("r1",), changed={}, removed=()),
        "maintenance": nothing,
    }
    assert set(map(repr, differences(AFTER, AFTER).values())) == {repr(nothing)}


def test_a_digest_is_of_everything_and_outlives_json() -> None:
    assert digest_of(BEFORE) != digest_of(AFTER)
    assert digest_of(Inventory.model_validate_json(BEFORE.model_dump_json())) == digest_of(BEFORE)
    assert names(BEFORE) == {"a", "b", "c"}


@given(before=MACHINES, after=MACHINES, **LIMITS)
def test_too_many_is_more_than_both_bounds_or_all(
    before: frozenset[str], after: frozenset[str], percent: int, minimum: int
) -> None:
    removed = len(before - after)
    over = Fraction(removed) > max(Fraction(percent * len(before), 100), Fraction(minimum))
    assert too_many(before, after, percent, minimum) == (over or (removed > 0 and not after))


@given(before=MACHINES, after=MACHINES, new=MACHINES, **LIMITS)
def test_additions_hide_no_removal(
    before: frozenset[str], after: frozenset[str], new: frozenset[str], percent: int, minimum: int
) -> None:
    others = new - before
    kept = after | others
    if kept and after:
        assert too_many(before, kept, percent, minimum) == too_many(before, after, percent, minimum)
    assert not too_many(before, before | others, percent, minimum)


@given(before=MACHINES, after=MACHINES, fewer=MACHINES, **LIMITS)
def test_what_removes_more_is_never_believed_sooner(
    before: frozenset[str], after: frozenset[str], fewer: frozenset[str], percent: int, minimum: int
) -> None:
    if too_many(before, after, percent, minimum):
        assert too_many(before, after - fewer, percent, minimum)


def test_the_defaults_on_the_usual_fleets() -> None:
    fleet = frozenset(map(str, range(1000)))
    assert not too_many(fleet, fleet - frozenset(map(str, range(100))), 10, 5)
    assert too_many(fleet, fleet - frozenset(map(str, range(101))), 10, 5)
    rack = frozenset(map(str, range(8)))
    assert not too_many(rack, rack - frozenset("01234"), 10, 5)
    assert too_many(rack, rack - frozenset("012345"), 10, 5)
    assert too_many(rack, frozenset(), 100, 1_000_000)
    assert not too_many(frozenset(), frozenset(), 0, 0)


def machine(**more: Any) -> Machine:
    return Machine(**{"name": "a", "match": {"macs": ["52:54:00:00:00:01"], "uuid": UUID}, "profile": "p", **more})


def site(*machines: Machine, pcrs: Any = None, other: Any = None) -> Inventory:
    return Inventory(
        machines=machines,
        profiles=(Profile(name="p", channel="c", pcrs=pcrs), Profile(name="q", channel="c", pcrs=other)),
    )


UUID, X, Y = "4c4c4544-0000-0000-0000-000000000001", "aa" * 32, "bb" * 32
MATCH = {"macs": ["52:54:00:00:00:01"], "uuid": UUID}
BY_ADDRESS = {"identity": "address", "node": {"addresses": ["192.0.2.1"]}}


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({}, {"match": {**MATCH, "macs": ["52:54:00:00:00:02"]}}),
        ({}, {"match": {**MATCH, "macs": ["52:54:00:00:00:01", "52:54:00:00:00:02"]}}),
        ({}, {"match": {**MATCH, "ek_sha256": X}}),
        ({}, {"match": {"uuid": UUID}}),
        ({}, {"match": {**MATCH, "serial": "S1"}}),
        ({}, {"identity": "address"}),
        ({}, {"cluster": "lab"}),
        ({}, {"node": {"name": "n-1"}}),
        ({"node": {"name": "n-1"}}, {}),
        ({}, {"pcrs": {"7": [X]}}),
        ({"pcrs": {"7": [X]}}, {"pcrs": {"7": [X, Y]}}),
        ({"pcrs": {"7": [X]}}, {}),
        (BY_ADDRESS, {**BY_ADDRESS, "node": {"addresses": ["192.0.2.2"]}}),
        ({}, {"name": "b", "former_names": ["a"], "match": {"uuid": UUID}}),
    ],
)
def test_a_machine_that_is_recognised_otherwise_or_let_in_by_another_proof_became_another(was: Any, now: Any) -> None:
    before, after = site(machine(**was)), site(machine(**now))
    assert list(became_others(before, after)) == [now.get("name", "a")]
    assert list(became_others(after, after)) == []


@pytest.mark.parametrize(
    "now",
    [
        {"profile": "q"},
        {"enabled": False},
        {"match": {"macs": ["52-54-00-00-00-01"], "uuid": UUID.upper()}},
        {"node": {"name": "a", "labels": {"gpu": "h100"}, "addresses": ["192.0.2.1"]}},
        {"name": "b", "former_names": ["a"]},
        {"name": "c", "match": {"serial": "S9"}},
    ],
)
def test_what_operators_do_every_day_makes_nobody_another(now: dict[str, Any]) -> None:
    assert list(became_others(site(machine()), site(machine(**now)))) == []


def test_of_a_profile_s_pcrs_new_values_are_every_day_and_fewer_pcrs_are_not() -> None:
    strict = {"4": (X,), "7": (X,)}

    def of(pcrs: Any, profile: str = "p") -> Inventory:
        asked = {"p": pcrs, "q": {"7": (X,)}}[profile]
        return site(machine(profile=profile, pcrs=asked or {}), pcrs=pcrs, other={"7": (X,)})

    same = [of({"4": (X, Y), "7": (X,)}), of({"4": (Y,), "7": (X,), "11": (X,)})]
    assert [list(became_others(of(strict), after)) for after in same] == [[], []]
    fewer = [of({"7": (X,)}), of({}), of(strict, "q")]
    assert [list(became_others(of(strict), after)) for after in fewer] == [["a"]] * 3
    assert list(became_others(of(None), of(strict))) == []
