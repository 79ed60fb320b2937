"""Whose record is made next, where one address asks for more than all others: each has so many in hand at once.

A known machine in a flood waits for no limit but for the processor, and for the commit that holds the flood's records
beside its own. Of one address at most `AT_ONCE` are between being looked at and being durable; the rest of its own wait
in their order, and cost nothing meanwhile. Nobody is refused for it, and an address that is alone is hardly slower: a
commit holds so many records of it (docs/decisions/038).
"""

import asyncio
from collections import deque

from netboot.boot.ingest import network

AT_ONCE = 16
"""Records of one address (of IPv6 the /64) in hand at once; a rack behind one relay has its turn in milliseconds."""


class Turns:
    """Of one event loop. Addresses are kept in mind while something of theirs is in hand."""

    def __init__(self) -> None:
        self._in_hand: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        """Addresses that are kept in mind."""
        return len(self._in_hand)

    async def begin(self, peer: str) -> None:
        """Wait for a turn of this address (as `plain_address` has it); whoever has had one has to `end` it."""
        address = network(peer)
        in_hand = self._in_hand.get(address, 0)
        if in_hand < AT_ONCE:
            self._in_hand[address] = in_hand + 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.end(peer)
            raise

    def end(self, peer: str) -> None:
        """It is durable, or will not be; the turn is the next one's."""
        address = network(peer)
        waiting = self._waiting.get(address, deque())
        while waiting:
            turn = waiting.popleft()
            if not turn.done():  # else whoever asked has gone
                turn.set_result(None)
                return
        self._waiting.pop(address, None)
        self._in_hand[address] -= 1
        if not self._in_hand[address]:
            del self._in_hand[address]
