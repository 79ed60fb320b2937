"""NVLinks of each GPU. Source: `nvidia-smi nvlink --status` (its manual page): a rate, or <inactive>."""

from ..machine import Machine
from ..nvidia import links, nothing_to_ask, refusal
from ..result import Check, Result, listed


def look(machine: Machine) -> Result:
    """How many are active on each GPU."""
    if nothing := nothing_to_ask(machine):
        return nothing
    said = machine.run("nvidia-smi", "nvlink", "--status")
    if said.status != 0:
        raise refusal(said)
    found = links(said.text)
    active = {at: sum(one.values()) for at, one in found.items()}
    facts = {"active": list(active.values()), "links": [len(one) for one in found.values()]}
    wanted = machine.expected.nvlinks
    if wanted is None:
        if not any(active.values()):
            return Result("absent", "no NVLink is active, and none is expected", facts=facts)
        uneven = [f"GPU {at}: {count}" for at, count in active.items() if count < max(active.values())]
        if uneven:
            words = f"{max(active.values())} NVLinks are active on the others, {listed(uneven)}"
            return Result("warn", words, "say how many there should be: `health.nvlinks`", facts)
        return Result("pass", f"{max(active.values())} NVLinks are active on each GPU", facts=facts)
    short = [f"{count} on GPU {at}" for at, count in active.items() if count < wanted]
    if short or (wanted and not active):
        here = listed(short) if active else "none"
        remedy = "see gpu-fabric and gpu-xid (74); reset the GPUs; then the baseboard"
        return Result("fail", f"{wanted} active NVLinks expected on each GPU, {here}", remedy, facts)
    return Result("pass", f"{wanted} NVLinks are active on each GPU", facts=facts)


CHECK = Check("gpu-nvlink", "critical", 60, look)
