"""The firmware's event log: what was measured, in order. Replayed, it must give the quoted PCRs.

Source: TCG "PC Client Platform Firmware Profile", section 10 (crypto-agile log). All integers are little-endian.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from tokens import wire
from tokens.errors import EventLogError, MalformedError
from tokens.wire import Reader

EV_NO_ACTION = 0x3
LONGEST = 1 << 20
"""Bytes; real logs have 10 to 100 KiB."""


@dataclass(frozen=True, slots=True)
class Event:
    """One measurement: the digests that were extended into `pcr`, by bank. `data` is a hint: nothing proves it."""

    pcr: int
    kind: int
    digests: Mapping[int, bytes]
    data: bytes


class _LittleReader(Reader):
    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")


def read_event_log(data: bytes) -> tuple[Event, ...]:
    """The events of a crypto-agile log.

    Raises:
        MalformedError: not one, or larger than 1 MiB.
    """
    if len(data) > LONGEST:
        raise MalformedError(f"an event log of {len(data)} bytes, at most {LONGEST} are read")
    reader = _LittleReader(data)
    sizes = _read_header(reader)
    events = []
    while not reader.done:
        pcr, kind, count = reader.number(4), reader.number(4), reader.number(4)
        if pcr == 0xFFFFFFFF and kind == 0xFFFFFFFF:
            break  # some firmware pads the log with 0xff
        if count > len(sizes):
            raise MalformedError(f"an event with {count} digests in a log of {len(sizes)} banks")
        digests = {}
        for _ in range(count):
            algorithm = reader.number(2)
            if algorithm not in sizes:
                raise MalformedError(f"an event with a digest of an unannounced algorithm {algorithm:#06x}")
            digests[algorithm] = reader.take(sizes[algorithm])
        events.append(Event(pcr, kind, digests, reader.take(reader.number(4))))
    return tuple(events)


def _read_header(reader: Reader) -> dict[int, int]:
    """The first event, in the old form, says which banks the others have and how long their digests are."""
    reader.take(4)
    if reader.number(4) != EV_NO_ACTION:
        raise MalformedError("not a crypto-agile event log")
    reader.take(20)
    body = _LittleReader(reader.take(reader.number(4)))
    if body.take(16) != b"Spec ID Event03\0":
        raise MalformedError("not a crypto-agile event log")
    body.take(8)
    count = body.number(4)
    if not 1 <= count <= 16:
        raise MalformedError(f"an event log of {count} banks")
    sizes = {}
    for _ in range(count):
        algorithm, size = body.number(2), body.number(2)
        known = wire.HASHES.get(algorithm)
        if not 1 <= size <= 64 or (known and hashlib.new(known).digest_size != size):
            raise MalformedError(f"digests of {size} bytes for algorithm {algorithm:#06x}")
        sizes[algorithm] = size
    return sizes


def replay(events: tuple[Event, ...], algorithm: int) -> dict[int, bytes]:
    """The value that each measured PCR of one bank must have after these events."""
    name = wire.hash_name(algorithm)
    size = hashlib.new(name).digest_size
    pcrs: dict[int, bytes] = {}
    for event in events:
        if event.kind == EV_NO_ACTION:
            if event.pcr == 0 and event.data[:16] == b"StartupLocality\0" and len(event.data) == 17:
                pcrs[0] = bytes(size - 1) + event.data[16:]
            continue
        if algorithm not in event.digests:
            raise EventLogError(f"an event of PCR {event.pcr} has no {name} digest")
        pcrs[event.pcr] = hashlib.new(name, pcrs.get(event.pcr, bytes(size)) + event.digests[algorithm]).digest()
    return pcrs


def check_log(events: tuple[Event, ...], pcrs: Mapping[tuple[int, int], bytes]) -> None:
    """The log leads to every quoted PCR; one that it does not mention must be as reset left it.

    Raises:
        EventLogError: naming the PCR.
    """
    for algorithm in sorted({algorithm for algorithm, _ in pcrs}):
        replayed = replay(events, algorithm)
        for (bank, index), value in sorted(pcrs.items()):
            if bank == algorithm and not hmac.compare_digest(replayed.get(index, bytes(len(value))), value):
                raise EventLogError(f"the event log does not lead to the quoted PCR {index}")
