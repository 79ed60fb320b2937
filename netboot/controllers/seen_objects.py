"""What an API server has said of objects, and when it is to be written down. Of `netboot.controllers.resources`."""

import threading
from collections.abc import Callable, Iterable
from enum import Enum

from netboot.lifecycle.ports import Clock
from netboot.machines.resources import Changed, Listed, Resource, Seen

SETTLE_SECONDS, UNSETTLED_SECONDS = 0.5, 5.0
"""What is applied together comes one by one: nothing is written until nothing has come for so long, or something has
been coming for too long. What is said of objects (`status`) may come all the time, and waits for the latter alone."""


class Change(Enum):
    """What of an object is another one now: all of it, or what is said of it."""

    NOTHING = "nothing"
    SAID = "said"
    ALL = "all"


class SeenObjects:
    """Of these kinds, in the order in which they are written. Thread-safe."""

    def __init__(self, kinds: Iterable[str], clock: Clock, monotonic: Callable[[], float]) -> None:
        self._kinds, self._clock, self._monotonic = tuple(kinds), clock, monotonic
        self._lock = threading.Lock()
        self._there = dict[str, dict[str, Resource]]()
        self._signs, self._asked = dict[str, int](), dict[str, int]()
        """Kind → when the API server spoke of it last, and when it was asked what all are."""
        self._since: float | None = None
        self._said_since: float | None = None
        """When the first change came that is not written, and of what is said alone."""
        self._latest = float("-inf")
        self._news = False
        """Something came since what is to be written was taken."""

    def asked(self, kind: str) -> None:
        """The API server is asked now what all of a kind are: a list of many pages is of its first."""
        self._asked[kind] = self._clock.now_ms()

    def take(self, kind: str, seen: Seen) -> None:
        """What the API server said of a kind."""
        with self._lock:
            now_ms, now = self._clock.now_ms(), self._monotonic()
            self._signs[kind] = self._asked.get(kind, now_ms) if isinstance(seen, Listed) else now_ms
            change = self._taken(kind, seen)
            if change is Change.ALL:
                self._latest, self._news = now, True
                self._since = now if self._since is None else self._since
            elif change is Change.SAID:
                self._said_since = now if self._said_since is None else self._said_since

    def due(self) -> tuple[Resource, ...] | None:
        """All, where they are to be written now; None: not yet, or nothing is another than what was written."""
        now = self._monotonic()
        with self._lock:
            since, said_since = self._since, self._said_since
            settled = since is not None and (now - self._latest >= SETTLE_SECONDS or now - since >= UNSETTLED_SECONDS)
            if not settled and (said_since is None or now - said_since < UNSETTLED_SECONDS):
                return None
            self._since, self._said_since, self._news = None, None, False
            return tuple(self._there[kind][name] for kind in self._kinds for name in sorted(self._there[kind]))

    def again(self, seconds: float = 0.0, *, news: bool = False) -> None:
        """All is to be written again: after so long, or when a change came. `news`: as one that came now."""
        with self._lock:
            self._since, self._latest = self._monotonic(), self._monotonic() + seconds
            self._news = self._news or news

    @property
    def all(self) -> bool:
        """Whether every kind was seen."""
        return len(self._there) == len(self._kinds)

    @property
    def unwritten(self) -> bool:
        """Whether something is to be written, still or again."""
        return self._since is not None

    @property
    def news(self) -> bool:
        """Whether something came since what is to be written was taken."""
        return self._news

    def as_of_ms(self) -> int | None:
        """When the API server spoke last of that kind of which it has been silent for longest; None: not of all yet."""
        with self._lock:
            return min(self._signs.values()) if len(self._signs) == len(self._kinds) else None

    def _taken(self, kind: str, seen: Seen) -> Change:
        if isinstance(seen, Listed):
            before, now = self._there.get(kind), {resource.name: resource for resource in seen.resources}
            self._there[kind] = now
            return Change.ALL if now != before else Change.NOTHING
        if not isinstance(seen, Changed):
            return Change.NOTHING
        there, resource = self._there.setdefault(kind, {}), seen.resource
        if not seen.there:
            return Change.ALL if there.pop(resource.name, None) is not None else Change.NOTHING
        was, there[resource.name] = there.get(resource.name), resource
        if was == resource:
            return Change.NOTHING
        said = was is not None and was.model_copy(update={"status": resource.status}) == resource
        return Change.SAID if said else Change.ALL
