"""NVLinks of each GPU. Source: `nvidia-smi nvlink --status` (its manual page): a rate, or <inactive>."""

from ..machine import Machine
from ..nvidia import links, nothing_to_ask, refusal
from ..result import Check, Result, listed


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
    expected = machine.expected.nvlinks
    if expected is None:
        if not any(active.values()):
            return Result("absent", "no NVLink is active, and none is expected", facts=facts)
        uneven = [f"GPU {at}: {count}" for at, count in active.items() if count < max(active.values())]
        if uneven:
            summary = f"{max(active.values())} NVLinks are active on the others, {listed(uneven)}"
            return Result("warn", summary, "say how many there should be: `health.nvlinks`", facts)
        return Result("pass", f"{max(active.values())} NVLinks are active on each GPU", facts=facts)
    short = [f"{count} on GPU {at}" for at, count in active.items() if count < expected]
    if short or (expected and not active):
        here = listed(short) if active else "none"
        remedy = "see gpu-fabric and gpu-xid (74); reset the GPUs; then the baseboard"
        return Result("fail", f"{expected} active NVLinks expected on each GPU, {here}", remedy, facts)
    return Result("pass", f"{expected} NVLinks are active on each GPU", facts=facts)


CHECK = Check("gpu-nvlink", "critical", 60, look)
