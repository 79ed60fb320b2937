"""Places of those who watch: a few in all, and of these nobody has more than half."""

import threading
from collections import Counter
from collections.abc import Callable

from netboot.lifecycle.errors import OverloadedError

MOST_WATCHERS = 8
"""Each keeps a thread busy; the server has four times as many."""


class Watchers:
    """`most` places in all. Safe for threads."""

    def __init__(self, most: int = MOST_WATCHERS) -> None:
        self._most = most
        self._each = max(1, most // 2)
        self._lock, self._taken = threading.Lock(), Counter[str]()

    def take(self, who: str) -> Callable[[], None]:
        """A place of theirs, until what is returned is called, once.

        Raises:
            OverloadedError: there is none, or they have their share.
        """
        with self._lock:
            if self._taken.total() >= self._most:
                raise OverloadedError(f"{self._most} watch already")
            if self._taken[who] >= self._each:
                raise OverloadedError(
                    f"you watch {self._each} times already, and more of {self._most} places nobody has"
                )
            self._taken[who] += 1
        return lambda: self._give_back(who)

    def _give_back(self, who: str) -> None:
        with self._lock:
            self._taken[who] -= 1
            self._taken += Counter()  # forgets who has none
