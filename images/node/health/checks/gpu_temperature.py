"""How warm GPUs and their memory are, by their own limits. Source: nvidia-smi(1), "Temperature".

`GPU T.Limit Temp` is how many degrees a GPU is below its highest working temperature; negative: beyond it. Older
drivers and GPUs have limits in degrees instead.
"""

from ..machine import Machine
from ..nvidia import nothing_to_ask, unread
from ..result import Check, Finding, Result, judged
from ..smi import details, whole

_AT = "Temperature/"
_NAMES = ("GPU Current Temp", "GPU T.Limit Temp", "GPU Slowdown T.Limit Temp", "GPU Slowdown Temp")
_MEMORY = ("Memory Current Temp", "Memory Max Operating Temp")
_AIR = "see the fans, the air in front of it, and its neighbours in the rack"


def look(machine: Machine) -> Result:
    """Of each GPU: beyond the temperature at which its hardware brakes it fails; near that it warns."""
    if nothing := nothing_to_ask(machine):
        return nothing
    told = details(machine)
    findings = unread(machine, told, [_AT + name for name in (*_NAMES, *_MEMORY)])
    celsius = []
    for at, row in enumerate(told):
        now, margin, slowdown, limit = (whole(row.get(_AT + name, "")) for name in _NAMES)
        celsius.append(now)
        if now is None and not any(finding.text.startswith(f"GPU {at} ") for finding in findings):
            findings.append(Finding("unknown", f"GPU {at} tells no temperature", "see `nvidia-smi -q -d TEMPERATURE`"))
        findings += _core(machine, at, now, margin, slowdown, limit)
        memory, most = (whole(row.get(_AT + name, "")) for name in _MEMORY)
        most = most if most is not None else int(machine.expected.threshold("gpu_memory_celsius"))
        if memory is not None and memory > most:
            findings.append(Finding("fail", f"GPU {at}'s memory has {memory} C, more than {most}", _AIR))
    warmest = max((now for now in celsius if now is not None), default=0)
    return judged(findings, Result("pass", f"the warmest GPU has {warmest} C", facts={"celsius": celsius}))


def _core(
    machine: Machine, at: int, now: int | None, margin: int | None, slowdown: int | None, limit: int | None
) -> list[Finding]:
    """Of one GPU: by its margin, else by its limit, else by the class."""
    if margin is not None:
        if margin <= (slowdown if slowdown is not None else -2):
            return [Finding("fail", f"GPU {at} has {now} C, {-margin} above its highest working temperature", _AIR)]
        near = machine.expected.threshold("gpu_margin_celsius")
        return [Finding("warn", f"GPU {at} has {now} C, {margin} from its limit", _AIR)] if margin <= near else []
    most = limit if limit is not None else int(machine.expected.threshold("gpu_celsius"))
    return (
        [Finding("fail", f"GPU {at} has {now} C, of at most {most}", _AIR)] if now is not None and now >= most else []
    )


CHECK = Check("gpu-temperature", "major", 60, look)
