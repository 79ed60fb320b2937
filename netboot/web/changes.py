"""Watching what is as it is, and no row of events: a thing, whole, each time that it is another one.

Who comes later is told how it is, so nothing is ever missing: a place is the tag of what was told last.
"""

import time
from collections.abc import Callable, Sequence
from typing import Annotated

from flask import Flask, Response, current_app
from pydantic import BaseModel, StringConstraints

from images.values.strict import Strict
from netboot.lifecycle.errors import BadClaimError
from netboot.web.binding import plain
from netboot.web.dependencies import dependencies
from netboot.web.preconditions import Tag
from netboot.web.watch import last_id, stream

LOOK_SECONDS = 1.0
"""Between two looks: what comes and goes within is not told."""
_PLACE = "0123456789abcdef"


class ChangesAsked(Strict):
    """From where: what a line or an event gave as `since`; without it from how it is now on."""

    since: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")] | None = None


def changes(query: ChangesAsked, tag: Tag, read: Callable[[], BaseModel]) -> Response:
    """What `read` gives, now and whenever its tag is another one, for as long as the client listens.

    Raises:
        BadClaimError: `Last-Event-ID` is none of ours. OverloadedError: too many watch already. What `read` raises.
    """
    last = last_id()
    if last is not None and not (len(last) == 32 and set(last) <= set(_PLACE)):
        raise BadClaimError("is not the id of an event of this stream", field="Last-Event-ID")
    read()  # what is not there is said by a status
    app: Flask = current_app._get_current_object()  # type: ignore[attr-defined]
    return stream(dependencies(), _Changes(app, tag, read, last or query.since or ""))


class _Changes:
    gap = problem = ""

    def __init__(self, app: Flask, tag: Tag, read: Callable[[], BaseModel], since: str) -> None:
        self._app, self._tag, self._read, self.since = app, tag, read, since
        self._looked = float("-inf")

    def more(self) -> tuple[Sequence[BaseModel], bool]:
        """The thing, where it is not as it was told last; a look a second."""
        if time.monotonic() - self._looked < LOOK_SECONDS:
            return (), False
        with self._app.app_context():
            found = self._read()
        self._looked = time.monotonic()
        now = self._tag.of(plain(found)).strip('"')
        told, self.since = self.since == now, now
        return () if told else (found,), False
