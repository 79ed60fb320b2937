"""Cables and transceivers that cards complain of in the kernel log.

Source: Linux drivers/net/ethernet/mellanox/mlx5/core/events.c (`Port module event`, power of the slot); mlx5_core.h,
of which errors and warnings begin with function, line and process.
"""

import re

from ..kept import heard
from ..machine import Machine
from ..pci import devices
from ..result import Check, Finding, Result, judged

_EVENT = re.compile(
    r"mlx5_core (\S{1,16}): (?:\w{1,64}:(?:\d{1,6}:)?(?:\(pid \d{1,10}\):)? )?"
    r"(Port module event(\[error\])?: module \d{1,3}, |Detected insufficient power"
    r"|PCIe slot advertised sufficient power)(.*)"
)
POWER = "power"
"""Cards say so at each boot of some machines that are in order, so it warns."""
_REMEDY = "change the cable or transceiver for one that the card's firmware supports, at both ends; see nic-firmware"


def event(line: str) -> tuple[str, str, str] | None:
    """(card, module or "power", what it says) of one line; None: it is about no cable. Never raises."""
    match = _EVENT.search(line)
    if match is None:
        return None
    if match[2].startswith("Detected"):
        return match[1], POWER, (match[2] + match[4])[:120]
    if match[2].startswith("PCIe slot"):
        return match[1], POWER, ""
    module = match[2].removesuffix(", ").rpartition(" ")[2]
    return match[1], f"module {module}", match[4][:120] if match[3] else ""


def look(machine: Machine) -> Result:
    """The latest word on each module counts; a cable that is not plugged in is no error here."""
    lines = heard(machine, CHECK.name, lambda line: " ".join(found[:2]) if (found := event(line)) else None)
    if not lines and not any(device.is_nic for device in devices(machine)):
        return Result("absent", "no card that tells of its cables")
    latest = {found[:2]: found[2] for line in lines if (found := event(line))}
    findings = [
        Finding("warn" if part == POWER else "fail", f"{card} {part}: {said}", _REMEDY)
        for (card, part), said in latest.items()
        if said
    ]
    return judged(findings, Result("pass", "no card complains of a cable"))


CHECK = Check("cables", "major", 30, look)
