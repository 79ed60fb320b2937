"""NVMe disks. Source: Linux drivers/nvme/host/sysfs.c (`state`, `transport`, `model`, `firmware_rev`)."""

from ..machine import Machine
from ..result import Check, Result, counted, listed

_HOME = "sys/class/nvme"


def look(machine: Machine) -> Result:
    """Those on PCIe: how many, and whether each is live."""
    names = [disk for disk in machine.names(_HOME) if machine.text(f"{_HOME}/{disk}/transport") in ("pcie", None)]
    states = {disk: machine.text(f"{_HOME}/{disk}/state") or "unreadable" for disk in names}
    models = sorted({machine.text(f"{_HOME}/{disk}/model") or "unreadable" for disk in names})
    facts = {"disks": len(names), "models": models, "states": [f"{disk} {state}" for disk, state in states.items()]}
    expected = machine.expected.nvme
    dead = [f"{disk} is {state}" for disk, state in states.items() if state != "live"]
    if dead:
        return Result("fail", f"NVMe: {listed(dead)}", "see the kernel log for nvme; reset it or replace it", facts)
    if expected is not None and len(names) < expected:
        remedy = (
            "see the BMC's and the kernel's log for the slot that is empty or does not train; is the module loaded?"
        )
        return Result("fail", f"{counted(expected, 'NVMe disk')} expected, {len(names) or 'none'} found", remedy, facts)
    if expected is not None and len(names) > expected:
        return Result("warn", f"{expected} NVMe disks expected, {len(names)} found", "correct `health.nvme`", facts)
    if not names:
        return Result("absent", "no NVMe disk, and none is expected", facts=facts)
    return Result("pass", f"{counted(len(names), 'NVMe disk')}, live", facts=facts)


CHECK = Check("nvme", "major", 30, look)
