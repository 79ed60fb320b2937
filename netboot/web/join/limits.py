"""How often one address may ask: a bucket of tokens each, for so many addresses as fit into bounded memory."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

MOST_ADDRESSES = 20_000
"""About 4 MiB; of more the one that was quiet longest is forgotten, which only ever gives it a full bucket again."""


class Buckets:
    """`per_minute` at once, and refilled at that rate. Safe for threads."""

    def __init__(
        self, per_minute: int, most: int = MOST_ADDRESSES, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._size, self._rate, self._most, self._monotonic = float(per_minute), per_minute / 60.0, most, monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Address → (tokens, when that was so); the quietest first."""

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, address: str) -> float:
        """Take a token: 0.0, or the seconds after which there will be one."""
        with self._lock:
            now = self._monotonic()
            tokens, at = self._buckets.pop(address, (self._size, now))
            tokens = min(self._size, tokens + (now - at) * self._rate)
            taken = tokens >= 1.0
            self._buckets[address] = (tokens - 1.0 if taken else tokens, now)
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
        return 0.0 if taken else (1.0 - tokens) / self._rate
