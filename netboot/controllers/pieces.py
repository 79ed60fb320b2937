"""Long loops in pieces, so that whoever goes through one is heard meanwhile."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

PIECE = 1_000
"""Of machines: some 5 ms of a processor, and seconds where what else runs leaves a three-hundredth of it."""
T = TypeVar("T")
Going = Callable[[], None]


def in_pieces(items: Iterable[T], going: Going, piece: int = PIECE) -> Iterator[T]:
    """The same items; `going` is called between two pieces of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % piece == 0:
            going()


def unheard() -> None:
    """For those whom nobody listens to."""
