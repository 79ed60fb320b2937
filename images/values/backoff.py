"""How long to wait before something that failed is tried again: exponential back-off with full jitter.

Each wait is drawn evenly from 0 to a bound that doubles with every failure in a row. Whoever fails together does not
come back together, with less work for whom they all ask than any narrower spread (Marc Brooker, "Exponential Backoff
And Jitter", AWS Architecture Blog, 2015). The node's agent has a rule of its own: on the machine there is no `images`.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

_MOST_DOUBLINGS = 64
"""Beyond, any bound is reached; and 2 to the power of a thousand is no float any more."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """`first`: the bound after one failure; `longest`: the bound that is never exceeded; both in seconds.

    `draw`: a number from 0 to 1 by chance.
    """

    first: float
    longest: float
    draw: Callable[[], float] = random.random

    def bound(self, failures: int) -> float:
        """The longest wait after so many failures in a row, counted from 1; without a failure none at all."""
        if failures < 1:
            return 0.0
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))

    def seconds(self, failures: int) -> float:
        """A wait after so many failures in a row."""
        return self.draw() * self.bound(failures)
