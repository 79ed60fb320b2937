"""Who is let in where many want to, and who makes room for whom: the one rule of the servers that machines speak to.

A connection *waits* until a whole request of it is there, and again once that is answered; in between it is *served*.
Where a limit is reached, the one that has waited longest within it makes room, so that whoever only holds connections
holds nobody up. Three limits, narrowest first: by address, by network (an IPv6 /64, of which one machine may have every
address; an IPv4 address is a network by itself), and in all. Only where all within a limit are served is a new one too
many.
"""

import time
from collections.abc import Callable
from typing import Literal

from netboot.addresses import network_of

Admission = Literal["admitted", "excess", "cut"]

TURNOVER_SECONDS = 2.0
"""How long one has its place in a network that is full: whoever comes back at once with another address of a /64 would
otherwise have us begin with TLS as fast as it can connect."""
TURNOVER_SPACING = 1 / 32
"""Seconds between two who get a place of a network that is full, however many places it has: all of them given anew
every two seconds were 256 handshakes a second, of 64 addresses of one /64."""
TOLD_TO_COME_BACK = 2
"""Up to so many times a limit, what is too many is told to come back; beyond, it is cut without a word."""


class Seat:
    """What one connection takes of the limits. `end` ends that connection, whatever stage it is in."""

    __slots__ = ("address", "admitted", "end", "left", "network", "since")

    def __init__(self, address: str, end: Callable[[], object]) -> None:
        self.address, self.network, self.end = address, network_of(address), end
        self.admitted = self.left = False
        self.since = 0.0


class _Network:
    """What is open of one network: by address, and those that wait, who has waited longest first."""

    __slots__ = ("addresses", "next_turnover", "open", "waiting")

    def __init__(self) -> None:
        self.addresses: dict[str, int] = {}
        self.open = 0
        self.next_turnover = float("-inf")
        self.waiting: dict[Seat, None] = {}


class Gate:
    """This process's connections: `most` in all, `most_each` of an address, `most_network` of a network."""

    def __init__(
        self, most: int, most_each: int, most_network: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._most, self._most_each, self._most_network = most, most_each, most_network
        self._networks: dict[str, _Network] = {}
        self._waiting: dict[Seat, None] = {}
        self.open = 0
        self.refused = 0
        """Told to come back, cut, or ended to make room."""

    def __len__(self) -> int:
        """Networks that are kept in mind: those alone that have a connection."""
        return len(self._networks)

    def enter(self, seat: Seat) -> Admission:
        """Count a connection: `admitted`, `excess` (tell it to come back) or `cut`; every one has to `leave`."""
        network = self._networks.get(seat.network)
        if network is None:
            network = self._networks[seat.network] = _Network()
        self.open += 1
        network.open += 1
        network.addresses[seat.address] = network.addresses.get(seat.address, 0) + 1
        if self._makes_room(network, seat):
            seat.admitted, seat.since = True, self._monotonic()
            self.wait(seat)
            return "admitted"
        self.refused += 1
        of_address, times = network.addresses[seat.address], TOLD_TO_COME_BACK
        within = self.open <= times * self._most and network.open <= times * self._most_network
        return "excess" if within and of_address <= times * self._most_each else "cut"

    def leave(self, seat: Seat) -> None:
        """Count a connection out that `enter` counted in, whatever that returned; a second time does nothing."""
        if seat.left:
            return
        seat.left = True
        network = self._networks[seat.network]
        self.open -= 1
        network.open -= 1
        network.addresses[seat.address] -= 1
        if not network.addresses[seat.address]:
            del network.addresses[seat.address]
        if not network.open:
            del self._networks[seat.network]
        self._waiting.pop(seat, None)
        network.waiting.pop(seat, None)

    def serve(self, seat: Seat) -> None:
        """A whole request is there: until it `wait`s again, a connection makes room for nobody."""
        if seat.admitted and not seat.left:
            self._waiting.pop(seat, None)
            self._networks[seat.network].waiting.pop(seat, None)

    def wait(self, seat: Seat) -> None:
        """Something of a whole request is missing."""
        if seat.admitted and not seat.left:
            self._waiting[seat] = None
            self._networks[seat.network].waiting[seat] = None

    def _makes_room(self, network: _Network, seat: Seat) -> bool:
        """Whether there is room for a connection, once others have been ended for it where need be."""
        if network.addresses[seat.address] > self._most_each:
            of_address = (each for each in network.waiting if each.address == seat.address)
            if not self._end(next(of_address, None)):
                return False
        if network.open > self._most_network:
            longest, now = next(iter(network.waiting), None), self._monotonic()
            if longest is None or now < max(longest.since + TURNOVER_SECONDS, network.next_turnover):
                return False
            network.next_turnover = now + TURNOVER_SPACING
            self._end(longest)
        return self.open <= self._most or self._end(next(iter(self._waiting), None))

    def _end(self, seat: Seat | None) -> bool:
        if seat is None:
            return False
        self.refused += 1
        self.leave(seat)
        seat.end()
        return True
