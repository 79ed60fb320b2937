"""Custom resources of the inventory are followed, and kept on the disk as the API server had them last.

Nothing is judged here, and nothing removed because it cannot be seen: what cannot be told now stays as it was.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from images.errors import StoreError
from netboot.controllers.followed import (
    Beside,
    Follows,
    Keeps,
    Tied,
    elsewhere,
    going,
    remedy,
    told,
    unbelieved,
    unmeant,
)
from netboot.controllers.reflector import Reflector
from netboot.controllers.seen_objects import UNSETTLED_SECONDS, SeenObjects
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.logs import Trouble
from netboot.machines.resources import Resource, Seen, counts
from netboot.status.resources import Followed, ResourcesStatus
from netboot.stores.resources import TooMuchError

log = logging.getLogger(__name__)

ROUND_SECONDS = 600.0
"""After about so long all are listed anew, whatever was seen of them."""
LOOK_SECONDS = 0.1
KEPT_SECONDS = 10.0
"""How often it is written down that the API server still says the same."""
LATE_SECONDS = 60.0
"""A disk that has not taken what there is for so long is said."""


class ResourcesController:
    """Of the `kinds` of an inventory, a thread for each, and one that writes."""

    def __init__(
        self,
        kinds: Iterable[str],
        connect: Callable[[], Follows],
        kept: Keeps,
        written: tuple[Resource, ...] | None,
        seen: Followed | None,
        keep: Callable[[Followed], object],
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        tied: Tied | None = None,
    ) -> None:
        """`connect`: to the API server, again until it can be done. `written`, `seen`: what is on the disk, and what
        was kept of it by an earlier process; None: nothing. `keep`: write down when it was seen last."""
        self._tied = tied
        self._connect, self._kept, self._keep = connect, kept, keep
        self._clock, self._monotonic = clock, monotonic
        self._written = written
        self._true_ms = seen.seen_ms if seen is not None else None
        """When the API server last said what is on the disk."""
        self._writing: float | None = None
        """Since when something is being written."""
        self._too_much, self._beside = False, Beside()
        self._lingers = False
        """What went is not believed to be gone."""
        self._seen = SeenObjects(kinds := tuple(kinds), clock, monotonic)
        self._kept_at = float("-inf")
        self._follows: Follows | None = None
        self._uid = self._going = ""
        """Of the namespace that is followed; and why what went is not taken."""
        self._true_at = monotonic()
        """As `_true_ms`, or when this began, by a clock that nobody sets."""
        self._connecting = threading.Lock()
        self._trouble = Trouble(log, "custom resources cannot be written down", "custom resources are written again")
        self._stopping = threading.Event()
        self._reflectors = {
            kind: Reflector(f"objects of kind {kind}", partial(self._watch, kind), partial(self.take, kind), seconds)
            for kind in kinds
            for seconds in [ROUND_SECONDS * random.uniform(0.8, 1.2)]  # noqa: S311 - spreads lists
        }
        self._threads = [threading.Thread(target=each.run, daemon=True) for each in self._reflectors.values()]
        self._threads.append(threading.Thread(target=self._work, name="resources", daemon=True))

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for reflector in self._reflectors.values():
            reflector.stop()

    def _watch(self, kind: str, seconds: float) -> Iterator[Seen]:
        self._seen.asked(kind)
        return self._connected().watch(kind, seconds)

    def _connected(self) -> Follows:
        with self._connecting:
            if self._follows is None:
                follows = self._connect()
                self._uid = follows.uid()
                self._follows = follows
                if self._elsewhere():
                    log.warning("custom resources: %s", self._elsewhere())
        return self._follows

    def _elsewhere(self) -> str:
        return elsewhere(self._kept.uid, self._uid) if self._written else ""

    def take(self, kind: str, seen: Seen) -> None:
        """What the API server said of a kind."""
        self._seen.take(kind, seen)

    def step(self) -> None:
        """Write what has settled, once every kind was seen."""
        ready = self._seen.all and not any(each.problem for each in self._reflectors.values())
        as_of_ms = self._seen.as_of_ms()  # before what it is of: that may only be newer
        if ready and (objects := self._seen.due()) is not None:
            self._write(objects, as_of_ms)
        if as_of_ms is None or (self._seen.unwritten and (self._seen.news or not self._lingers)):
            return
        if not self._kept.stands():  # somebody took it away, or put another in its place
            self._seen.again(news=True)
            return
        now = self._monotonic()
        if not self._lingers:
            self._true_at = now if as_of_ms != self._true_ms else self._true_at
            self._true_ms = as_of_ms
        if now - self._kept_at >= KEPT_SECONDS and self._true_ms is not None:
            self._kept_at = now
            self._keep(Followed(seen_ms=self._true_ms, came_ms=as_of_ms))

    def _write(self, objects: tuple[Resource, ...], seen_ms: int | None) -> None:
        self._lingers = False
        if objects == self._written and self._kept.stands() and not self._elsewhere():
            self._trouble.note(None)
            self._going = ""
            return
        self._going = self._unbelieved(objects)
        if self._going:
            self._seen.again(UNSETTLED_SECONDS)  # the API server is not asked in each round
            before = self._written
            if self._tied is None or before is None:
                return
            if (objects := self._beside.all(before, objects, self._connected)) == before and self._kept.stands():
                self._lingers = True
                return
        self._writing, self._too_much = self._monotonic(), False
        try:
            self._kept.write(objects, self._kept.uid if self._going else self._uid, seen_ms or 0)
        except (StoreError, TooMuchError) as error:
            self._trouble.note(str(error))
            self._too_much = isinstance(error, TooMuchError)
            self._seen.again(UNSETTLED_SECONDS if self._too_much else 0.0)
            return
        finally:
            self._writing = None
        self._trouble.note(None)
        self._written, self._lingers = objects, bool(self._going)
        log.info("custom resources: %d objects are written down", len(objects))

    def _unbelieved(self, objects: tuple[Resource, ...]) -> str:
        """Why what went is not taken. Which they are of is asked each time where they are tied to that."""
        before = self._written or ()
        if self._tied is None:
            return unbelieved(before, objects, self._connected)
        first = going(set(self._reflectors), self._connected) if self._written is None else ""
        if why := first or unmeant(self._kept.uid, before, objects, self._connected, self._tied):
            return why
        try:
            self._uid = self._connected().uid()
        except CannotTellError as error:
            return str(error)
        return ""

    def status(self) -> ResourcesStatus:
        """For `/readyz` and metrics."""
        seen_ms, written = self._true_ms, self._written
        unheard = next((each.problem for each in self._reflectors.values() if each.problem), None)
        followed = unheard or self._going or self._elsewhere()
        problem = followed or self._trouble.problem or self._late()
        now_ms = self._clock.now_ms()
        return ResourcesStatus(
            at_ms=now_ms,
            ok=problem is None,
            message=told(problem, seen_ms) if problem else "as the API server has them",
            remedy=remedy(followed=bool(followed), too_much=self._too_much),
            objects=counts(written or (), self._reflectors),
            age_seconds=None if seen_ms is None else max((now_ms - seen_ms) / 1000, self._monotonic() - self._true_at),
            unavailable=sum(each.unavailable for each in self._reflectors.values()),
        )

    def _late(self) -> str | None:
        """What is wrong with a disk that says nothing."""
        seconds = self._monotonic() - since if (since := self._writing) is not None else 0.0
        return f"the disk has not taken them for {seconds:.0f} s" if seconds > LATE_SECONDS else None

    def _work(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self.step()
            except Exception as error:  # a thread that ends would end unheard
                self._trouble.note(f"a defect, see the log ({type(error).__name__})")
                log.exception("custom resources could not be written down")
                self._stopping.wait(KEPT_SECONDS)
