"""Which fact came first, where clocks may be wrong by years.

Within a journal the order is that of its rows. What several journals hold at the same time, a clock has to put in
order, for nothing else can; but whatever arrives after all of them had been read is newer, whatever its clock says.
What other replicas numbered keeps its number, and what arrives here after it is newer, too: a hybrid logical clock
(Kulkarni and others, "Logical Physical Clocks", 2014).
"""

from bisect import bisect_left

from netboot.lifecycle.events import LATEST_MS

AHEAD_MS = 2 * 365 * 86_400_000
"""What another replica numbered is believed as far as its clock may be ahead of ours. Whoever may write there could
give the last number that there is, and no fact of any machine could have a greater one."""
_STEP = 1_000
"""Numbers for each millisecond: so many facts of a journal within one leave its clock where it is."""


def credible(number: int, now_ms: int) -> bool:
    """Whether another replica may have given a fact this number, which is read at `now_ms`, by our clock."""
    return 1 <= number <= (now_ms + AHEAD_MS) * _STEP


class Arrivals:
    """Numbers facts as they arrive, from one greater than `last` on: of two facts the later has the greater number."""

    def __init__(self, last: int = 0) -> None:
        self._settled = self._last = last
        self._last_of: dict[str, int] = {}
        self._seen_ms, self._seen = list[int](), list[int]()
        """When, by our clock, numbers of other replicas were seen, and the greatest of them until then."""

    def see(self, number: int, at_ms: int) -> None:
        """Another replica gave a fact this number, which was written down here at `at_ms`: what was after that is
        newer."""
        self._last = max(self._last, number)
        self._seen_ms.append(max(at_ms, self._seen_ms[-1] if self._seen_ms else at_ms))
        self._seen.append(max(number, self._seen[-1] if self._seen else number))

    def number(self, journal: str, at_ms: int) -> int:
        """The number of the next fact of a journal, which says of itself that it is of `at_ms`."""
        before = bisect_left(self._seen_ms, at_ms)
        least = max(self._last_of.get(journal, self._settled), self._seen[before - 1] if before else 0) + 1
        number = max(least, min(max(at_ms, 0), LATEST_MS) * _STEP)
        self._last_of[journal] = number
        self._last = max(self._last, number)
        return number

    def settle(self) -> None:
        """Every journal has been read to its end: every number from now on is greater than any before."""
        self._settled = self._last
        self._last_of.clear()
        self._seen_ms.clear()
        self._seen.clear()
