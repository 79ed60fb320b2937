"""Whose request is begun next, where one address asks for more than all others: each has so many in a turn of the loop.

A known machine in a flood waits for the processor, not for a limit: one turn of the event loop began whatever had come
of everybody, and whoever came meanwhile waited for all of that. Here an address begins at most `AT_ONCE` requests in a
turn, the rest of its own in the next turns, in their order; whoever else has asked by then is begun before them. Nobody
is refused, and an address that is alone loses nothing: turns follow at once (docs/decisions/038).
"""

import asyncio
from collections import Counter, deque

AT_ONCE = 8
"""Requests of one address begun in one turn; each takes less than 0.1 ms, a large health report about 1 ms."""


class Pace:
    """Of one event loop. Addresses are kept in mind while they have asked in this turn, or wait."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._begun = Counter[str]()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        """Addresses that are kept in mind."""
        return len(self._begun.keys() | self._waiting.keys())

    def begin(self, address: str) -> "asyncio.Future[None] | None":
        """None: go on; a future: when it is done."""
        if not self._begun:
            self._loop.call_soon(self._next_turn)
        if self._begun[address] < AT_ONCE:
            self._begun[address] += 1
            return None
        waiting = self._waiting.setdefault(address, deque())
        waiting.append(self._loop.create_future())
        return waiting[-1]

    def _next_turn(self) -> None:
        """Begin what may be; what comes in this turn from an address that had its share waits behind that."""
        self._begun = Counter()
        for address, waiting in list(self._waiting.items()):
            while waiting and self._begun[address] < AT_ONCE:
                first = waiting.popleft()
                if not first.done():  # whoever asked has gone
                    first.set_result(None)
                    self._begun[address] += 1
            if not waiting:
                del self._waiting[address]
        if self._begun:
            self._loop.call_soon(self._next_turn)
