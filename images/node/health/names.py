"""Names of the checks and of the tests under load, for who names them without running them: classes of the inventory.

Kept beside what they name, which imports all that checks need: a test compares them.
"""

CHECKS = (
    "expectations",
    "cpus",
    "memory",
    "memory-errors",
    "hugepages",
    "disks",
    "nvme",
    "nvme-smart",
    "clock",
    "time-service",
    "gpu-count",
    "gpu-uuid",
    "gpu-recovery",
    "gpu-ecc",
    "gpu-nvlink",
    "nvlink-errors",
    "gpu-fabric",
    "gpu-xid",
    "nvswitch-sxid",
    "gpu-throttle",
    "gpu-temperature",
    "nics",
    "pcie-width",
    "pcie-speed",
    "pcie-errors",
    "ib-ports",
    "ib-errors",
    "roce-gids",
    "ports",
    "cables",
    "nic-firmware",
    "firmware",
    "memlock",
    "bmc-log",
)
TESTS = ("memory", "cpu", "disk", "dcgm", "gpu-copy", "nccl", "nic")
"""As `netboot.active` and `active.skip` say them, without `active-`."""
ALWAYS = "expectations"
"""The check that says what was not understood, and is never skipped."""
