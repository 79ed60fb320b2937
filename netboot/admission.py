"""Who is let in where many want to, and who makes room for whom: the one rule of the servers that machines speak to.

A connection *waits* until a whole request of it is there, and again once that is answered; in between it is *served*.
Where a limit is reached, the one that has waited longest within it makes room, so that whoever only holds connections
holds nobody up. Three limits, narrowest first: by address, by network (an IPv6 /64, of which one machine may have every
address; an IPv4 address is a network by itself), and in all. Only where all within a limit are served is a new one too
many.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Literal

from netboot.addresses import network_of

Admission = Literal["admitted", "excess", "cut"]

TURNOVER_SECONDS = 2.0
"""How long one has its place in a network that is full: whoever comes back at once with another address of a /64 would
otherwise have us begin with TLS as fast as it can connect."""


class Seat:
    """What one connection takes of the limits. `end` ends that connection, whatever stage it is in."""

    __slots__ = ("address", "admitted", "end", "left", "network", "since")

    def __init__(self, address: str, end: Callable[[], object]) -> None:
        self.address, self.network, self.end = address, network_of(address), end
        self.admitted = self.left = False
        self.since = 0.0


class _Count:
    """How many connections there are of one network, in all and by address."""

    __slots__ = ("of", "total")

    def __init__(self) -> None:
        self.of, self.total = Counter[str](), 0

    def add(self, address: str) -> None:
        self.of[address] += 1
        self.total += 1

    def take(self, address: str) -> None:
        self.of[address] -= 1
        self.total -= 1
        if not self.of[address]:
            del self.of[address]


class _Network:
    """What there is of one network: those `inside`, and those that are `too_many` and have not left yet. Of the former
    the ones that wait, who has waited longest first."""

    __slots__ = ("inside", "next_turnover", "too_many", "waiting")

    def __init__(self) -> None:
        self.inside, self.too_many = _Count(), _Count()
        self.next_turnover = float("-inf")
        self.waiting: dict[Seat, None] = {}


class Gate:
    """This process's connections: `most` in all, `most_each` of an address, `most_network` of a network. As many again
    may be told to come back; they take nobody's place.

    `turnover_spacing`: seconds, at the least, between two that are let in within a network, where each has another of
    that network ended for it.
    """

    def __init__(
        self,
        most: int,
        most_each: int,
        most_network: int,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        turnover_spacing: float = 0.0,
    ) -> None:
        self._monotonic, self._turnover_spacing = monotonic, turnover_spacing
        self._most, self._most_each, self._most_network = most, most_each, most_network
        self._networks: dict[str, _Network] = {}
        self._waiting: dict[Seat, None] = {}
        self._inside = self._too_many = 0
        self.refused = 0
        """Told to come back, cut, or ended to make room."""

    def __len__(self) -> int:
        """Networks that are kept in mind: those alone that have a connection."""
        return len(self._networks)

    @property
    def open(self) -> int:
        """Connections that have not left."""
        return self._inside + self._too_many

    def enter(self, seat: Seat) -> Admission:
        """Count a connection: `admitted`, `excess` (tell it to come back) or `cut`; every one has to `leave`."""
        network = self._networks.get(seat.network)
        if network is None:
            network = self._networks[seat.network] = _Network()
        self._inside += 1
        network.inside.add(seat.address)
        if self._makes_room(network, seat):
            seat.admitted, seat.since = True, self._monotonic()
            self.wait(seat)
            return "admitted"
        self._inside -= 1
        network.inside.take(seat.address)
        self.refused += 1
        self._too_many += 1
        too_many = network.too_many
        too_many.add(seat.address)
        within = self._too_many <= self._most and too_many.total <= self._most_network
        return "excess" if within and too_many.of[seat.address] <= self._most_each else "cut"

    def leave(self, seat: Seat) -> None:
        """Count a connection out that `enter` counted in, whatever that returned; a second time does nothing."""
        if seat.left:
            return
        seat.left = True
        network = self._networks[seat.network]
        if seat.admitted:
            self._inside -= 1
            network.inside.take(seat.address)
        else:
            self._too_many -= 1
            network.too_many.take(seat.address)
        if not network.inside.total + network.too_many.total:
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
        inside, now = network.inside, self._monotonic()
        if inside.of[seat.address] > self._most_each:
            longest = next((each for each in network.waiting if each.address == seat.address), None)
        elif inside.total > self._most_network:
            longest = next(iter(network.waiting), None)
            if longest is not None and now < longest.since + TURNOVER_SECONDS:
                return False
        else:
            return self._inside <= self._most or self._end(next(iter(self._waiting), None))
        if now < network.next_turnover or not self._end(longest):
            return False
        network.next_turnover = now + self._turnover_spacing
        return True  # one has gone for it, so that there are no more in all

    def _end(self, seat: Seat | None) -> bool:
        if seat is None:
            return False
        self.refused += 1
        self.leave(seat)
        seat.end()
        return True
