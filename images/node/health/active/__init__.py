"""Tests that load a machine: once a boot, before the kubelet starts, and only where its profile asks for them.

`netboot.active=all` or `netboot.active=memory,disk` on the kernel command line. docs/health.md is their contract,
docs/decisions/085 says why then and there.
"""

from ..result import Check
from . import cpu, dcgm, disk, gpu_copy, memory, nccl, nic

TESTS: tuple[Check, ...] = (
    memory.CHECK,
    cpu.CHECK,
    disk.CHECK,
    dcgm.CHECK,
    gpu_copy.CHECK,
    nccl.CHECK,
    nic.CHECK,
)
"""One after the other, in this order."""
