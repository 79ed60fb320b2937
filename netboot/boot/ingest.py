"""How much is written down for whom: a bucket of bytes for each boot, for each address, and for all together.

A record takes its bytes, and `OVERHEAD`, out of all three; where one of them has too little, nothing is taken and the
record is not written. The boot's own bucket is asked first: what one boot has too much costs those behind the same
address nothing, so the address's share can be half of the whole, and a rack behind one relay has that to itself.
The tables are bounded: the oldest bucket makes room for a new one, and whose it was begins anew with a full one.

Where one address asks for more than all others, a known machine elsewhere waits for no limit but for the processor, and
for the commit that holds the flood's records beside its own; so addresses take turns (`Turns`, docs/decisions/038).

A known machine's script is never refused because somebody asks for too many: beyond the limit whoever asks is served a
boot id again whose record has survived a power cut already (`Repeats`).
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from functools import lru_cache

from netboot.addresses import network_of

OVERHEAD = 512
"""Bytes that any record costs beyond its own: its row, its share of a commit and of the projection."""
BURST_SECONDS = 32
"""A full bucket holds what flows into it in this time."""
BOOTS_AT_FULL_RATE = 1024
"""A boot's share of the whole is one in so many."""
LEAST_A_BOOT = 128 * 1024
"""Bytes of a boot's full bucket at least: all events of a boot and a few of the largest health reports."""
HOLD_SECONDS = 0.5
"""What is beyond a limit is answered so much later: a flood of few connections then takes next to no processor time."""
IN_HAND = 16
"""Records of one address (of IPv6 the /64) in hand at once; a rack behind one relay has its turn in milliseconds."""
IN_HAND_OF_SEVERAL = 4
"""The same while others ask too, so that nobody of them waits long for those that are begun, and committed, before."""
ALONE_SECONDS = 1.0
"""An address is alone when no other has asked for so long."""
MOST_BOOTS = 32_768
MOST_ADDRESSES = 8_192
"""Of each of the two tables; together about 10 MB."""

REPEAT_MS = 60_000
"""Boot ids that are older are never served again."""
MOST_REPEATS = 32_768
"""Of machines, and of pairs of a machine and an address; about 10 MB each."""
_Known = OrderedDict[tuple[str, str], tuple[str, str, int]]

_network = lru_cache(MOST_ADDRESSES)(network_of)


def network(peer: str) -> str:
    """Whose an address (as `plain_address` has it) is counted as: of IPv6 the /64."""
    return _network(peer) if ":" in peer else peer


class Buckets:
    """A bucket of `capacity` bytes, full at first, for each of at most `most` keys; `rate` bytes a second flow in."""

    __slots__ = ("_buckets", "_capacity", "_most", "_rate")

    def __init__(self, rate: float, capacity: float, most: int) -> None:
        self._rate, self._capacity, self._most = rate, capacity, most
        self._buckets: dict[Hashable, list[float]] = {}

    def __len__(self) -> int:
        return len(self._buckets)

    def bucket(self, key: Hashable, now: float) -> list[float]:
        """The bucket of `key`: what is in it, to be lessened in place, and `now`, seconds that never run backwards."""
        known = self._buckets.get(key)
        if known is None:
            if len(self._buckets) >= self._most:
                del self._buckets[next(iter(self._buckets))]
            known = self._buckets[key] = [self._capacity, now]
        else:
            known[0] = min(self._capacity, known[0] + (now - known[1]) * self._rate)
            known[1] = now
        return known


