"""The machine's clocks."""

import time


class SystemClock:
    """`netboot.lifecycle.ports.Clock`: the machine's own clock, UTC; it may be set back."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def up_ms() -> int:
    """Milliseconds since the machine was started: the same for every process on it, nobody sets it, and it only goes
    forward (CLOCK_BOOTTIME, clock_gettime(2)). For ages of what a process of this machine wrote."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
