"""`/v1/boots/watch?machine=&since=`: what happens, one JSON object a line, for as long as the client listens; or as
server-sent events (WHATWG HTML, 9.2), for whoever asks for these."""

import json
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Annotated, Protocol

from flask import Response, request
from pydantic import BaseModel

from images.values.strict import Strict
from netboot.clock import rfc3339
from netboot.lifecycle.errors import BadClaimError, CannotTellError, NotAllowedError, NotAuthenticatedError
from netboot.lifecycle.views import machine_named
from netboot.web.binding import plain
from netboot.web.dependencies import Dependencies, dependencies
from netboot.web.inputs import Whole
from netboot.web.operators import operator

LOOK_SECONDS = 0.2
HEARTBEAT_SECONDS = 5.0
"""So that either side notices when the other has gone. As often it is asked whether who watches still may."""
UNSURE_SECONDS = 60.0
"""So long a watch goes on where that cannot be told."""
PAGE = 500
LINES, EVENTS = "application/x-ndjson", "text/event-stream"
LAST_ID = "Last-Event-ID"
"""By it a reader of server-sent events that comes again says where it was."""

Form = Callable[[object, object], bytes]
"""An object as it is sent, and the place after it; None: it is not the last that is known by now."""


class Source(Protocol):
    """What is watched, from one place on."""

    @property
    def since(self) -> int | str:
        """The place: who watches later from there misses nothing."""
        ...

    @property
    def gap(self) -> str:
        """What is missed since the look before, in words; empty: nothing. Who watches looks anew."""
        ...

    @property
    def problem(self) -> str:
        """What could not be read last, though the rest was; empty: nothing."""
        ...

    def more(self) -> tuple[Sequence[BaseModel], bool]:
        """What came since, and the place moves on; and whether there is more at once. Raises CannotTellError."""
        ...


class WatchAsked(Strict):
    """Of which machine, and from where: an `id`, or what a heartbeat gave as `since`."""

    machine: str | None = None
    since: Annotated[int, Whole(0, 2**62)] | None = None


def watched(query: WatchAsked) -> Response:
    """Lines `{"event": {…}}` and `{"heartbeat": moment}`, and `{"gap": words}` where some are missing; without `since`
    from now on."""
    name, since, deps = query.machine, since_of(query.since), dependencies()
    if name is not None:
        machine_named(deps.live.view(), name)
    if since is None:
        since = max((entry.id for entry in deps.sightings.feed(None, 1)), default=0)
    return stream(deps, Feed(deps, name, since))


def last_id() -> str | None:
    """What a reader of server-sent events had last: it says so instead of the `since` with which it began."""
    return request.headers.get(LAST_ID) if _as_events() else None


def since_of(since: int | None) -> int | None:
    """The place from which to go on: by what a reader of server-sent events had last, else as it was asked for.

    Raises:
        BadClaimError: `Last-Event-ID` is none of ours.
    """
    last = last_id()
    if last is None:
        return since
    if not (last.isascii() and last.isdigit() and len(last) < 19):
        raise BadClaimError("is not the id of an event of this stream", field=LAST_ID)
    return int(last)


def _as_events() -> bool:
    return request.accept_mimetypes.best_match([LINES, EVENTS]) == EVENTS


def stream(deps: Dependencies, source: Source) -> Response:
    """What a source has, line by line or event by event, for as long as the client listens.

    Raises:
        OverloadedError: too many watch already, in all or by the same name.
    """
    allowed = _Allowed(deps, request.headers.get("Authorization"))
    release = deps.watchers.take(operator().identity)
    kind, form = (EVENTS, _event) if _as_events() else (LINES, _line)
    lines = _Lines(deps, source, form, allowed, release)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx hands on what there is at once
    return Response(lines, mimetype=kind, headers=headers)


class Feed:
    """Boots, of one machine or of all."""

    problem = gap = ""

    def __init__(self, deps: Dependencies, machine: str | None, since: int) -> None:
        self._deps, self._machine, self.since = deps, machine, since
        self._look = Look(deps)

    def more(self) -> tuple[Sequence[BaseModel], bool]:
        """Entries of the feed; a gap alone, and what follows it the next time."""
        self.gap = ""
        self.gap, self.since = self._look.at(self.since)
        if self.gap:
            return (), True
        entries = self._deps.sightings.feed(self.since, PAGE)
        if entries:
            self.since = entries[-1].id
        of_it = [entry for entry in entries if self._machine in (None, entry.machine)]
        return of_it, len(entries) == PAGE


class Look:
    """Whether a place of the feed is one from which nothing is missed: asked as often as a heartbeat is sent."""

    def __init__(self, deps: Dependencies) -> None:
        self._deps, self._looked = deps, float("-inf")

    def at(self, since: int) -> tuple[str, int]:
        """What is missed from there on, in words, and the place from which nothing is. 0: all that is kept is meant.
        Raises CannotTellError."""
        if time.monotonic() - self._looked < HEARTBEAT_SECONDS:
            return "", since
        first, last = (self._deps.sightings.feed(after, 1) for after in (0, None))
        self._looked = time.monotonic()
        if bool(first) != bool(last):  # an entry that cannot be read is about to be set aside
            return "", since
        oldest, newest = (entries[0].id if entries else 0 for entries in (first, last))
        if since > newest:
            return "that place is after all that there is: the state was lost, or an older copy was restored", newest
        if since and since < oldest - 1:
            return "what came after that place is not kept any more", oldest - 1
        return "", since


class _Allowed:
    """Whether who watches still may: their token was taken back, has expired or is blocked, and a watch ends."""

    def __init__(self, deps: Dependencies, authorization: str | None) -> None:
        self._tokens, self._authorization = deps.tokens, authorization
        self._asked = self._told = time.monotonic()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._asked < HEARTBEAT_SECONDS:
            return True
        self._asked = now
        try:
            self._tokens.operator(self._authorization)
        except (NotAuthenticatedError, NotAllowedError):
            return False
        except CannotTellError:
            return now - self._told < UNSURE_SECONDS
        self._told = now
        return True


class _Lines:
    """The body. The place is given back when the server closes it, also where it never began."""

    def __init__(
        self, deps: Dependencies, source: Source, form: Form, allowed: Callable[[], bool], release: Callable[[], None]
    ) -> None:
        self._deps, self._source, self._form = deps, source, form
        self._allowed, self._release = allowed, release
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
        while not self._deps.stopping() and self._allowed():
            events, more = self._read()
            if self._source.gap:
                yield self._form({"gap": self._source.gap, "since": self._source.since}, self._source.since)
            for left, event in zip(range(len(events) - 1, -1, -1), events, strict=True):
                if not self._allowed():
                    return
                yield self._form({"event": plain(event)}, None if left else self._source.since)
            if time.monotonic() - beat >= HEARTBEAT_SECONDS:
                beat = time.monotonic()
                line = {"heartbeat": rfc3339(self._deps.clock.now_ms()), "since": self._source.since}
                yield self._form(line | ({"problem": self._problem} if self._problem else {}), self._source.since)
            if not more:
                time.sleep(LOOK_SECONDS)

    def _read(self) -> tuple[Sequence[BaseModel], bool]:
        try:
            found = self._source.more()
        except CannotTellError as error:  # the watcher sees what happened when it can be read again
            self._problem = str(error)
            return [], False
        self._problem = self._source.problem
        return found


def _line(value: object, _place: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode() + b"\n"


def _event(value: object, place: object) -> bytes:
    named = b"" if place is None else f"id: {place}\n".encode()
    return named + b"data: " + _line(value, place) + b"\n"
