"""The parsers that read what a stranger sent: the call, what it may raise, and what holds of what it returns."""

import asyncio
import os
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from images.artifact.bundle import read_bundle
from images.artifact.manifest import read_manifest
from images.build.gates.early import members
from images.errors import ImageError
from images.formats import elf, pe
from images.registry.artifact import read_artifact, read_blobs
from images.registry.reference import read_reference
from netboot.boot.artifacts import none_match, still_same, wanted_span
from netboot.boot.heads import Heads
from netboot.boot.requests import machine_and_mac, parsed
from netboot.controllers.records import read_record
from netboot.dhcp.frames import message_in
from netboot.dhcp.packets import NotAnOfferError, parse
from netboot.join import messages
from netboot.lifecycle.claims import parse_claim
from netboot.lifecycle.errors import BadClaimError, NotReadyError
from netboot.lifecycle.events import BootEvent, ConsoleReport, CrashReport
from netboot.lifecycle.hardware import HardwareReport
from netboot.lifecycle.health import HealthReport
from netboot.stores.snapshot import read_snapshot
from tokens import ekcert, eventlog, pkcs10, wire
from tokens.errors import TokenError

CORPUS = Path(__file__).resolve().parent / "corpus"
_SIZE = 1 << 20
"""Bytes of the file whose ranges are asked for."""
_LOOP = asyncio.new_event_loop()
"""The parser of heads keeps one and never asks it."""
_LOOP.close()


@dataclass(frozen=True)
class Target:
    """`read` takes any bytes: it returns, or raises one of `refuses`. All else, failed assertions too, is a defect.

    `longest`: bytes; what comes over the network is bounded before it is parsed.
    """

    read: Callable[[bytes], object]
    refuses: tuple[type[Exception], ...] = ()
    longest: int = 4096


