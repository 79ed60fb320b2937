"""How often something is tried again, and how long between."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from images.registry.errors import UnreachableError
from images.values.backoff import Backoff

T = TypeVar("T")
MOST_ASKED = 60.0
"""Seconds that a place may ask us to wait; more is taken for so much."""


def _quiet(_words: str) -> None:
    """Nobody is told."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` in all; between them `images.values.backoff`, from `first` to `most` seconds.

    `tell` is told why something is tried again.
    """

    attempts: int = 10
    first: float = 0.25
    most: float = 4.0
    sleep: Callable[[float], None] = time.sleep
    draw: Callable[[], float] = random.random
    tell: Callable[[str], None] = _quiet

    def longer(self) -> "RetryPolicy":
        """For what takes two requests, and fails where either does."""
        return replace(self, attempts=2 * self.attempts)

    def wait(self, failed: int, error: UnreachableError) -> None:
        """Wait after the attempt number `failed`, counted from 1.

        Raises:
            UnreachableError: it was the last; in its words, and how often it was tried.
        """
        if failed >= self.attempts:
            raise UnreachableError(f"{error} (tried {failed} times)", error.after) from error
        backoff = Backoff(self.first, self.most, self.draw)
        seconds = max(backoff.seconds(failed), min(error.after or 0.0, MOST_ASKED))
        self.tell(f"{error}; trying again in {seconds:.1f} s")
        self.sleep(seconds)

    def __call__(self, work: Callable[[], T]) -> T:
        """The work's result.

        Raises:
            UnreachableError: as often as it was tried. Whatever else the work raises, at once.
        """
        failed = 0
        while True:
            try:
                return work()
            except UnreachableError as error:
                failed += 1
                self.wait(failed, error)
