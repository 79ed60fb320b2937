"""`/v1/boots/watch?machine=&since=`: what happens, one JSON object a line, for as long as the client listens."""

import json
import time
from collections.abc import Callable, Generator, Iterator

from flask import Response, request

from netboot.lifecycle.errors import CannotTellError, OverloadedError
from netboot.lifecycle.state import FeedEntry
from netboot.lifecycle.views import machine_named
from netboot.web import inputs, render
from netboot.web.dependencies import Dependencies, dependencies

MOST_WATCHERS = 8
"""Each keeps a thread busy; the server has four times as many."""
LOOK_SECONDS = 0.2
HEARTBEAT_SECONDS = 5.0
"""So that either side notices when the other has gone."""
PAGE = 500


def watched() -> Response:
    """Lines `{"event": {…}}` and `{"heartbeat": milliseconds}`; without `since` from now on."""
    inputs.only(("machine", "since"))
    name = request.args.get("machine")
    since = inputs.whole("since", -1, 0, 2**62)
    deps = dependencies()
    if name is not None:
        machine_named(deps.live.view(), name)
    if since < 0:
        since = max((entry.id for entry in deps.sightings.feed(None, 1)), default=0)
    if not deps.watchers.acquire(blocking=False):
        raise OverloadedError(f"{MOST_WATCHERS} watch already")
    lines = _Lines(deps, name, since, deps.watchers.release)
    return Response(lines, mimetype="application/x-ndjson", headers={"Cache-Control": "no-store"})


class _Lines:
    """The body. The place is given back when the server closes it, also where it never began."""

    def __init__(self, deps: Dependencies, machine: str | None, since: int, release: Callable[[], None]) -> None:
        self._deps, self._machine, self._since, self._release = deps, machine, since, release
        self._lines = self._generate()
        self._open = True

    def __iter__(self) -> Iterator[bytes]:
        return self._lines

    def close(self) -> None:
        if self._open:
            self._open = False
            self._lines.close()
            self._release()

    def _generate(self) -> Generator[bytes, None, None]:
        beat = float("-inf")
        while not self._deps.stopping():
            entries = self._read()
            for entry in entries:
                self._since = entry.id
                if self._machine in (None, entry.machine):
                    yield _line({"event": render.plain(entry)})
            if time.monotonic() - beat >= HEARTBEAT_SECONDS:
                beat = time.monotonic()
                yield _line({"heartbeat": self._deps.clock.now_ms(), "since": self._since})
            if len(entries) < PAGE:
                time.sleep(LOOK_SECONDS)

    def _read(self) -> list[FeedEntry]:
        try:
            return self._deps.sightings.feed(self._since, PAGE)
        except CannotTellError:
            return []  # the heartbeat goes on; the watcher sees what happened when the state can be read again


def _line(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode() + b"\n"
