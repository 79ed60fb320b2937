"""Memory that is there. Sources: Linux Documentation/ABI/testing/sysfs-devices-memory, proc_meminfo(5).

Memory blocks are the memory itself; MemTotal is what the kernel left of it (it keeps 1.6 % for its page tables alone),
so that one module of many could be gone without being noticed. Blocks are asked first.
"""

import re

from ..machine import Machine
from ..result import Check, Result

_HOME = "sys/devices/system/memory"
_GIB = 2**30
BLOCKS_SHORT, TOTAL_SHORT = 0.01, 0.03
"""What may be missing: holes of the firmware's; what the kernel keeps for itself."""
SMALLEST_SHORT = 0.5
"""GiB; on small machines these weigh more."""


def total(text: str) -> int | None:
    """Bytes of MemTotal in /proc/meminfo; None: it does not say. Never raises."""
    match = re.search(r"^MemTotal:\s+(\d{1,18}) kB$", text, re.MULTILINE | re.ASCII)
    return int(match[1]) * 1024 if match else None


def blocks(machine: Machine) -> int | None:
    """Bytes of all blocks that are online; None: this kernel does not say."""
    try:
        size = int(machine.text(f"{_HOME}/block_size_bytes") or "", 16)
    except ValueError:
        return None
    names = [name for name in machine.names(_HOME) if re.fullmatch(r"memory\d+", name)]
    online = sum(machine.text(f"{_HOME}/{name}/state") == "online" for name in names)
    return online * size or None


def look(machine: Machine) -> Result:
    """GiB of blocks that are online, else of MemTotal, against the class less what may be missing."""
    inside, left = blocks(machine), total(machine.text("proc/meminfo") or "")
    size = inside if inside is not None else left
    if size is None:
        return Result("unknown", "neither memory blocks nor /proc/meminfo can be read")
    gib = round(size / _GIB, 1)
    facts = {"gib": gib, "usable_gib": round((left or 0) / _GIB, 1), "by": "MemTotal" if inside is None else "blocks"}
    expected = machine.expected.memory_gib
    if expected is None:
        return Result("pass", f"{gib:g} GiB", facts=facts)
    short = max(expected * (TOTAL_SHORT if inside is None else BLOCKS_SHORT), SMALLEST_SHORT)
    if size / _GIB >= expected - short:
        return Result("pass", f"{gib:g} GiB, {expected:g} expected", facts=facts)
    remedy = "find the module that is gone: `dmidecode -t memory` and the BMC's log say which slot"
    return Result("fail", f"{expected:g} GiB of memory expected, {gib:g} are there", remedy, facts)


CHECK = Check("memory", "major", 30, look)
