"""Rounds in which every host meets every other one once, and no host is in two pairs at a time.

The circle method of round-robin tournaments: one host stays, the others move on by one place each round.
"""

from collections.abc import Iterator, Sequence

Pair = tuple[str, str]


def rounds(hosts: Sequence[str]) -> Iterator[list[Pair]]:
    """n - 1 rounds of n / 2 pairs for an even number of hosts, n rounds for an odd one, in each of which one rests.
    Two hosts that are near each other in the list meet in different rounds than others, so that some of the rounds
    are a fair sample of all. One at a time: all of 10,000 hosts are 50 million pairs."""
    places: list[str | None] = [*hosts, *([None] if len(hosts) % 2 else [])]
    for _ in range(len(places) - 1):
        half = len(places) // 2
        met = zip(places[:half], reversed(places[half:]), strict=True)
        yield [(one, other) for one, other in met if one is not None and other is not None]
        places.insert(1, places.pop())
