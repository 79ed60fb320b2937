"""Whose request gets the next thread: networks take turns, and none has more than half of the threads."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

_Waiting = deque[asyncio.Future[None]]


class Turns:
    """`most` at once. Of one event loop."""

    def __init__(self, most: int) -> None:
        self._free, self._most_each = most, max(1, most // 2)
        self._served: Counter[str] = Counter()
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        """By network; the one whose turn is next first."""

    def __len__(self) -> int:
        """Networks that are kept in mind: those alone of which a request waits or is served."""
        return len(self._served.keys() | self._waiting.keys())

    @asynccontextmanager
    async def turn(self, network: str, seconds: float) -> AsyncIterator[None]:
        """Have one of the threads for the block.

        Raises:
            TimeoutError: none was free within `seconds`.
        """
        taken = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(network, deque()).append(taken)
        self._deal()
        try:
            async with asyncio.timeout(seconds):
                await taken
        except BaseException:
            self._give_up(network, taken)
            raise
        try:
            yield
        finally:
            self._give_back(network)

    def _deal(self) -> None:
        """Give what is free to those whose turn it is."""
        for network in list(self._waiting):
            if not self._free:
                return
            if self._served[network] >= self._most_each:
                continue
            waiting = self._waiting.pop(network)
            while waiting and waiting[0].done():  # its wait has just ended; it clears up when the loop comes round
                waiting.popleft()
            if not waiting:
                continue
            self._free -= 1
            self._served[network] += 1
            waiting.popleft().set_result(None)
            if waiting:
                self._waiting[network] = waiting

    def _give_up(self, network: str, taken: asyncio.Future[None]) -> None:
        if taken.done() and not taken.cancelled():
            self._give_back(network)
            return
        waiting = self._waiting.get(network, deque())
        with suppress(ValueError):
            waiting.remove(taken)
        if not waiting:
            self._waiting.pop(network, None)

    def _give_back(self, network: str) -> None:
        self._free += 1
        self._served[network] -= 1
        if not self._served[network]:
            del self._served[network]
        self._deal()
