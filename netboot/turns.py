"""Turns at somebody else's service that strangers too may have us ask: so many at once, the others wait in line."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice


class NoTurnError(Exception):
    """The line is too long, no place is left, too many of it are for the same address, or it did not move in time."""


class Places:
    """How many of all lines together may keep threads: `most`, and `of_strangers` among them."""

    def __init__(self, most: int, of_strangers: int) -> None:
        self.known = (threading.BoundedSemaphore(most),)
        self.strangers = (threading.BoundedSemaphore(of_strangers), *self.known)


class Turns:
    """Safe for threads; whoever came first is first. `at_once`: who ask; `most`: they, and who wait; `each`: the same,
    for one address; `seconds`: for which one waits at most; `places`: each takes one of each of these, too."""

    def __init__(
        self,
        at_once: int,
        most: int,
        each: int | None = None,
        seconds: float = 3.0,
        places: Sequence[threading.BoundedSemaphore] = (),
    ) -> None:
        self._at_once, self._most, self._each, self._seconds = at_once, most, each or most, seconds
        self._places = places
        self._changed = threading.Condition()
        self._line: dict[object, str] = {}
        """In the order in which they came, and for whom; the first of them ask."""

    def __len__(self) -> int:
        """Who asks, and who waits."""
        return len(self._line)

    @contextmanager
    def turn(self, address: str = "") -> Iterator[None]:
        """A turn, while in the block. `address`: for whom; "": for nobody of whom many would be too many.

        Raises:
            NoTurnError: there is none.
        """
        with ExitStack() as held:
            for place in self._places:
                if not place.acquire(blocking=False):
                    raise NoTurnError
                held.callback(place.release)
            held.enter_context(self._in_line(address))
            yield

    @contextmanager
    def _in_line(self, address: str) -> Iterator[None]:
        mine = object()
        with self._changed:
            theirs = sum(each == address for each in self._line.values()) if address else 0
            if len(self._line) >= self._most or theirs >= self._each:
                raise NoTurnError
            self._line[mine] = address
        try:
            with self._changed:
                if not self._changed.wait_for(lambda: mine in islice(self._line, self._at_once), self._seconds):
                    raise NoTurnError
            yield
        finally:
            with self._changed:
                del self._line[mine]
                self._changed.notify_all()