class Turns:
    """Whose record is made next: of one address at most `IN_HAND`, and while others ask `IN_HAND_OF_SEVERAL`, are
    between being looked at and being durable; the rest of its own wait in their order. Of one event loop; addresses are
    kept in mind while something is in hand. `monotonic`: seconds that never run backwards."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._in_hand: dict[str, int] = {}
        self._waiting: dict[str, deque[tuple[asyncio.Future[None], Callable[[], bool]]]] = {}
        self._newest, self._several_until = "", float("-inf")

    def __len__(self) -> int:
        """Addresses that are kept in mind."""
        return len(self._in_hand)

    async def begin(self, peer: str, gone: Callable[[], bool]) -> None:
        """Wait for a turn of this address (as `plain_address` has it); whoever has got one has to `end` it. Who is
        `gone()` when it comes gets none.

        Raises:
            ConnectionResetError: whoever asked has gone.
        """
        if self.begin_at_once(peer):
            return
        address = network(peer)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(address, deque()).append((turn, gone))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and turn.exception() is None:
                self.end(peer)
            raise

    def begin_at_once(self, peer: str) -> bool:
        """Whether it is the turn of this address now; if so, it has to be ended."""
        address, now = network(peer), self._monotonic()
        if address != self._newest:
            if self._newest:
                self._several_until = now + ALONE_SECONDS
            self._newest = address
        in_hand = self._in_hand.get(address, 0)
        if address not in self._waiting and in_hand < self._most(now):
            self._in_hand[address] = in_hand + 1
            return True
        return False

    def end(self, peer: str) -> None:
        """It is durable, or will not be; the turn is the next one's."""
        address, most = network(peer), self._most(self._monotonic())
        waiting = self._waiting.get(address, deque())
        self._in_hand[address] -= 1
        while waiting and self._in_hand[address] < most:
            turn, gone = waiting.popleft()
            if turn.done():  # it was cancelled
                continue
            if gone():
                turn.set_exception(ConnectionResetError("whoever asked has gone"))
                continue
            turn.set_result(None)
            self._in_hand[address] += 1
        if not waiting:
            self._waiting.pop(address, None)
        if not self._in_hand[address]:
            del self._in_hand[address]

    def _most(self, now: float) -> int:
        return IN_HAND if now >= self._several_until else IN_HAND_OF_SEVERAL


class Ingest:
    """The limits of one boot server. `kib_per_second`: how much it writes down, on average, at most; `turns`: of the
    addresses that it writes down for."""

    def __init__(self, kib_per_second: int, monotonic: Callable[[], float] = time.monotonic) -> None:
        rate = kib_per_second * 1024
        each = max(rate / BOOTS_AT_FULL_RATE, LEAST_A_BOOT / BURST_SECONDS)
        self._monotonic, self.turns = monotonic, Turns(monotonic)
        self._boots = Buckets(each, each * BURST_SECONDS, MOST_BOOTS)
        self._addresses = Buckets(rate / 2, rate / 2 * BURST_SECONDS, MOST_ADDRESSES)
        self._all = Buckets(rate, rate * BURST_SECONDS, 1)

    def take(self, boot: Hashable, peer: str, size: int) -> bool:
        """Whether `size` bytes may be written down now for `boot`, at the word of `peer` (as `plain_address` has it; of
        IPv6 the /64 counts)."""
        now, cost = self._monotonic(), size + OVERHEAD
        of_boot = self._boots.bucket(boot, now)
        if of_boot[0] < cost:
            return False
        of_address = self._addresses.bucket(network(peer), now)
        of_all = self._all.bucket(None, now)
        if of_address[0] < cost or of_all[0] < cost:
            return False
        of_boot[0] -= cost
        of_address[0] -= cost
        of_all[0] -= cost
        return True

    async def hold(self) -> None:
        """Wait before answering what was one too many."""
        await asyncio.sleep(HOLD_SECONDS)


class Repeats:
    """Boot ids that may be served once more: to whoever got one last, or, where it has none, the one that the machine's
    script was served with last, to whomever. `record`: what of the record does not differ from boot to boot of one
    script."""

    def __init__(self) -> None:
        self._known: tuple[_Known, _Known] = (OrderedDict(), OrderedDict())

    def remember(self, machine: str, peer: str, record: str, boot_id: str, now_ms: int) -> None:
        """The record of this boot is durable."""
        for known, key in zip(self._known, ((machine, peer), (machine, "")), strict=True):
            known[key] = (boot_id, record, now_ms)
            known.move_to_end(key)
            if len(known) > MOST_REPEATS:
                known.popitem(last=False)

    def boot_id(self, machine: str, peer: str, record: str, now_ms: int) -> str | None:
        """What may be served once more; None: nothing, for it is too old or was of another script."""
        for known, key in zip(self._known, ((machine, peer), (machine, "")), strict=True):
            boot_id, of_record, at_ms = known.get(key, ("", "", 0))
            if boot_id and of_record == record and 0 <= now_ms - at_ms < REPEAT_MS:
                return boot_id
        return None
