"""What is known of machines and their boots, as operators see it: values, the rules of what is kept, and the ports.

A claim is not a boot. Anybody can ask for a machine's script, so a script that was served, and files that were fetched
with it, alter nothing; and anybody who fetched it can send events. So there are three standings of a boot: *claimed*
(nothing but our own serving), *reported* (somebody said something), *proven* (something was *observed*: it attested, or
the cluster saw its node). A machine's current boot is the one that proved itself last; of a machine that never did, the
newest that was reported. A newer one that was only reported is `pending`, until it proves itself.
`netboot.stores.state` is where boots are chosen so; its contract suite holds it to the rule, told the obvious way.
Which boot is newer, their ids tell: they begin with the time at which they were minted, so they sort by it.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Literal, NamedTuple, Protocol

from images.values.strict import Strict
from netboot.lifecycle.events import AnyRecord, BootId, DiscoveryRecord, HealthRecord, SafeText
from netboot.lifecycle.health import HealthStatus
from netboot.lifecycle.phases import Phase, Source
from netboot.lifecycle.trace import Trace

BOOTS_KEPT = 50
"""Boots kept for each machine, the newest: so many that proved themselves, and so many that were only reported."""
CLAIMS_KEPT = 16
"""Claims (nothing was reported) kept for each machine, the newest; the others are counted."""
DISCOVERED_KEPT = 10_000
"""Sightings of machines that may not boot, in all; the longest unseen go first."""
REPORTS_KEPT = 2
"""Boots of each machine and standing of which the latest health report is kept, the newest."""
FEED_KEPT = 50_000
"""Entries of the feed; who watches reads them as they come."""
FEED_PER_BOOT = 200
"""Entries of one boot in the feed, so that one that fails in circles does not push out the others."""
SET_ASIDE_KEPT = 500
"""Rows that could not be read, the latest; of each the first SET_ASIDE_BYTES."""
SET_ASIDE_BYTES = 64 * 1024


def is_claim(trace: Trace) -> bool:
    """Whether nothing but our own serving is known of this boot."""
    return not trace.failures and all(reached.source is Source.SERVED for reached in trace.reached)


class Standing(IntEnum):
    """What is known of a boot but by its own word. Each kind is kept apart, so that none pushes out a higher one."""

    CLAIMED = 0
    REPORTED = 1
    PROVEN = 2


KEPT = {Standing.CLAIMED: CLAIMS_KEPT, Standing.REPORTED: BOOTS_KEPT, Standing.PROVEN: BOOTS_KEPT}
"""How many of each standing, for each machine."""


def standing(trace: Trace) -> Standing:
    """Which of the three a boot is, by what is known of it (see above)."""
    if proven_ms(trace) is not None:
        return Standing.PROVEN
    return Standing.CLAIMED if is_claim(trace) else Standing.REPORTED


def proven_ms(trace: Trace) -> int | None:
    """When the first fact was observed that nobody on the wire can claim; None: none was."""
    return min((reached.at_ms for reached in trace.reached if reached.source is Source.OBSERVED), default=None)


class Claims(Strict):
    """Scripts that were served in a machine's name, to whomever: how many in all, and when last."""

    served: int = 0
    last_ms: int | None = None


class Checked(Strict):
    """How a health report turned out, and when it came."""

    status: HealthStatus
    at_ms: int


def newer_report(known: HealthRecord | None, new: HealthRecord) -> HealthRecord:
    """Of two reports of one boot the later; the rest of the key only makes ties the same in any order."""
    if known is None:
        return new
    return max(known, new, key=lambda record: (record.at_ms, record.model_dump_json(by_alias=True)))


class MachineState(Strict):
    """What is known of one machine. `current`: None until it has reported anything. `pending`: a newer boot that was
    reported and has not proven itself: a reboot on its way, or a false report. `checked`: how the current
    boot's health checks turned out; None: it reported none."""

    machine: str
    current: Trace | None = None
    pending: Trace | None = None
    claims: Claims = Claims()
    checked: Checked | None = None


