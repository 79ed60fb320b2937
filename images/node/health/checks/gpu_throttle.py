"""Why GPUs are slower than they could be. Source: nvidia-smi(1), "Clocks Event Reasons" (before: "Throttle")."""

from ..machine import Machine
from ..nvidia import nothing_to_ask, unread
from ..result import Check, Finding, Result, counted, judged
from ..smi import details, first

_SECTIONS = ("Clocks Event Reasons", "Clocks Throttle Reasons")
_HARD = {
    "HW Thermal Slowdown": "see gpu-temperature, the fans and the air in front of it",
    "HW Power Brake Slowdown": "see the power supplies and their cables, and bmc-log: the board asks for less",
    "HW Slowdown": "see gpu-temperature, and the power supplies",
}
_KEYS = tuple(f"{part}/{reason}" for part in (*_SECTIONS, "HW Slowdown") for reason in (*_HARD, "SW Thermal Slowdown"))


def look(machine: Machine) -> Result:
    """Brakes of the hardware fail; one of the driver's for heat warns. Power caps and idleness are in order."""
    if nothing := nothing_to_ask(machine):
        return nothing
    told = details(machine)
    findings = unread(machine, told, _KEYS)
    for at, row in enumerate(told):
        named = {name: first(row, *(f"{part}/{name}" for part in (*_SECTIONS, "HW Slowdown"))) for name in _HARD}
        active = [name for name in _HARD if named[name] == "Active"]
        if active:
            findings.append(Finding("fail", f"GPU {at} is slowed down: {active[0]}", _HARD[active[0]]))
        elif first(row, *(f"{part}/SW Thermal Slowdown" for part in _SECTIONS)) == "Active":
            text = f"GPU {at} is slowed down: SW Thermal Slowdown"
            findings.append(Finding("warn", text, "see gpu-temperature, the fans and the air in front of it"))
        elif not any(named.values()):
            findings.append(Finding("unknown", f"GPU {at} does not say why it is slowed down", "see `nvidia-smi -q`"))
    return judged(findings, Result("pass", f"{counted(len(told), 'GPU')} not slowed down by heat or power"))


CHECK = Check("gpu-throttle", "major", 60, look)
