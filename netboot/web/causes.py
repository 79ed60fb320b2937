"""Why machines are late or ill, as one key for all that are so for the same cause. Pure."""

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from netboot.lifecycle.sentences import without
from netboot.lifecycle.summary import MachineSummary

DIGITS = 16
"""Of a key."""
_OWN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d{4}-\d\d-\d\dT[\d:.]+Z")
"""What is another in the same sentence about another machine, beside its name in a command: ids of boots, moments."""


class Case(NamedTuple):
    """`first`: place of the first machine that is so, `machines`: how many are."""

    cause: str
    first: int
    machines: int


def cause_of(name: str, found: MachineSummary) -> str:
    """The same for two machines whose status, reason, phase and own words are, and whose sentences are but for ids,
    moments and their names in commands."""
    sentence = _OWN.sub("\0", without(found.message, found.said, found.reason)).replace(f" {name}`", " \0`")
    parts = (found.status, found.reason, found.step, found.said, sentence)
    return hashlib.sha256("\0\0".join(parts).encode(errors="replace")).hexdigest()[:DIGITS]


def cases(causes: Iterable[str]) -> list[Case]:
    """Each machine is in one of them; in the order in which the first of each comes."""
    found: dict[str, Case] = {}
    for place, cause in enumerate(causes):
        case = found.get(cause) or Case(cause, place, 0)
        found[cause] = case._replace(machines=case.machines + 1)
    return list(found.values())
