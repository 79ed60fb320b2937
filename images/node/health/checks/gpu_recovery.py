"""Whether the driver asks for a reset or a restart. Source: nvidia-smi(1), "GPU Reset Status"."""

from ..machine import Machine
from ..nvidia import nothing_to_ask, unread
from ..result import Check, Finding, Result, counted, judged
from ..smi import details

_REQUIRED, _RECOMMENDED = "GPU Reset Status/Reset Required", "GPU Reset Status/Drain and Reset Recommended"
_ACTION = "/GPU Recovery Action"
_KEYS = (_REQUIRED, _RECOMMENDED, _ACTION, "GPU Reset Status/GPU Recovery Action")


def look(machine: Machine) -> Result:
    """Of each GPU."""
    if nothing := nothing_to_ask(machine):
        return nothing
    told = details(machine)
    findings = unread(machine, told, _KEYS)
    for at, row in enumerate(told):
        action = row.get(_ACTION) or row.get(_KEYS[3]) or "None"
        if row.get(_REQUIRED) == "Yes":
            findings.append(Finding("fail", f"GPU {at} must be reset", "drain the node and reset it (a restart does)"))
        elif action != "None" and not action.startswith("["):
            remedy = "drain the node and do so; if it comes again, have the GPU replaced"
            findings.append(Finding("fail", f"GPU {at} asks for {action}", remedy))
        elif row.get(_RECOMMENDED) == "Yes":
            findings.append(Finding("warn", f"GPU {at} should be drained and reset", "reset it when it is idle"))
        elif not any(key in row for key in (_REQUIRED, _ACTION, _KEYS[3])):
            text = f"GPU {at} does not say whether it must be reset"
            findings.append(Finding("unknown", text, "see `nvidia-smi -q`: this driver has other words for it"))
    return judged(findings, Result("pass", f"{counted(len(told), 'GPU')}: no reset is asked for"))


CHECK = Check("gpu-recovery", "critical", 60, look)
