"""How fast an API server is written to, by clocks that are handed in: in all, and of one machine. Pure."""

from dataclasses import dataclass, field

from netboot.lifecycle.object_status import Urgency

MOST_A_SECOND = 50
"""Writes in any second, whatever there is to write."""
BURST = 5
"""That may follow each other at once, of these."""
LEAST_A_SECOND = 1.0
"""So many are tried where the API server is overloaded, or away."""
SLOW_SECONDS = 1.0
"""An answer that took so long is one of an API server that has much to do."""
APART_SECONDS = {Urgency.NOW: 0.0, Urgency.SOON: 5.0, Urgency.LATER: 5.0}
"""Between two writes of one machine, by what the second one is for."""
CLAIMS_APART_SECONDS = 60.0
"""Between two of one machine that are for what anybody may have claimed."""
_LONG_AGO = float("-inf")


@dataclass
class Rate:
    """A bucket that holds BURST tokens, or a tenth of `most`, and fills with at most `most` a second, less that:
    so no second has more than `most`. Fewer where the API server says 429, fails, or is slow; then more again, a little
    with each answer. Seconds are of a clock that only goes forward."""

    now: float
    most: float = float(MOST_A_SECOND)
    a_second: float = field(init=False)
    tokens: float = field(init=False)

    def __post_init__(self) -> None:
        self.burst = max(1.0, min(float(BURST), self.most // 10))
        self.a_second, self.tokens = self._fastest, self.burst

    @property
    def _fastest(self) -> float:
        return max(LEAST_A_SECOND, self.most - self.burst)

    def take(self, now: float) -> bool:
        """Whether one may be written now; it is counted then."""
        self._fill(now)
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    def wait(self) -> float:
        """Seconds until the next one."""
        return max(0.0, 1 - self.tokens) / self.a_second

    def answered(self, seconds: float) -> None:
        """An answer came after so long."""
        slow = seconds > SLOW_SECONDS
        self.a_second = max(LEAST_A_SECOND, self.a_second * 0.7) if slow else min(self._fastest, self.a_second + 0.5)

    def failed(self) -> None:
        """None came, or the API server has too much to do."""
        self.a_second = max(LEAST_A_SECOND, self.a_second / 2)
        self.tokens = min(self.tokens, 0.0)

    def _fill(self, now: float) -> None:
        passed = max(0.0, now - self.now)
        self.now = max(now, self.now)
        self.tokens = min(self.burst, self.tokens + passed * self.a_second)


@dataclass
class Apart:
    """When each machine was written last: of two writes of one the second waits, as its urgency has it."""

    written: dict[str, float] = field(default_factory=dict)
    claimed: dict[str, float] = field(default_factory=dict)
    """The same of what anybody may have claimed."""

    def due(self, machine: str, urgency: Urgency) -> float:
        """From when on it may be written."""
        due = self.written.get(machine, _LONG_AGO) + APART_SECONDS[urgency]
        claimed = self.claimed.get(machine, _LONG_AGO) + CLAIMS_APART_SECONDS
        return max(due, claimed) if urgency is Urgency.LATER else due

    def note(self, machine: str, urgency: Urgency, now: float) -> None:
        """It is written now."""
        self.written[machine] = now
        if urgency is Urgency.LATER:
            self.claimed[machine] = now

    def forget(self, machine: str) -> None:
        """There is no such object any more."""
        self.written.pop(machine, None)
        self.claimed.pop(machine, None)
