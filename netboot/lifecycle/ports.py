"""The interfaces that the planes bring with them. Adapters live in `netboot.stores`; each has a contract suite."""

from typing import Protocol

from netboot.lifecycle.events import DiscoveryRecord, EventRecord, ScriptRecord


class Journal(Protocol):
    """Where a process writes facts down before it acknowledges them."""

    async def append(self, record: ScriptRecord | EventRecord | DiscoveryRecord) -> None:
        """Return when the record has survived a power cut.

        Raises:
            netboot.lifecycle.errors.JournalUnavailableError: the disk refuses, or the journal is full.
        """
        ...


class Clock(Protocol):
    """The time, as an argument."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        ...
