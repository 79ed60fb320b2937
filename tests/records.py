"""Records for tests: short to write, valid."""

from typing import Any

from netboot.lifecycle.bootid import mint
from netboot.lifecycle.events import (
    CertificateRecord,
    ConsoleRecord,
    CrashRecord,
    DiscoveryRecord,
    EventRecord,
    HardwareRecord,
    HealthRecord,
    ScriptRecord,
    WaitRecord,
)
from netboot.lifecycle.phases import Phase

KEY = b"k" * 32
START = 1_700_000_000_000
"""Milliseconds since 1970 at which tests begin."""
IMAGE = "a" * 64
"""What scripts name."""


def boot_id(machine: str, number: int, at_ms: int | None = None) -> str:
    """The `number`-th boot of a machine; higher numbers are newer."""
    at = START + number * 1_000 if at_ms is None else at_ms
    return mint(KEY, machine, IMAGE, at, number)


def script(machine: str, number: int, at_ms: int | None = None) -> ScriptRecord:
    """The script of that boot was served."""
    return ScriptRecord(
        at_ms=START + number * 1_000 if at_ms is None else at_ms,
        boot=boot_id(machine, number),
        machine=machine,
        cluster="default",
        image=IMAGE,
        profile="compute",
        channel="stable",
        peer="192.0.2.7",
    )


def event(machine: str, number: int, phase: Phase, after_ms: int = 500, detail: str = "") -> EventRecord:
    """That boot reached a phase `after_ms` after its script."""
    return EventRecord(
        at_ms=START + number * 1_000 + after_ms,
        boot=boot_id(machine, number),
        machine=machine,
        phase=phase,
        uptime_ms=after_ms,
        detail=detail,
        peer="192.0.2.7",
    )


def found_crash(machine: str, number: int, crashed_ms: int = 0, text: str = "panic\n") -> CrashRecord:
    """That boot found what a kernel left that crashed `crashed_ms` after the machine's first boot could begin."""
    return CrashRecord(
        at_ms=START + number * 1_000 + 400,
        boot=boot_id(machine, number),
        machine=machine,
        crashed_ms=START + crashed_ms,
        text=text,
        peer="192.0.2.7",
    )


def console(machine: str, number: int, after_ms: int = 700, text: str = "it waits\n") -> ConsoleRecord:
    """That boot sent the last lines of its console `after_ms` after its script."""
    return ConsoleRecord(
        at_ms=START + number * 1_000 + after_ms,
        boot=boot_id(machine, number),
        machine=machine,
        uptime_ms=after_ms,
        text=text,
        peer="192.0.2.7",
    )


def certified(machine: str, number: int, sha256: str = "c" * 64, after_ms: int = 450) -> CertificateRecord:
    """A client certificate was signed for that boot."""
    at_ms = START + number * 1_000 + after_ms
    fields = {"boot": boot_id(machine, number), "machine": machine, "sha256": sha256}
    return CertificateRecord(at_ms=at_ms, until_ms=at_ms + 86_400_000, **fields)


def checked(machine: str, number: int, status: str = "pass", after_ms: int = 600, name: str = "cpus") -> HealthRecord:
    """That boot reported its health: one check."""
    result = {"name": name, "status": status, "severity": "major", "summary": f"it is {status}", "ms": 3}
    return HealthRecord.model_validate(
        {
            "at_ms": START + number * 1_000 + after_ms,
            "boot": boot_id(machine, number),
            "machine": machine,
            "peer": "192.0.2.7",
            "report": {"schema": 1, "machine": machine, "taken_ms": START, "checks": [result]},
        }
    )


def sighted(mac: str | None, at_ms: int = START, outcome: str = "unknown", peer: str = "192.0.2.9") -> DiscoveryRecord:
    """A machine asked that may not boot."""
    return DiscoveryRecord.model_validate(
        {
            "at_ms": at_ms,
            "outcome": outcome,
            "mac": mac,
            "uuid": None,
            "serial": None,
            "architecture": "amd64",
            "reason": "no machine of the inventory has it",
            "peer": peer,
        }
    )


def waits(machine: str, at_ms: int = START, reason: str = "no image", peer: str = "192.0.2.9") -> WaitRecord:
    """A machine asked for which there is no usable image."""
    return WaitRecord(at_ms=at_ms, machine=machine, reason=reason, peer=peer)


def made_of(mac: str, at_ms: int = START, memory: int = 1, **more: Any) -> HardwareRecord:
    """A machine that nobody has declared said what it is made of."""
    firmware = {"vendor": "QEMU", "product": "Standard PC", "serial": "LAB-0001", "uuid": "", "bios": "1.16.2"}
    parts: dict[str, Any] = {"cpu": {"model": "EPYC", "count": 2}, "cards": [], "disks": [], "gpus": [], "tpm": None}
    report = {"schema": 1, "mac": mac, "memory_bytes": memory, **parts, "firmware": firmware, **more}
    fields = {"at_ms": at_ms, "boot": boot_id("discovery", 1), "peer": "192.0.2.9", "report": report}
    return HardwareRecord.model_validate(fields)
