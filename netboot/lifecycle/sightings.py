"""Machines that asked and may not boot: one entry for each, however often they ask, and of those that were discovered
the last report."""

from typing import Literal

from images.values.strict import Strict
from netboot.lifecycle.events import DiscoveryRecord, HardwareRecord, Moment, SafeText


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
    """Both together: what arrived last says what it is and when it was seen last."""
    if known is None:
        return new
    return new.model_copy(update={"first_ms": min(known.first_ms, new.first_ms)})


class Told(HardwareRecord):
    """What a machine said last of its hardware. `other`: the address that said so before, where it was another one, or
    another TPM; "": no such. `other_ms`: when that was."""

    other: SafeText = ""
    other_ms: Moment = 0


def told_again(known: Told | None, new: HardwareRecord) -> Told:
    """The report that arrived last, which does not hide that somebody else is that machine, too."""
    if known is None:
        return Told(**dict(new))
    tpms = {each.report.tpm.ek_sha256 for each in (known, new) if each.report.tpm is not None}
    if known.peer != new.peer or len(tpms) > 1:
        return Told(**dict(new), other=known.peer, other_ms=known.at_ms)
    return Told(**dict(new), other=known.other, other_ms=known.other_ms)
