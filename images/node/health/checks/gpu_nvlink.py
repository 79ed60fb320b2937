"""NVLinks of each GPU. Source: `nvidia-smi nvlink --status` (its manual page): a rate, or <inactive>."""

from ..machine import Machine
from ..nvidia import links, nothing_to_ask, refusal
from ..pci import gpus
from ..result import Check, Result, counted, listed

_RESET = "see gpu-fabric and gpu-xid (74); reset the GPUs; then the baseboard"
_MISSING = "see gpu-uuid and gpu-recovery: who does not answer may have lost its links"


def look(machine: Machine) -> Result:
    """How many are active on each GPU."""
    if nothing := nothing_to_ask(machine):
        return nothing
    output = machine.run("nvidia-smi", "nvlink", "--status")
    if output.status != 0:
        raise refusal(output)
    by_gpu = links(output.text)
    active = {at: sum(of_gpu.values()) for at, of_gpu in by_gpu.items()}
    facts = {"active": list(active.values()), "links": [len(of_gpu) for of_gpu in by_gpu.values()]}
    on_bus = len(gpus(machine))
    missing = f"NVLinks of {len(by_gpu)} of {counted(on_bus, 'GPU')} are told" if len(by_gpu) < on_bus else ""
    expected = machine.expected.nvlinks
    if expected is None:
        if not any(active.values()):
            return Result("absent", "no NVLink is active, and none is expected", facts=facts)
        if missing:
            return Result("fail", missing, _MISSING, facts)
        uneven = [f"GPU {at}: {count}" for at, count in active.items() if count < max(active.values())]
        if uneven:
            summary = f"{max(active.values())} NVLinks are active on the others, {listed(uneven)}"
            return Result("warn", summary, "say how many there should be: `health.nvlinks`", facts)
        return Result("pass", f"{max(active.values())} NVLinks are active on each GPU", facts=facts)
    if expected and active and missing:
        return Result("fail", missing, _MISSING, facts)
    short = [f"{count} on GPU {at}{_inactive(by_gpu[at])}" for at, count in active.items() if count < expected]
    if short or (expected and not active):
        here = listed(short) if active else "none"
        return Result("fail", f"{expected} active NVLinks expected on each GPU, {here}", _RESET, facts)
    return Result("pass", f"{expected} NVLinks are active on each GPU", facts=facts)


def _inactive(of_gpu: dict[int, bool]) -> str:
    """Which of its links are not active, for the message; "" where it names none."""
    which = [str(link) for link, active in of_gpu.items() if not active]
    return f" (not {listed(which, 4)})" if which else ""


CHECK = Check("gpu-nvlink", "critical", 60, look)
