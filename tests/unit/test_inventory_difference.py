"""What an edit changes, and the rule by which a removal is too large to be believed."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from netboot.machines.difference import Difference, differences, digest_of, names, too_many
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
