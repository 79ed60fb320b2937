"""The interfaces that servers bring with them. Adapters live in `netboot.stores`; each has a contract suite."""

from asyncio import Future
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from netboot.lifecycle.events import AnyRecord, ConsoleRecord, HealthRecord
from netboot.lifecycle.sightings import Discovered, Told
from netboot.lifecycle.state import Batch, FeedEntry, MachineState, Standing
from netboot.lifecycle.trace import Trace


class Journal(Protocol):
    """Where a process writes facts down before it acknowledges them."""

    async def append(self, record: AnyRecord) -> None:
        """Return when the record has survived a power cut.

        Raises:
            netboot.lifecycle.errors.JournalUnavailableError: the disk refuses, or the journal is full.
        """
        ...

    def append_json(self, at_ms: int, body: str, *, reserved: bool = False) -> Future[None]:
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


class States(Protocol):
    """Machines and boots, for reading. Every method raises StateUnavailableError when the state cannot be read."""

    def machines(self, names: Sequence[str] | None = None) -> dict[str, MachineState]:
        """What is known of these machines, or of all; a machine that was never heard of is not in it."""
        ...

    def counts(self) -> dict[str, int]:
        """How many machines' current boots are in each state; without machines that the inventory no longer has."""
        ...

    def health_counts(self, since_ms: int) -> dict[str, int]:
        """How many machines' current boots have reported which health; `stale`: before `since_ms`, `none`: never. The
        same machines."""
        ...

    def removed(self) -> int:
        """How many machines are known still that the inventory no longer has."""
        ...

    def running(self) -> dict[str, str]:
        """Machine → digest of the image that its current boot was served; who never reported anything is not in it,
        nor of whom no script is known."""
        ...

    def images(self, latest: int) -> set[str]:
        """Digests of what was served to every machine's current and pending boot, and to the `latest` boots of all."""
        ...

    def health(self, boot: str) -> HealthRecord | None:
        """The latest health report of a boot; None: none came, or it is longer ago than is kept."""
        ...

    def boots(self, machine: str | None, limit: int, after: str | None = None) -> list[Trace]:
        """The newest boots and claims, of one machine or of all, newest first, as they arrived; `after`: those behind
        this one. Raises NoSuchBootError: it is not there (any more)."""
        ...

    def since_ready(self, machine: str, least: Standing, limit: int) -> list[Trace]:
        """The newest boots of a machine of at least that standing, newest first, as they arrived: those that came to it
        after the last one that is Ready did, that one not included."""
        ...

    def boot(self, boot: str) -> Trace | None:
        """One boot; None: never heard of, or longer ago than is kept."""
        ...

    def numbers(self, boots: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Of those of the boots that are known: the number of the fact that gave each its standing, and that of its
        latest health report (`netboot.lifecycle.arrivals`); 0: it has none."""
        ...

    def crash_texts(self, boot: str) -> dict[str, str]:
        """The ends of logs that a boot found of crashes, by their digests (`Crash.sha256`). One that its trace names
        and that is not here could not be read, or its boot is longer ago than is kept."""
        ...

    def console(self, boot: str) -> ConsoleRecord | None:
        """The last lines of its console that a boot sent; None: it sent none, they could not be read, or are longer ago
        than is kept."""
        ...


class Sightings(Protocol):
    """What passes by, for reading. Every method raises StateUnavailableError when the state cannot be read."""

    def discovered(self, limit: int) -> list[Discovered]:
        """Machines that asked and may not boot, the latest seen first."""
        ...

    def hardware(self) -> list[Told]:
        """What the machines that were discovered last said of their hardware, the latest first."""
        ...

    def feed(self, after: int | None, limit: int) -> list[FeedEntry]:
        """What happened after entry `after`, in order, at most `limit`; None: the newest `limit`, in order."""
        ...


class Projection(Protocol):
    """The state as its one writer uses it: the projection."""

    def cursor(self, journal: str) -> tuple[int, int]:
        """(identity, last id) of what has been taken of a journal; (0, 0) for one never seen."""
        ...

    def take(self, batch: Batch) -> Mapping[str, int]:
        """Take a batch and the new cursor over, both or neither; durable when this returns.

        Returns how many rows were set aside for it, by origin: those of the batch, those of its records that cannot be
        taken, and rows of the state itself that were in the way.

        Raises:
            netboot.lifecycle.errors.StateUnavailableError: the disk refuses; nothing was taken.
        """
        ...

    def rewind(self, journal: str, upto: int) -> None:
        """A journal was replaced by an older copy of itself that ends at `upto`: begin anew, counting nothing twice."""
        ...

    def settle(self) -> None:
        """Every journal has been read to its end: what is taken from now on is newer, whatever its clock says."""
        ...

    def declare(self, machines: Collection[str], seconds: int) -> int:
        """These are the machines of the inventory, `seconds` after this was said last. Of those that are in it no more
        everything is forgotten in time; returns of how many it was.

        Raises:
            netboot.lifecycle.errors.StateUnavailableError: the disk refuses; nothing was forgotten.
        """
        ...

    def rename(self, present: Mapping[str, str]) -> None:
        """What is known by a former name is from now on known by the one that it leads to; durable when this returns.

        Raises:
            netboot.lifecycle.errors.StateUnavailableError: the disk refuses; nothing was renamed.
        """
        ...

    def inspect(self) -> Mapping[str, int] | None:
        """Look at some more of what an other version may have written, and set aside what cannot be read.

        Returns how many rows, by origin; None: everything has been looked at.
        """
        ...
