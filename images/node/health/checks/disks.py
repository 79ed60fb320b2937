"""Disks of the class, whatever bus they are on. Source: Linux Documentation/ABI/stable/sysfs-block (`size` in sectors
of 512 bytes, `hidden`, `removable`)."""

from ..blocks import Disk, disks
from ..hardware import Disks
from ..machine import Machine
from ..result import Check, Finding, Result, counted, judged

OFF = 0.02
"""By how much a disk may differ from the size that is printed on it: 3840 GB are 3,840,755,982,336 bytes."""
_REMEDY = "see the slot, the cable and the kernel's log; was it changed for another? Then correct `disks` of the class"


def look(machine: Machine) -> Result:
    """As many of each kind as the class says; others do not matter."""
    wanted, present = machine.expected.hardware.disks, disks(machine)
    facts = {"disks": [f"{disk.name} {disk.size_bytes // 10**9} GB {disk.model}" for disk in present]}
    if not wanted:
        return Result("absent", "the class says nothing of disks", facts=facts)
    findings = []
    for kind in wanted:
        alike = sum(_is(disk, kind) for disk in present)
        if alike < kind.count:
            size = f" of {kind.size_bytes / 10**9:g} GB" if kind.size_bytes else ""
            model = f" {kind.model}" if kind.model else ""
            text = f"{counted(kind.count, 'disk')}{model}{size} expected, {alike or 'none'} there"
            findings.append(Finding("fail", text, _REMEDY))
    return judged(
        findings, Result("pass", f"{counted(len(present), 'disk')}, those of the class among them", facts=facts)
    )


def _is(disk: Disk, kind: Disks) -> bool:
    if kind.model.lower() not in disk.model.lower():
        return False
    return kind.size_bytes is None or abs(disk.size_bytes - kind.size_bytes) <= kind.size_bytes * OFF


CHECK = Check("disks", "major", 30, look)