def seeds(name: str) -> list[bytes]:
    """The corpus of a target: `corpus/<name>/*`, by file name."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def _latin(data: bytes) -> str:
    """As a server hands over what came: any byte is a character."""
    return data.decode("latin-1")


def _head(data: bytes) -> None:
    fresh, used = Heads(_LOOP), Heads(_LOOP)
    used.read(re.sub(rb"\?\S* ", b"?other=1 ", data, count=1))
    head = fresh.read(data)
    assert used.read(data) == head
    if head is not None:
        _claim(head.query)


def _boot_query(data: bytes) -> None:
    _claim(_latin(data))


def _claim(query: str) -> None:
    claim = parse_claim(query)
    assert all(set(reason) <= set(string.printable) for reason in claim.ignored)
    assert claim.mac is None or len(claim.mac) == 17
    assert claim.uuid is None or len(claim.uuid) == 36


def _query(data: bytes) -> None:
    machine, mac = machine_and_mac(_latin(data))
    assert isinstance(machine, str)
    assert len(mac) in {0, 17}


def _dhcp_offer(data: bytes) -> None:
    """A whole frame, as the wire brings it."""
    message = message_in(data)
    offer = parse(message, int.from_bytes(message[4:8]))
    assert all(" " <= character <= "~" for text in offer[:4] for character in str(text))


def _range(data: bytes) -> None:
    header = _latin(data)
    span = wanted_span(header, _SIZE)
    if not isinstance(span, str):
        first, length = span
        assert 0 <= first < _SIZE
        assert 0 < length <= _SIZE - first
    none_match(header, '"tag"')
    still_same(header, '"tag"')


def _event(data: bytes) -> None:
    event = parsed(data, BootEvent, "an event")
    assert all(" " <= character <= "~" for character in event.detail)
    assert BootEvent.model_validate_json(event.model_dump_json()) == event


def _crash(data: bytes) -> None:
    report = parsed(data, CrashReport, "a crash report")
    assert all(character == "\n" or " " <= character <= "~" for character in report.text)
    assert CrashReport.model_validate_json(report.model_dump_json()) == report


def _console(data: bytes) -> None:
    report = parsed(data, ConsoleReport, "a console report")
    assert report.text
    assert all(character == "\n" or " " <= character <= "~" for character in report.text)
    assert ConsoleReport.model_validate_json(report.model_dump_json()) == report


def _health(data: bytes) -> None:
    report = parsed(data, HealthReport, "a health report")
    assert HealthReport.model_validate_json(report.model_dump_json(by_alias=True)) == report


def _hardware(data: bytes) -> None:
    report = parsed(data, HardwareReport, "a report of hardware")
    assert HardwareReport.model_validate_json(report.model_dump_json()) == report
    assert set(report.model_dump_json()) <= set(string.printable)


def _hello(data: bytes) -> None:
    hello = messages.read(data, messages.Hello)
    if hello.hints is not None:
        messages.normalised(hello.hints)


def _attest(data: bytes) -> None:
    messages.read(data, messages.Attest)


def _public(data: bytes) -> None:
    assert len(wire.read_public(data).name) > 2


def _csr(data: bytes) -> None:
    request = pkcs10.read(data)
    assert request.node
    assert all(name.isascii() for name in request.names)


def _ek_certificate(data: bytes) -> None:
    ek = ekcert.read_ek_certificate(data)
    assert ekcert.read_ek_certificate(ek.der).ek_sha256 == ek.ek_sha256


def _event_log(data: bytes) -> None:
    events = eventlog.read_event_log(data)
    for algorithm in (0x4, 0xB, 0xC):
        eventlog.replay(events, algorithm)


def _manifest(data: bytes) -> None:
    manifest = read_manifest(data)
    assert manifest.to_bytes() == data
    list(read_blobs(manifest))


def _bundle(data: bytes) -> None:
    assert read_bundle(data).to_bytes() == data


def _registry_artifact(data: bytes) -> None:
    read_artifact(data, "registry.example.org/images:1")


def _reference(data: bytes) -> None:
    reference = read_reference(_latin(data))
    again = read_reference(str(reference))  # of a reference with a digest the tag is not said
    assert (again.place, again.name) == (reference.place, reference.name)


def _pe(data: bytes) -> None:
    extended = pe.with_sections(data, [pe.Section(".more", b"x" * 100)])
    assert len(extended) < len(data) + (1 << 20)


def _snapshot(data: bytes) -> None:
    # Memory's file system: a path is what the parser takes.
    path = Path(f"/dev/shm/fuzz-{os.getpid()}")
    path.write_bytes(data)
    try:
        read_snapshot(path)
    finally:
        path.unlink()


TARGETS: Mapping[str, Target] = {
    "head": Target(_head),
    "boot-query": Target(_boot_query),
    "query": Target(_query),
    "dhcp-offer": Target(_dhcp_offer, (NotAnOfferError,)),
    "range": Target(_range, longest=256),
    "event": Target(_event, (BadClaimError,)),
    "crash": Target(_crash, (BadClaimError,), longest=40 * 1024),
    "console": Target(_console, (BadClaimError,), longest=10 * 1024),
    "health": Target(_health, (BadClaimError,), longest=32 * 1024),
    "hardware": Target(_hardware, (BadClaimError,), longest=64 * 1024),
    "hello": Target(_hello, (BadClaimError,), longest=16 * 1024),
    "attest": Target(_attest, (BadClaimError,), longest=16 * 1024),
    "tpm-public": Target(_public, (TokenError,)),
    "tpm-quote": Target(wire.read_quote, (TokenError,)),
    "tpm-signature": Target(wire.read_signature, (TokenError,)),
    "csr": Target(_csr, (TokenError,), longest=8192),
    "ek-certificate": Target(_ek_certificate, (TokenError,)),
    "ca-certificates": Target(ekcert.read_certificates, (TokenError,), longest=16 * 1024),
    "event-log": Target(_event_log, (TokenError,), longest=16 * 1024),
    "manifest": Target(_manifest, (ImageError,), longest=16 * 1024),
    "bundle": Target(_bundle, (ImageError,), longest=16 * 1024),
    "registry-artifact": Target(_registry_artifact, (ImageError,), longest=16 * 1024),
    "reference": Target(_reference, (ImageError,), longest=512),
    "cpio": Target(lambda data: list(members(data)), (ImageError,)),
    "pe": Target(_pe, (ImageError,)),
    "elf": Target(elf.linkage, (ValueError,)),
    "elf-modinfo": Target(elf.modinfo, (ValueError,)),
    "snapshot": Target(_snapshot, (NotReadyError,), longest=16 * 1024),
    "journal-row": Target(read_record, (ValueError,), longest=32 * 1024),
}
