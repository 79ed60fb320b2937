"""`/v1/boots/watch?machine=&since=`: what happens, one JSON object a line, for as long as the client listens."""

import json
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, Protocol

from flask import Response, request

from netboot.lifecycle.errors import CannotTellError, OverloadedError
from netboot.lifecycle.views import machine_named
from netboot.web import inputs, render
from netboot.web.dependencies import Dependencies, dependencies

MOST_WATCHERS = 8
"""Each keeps a thread busy; the server has four times as many."""
LOOK_SECONDS = 0.2
HEARTBEAT_SECONDS = 5.0
"""So that either side notices when the other has gone."""
PAGE = 500


class Source(Protocol):
    """What is watched, from one place on."""

    @property
    def since(self) -> int | str:
        """The place: who watches later from there misses nothing."""
        ...

    @property
    def problem(self) -> str:
        """What could not be read last, though the rest was; empty: nothing."""
        ...

    def more(self) -> tuple[list[dict[str, Any]], bool]:
        """What came since, and the place moves on; and whether there is more at once. Raises CannotTellError."""
        ...


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
    return stream(deps, Feed(deps, name, since))


def stream(deps: Dependencies, source: Source) -> Response:
    """What a source has, line by line, for as long as the client listens.

    Raises:
        OverloadedError: too many watch already.
    """
    if not deps.watchers.acquire(blocking=False):
        raise OverloadedError(f"{MOST_WATCHERS} watch already")
    lines = _Lines(deps, source, deps.watchers.release)
    return Response(lines, mimetype="application/x-ndjson", headers={"Cache-Control": "no-store"})


class Feed:
    """Boots, of one machine or of all."""

    problem = ""

    def __init__(self, deps: Dependencies, machine: str | None, since: int) -> None:
        self._deps, self._machine, self.since = deps, machine, since

    def more(self) -> tuple[list[dict[str, Any]], bool]:
        """Entries of the feed."""
        entries = self._deps.sightings.feed(self.since, PAGE)
        if entries:
            self.since = entries[-1].id
        of_it = [entry for entry in entries if self._machine in (None, entry.machine)]
        return [render.plain(entry) for entry in of_it], len(entries) == PAGE


class _Lines:
    """The body. The place is given back when the server closes it, also where it never began."""

    def __init__(self, deps: Dependencies, source: Source, release: Callable[[], None]) -> None:
        self._deps, self._source, self._release = deps, source, release
        self._lines = self._generate()
        self._open = True
        self._problem = ""

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
            events, more = self._read()
            for event in events:
                yield _line({"event": event})
            if time.monotonic() - beat >= HEARTBEAT_SECONDS:
                beat = time.monotonic()
                line = {"heartbeat": self._deps.clock.now_ms(), "since": self._source.since}
                yield _line(line | ({"problem": self._problem} if self._problem else {}))
            if not more:
                time.sleep(LOOK_SECONDS)

    def _read(self) -> tuple[list[dict[str, Any]], bool]:
        try:
            found = self._source.more()
        except CannotTellError as error:  # the watcher sees what happened when it can be read again
            self._problem = str(error)
            return [], False
        self._problem = self._source.problem
        return found


def _line(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode() + b"\n"
