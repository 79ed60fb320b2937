"""Memory errors of the machine. Source: Linux Documentation/ABI/testing/sysfs-devices-edac."""

from ..kept import outgrown
from ..machine import Machine
from ..result import Check, Finding, Result, counted, judged

_HOME = "sys/devices/system/edac/mc"
_REMEDY = "change the module; the BMC's log and `ras-mc-ctl` say which slot"


def look(machine: Machine) -> Result:
    """Of each module where the kernel tells modules apart, else of each controller. What could not be corrected fails
    from the first; what was corrected counts by how much it grew."""
    controllers = [name for name in machine.names(_HOME) if name.startswith("mc") and name[2:].isdigit()]
    if not controllers:
        return Result("absent", "no memory controller tells of errors (EDAC)")
    counts: dict[tuple[str, str], int] = {}
    findings = []
    for controller in controllers:
        uncorrected = machine.whole(f"{_HOME}/{controller}/ue_count")
        if uncorrected is None:
            findings.append(Finding("unknown", f"{controller} does not tell its errors", "see the kernel log for EDAC"))
        elif uncorrected > machine.expected.threshold("memory_uncorrected"):
            text = f"{controller} counts {counted(uncorrected, 'uncorrected memory error')} in this boot"
            findings.append(Finding("fail", text, _REMEDY))
        counts |= _corrected(machine, controller)
    findings += outgrown(machine, CHECK.name, counts, _REMEDY)
    facts = {"corrected": [f"{where} {count}" for (where, _), count in counts.items() if count]}
    return judged(findings, Result("pass", f"{counted(len(counts), 'counter')} of memory errors", facts=facts))


def _corrected(machine: Machine, controller: str) -> dict[tuple[str, str], int]:
    at = f"{_HOME}/{controller}"
    modules = [name for name in machine.names(at) if name.startswith(("dimm", "rank"))]
    by_module = {
        (machine.text(f"{at}/{name}/dimm_label") or f"{controller}/{name}", "memory_corrected"): count
        for name in modules
        if (count := machine.whole(f"{at}/{name}/dimm_ce_count")) is not None
    }
    whole = machine.whole(f"{at}/ce_count")
    return by_module or ({(controller, "memory_corrected"): whole} if whole is not None else {})


CHECK = Check("memory-errors", "major", 30, look)
