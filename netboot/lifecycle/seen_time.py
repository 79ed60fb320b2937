"""Time during which we could see: what deadlines are measured by.

A machine is late only if it could have been heard. So there is a clock for each place that facts come from, which goes
on while that place can be looked at and stands still while it cannot: while a process is silent, a journal is behind,
an API server does not answer, or nothing of ours runs. None of them knows the time of day, so nobody who sets it makes
a machine late.
"""

from collections.abc import Collection, Mapping

LONGEST_STEP_MS = 10_000
"""More between two looks is a pause of ours (a suspended host, a process that hung): not all of it was looked at."""


class SeenTime:
    """A clock for each place, in milliseconds. `values`: those of before, for a restart."""

    def __init__(self, values: Mapping[str, int], up_ms: int) -> None:
        self.values = dict(values)
        self._looked = up_ms
        self._seeing: frozenset[str] = frozenset()

    def look(self, seeing: Collection[str], up_ms: int) -> None:
        """What can be seen now, by a clock that only goes forward. What could be seen neither now nor at the look
        before has not been watched meanwhile."""
        passed = min(max(0, up_ms - self._looked), LONGEST_STEP_MS)
        self._looked = up_ms
        for place in seeing:
            self.values[place] = self.values.get(place, 0) + (passed if place in self._seeing else 0)
        self._seeing = frozenset(seeing)
