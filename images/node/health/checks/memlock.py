"""How much memory containers may lock: they have containerd's limit. Sources: NVIDIA NCCL's documentation,
"Troubleshooting" (RDMA registers memory; with too small a limit it fails); proc_pid_limits(5)."""

import re

from ..machine import Machine
from ..rdma import HOME
from ..result import Check, Result

_LIMIT = re.compile(r"^Max locked memory +(\S+)", re.MULTILINE)


def look(machine: Machine) -> Result:
    """The soft limit of containerd's process, where there are RDMA cards."""
    if not machine.names(HOME):
        return Result("absent", "no RDMA card")
    # the oldest: one of a Pod may have the same name
    processes = sorted((name for name in machine.names("proc") if name.isdigit()), key=int)
    process = next((name for name in processes if machine.text(f"proc/{name}/comm") == "containerd"), None)
    if process is None:
        return Result("absent", "containerd does not run here")
    limit = _LIMIT.search(machine.text(f"proc/{process}/limits") or "")
    if limit is None:
        return Result("unknown", f"/proc/{process}/limits cannot be read")
    if limit[1] == "unlimited":
        return Result("pass", "containers may lock all memory")
    summary = f"containers may lock {limit[1]} bytes of memory: RDMA in them fails or falls back to TCP"
    return Result(
        "fail", summary, "LimitMEMLOCK=infinity for containerd.service: build the image with the feature rdma"
    )


CHECK = Check("memlock", "major", 30, look)