class Discovered(Strict):
    """A machine that asked and may not boot. `key`: the first of MAC, UUID, serial and address that it has."""

    key: str
    outcome: Literal["unknown", "refused"]
    mac: str | None = None
    uuid: str | None = None
    serial: str | None = None
    architecture: str | None = None
    reason: SafeText = ""
    peer: str = ""
    first_ms: int
    last_ms: int
    times: int = 1


def sighting(record: DiscoveryRecord) -> Discovered:
    """The entry that a record alone makes."""
    identifiers = (record.mac, record.uuid, record.serial, f"address {record.peer}")
    return Discovered(
        key=next(identifier for identifier in identifiers if identifier),
        outcome=record.outcome,
        mac=record.mac,
        uuid=record.uuid,
        serial=record.serial,
        architecture=record.architecture,
        reason=record.reason,
        peer=record.peer,
        first_ms=record.at_ms,
        last_ms=record.at_ms,
    )


def seen_again(known: Discovered | None, new: Discovered) -> Discovered:
    """Both together: the latest words, the earliest and latest times, and how often."""
    if known is None:
        return new
    latest = max(known, new, key=lambda seen: (seen.last_ms, seen.model_dump_json()))
    return latest.model_copy(
        update={
            "first_ms": min(known.first_ms, new.first_ms),
            "last_ms": max(known.last_ms, new.last_ms),
            "times": known.times + new.times,
        }
    )


class FeedEntry(Strict):
    """One thing that happened, in the order in which it became known. `id` rises; it says where to go on reading."""

    id: int
    at_ms: int
    boot: BootId
    machine: str
    phase: Phase
    source: Source
    uptime_ms: int | None = None
    detail: SafeText = ""


class SetAside(NamedTuple):
    """A row that could not be read. `origin`: a journal's file name, or `state.db`; `row`: which one; `body`: as it was
    written, or its beginning."""

    origin: str
    row: str
    reason: str
    body: bytes


class Batch(NamedTuple):
    """Records of one journal, read together. `identity` tells the journal from one that took its place later;
    `last`: the id of the last row of them; `ids`: of the records; `set_aside`: rows that are no records at all."""

    journal: str
    identity: int
    last: int
    records: Sequence[AnyRecord]
    ids: Sequence[int] = ()
    set_aside: Sequence[SetAside] = ()


class States(Protocol):
    """Machines and boots, for reading. Every method raises StateUnavailableError when the state cannot be read."""

    def machines(self, names: Sequence[str] | None = None) -> dict[str, MachineState]:
        """What is known of these machines, or of all; a machine that was never heard of is not in it."""
        ...

    def counts(self) -> dict[str, int]:
        """How many machines' current boots are in each state."""
        ...

    def health_counts(self, since_ms: int) -> dict[str, int]:
        """How many machines' current boots have reported which health; `stale`: before `since_ms`, `none`: never."""
        ...

    def health(self, boot: str) -> HealthRecord | None:
        """The latest health report of a boot; None: none came, or it is longer ago than is kept."""
        ...

    def boots(self, machine: str | None, limit: int) -> list[Trace]:
        """The newest boots and claims, of one machine or of all, newest first."""
        ...

    def boot(self, boot: str) -> Trace | None:
        """One boot; None: never heard of, or longer ago than is kept."""
        ...


class Sightings(Protocol):
    """What passes by, for reading. Every method raises StateUnavailableError when the state cannot be read."""

    def discovered(self, limit: int) -> list[Discovered]:
        """Machines that asked and may not boot, the latest seen first."""
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

    def inspect(self) -> Mapping[str, int] | None:
        """Look at some more of what an other version may have written, and set aside what cannot be read.

        Returns how many rows, by origin; None: everything has been looked at.
        """
        ...
