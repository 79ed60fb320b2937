"""The interfaces that servers bring with them. Adapters live in `netboot.stores`; each has a contract suite."""

from collections.abc import Awaitable
from typing import Protocol

from netboot.lifecycle.events import AnyRecord


class Journal(Protocol):
    """Where a process writes facts down before it acknowledges them."""

    async def append(self, record: AnyRecord) -> None:
        """Return when the record has survived a power cut.

        Raises:
            netboot.lifecycle.errors.JournalUnavailableError: the disk refuses, or the journal is full.
        """
        ...

    def append_json(self, at_ms: int, body: str, *, reserved: bool = False) -> Awaitable[None]:
        """The same for a record that is JSON already, for those that write tens of thousands a second.

        The record is queued when this returns; awaiting it is waiting for the disk. `reserved`: it may have the room
        that is kept for scripts of known machines.
        """
        ...


class Clock(Protocol):
    """The time, as an argument."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        ...
