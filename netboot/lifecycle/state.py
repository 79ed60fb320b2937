"""What is known of machines and their boots, as operators see it: values, the rules of what is kept, and the ports.

A claim is not a boot. Anybody can ask for a machine's script, so a script that was served, and files that were fetched
with it, alter nothing; and anybody who fetched it can send events. So there are three standings of a boot: *claimed*
(nothing but our own serving), *reported* (somebody said something), *proven* (something was *observed*: it attested, or
the cluster saw its node). A machine's current boot is the one that proved itself last; of a machine that never did, the
newest that was reported. A newer one that was only reported is `pending`, until it proves itself.
`netboot.stores.state` is where boots are chosen so; its contract suite holds it to the rule, told the obvious way.
Which boot is newer, no clock says: newer is the one that reached its standing later, in the order in which its facts
arrived (`Arrivals`). The times in ids and records are for people.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.events import (
    AnyRecord,
    BootId,
    CertificateRecord,
    ConsoleRecord,
    CrashRecord,
    EventRecord,
    Moment,
    SafeText,
    SharedRecord,
    TraceRecord,
    WaitRecord,
)
from netboot.lifecycle.health import HealthStatus
from netboot.lifecycle.phases import Phase, Source, source_of
from netboot.lifecycle.trace import Trace

BOOTS_KEPT = 50
"""Boots kept for each machine, the newest: so many that proved themselves, and so many that were only reported."""
CLAIMS_KEPT = 16
"""Claims (nothing was reported) kept for each machine, the newest; the others are counted."""
DISCOVERED_KEPT = 10_000
"""Sightings of machines that may not boot, in all; the longest unseen go first."""
REPORTS_KEPT = 2
"""Boots of each machine and standing of which the latest health report is kept: the newest."""
CONSOLES_KEPT = 8
"""Boots of each machine and standing of which the last lines of the console are kept ..."""
CONSOLES_OF_ADDRESS = 2
"""... and of these, how many that one address sent: the newest."""
FEED_KEPT = 50_000
"""Entries of the feed; who watches reads them as they come."""
FEED_PER_BOOT = 200
"""Entries of one boot in the feed, so that one that fails in circles does not push out the others."""
REMOVED_KEPT = 5_000
"""Machines that the inventory no longer has, of which boots are kept: those that left last ..."""
REMOVED_KEPT_SECONDS = 30 * 86_400
"""... and not longer than this, counted while the service runs, so that no jump of a clock forgets anything."""
SET_ASIDE_KEPT = 500
"""Rows that were set aside, the latest; of each the first SET_ASIDE_BYTES."""
SET_ASIDE_BYTES = 64 * 1024


def is_claim(trace: Trace) -> bool:
    """Whether nothing but our own serving is known of this boot."""
    said = trace.failures or trace.crashes or trace.console
    return not said and all(reached.source is Source.SERVED for reached in trace.reached)


class Standing(IntEnum):
    """What is known of a boot but by its own word. Each kind is kept apart, so that none pushes out a higher one."""

    CLAIMED = 0
    REPORTED = 1
    PROVEN = 2


KEPT = {Standing.CLAIMED: CLAIMS_KEPT, Standing.REPORTED: BOOTS_KEPT, Standing.PROVEN: BOOTS_KEPT}
"""How many of each standing, for each machine."""


def standing(trace: Trace) -> Standing:
    """Which of the three a boot is, by what is known of it (see above)."""
    if any(reached.source is Source.OBSERVED for reached in trace.reached):
        return Standing.PROVEN
    return Standing.CLAIMED if is_claim(trace) else Standing.REPORTED


def standing_by(record: TraceRecord) -> Standing:
    """Which standing this fact gives a boot; it never loses one again."""
    if isinstance(record, SharedRecord):
        return max((standing_by(fact) for fact in record.facts), default=Standing.CLAIMED)
    if isinstance(record, CrashRecord | ConsoleRecord):
        return Standing.REPORTED
    if isinstance(record, CertificateRecord):
        return Standing.CLAIMED  # a boot that is long forgotten must not come back as the current one by it
    source = source_of(record.phase) if isinstance(record, EventRecord) else Source.SERVED
    return {Source.SERVED: Standing.CLAIMED, Source.REPORTED: Standing.REPORTED}.get(source, Standing.PROVEN)


PAUSE_MS = 3_600_000
"""After so long without being told to wait, whoever is told it again begins to wait anew."""


class Waited(Strict):
    """Whoever asked in a machine's name was told to wait, for want of a usable image: the last time, from `first_ms`
    until `last_ms`. `reason`, `peer`: what was told last, and to which address."""

    reason: SafeText
    peer: str
    first_ms: Moment
    last_ms: Moment


def waited(known: Waited | None, record: WaitRecord) -> Waited:
    """With this record, which arrived last, be it of an earlier moment."""
    if known is None or abs(record.at_ms - known.last_ms) > PAUSE_MS:
        return Waited(reason=record.reason, peer=record.peer, first_ms=record.at_ms, last_ms=record.at_ms)
    return Waited(
        reason=record.reason,
        peer=record.peer,
        first_ms=min(known.first_ms, record.at_ms),
        last_ms=max(known.last_ms, record.at_ms),
    )


class Claims(Strict):
    """Scripts that were served in a machine's name, to whomever: how many in all, and when last. `waited`: the last
    time that there was none to serve; None: never."""

    served: int = 0
    last_ms: int | None = None
    waited: Waited | None = Field(None, exclude_if=lambda waited: waited is None)


class Checked(Strict):
    """How a health report turned out, and when it came."""

    status: HealthStatus
    at_ms: int


class MachineState(Strict):
    """What is known of one machine. `current`: None until it has reported anything. `pending`: a newer boot that was
    reported and has not proven itself: a reboot on its way, or a false report. `checked`: how the current
    boot's health checks turned out; None: it reported none."""

    machine: str
    current: Trace | None = None
    pending: Trace | None = None
    claims: Claims = Claims()
    checked: Checked | None = None


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
