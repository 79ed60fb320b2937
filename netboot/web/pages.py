"""Long lists in pages, as Kubernetes has them: `limit`, and `continue` from the answer before, to be read by nobody."""

import base64
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.errors import BadClaimError
from netboot.web.binding import Shown
from netboot.web.inputs import Whole

T = TypeVar("T")

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
    start = 0 if query.after is None else _place(_read(query.after), whole, name_of)
    part = whole[start:] if query.limit is None else whole[start : start + query.limit]
    more = start + len(part) < len(whole) and bool(part)
    return part, _written(name_of(part[-1])) if more else None


def _place(name: str, whole: Sequence[T], name_of: Callable[[T], str]) -> int:
    for index, each in enumerate(whole):
        if name_of(each) == name:
            return index + 1
    raise BadClaimError("what it goes on after is not there any more: begin again without it", field="continue")


def _written(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _read(text: str) -> str:
    try:
        name = base64.b64decode(text.encode("ascii"), b"-_", validate=True).decode()
    except ValueError:
        name = ""
    if not name or _written(name) != text:  # what could be written in two ways is not ours
        raise BadClaimError("is not what an answer gave", field="continue")
    return name
