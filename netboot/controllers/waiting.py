"""Which machines are to be looked at: those of which something came, and those whose deadline is there."""

import heapq
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from netboot.lifecycle.judge import Due


class Waiting:
    """Safe for threads. A machine waits once, however much is told of it, behind those that waited before."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lock, self._monotonic = threading.Lock(), monotonic
        self._told: dict[str, float] = {}
        """Since when each waits."""
        self._dues: dict[str, frozenset[Due]] = {}
        self._heaps: dict[str, list[tuple[int, str]]] = {}

    def __len__(self) -> int:
        return len(self._told)

    def tell(self, machines: Iterable[str]) -> None:
        """Something came of these."""
        now = self._monotonic()
        with self._lock:
            for machine in machines:
                self._told.setdefault(machine, now)

    def longest_seconds(self) -> float:
        """For how long the first of them has waited."""
        with self._lock:
            first = next(iter(self._told.values()), None)
        return self._monotonic() - first if first is not None else 0.0

    def take(self, most: int) -> list[str]:
        """Those that have waited longest; they wait no more."""
        with self._lock:
            names = [name for name, _ in zip(self._told, range(most), strict=False)]
            for name in names:
                del self._told[name]
        return names

    def plan(self, machine: str, dues: Iterable[Due]) -> None:
        """When to look at it again, though nothing comes; in the place of what was planned before."""
        before, now = self._dues.pop(machine, frozenset()), frozenset(dues)
        if now:
            self._dues[machine] = now
        for due in now - before:
            heapq.heappush(self._heaps.setdefault(due.place, []), (due.at, machine))

    def pass_time(self, shows: Mapping[str, int]) -> None:
        """The clocks show this: those whose deadline is there wait."""
        for place, heap in self._heaps.items():
            while heap and heap[0][0] <= shows.get(place, 0):
                at, machine = heapq.heappop(heap)
                if Due(place, at) in self._dues.get(machine, ()):
                    self.tell((machine,))
