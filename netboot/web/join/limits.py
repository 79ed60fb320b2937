"""How often one address may ask: a bucket of tokens each, for so many addresses as fit into bounded memory."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from netboot.addresses import network_of

MOST_ADDRESSES = 20_000
"""About 4 MiB; of more the one that was quiet longest is forgotten, which only ever gives it a full bucket again."""
NETWORK = 32
"""Times an address's rate for all addresses of an IPv6 /64: a rack has one, and so has one machine that makes up a new
address for each request."""


class Buckets:
    """`per_minute` at once, and refilled at that rate. Safe for threads."""

    def __init__(
        self, per_minute: int, most: int = MOST_ADDRESSES, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._size, self._most, self._monotonic = float(per_minute), most, monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Address or network → (tokens, when that was so); the quietest first."""

    def __len__(self) -> int:
        return len(self._buckets)

    def wait(self, address: str) -> float:
        """Take a token of the address and one of its network: 0.0, or the seconds after which there will be both."""
        with self._lock:
            wait, network = self._take(address, 1), network_of(address)
            return wait if wait or network == address else self._take(network, NETWORK)

    def _take(self, name: str, times: int) -> float:
        now, size = self._monotonic(), self._size * times
        tokens, at = self._buckets.pop(name, (size, now))
        tokens = min(size, tokens + (now - at) * size / 60.0)
        taken = tokens >= 1.0
        self._buckets[name] = (tokens - 1.0 if taken else tokens, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0.0 if taken else (1.0 - tokens) * 60.0 / size
