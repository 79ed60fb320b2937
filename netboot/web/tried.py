"""Reading from several places for one answer."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from netboot.lifecycle.errors import CannotTellError

T = TypeVar("T")


class Tried:
    """Reads from several places, of which one that cannot be read hides none of the others."""

    def __init__(self) -> None:
        self.problems: set[str] = set()

    def read(self, read: Callable[[], Sequence[T]]) -> Sequence[T]:
        """What is there; nothing where it cannot be read."""
        return self.newest(read) or ()

    def newest(self, read: Callable[[], T]) -> T | None:
        """The same; None: it cannot be read."""
        try:
            return read()
        except CannotTellError as error:
            self.problems.add(str(error))
            return None
