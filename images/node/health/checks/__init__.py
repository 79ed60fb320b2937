"""Every check, in the order in which they are shown."""

from ..result import Check
from . import (
    clock,
    cpus,
    expectations,
    gpu_count,
    gpu_ecc,
    gpu_fabric,
    gpu_nvlink,
    gpu_uuid,
    gpu_xid,
    ib_ports,
    memory,
    nic_firmware,
    nvme,
    pcie_width,
    roce_gids,
)

CHECKS: tuple[Check, ...] = (
    expectations.CHECK,
    cpus.CHECK,
    memory.CHECK,
    nvme.CHECK,
    clock.CHECK,
    gpu_count.CHECK,
    gpu_uuid.CHECK,
    gpu_ecc.CHECK,
    gpu_nvlink.CHECK,
    gpu_fabric.CHECK,
    gpu_xid.CHECK,
    pcie_width.CHECK,
    ib_ports.CHECK,
    roce_gids.CHECK,
    nic_firmware.CHECK,
)
