"""All CPUs at once: one that is throttled, or a socket that is, stays behind the others."""

from ..machine import Machine
from ..result import Check, Result, counted, judged
from .judging import behind, under
from .rates import rates

_REMEDY = "see cooling and power (BMC), the firmware's power profile, and the kernel log for thermal events"


def look(machine: Machine) -> Result:
    """SHA-256: their sum against the class's floor, each CPU against its siblings."""
    each = {f"CPU {cpu}": rate / 1e9 for cpu, rate in rates(machine, "cpu").items()}
    total = sum(each.values())
    findings = [*under(machine, "cpu_gbs", {"all CPUs": total}, _REMEDY), *behind("cpu_gbs", each, _REMEDY)]
    facts = {"gbs": round(total, 3), "slowest": round(min(each.values()), 4)}
    return judged(findings, Result("pass", f"{counted(len(each), 'CPU')} hash {total:.4g} GB/s", facts=facts))


CHECK = Check("active-cpu", "major", 30, look)
