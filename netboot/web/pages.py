"""Long lists in pages, as Kubernetes has them: `limit`, and `continue` from the answer before, to be read by nobody."""

import base64
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.errors import BadClaimError
from netboot.web.binding import Shown
from netboot.web.inputs import Whole

T = TypeVar("T")
_MOMENT = re.compile(r"[0-9]{1,15}\.[0-9]{1,5}\Z")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}\Z")
_NOT_OURS = "is not what an answer gave"

MOST = 5_000
LONGEST = 400
"""Characters of what an answer gives to go on with: a name, in base64."""


class PageAsked(Strict):
    """`limit`: at most so many, without it all; `continue`: what the answer before said, to go on after it."""

    limit: Annotated[int, Whole(1, MOST)] | None = None
    after: Annotated[str, Field(min_length=1, max_length=LONGEST)] | None = Field(None, alias="continue")


class Paged(Shown):
    """`continue`: to go on with, null at the end."""

    next_page: str | None = Field(serialization_alias="continue")


def page(query: PageAsked, whole: Sequence[T], name_of: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """The part that was asked for, and what to go on with; None: that was the end. Names are unique.

    Raises:
        BadClaimError: `continue` is none of ours, or is after what is not there any more.
    """
    start = 0 if query.after is None else _place(read(query.after), whole, name_of)
    part = whole[start:] if query.limit is None else whole[start : start + query.limit]
    more = start + len(part) < len(whole) and bool(part)
    return part, written(name_of(part[-1])) if more else None


def latest(
    after: str | None, limit: int, whole: Sequence[T], moment_of: Callable[[T], int]
) -> tuple[Sequence[T], str | None]:
    """The end of a list in the order of its moments, or what is before what was told of it; and what to go on with,
    further back. That is a moment and how many of it were told: what comes meanwhile is behind it.

    Raises:
        BadClaimError: `after` is none of ours.
    """
    place = read(after) if after is not None else None
    if place is not None and not _MOMENT.match(place):
        raise BadClaimError(_NOT_OURS, field="continue")
    at_ms, told = map(int, place.split(".")) if place is not None else (0, 0)
    end = len(whole) if place is None else max(bisect_right(whole, at_ms, key=moment_of) - told, 0)
    part = whole[max(end - limit, 0) : end]
    if len(part) == end:
        return part, None
    first = moment_of(part[0])
    told = sum(moment_of(each) == first for each in part) + (told if place is not None and first == at_ms else 0)
    return part, written(f"{first}.{told}")


def by_number(query: PageAsked) -> int | None:
    """The number before which a list goes on whose things are numbered, the newest first; None: from the newest on.

    Raises:
        BadClaimError: `continue` is none of ours.
    """
    place = read(query.after) if query.after is not None else None
    if place is not None and not _NUMBER.match(place):
        raise BadClaimError(_NOT_OURS, field="continue")
    return int(place) if place is not None else None


def _place(name: str, whole: Sequence[T], name_of: Callable[[T], str]) -> int:
    for index, each in enumerate(whole):
        if name_of(each) == name:
            return index + 1
    raise gone()


def gone() -> BadClaimError:
    """What a page goes on after has gone."""
    return BadClaimError("what it goes on after is not there any more: begin again without it", field="continue")


def written(name: str) -> str:
    """What an answer gives to go on with after that."""
    return base64.urlsafe_b64encode(name.encode()).decode()


def read(text: str) -> str:
    """What it goes on after.

    Raises:
        BadClaimError: it is none of ours.
    """
    try:
        name = base64.b64decode(text.encode("ascii"), b"-_", validate=True).decode()
    except ValueError:
        name = ""
    if not name or written(name) != text:  # what could be written in two ways is not ours
        raise BadClaimError(_NOT_OURS, field="continue")
    return name
