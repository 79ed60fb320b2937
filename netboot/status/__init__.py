"""What each process of the service says of itself: a file for each kind of process, as in `netboot.processes`; here is
what several have.

A process writes its status to `data/status/<process>.json` (`netboot.stores.status`). Of one that is torn, or of
another version, nothing is read: whoever asks cannot tell, and says so.
"""

import time
from pathlib import Path

from pydantic import Field

from images.values.strict import Strict

DEFECT = "a defect; see the log"
"""What somebody says of himself who failed for a reason that nobody foresaw, and tries again."""
FRESH_MS = 10_000
"""Who has said nothing for longer is taken for stuck, and what he said last for nothing."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""A start of the kernel, apart from all others of any machine; a hardened unit hides it (`ProcSubset=pid`)."""
BOOT_ID_VARIABLE = "NETBOOT_KERNEL_BOOT_ID"
"""Of the environment: the same by the service manager, as `%b` of systemd.unit(5) writes it, without dashes."""


def up_ms() -> int:
    """Milliseconds since the machine was started: the same for every process on it, nobody sets it, and it only goes
    forward (CLOCK_BOOTTIME, clock_gettime(2))."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Condition(Strict):
    """Whether one thing is in order, for people. `remedy`: what to do where it is not."""

    ok: bool
    message: str
    remedy: str = ""


class Timed(Strict):
    """`at_ms`: when it was written, milliseconds since 1970; `up_ms`: the same by `up_ms()`."""

    at_ms: int
    up_ms: int = Field(default_factory=up_ms)
