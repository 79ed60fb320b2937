"""What an order of an operator, or of something that acts by itself, makes of what is wanted of a machine. Pure.

Each owner's want stands by itself: what a person put on, nothing else takes off or cuts short. An order that is given
again changes nothing; one with a later end moves the end. What an object declares is altered with the object.
"""

from collections.abc import Iterable, Mapping, Sequence

from netboot.lifecycle.intents import Change, Entry, Exemption, Intent, Order, PutOn, TakeOff, Want
from netboot.lifecycle.transitions import Mark

_GRAVITY: Mapping[Want, int] = {want: place for place, want in enumerate((*Mark, *Exemption))}


def ordered(intents: Iterable[Intent]) -> list[Intent]:
    """As they are shown: by machine, the gravest first, then the oldest."""
    return sorted(intents, key=lambda one: (one.machine, _GRAVITY[one.mark], one.since_ms, one.owner))


def decide(machine: str, before: Sequence[Intent], order: Order, who: str, now_ms: int) -> Change:
    """What `order` does. `before`: all that is on record of the machine, what has ended too."""
    standing = [intent for intent in ordered(before) if intent.stands(now_ms) and intent.mark is order.mark]
    if isinstance(order, TakeOff):
        staying = tuple(intent for intent in standing if order.but and intent.owner.startswith(order.but))
        leaving = tuple(one for one in standing if order.owner in (None, one.owner) and one not in staying)
        return Change("taken-off" if leaving else "", removed=leaving, stands=staying)
    own = next((intent for intent in standing if intent.owner == order.owner), None)
    if own is None:
        return Change("put-on", put=(_new(machine, order, who, now_ms),), stands=tuple(standing))
    if order.exactly:
        said = {"who": who, "reason": order.reason, "until_ms": order.until_ms, "object": order.object}
        as_said = own.model_copy(update=said)
        return Change("altered", put=(as_said,)) if as_said != own else Change("", stands=(own,))
    if not _later(order.until_ms, own.until_ms):
        return Change("", stands=(own, *(intent for intent in standing if intent is not own)))
    return Change("extended", put=(own.model_copy(update={"until_ms": order.until_ms}),))


def _new(machine: str, order: PutOn, who: str, now_ms: int) -> Intent:
    return Intent(
        machine=machine,
        mark=order.mark,
        owner=order.owner,
        who=who,
        reason=order.reason,
        since_ms=now_ms,
        until_ms=order.until_ms,
        object=order.object,
    )


def _later(asked: int | None, stands: int | None) -> bool:
    """Whether an end is later than another; None is never."""
    return stands is not None and (asked is None or asked > stands)


def ended(before: Sequence[Intent], now_ms: int) -> list[Intent]:
    """Those of which the end has come."""
    return [intent for intent in ordered(before) if not intent.stands(now_ms)]


def entries(change: Change, order: Order, who: str, now_ms: int) -> list[Entry]:
    """The lines that a change is in the history."""
    return [_entry(intent, change.act, intent.owner, who, order.reason, now_ms) for intent in change.put] + [
        _entry(intent, change.act, intent.owner, who, order.reason, now_ms) for intent in change.removed
    ]


def end_of(intent: Intent) -> Entry:
    """The line that says that its end has come, at that moment."""
    at = intent.until_ms if intent.until_ms is not None else intent.since_ms
    return _entry(intent, "ended", intent.owner, intent.who, intent.reason, at)


def _entry(intent: Intent, act: str, owner: str, who: str, reason: str, at_ms: int) -> Entry:
    return Entry(
        at_ms=at_ms,
        machine=intent.machine,
        mark=intent.mark,
        act=act,
        owner=owner,
        who=who,
        reason=reason,
        until_ms=intent.until_ms,
    )
