"""The process `fetcher`: images of channels that are not in the store are fetched from upstream, in the background.

The publisher publishes them when they are there; until then it says, in our words, why they are not.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from images.errors import ImageError
from images.values.backoff import Backoff
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.upstream import Upstream, fetching
from netboot.status import DEFECT
from netboot.status.fetcher import FetcherStatus, Transfer

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
AGAIN = Backoff(first=1.0, longest=60.0)
"""After an image could not be fetched."""
STOP_SECONDS = 5.0


class _StoppingError(Exception):
    """The service ends in the middle of a transfer; the next one begins it again."""


@dataclass(slots=True)
class _Trying:
    """An image that is not here: how often it was tried in vain, when (monotonic) it is tried next, why not yet."""

    failed: int = 0
    next: float = 0.0
    problem: str | None = None


class Fetcher:
    """`step` as often as you like: it fetches what is due. `missing()`: digests; may raise CannotTellError."""

    def __init__(
        self,
        upstream: Upstream,
        missing: Callable[[], Sequence[str]],
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._upstream, self._missing, self._clock = upstream, missing, clock
        self._monotonic, self._draw = monotonic, draw
        self._trying: dict[str, _Trying] = {}
        self._lock = threading.Lock()
        self._cancellation = threading.Event()
        self._thread = threading.Thread(target=self._work, name="fetcher", daemon=True)
        self._now: tuple[str, int, int] | None = None
        self._fetched = self._bytes = self._failed = 0
        self._defect = False
        """Whether the last look ended in a way that nobody foresaw."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._cancellation.set()
        self._thread.join(STOP_SECONDS)

    def step(self) -> bool:
        """Look at what is wanted, and try what is due; whether an image came."""
        try:
            missing = self._missing()
        except CannotTellError:  # nothing is published yet
            return False
        with self._lock:
            self._trying = {digest: self._trying.get(digest) or _Trying() for digest in missing}
        came = False
        for digest in missing:
            if not self._cancellation.is_set() and self._monotonic() >= self._trying[digest].next:
                came |= self._try(digest)
        return came

    def pause(self, seconds: float) -> None:
        """Sleep, unless the service ends.

        Raises:
            Exception: it ends; nothing of the transfer is left.
        """
        if self._cancellation.wait(seconds):
            raise _StoppingError

    def status(self) -> FetcherStatus:
        """For `/readyz`, metrics and the publisher; `images`: digest → why it is not here."""
        where = self._upstream.where
        with self._lock:
            trying, now = dict(self._trying), self._now
        images = {digest: self._why(image) for digest, image in trying.items()}
        problems = sorted({image.problem for image in trying.values() if image.problem is not None})
        message = f"every image of a channel is here; others come from {where}"
        if images:
            message = "; ".join(problems) or f"fetching {', '.join(digest[:12] for digest in images)} from {where}"
        return FetcherStatus(
            at_ms=self._clock.now_ms(),
            ok=not images and not self._defect,
            message=DEFECT if self._defect else message,
            remedy="it is tried again by itself; see upstream in the configuration" if problems else "wait",
            images=images,
            transfer=Transfer(image=now[0], bytes=now[1], of=now[2]) if now else None,
            fetched=self._fetched,
            bytes=self._bytes,
            failed=self._failed,
        )

    def _why(self, image: _Trying) -> str:
        if image.problem is None:
            return fetching(self._upstream.where)
        return f"it is not here yet, tried again: {image.problem}"

    def _work(self) -> None:
        while not self._cancellation.is_set():
            try:
                self.step()
                self._defect = False
            except _StoppingError:
                return
            except Exception:  # a defect of ours must not leave machines waiting for a thread that is gone
                self._defect = True
                log.exception("the fetcher failed; it goes on")
            self._cancellation.wait(LOOK_SECONDS)

    def _try(self, digest: str) -> bool:
        image, begun = self._trying[digest], self._monotonic()
        if image.failed == 0:
            log.info("image %s is not here: fetching it from %s", digest[:12], self._upstream.where, extra=_of(digest))
        try:
            size = self._upstream.fetch(digest, lambda done, of: self._progress(digest, done, of))
        except ImageError as error:
            self._miss(digest, image, str(error))
            return False
        finally:
            with self._lock:
                self._now = None
        seconds = self._monotonic() - begun
        log.info("image %s is here: %d bytes in %.1f s", digest[:12], size, seconds, extra=_of(digest))
        with self._lock:
            self._trying.pop(digest, None)
            self._fetched, self._bytes = self._fetched + 1, self._bytes + size
        return True

    def _miss(self, digest: str, image: _Trying, problem: str) -> None:
        image.failed += 1
        wait = replace(AGAIN, draw=self._draw).seconds(image.failed)
        image.next = self._monotonic() + wait
        if problem != image.problem:
            log.warning(
                "image %s cannot be fetched: %s; again in %.0f s", digest[:12], problem, wait, extra=_of(digest)
            )
        with self._lock:
            image.problem = problem
            self._failed += 1

    def _progress(self, digest: str, done: int, of: int) -> None:
        if self._cancellation.is_set():
            raise _StoppingError
        with self._lock:
            self._now = (digest, done, of)


def _of(digest: str) -> dict[str, dict[str, str]]:
    return {"fields": {"image": digest}}
