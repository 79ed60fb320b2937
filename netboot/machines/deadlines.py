"""How long a boot may stay at each phase before it counts as stuck: the class's word over the default, the profile's
over both. docs/lifecycle.md says where the defaults come from."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator, Field

from images.values.durations import duration

NONE = 0
"""Seconds of a deadline that never comes; `none` in files."""
LONGEST = 7 * 86_400
_M = 60
DEFAULTS: Mapping[str, int] = {
    "ScriptServed": 5 * _M,
    "KernelFetched": 5 * _M,
    "InitrdFetched": 10 * _M,
    "InitrdStarted": 15 * _M,
    "ImageFetched": 5 * _M,
    "ImageVerified": 5 * _M,
    "Switched": 10 * _M,
    "Booted": 10 * _M,
    "Joining": 15 * _M,
    "Attested": 5 * _M,
    "TokenIssued": 10 * _M,
    "CSRApproved": 5 * _M,
    "NodeRegistered": 15 * _M,
    "HealthGated": NONE,
    "Lost": 20 * _M,
    "ReportStale": 20 * _M,
}
"""Phase → seconds until the next one; `Lost`: how long a Node that was Ready may not be it, its machine's reboot
included. `HealthGated`: until it may take work. `ReportStale`: from one health report, of which one comes every five to
six minutes, until the next."""


def _seconds(value: object) -> object:
    if value == "none":
        return NONE
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("must be a duration like 90s, 15m or 2h, or none")  # noqa: TRY004 - pydantic wants it
    if isinstance(value, int):
        return value
    try:
        return duration(value)
    except ValueError:
        raise ValueError("must be a duration like 90s, 15m or 2h, or none") from None


Seconds = Annotated[int, Field(ge=NONE, le=LONGEST), BeforeValidator(_seconds)]
Deadlines = dict[str, Seconds]
"""Those that a class or profile declares, by their names (`netboot.machines.judged` knows which there are)."""


class Deadline(NamedTuple):
    """`said_by`: whose word it is, like `class hgx-h100`; empty: nobody's, it is the default."""

    seconds: int
    said_by: str


def in_force(*declared: tuple[str, Mapping[str, int]]) -> dict[str, Deadline]:
    """Each deadline by its name. `declared`: who says what, the weakest first."""
    deadlines = {name: Deadline(seconds, "") for name, seconds in DEFAULTS.items()}
    for said_by, said in declared:
        deadlines |= {name: Deadline(seconds, said_by) for name, seconds in said.items()}
    return deadlines
