"""What happens, as it happens: server-sent events (WHATWG HTML, 9.2), gone on with where a connection was cut."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypedDict

from netboot.client.errors import CannotTellError, FailedError

LAST_ID = "Last-Event-ID"
RETRY_SECONDS = 60.0
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0

Chunks = AbstractContextManager[Iterator[bytes]]
Open = Callable[[Mapping[str, object]], Chunks]
"""Connects, with these headers, and hands on bytes as they come. Raises ClientError, while it is read, too."""


class Line(TypedDict, total=False):
    """`event`: what happened; or `heartbeat`: nothing, at that moment, and in `problem` what cannot be read.
    `since`: from where on to watch. `gap`: what came before is not all that happened, and why: whoever goes by what was
    told looks at the whole anew."""

    event: dict[str, Any]
    heartbeat: str
    gap: str
    since: int | str
    problem: str


class Watch(Iterator[Line]):
    """Lines for as long as one listens, none missing without a `gap`, and none twice.

    A connection that is cut is made again, and goes on after the last line. Where that cannot be had for
    `retry_seconds`, or the service says that it is unknown or not allowed, that is raised; so is a failure of the first
    try. `last_id`: of the place, to go on from in another process (`since`); empty until a line came.
    """

    def __init__(
        self,
        connect: Open,
        *,
        retry_seconds: float = RETRY_SECONDS,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect, self._retry_seconds, self._wait, self._clock = connect, retry_seconds, wait, clock
        self.last_id = ""
        self._after: list[Line] = []
        """Lines since `last_id`: of what came at once only the end has an id, so they may come again."""
        self._lines = self._listened()

    def __next__(self) -> Line:
        return next(self._lines)

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening."""
        self._lines.close()  # type: ignore[attr-defined] # it is a generator

    def _listened(self) -> Iterator[Line]:
        seen, wait, heard = False, _FIRST_WAIT, self._clock()
        while True:
            cut = CannotTellError("the service ended the stream", "it is stopping, or was restarted: try again")
            try:
                for line in self._once():
                    seen, wait, heard = True, _FIRST_WAIT, self._clock()
                    yield line
            except CannotTellError as error:
                cut = error
            if not seen or self._clock() - heard >= self._retry_seconds:
                raise cut
            self._wait(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    def _once(self) -> Iterator[Line]:
        """Of one connection, without what the one before had."""
        headers = {LAST_ID: self.last_id} if self.last_id else {}
        again = list(self._after)
        with self._connect({"Accept": "text/event-stream", **headers}) as chunks:
            for place, line in events(chunks):
                if new := line not in again:
                    self._after.append(line)
                else:
                    again.remove(line)
                if place:
                    self.last_id, self._after, again = place, [], []
                if new:
                    yield line


def events(chunks: Iterator[bytes]) -> Iterator[tuple[str, Line]]:
    """Each event with its id, empty where it has none. One that was cut off is none.

    Raises:
        FailedError: what comes is no event of ours.
    """
    place, data = "", b""
    for line in _lines(chunks):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"id":
            place = value.decode(errors="replace")
        elif name == b"data":
            data += (b"\n" if data else b"") + value
        elif not line and data:
            yield place, _parsed(data)
            place, data = "", b""


def _parsed(data: bytes) -> Line:
    try:
        line: Line = json.loads(data)
    except ValueError:
        line = {}
    if not isinstance(line, dict) or not line:
        raise FailedError("what comes is no event of netboot", "see that nothing on the way alters it")
    return line


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
