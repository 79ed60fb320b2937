"""Holds of files, against what holds machines now. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from netboot.cli.written_objects import HoldWritten
from netboot.lifecycle.holds import is_object, of_owner, shown
from netboot.lifecycle.intent_rules import decide
from netboot.lifecycle.intents import OPERATORS, Intent, PutOn
from netboot.lifecycle.transitions import Mark


class HoldOrders(NamedTuple):
    """`missing`: Holds of which none stands, with what is ordered for each; `same`: how many stand."""

    missing: Sequence[tuple[HoldWritten, PutOn]]
    same: int


def orders(holds: Sequence[HoldWritten], standing: Sequence[Intent], now_ms: int) -> HoldOrders:
    """A machine that an object held is held still: what it held stands on each disk that followed it."""
    now, missing = [*standing], list[tuple[HoldWritten, PutOn]]()
    for each in holds:
        order = PutOn(Mark.HELD, each.spec.reason, each.spec.until_ms)
        if any(is_held_so(one, each) for one in now):
            continue
        change = decide(each.spec.machine, _of(now, each), order, who_of(each), now_ms)
        missing.append((each, order))
        now = [one for one in now if one.machine != each.spec.machine or one.owner != OPERATORS] + [*change.put]
    return HoldOrders(missing, len(holds) - len(missing))


def _of(intents: Sequence[Intent], written: HoldWritten) -> list[Intent]:
    return [one for one in intents if one.machine == written.spec.machine]


def who_of(written: HoldWritten) -> str:
    """By whom it is, in his words."""
    return written.spec.by or shown(written.metadata.name)


def is_held_so(standing: Intent, written: HoldWritten) -> bool:
    """Whether it holds that machine for so long: that of the very object, or of people."""
    ends = written.spec.until_ms
    if standing.machine != written.spec.machine:
        return False
    if standing.until_ms is not None and (ends is None or standing.until_ms < ends):
        return False
    if not is_object(standing):
        return standing.owner == OPERATORS
    namespace, name = of_owner(standing.owner)
    return name == written.metadata.name and _same_or_unknown(namespace, written.metadata.namespace)


def _same_or_unknown(one: str, other: str) -> bool:
    return not one or not other or one == other
