"""What counts against the bound on removals: which machines went or became others within the last hour, and what those
that went were known by, so that nobody is another by leaving and coming back.
"""

from collections.abc import Mapping, Set
from typing import NamedTuple

from pydantic import Field

from images.values.strict import Strict
from netboot.machines.another import Known, became_others, known
from netboot.machines.declarations import Judged
from netboot.machines.difference import names
from netboot.machines.former import staying
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


class Removals(Strict):
    """Of the last hour. `others`: who became another, and when; `untold_ms`: since when it is that all this may be less
    than there was, for it could not be read, or was too much; None: it is all."""

    went: dict[str, Went] = Field(default_factory=dict)
    others: dict[str, int] = Field(default_factory=dict)
    untold_ms: int | None = None

    @property
    def known(self) -> Mapping[str, Known] | None:
        """By what those that went were known; None: it cannot be told of all."""
        if self.untold_ms is not None:
            return None
        return {name: Known(each.machine, each.by_profile) for name, each in self.went.items()}

    @property
    def counting(self) -> Set[str]:
        """Names of machines that went and count."""
        return {name for name, each in self.went.items() if each.counts}


class Counted(NamedTuple):
    """What an inventory would do to the one in force. `lately`: of those that `count` together, the ones of within the
    hour before; `of`: so many machines there were, with those; `left`: whether any is."""

    removed: Set[str]
    others: Set[str]
    lately: int
    count: int
    of: int
    left: bool


def counted(before: Inventory, after: Inventory, removals: Removals) -> Counted:
    """What `after` would remove of `before`, and of whom it would make others."""
    in_force = names(before)
    were, stay = in_force | removals.counting, staying(after, in_force, removals.went.keys())
    removed, others = in_force - stay, set(became_others(before, after, removals.known))
    gone = were - stay
    lately = removals.others.keys() - others - gone
    return Counted(
        removed=removed,
        others=others,
        lately=len(gone - in_force) + len(lately),
        count=len(gone) + len(others) + len(lately),
        of=len(were),
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
    after = with_faults(removals.model_copy(update={"went": went}), judged)
    if accepted:
        kept = {name: each.model_copy(update={"counts": False}) for name, each in after.went.items() if each.left_out}
        return Removals(went=kept)
    others = dict.fromkeys(became_others(before, judged.inventory, removals.known), now_ms)
    return after.model_copy(update={"others": removals.others | others})


def with_faults(removals: Removals, judged: Judged) -> Removals:
    """The same, with whose object has faults now."""
    left_out = {fault.item.removeprefix("machines/") for fault in judged.left_out}
    changed = {
        name: each.model_copy(update={"left_out": name in left_out})
        for name, each in removals.went.items()
        if each.left_out != (name in left_out)
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
    others = {name: at_ms for name, at_ms in removals.others.items() if at_ms > since}
    untold_ms = removals.untold_ms if removals.untold_ms is not None and removals.untold_ms > since else None
    return Removals(went=went, others=others, untold_ms=untold_ms)


def moved(removals: Removals, by_ms: int, until_ms: int) -> Removals:
    """The same by another clock, which is `by_ms` ahead; nothing of it is after `until_ms`."""
    went = {
        name: each.model_copy(update={"at_ms": min(each.at_ms + by_ms, until_ms)})
        for name, each in removals.went.items()
    }
    others = {name: min(at_ms + by_ms, until_ms) for name, at_ms in removals.others.items()}
    untold_ms = None if removals.untold_ms is None else min(removals.untold_ms + by_ms, until_ms)
    return Removals(went=went, others=others, untold_ms=untold_ms)


def without_the_oldest(removals: Removals, now_ms: int) -> Removals:
    """The later half of who went: the rest is too much, and nobody can tell of it any more."""
    went = sorted(removals.went.items(), key=lambda each: each[1].at_ms)
    others = removals.others if went else {}
    return Removals(went=dict(went[(len(went) + 1) // 2 :]), others=others, untold_ms=now_ms)
