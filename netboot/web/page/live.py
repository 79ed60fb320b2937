"""Server-sent events: that something happened, so that what is shown is asked for again. From the API's own watch."""

import threading
import time
from collections.abc import Callable, Generator, Iterable

from flask import Response

from netboot.web.page.client import Api, ApiError, end

LEAST_SECONDS = 1.0
"""Between two, however much happens: what is left out comes with the next, after a heartbeat at the latest."""
MOST = 6
"""Of the eight places that the API has for watchers: who watches by the command line finds one, too."""
LONGEST_SECONDS = 300.0
"""Then the browser asks again, with its session: a token that was taken back keeps no place, and others find one."""
LATER = b"retry: 5000\n\n"
CHANGED = b"event: changed\ndata:\n\n"


class Live:
    """One `changed` for what happens, and for each heartbeat, for as long as the browser listens. Where no place is
    free the browser comes again later; the page asks by itself meanwhile."""

    def __init__(self, api: Api) -> None:
        self._api, self._places = api, threading.BoundedSemaphore(MOST)

    def __call__(self) -> Response:
        if not self._places.acquire(blocking=False):
            return Response(LATER, mimetype="text/event-stream")
        try:
            lines = self._api.lines("/v1/boots/watch")
        except ApiError as error:
            self._places.release()
            if error.status == 401:
                raise
            return Response(LATER, mimetype="text/event-stream")
        except BaseException:
            self._places.release()
            raise
        events = _Events(lines, self._places.release)
        return Response(events, mimetype="text/event-stream", headers={"X-Accel-Buffering": "no"})


class _Events:
    """The body, which gives its place back when the server closes it, also where it never began."""

    def __init__(self, lines: Iterable[bytes], release: Callable[[], None]) -> None:
        self._lines, self._release = lines, release
        self._events = self._generate()
        self._open = True

    def __iter__(self) -> Generator[bytes, None, None]:
        return self._events

    def close(self) -> None:
        if self._open:
            self._open = False
            self._events.close()
            end(self._lines)
            self._release()

    def _generate(self) -> Generator[bytes, None, None]:
        last, until = float("-inf"), time.monotonic() + LONGEST_SECONDS
        for _ in self._lines:
            now = time.monotonic()
            if now - last >= LEAST_SECONDS:
                last = now
                yield CHANGED
            if now >= until:
                return
