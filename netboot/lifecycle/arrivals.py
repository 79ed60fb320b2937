"""Which fact came first, where clocks may be wrong by years.

Within a journal the order is that of its rows. What several journals hold at the same time, a clock has to put in
order, for nothing else can; but whatever arrives after all of them had been read is newer, whatever its clock says.
"""

from netboot.lifecycle.events import LATEST_MS

_STEP = 1_000
"""Numbers for each millisecond: so many facts of a journal within one leave its clock where it is."""


class Arrivals:
    """Numbers facts as they arrive, from one greater than `last` on: of two facts the later has the greater number."""

    def __init__(self, last: int = 0) -> None:
        self._settled = self._last = last
        self._last_of: dict[str, int] = {}

    def number(self, journal: str, at_ms: int) -> int:
        """The number of the next fact of a journal, which says of itself that it is of `at_ms`."""
        least = self._last_of.get(journal, self._settled) + 1
        number = max(least, min(max(at_ms, 0), LATEST_MS) * _STEP)
        self._last_of[journal] = number
        self._last = max(self._last, number)
        return number

    def settle(self) -> None:
        """Every journal has been read to its end: every number from now on is greater than any before."""
        self._settled = self._last
        self._last_of.clear()
