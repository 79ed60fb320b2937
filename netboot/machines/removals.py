"""What counts against the bound on removals: which machines went or became others within the last hour, and what those
that went were known by, so that nobody is another by leaving and coming back. And which came, so that these hide none.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple, TypeVar

from pydantic import Field

from images.values.strict import Strict
from netboot.machines.another import Known, became_others, by_all_names, known
from netboot.machines.declarations import Judged
from netboot.machines.difference import names, too_many_of
from netboot.machines.former import present_names, staying
from netboot.machines.values import Inventory, Machine

REMEMBERED_MS = 3_600_000
"""A folder that is emptied file by file is no smaller accident than one that is emptied at once."""


class Went(Strict):
    """A machine that is not in force any more. `machine`: as it was; `by_profile`: as `Known`; `counts`: against the
    bound; `left_out`: its object is there still, and has faults, so that it keeps what it was known by."""

    machine: Machine
    by_profile: bool
    at_ms: int
    counts: bool = True
    left_out: bool = False


class GivenUp(Strict):
    """A name that a machine had, and that none has or had by what is in force. `machine`: whose it was; `by_profile`:
    as `Known`. By it machines are compared, and nothing else: it keeps nothing for anybody."""

    machine: Machine
    by_profile: bool
    at_ms: int


_Remembered = TypeVar("_Remembered", Went, GivenUp)


class Removals(Strict):
    """Of the last hour. `others`: who became another, and when; `came`: who was added, and when; `untold_ms`: since
    when it is that all this may be less than there was, for it could not be read, or was too much; None: it is all."""

    went: dict[str, Went] = Field(default_factory=dict)
    given_up: dict[str, GivenUp] = Field(default_factory=dict)
    others: dict[str, int] = Field(default_factory=dict)
    came: dict[str, int] = Field(default_factory=dict)
    untold_ms: int | None = None

    @property
    def known(self) -> Mapping[str, Known] | None:
        """By what those that went were known; None: it cannot be told of all."""
        if self.untold_ms is not None:
            return None
        return {name: Known(each.machine, each.by_profile) for name, each in self.went.items()}

    @property
    def left(self) -> Mapping[str, Known]:
        """Names that were given up, and whose these were."""
        return {name: Known(each.machine, each.by_profile) for name, each in self.given_up.items()}

    @property
    def counting(self) -> Set[str]:
        """Names of machines that went and count."""
        return {name for name, each in self.went.items() if each.counts}


class Part(NamedTuple):
    """So many machines of so many that there were."""

    gone: int
    of: int


class Counted(NamedTuple):
    """What an inventory would do to the one in force. `whole`: how many go or become others, with those of within the
    hour before, which are `lately`; `older`: likewise, of those alone that were there before that hour, for who adds
    machines makes the rest no fewer; `left`: whether any machine is."""

    removed: Set[str]
    others: Set[str]
    lately: int
    whole: Part
    older: Part
    left: bool

    def too_many(self, percent: int, minimum: int) -> Part | None:
        """What of it may be an accident, by `too_many_of`; None: nothing."""
        if too_many_of(*self.whole, percent, minimum, left=self.left):
            return self.whole
        return self.older if too_many_of(*self.older, percent, minimum, left=True) else None


def counted(before: Inventory, after: Inventory, removals: Removals) -> Counted:
    """What `after` would remove of `before`, and of whom it would make others."""
    in_force = names(before)
    were, stay = in_force | removals.counting, staying(after, in_force, removals.went.keys())
    removed, others = in_force - stay, set(became_others(before, after, removals.known, removals.left))
    gone = were - stay
    lately = removals.others.keys() - others - gone
    which = gone | others | lately
    came = removals.came.keys() | {
        machine.name
        for machine in after.machines
        if machine.name in others
        and (was := were & {machine.name, *machine.former_names})
        and was <= removals.came.keys()
    }
    return Counted(
        removed=removed,
        others=others,
        lately=len(gone - in_force) + len(lately),
        whole=Part(len(which), len(were)),
        older=Part(len(which - came), len(were - came)),
        left=bool(stay),
    )


def taken(before: Inventory, judged: Judged, removals: Removals, now_ms: int, *, accepted: bool) -> Removals:
    """What is remembered when `judged` has taken the place of `before`. `accepted`: somebody said yes, and what went
    counts no more; what is known of it stays where its object does, with its faults."""
    stay = staying(judged.inventory, names(before), removals.went.keys())
    gone = {
        name: Went(machine=each.machine, by_profile=each.by_profile, at_ms=now_ms, counts=not accepted)
        for name, each in known(before).items()
        if name not in stay
    }
    went = {name: each for name, each in removals.went.items() if name not in stay} | gone
    came = _came(before, judged.inventory, removals, now_ms)
    came |= {name: at_ms for name, at_ms in removals.came.items() if name in went or name in removals.others}
    given_up = _given_up(before, judged.inventory, removals, now_ms, went.keys())
    after = with_faults(removals.model_copy(update={"went": went, "came": came, "given_up": given_up}), judged)
    if accepted:
        kept = {name: each.model_copy(update={"counts": False}) for name, each in after.went.items() if each.left_out}
        return Removals(went=kept, came=came)
    others = dict.fromkeys(became_others(before, judged.inventory, removals.known, removals.left), now_ms)
    return after.model_copy(update={"others": removals.others | others})


def _given_up(
    before: Inventory, after: Inventory, removals: Removals, now_ms: int, went: Set[str]
) -> dict[str, GivenUp]:
    """Names that nobody has any more, nor had, but for those of machines that went; who got one was held against it."""
    said = names(after) | present_names(after).keys()
    left = {
        name: GivenUp(machine=each.machine, by_profile=each.by_profile, at_ms=now_ms)
        for name, each in by_all_names(before).items()
        if name not in said and name not in went
    }
    return left | {name: each for name, each in removals.given_up.items() if name not in names(after)}


def _came(before: Inventory, after: Inventory, removals: Removals, now_ms: int) -> dict[str, int]:
    """Machines of `after` that nobody knows from before the hour, and since when they are there: one that is another
    by name came when that one did."""
    there = names(before) | removals.went.keys()
    came = dict[str, int]()
    for machine in after.machines:
        was = there & {machine.name, *machine.former_names}
        if was <= removals.came.keys():
            came[machine.name] = min((removals.came[name] for name in was), default=now_ms)
    return came


def with_faults(removals: Removals, judged: Judged) -> Removals:
    """The same, with whose object has faults now. One that had them and has none is so until it is in force again: it
    is the one that it was."""
    left_out, back = {fault.item.removeprefix("machines/") for fault in judged.left_out}, names(judged.inventory)
    now = {name: name in left_out or (each.left_out and name in back) for name, each in removals.went.items()}
    changed = {
        name: each.model_copy(update={"left_out": now[name]})
        for name, each in removals.went.items()
        if each.left_out != now[name]
    }
    return removals.model_copy(update={"went": removals.went | changed}) if changed else removals


def within_the_hour(removals: Removals, now_ms: int) -> Removals:
    """What of it counts still, or is known of machines whose objects have faults, however long those have them."""
    since = now_ms - REMEMBERED_MS
    went = {
        name: each if each.at_ms > since or not each.counts else each.model_copy(update={"counts": False})
        for name, each in removals.went.items()
        if each.at_ms > since or each.left_out
    }
    untold_ms = removals.untold_ms if removals.untold_ms is not None and removals.untold_ms > since else None
    others = {name: at_ms for name, at_ms in removals.others.items() if at_ms > since}
    counted = went.keys() | others.keys()  # who came and counts is not one of before for having come over an hour ago
    came = {name: at_ms for name, at_ms in removals.came.items() if at_ms > since or name in counted}
    given_up = {name: each for name, each in removals.given_up.items() if each.at_ms > since}
    return Removals(went=went, given_up=given_up, others=others, came=came, untold_ms=untold_ms)


def moved(removals: Removals, by_ms: int, until_ms: int) -> Removals:
    """The same by another clock, which is `by_ms` ahead; nothing of it is after `until_ms`."""

    def by_it(at_ms: int) -> int:
        return min(at_ms + by_ms, until_ms)

    went = {name: each.model_copy(update={"at_ms": by_it(each.at_ms)}) for name, each in removals.went.items()}
    given_up = {name: each.model_copy(update={"at_ms": by_it(each.at_ms)}) for name, each in removals.given_up.items()}
    others, came = ({name: by_it(at_ms) for name, at_ms in each.items()} for each in (removals.others, removals.came))
    untold_ms = None if removals.untold_ms is None else by_it(removals.untold_ms)
    return Removals(went=went, given_up=given_up, others=others, came=came, untold_ms=untold_ms)


def without_the_oldest(removals: Removals, now_ms: int) -> Removals:
    """The later half of who went, and of names that were given up: the rest is too much, and nobody can tell of it any
    more."""
    went, given_up = _later_half(removals.went), _later_half(removals.given_up)
    some = removals.went or removals.given_up
    others, came = (removals.others, removals.came) if some else ({}, {})
    return Removals(went=went, given_up=given_up, others=others, came=came, untold_ms=now_ms)


def _later_half(of: Mapping[str, _Remembered]) -> dict[str, _Remembered]:
    by_age = sorted(of.items(), key=lambda each: each[1].at_ms)
    return dict(by_age[(len(by_age) + 1) // 2 :])
