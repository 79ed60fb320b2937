"""Machines that are late or ill for the same cause, as one case. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from netboot.lifecycle.sentences import parts

LONGEST = 200
"""Of words that a list is filtered by, as the API takes them."""
_OWN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d{4}-\d\d-\d\dT[\d:.]+Z")
"""What is another in the same sentence about another machine: ids of boots, moments."""


class Case(NamedTuple):
    """`machine`: the first of them, as the API tells it; `words`, `rest`: of its sentence; `asked`: filters of the list
    that has them all; `machines`: how many they are, of those that were looked at."""

    machine: Mapping[str, Any]
    words: str
    rest: str
    asked: Mapping[str, str]
    machines: int


def cases(first: Sequence[Mapping[str, Any]]) -> list[Case]:
    """In the order in which the first of each comes."""
    found: dict[tuple[str, ...], Case] = {}
    for each in first:
        words, rest = parts(each["message"])
        pieces = _OWN.split(rest)
        key = (each["status"], each["reason"], each["step"], words, *pieces)
        asked = {name: each[name] for name in ("status", "reason", "step")}
        asked["text"] = (words or max(pieces, key=len).strip())[:LONGEST]
        case = found.setdefault(key, Case(each, words, rest, asked, 0))
        found[key] = case._replace(machines=case.machines + 1)
    return list(found.values())
