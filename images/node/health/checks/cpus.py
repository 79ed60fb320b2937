"""Processors in use, and of which architecture. Sources: Linux Documentation/ABI/testing/sysfs-devices-system-cpu
(`online`, `present`), Documentation/admin-guide/sysctl/kernel.rst (`arch`, from Linux 6.1 on)."""

from ..machine import Machine
from ..ranges import in_list
from ..result import Check, Result

_HOME = "sys/devices/system/cpu"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def look(machine: Machine) -> Result:
    """Their number, as the scheduler has them (threads)."""
    lists = {name: in_list(machine.text(f"{_HOME}/{name}") or "") for name in ("online", "present")}
    online, present = (None if numbers is None else len(numbers) for numbers in lists.values())
    if online is None:
        return Result("unknown", f"/{_HOME}/online cannot be read")
    said = machine.text("proc/sys/kernel/arch") or ""
    architecture, of_class = _ARCHITECTURES.get(said, said), machine.expected.hardware.architecture
    facts = {"online": online, "present": present, "architecture": architecture}
    if architecture and of_class and architecture != of_class:
        return Result("fail", f"the class is {of_class}, the machine {architecture}", "correct its `class`", facts)
    expected = machine.expected.cpus
    if expected is None or online == expected:
        return Result("pass", f"{online} CPUs are online", facts=facts)
    if online > expected:
        return Result("warn", f"{expected} CPUs expected, {online} are online", "correct `health.cpus`", facts)
    remedy = "look at the firmware's set-up (SMT, cores), at `maxcpus` and `nosmt`, and for a processor that is gone"
    return Result("fail", f"{expected} CPUs expected, {online} are online", remedy, facts)


CHECK = Check("cpus", "major", 30, look)
