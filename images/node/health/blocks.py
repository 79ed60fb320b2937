"""Disks that are built in. Source: Linux Documentation/ABI/stable/sysfs-block."""

from dataclasses import dataclass

from .machine import Machine

_HOME = "sys/block"
_SECTOR = 512
"""Bytes, whatever the disk's own sectors are."""


@dataclass(frozen=True, slots=True)
class Disk:
    """One, as `/dev/<name>`. `model`: "" where it tells none."""

    name: str
    size_bytes: int
    model: str


def disks(machine: Machine) -> list[Disk]:
    """All with a device below them that cannot be taken out: neither loops and RAID, nor the BMC's virtual ones."""
    found = []
    for name in machine.names(_HOME):
        at = f"{_HOME}/{name}"
        sectors = machine.whole(f"{at}/size")
        if not sectors or not machine.names(f"{at}/device"):
            continue
        if machine.whole(f"{at}/removable") == 1 or machine.whole(f"{at}/hidden") == 1:
            continue
        found.append(Disk(name, sectors * _SECTOR, machine.text(f"{at}/device/model") or ""))
    return found
