"""Processors in use. Source: Linux Documentation/ABI/testing/sysfs-devices-system-cpu (`online`, `present`)."""

from ..machine import Machine
from ..result import Check, Result

_HOME = "sys/devices/system/cpu"


def in_list(text: str) -> int | None:
    """How many a list like `0-3,8` names; None: it is no list. Never raises."""
    total = 0
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not (first.isascii() and first.isdigit() and len(first) < 8):
            return None
        if not last:
            last = first
        if not (last.isascii() and last.isdigit() and len(last) < 8) or int(last) < int(first):
            return None
        total += int(last) - int(first) + 1
    return total


def look(machine: Machine) -> Result:
    """Their number, as the scheduler has them (threads)."""
    online, present = (in_list(machine.text(f"{_HOME}/{name}") or "") for name in ("online", "present"))
    if online is None:
        return Result("unknown", f"/{_HOME}/online cannot be read")
    facts = {"online": online, "present": present}
    expected = machine.expected.cpus
    if expected is None or online == expected:
        return Result("pass", f"{online} CPUs are online", facts=facts)
    if online > expected:
        return Result("warn", f"{expected} CPUs expected, {online} are online", "correct `health.cpus`", facts)
    remedy = "look at the firmware's set-up (SMT, cores), at `maxcpus` and `nosmt`, and for a processor that is gone"
    return Result("fail", f"{expected} CPUs expected, {online} are online", remedy, facts)


CHECK = Check("cpus", "major", 30, look)
