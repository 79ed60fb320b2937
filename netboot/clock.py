"""The machine's clock."""

import time


class SystemClock:
    """`netboot.lifecycle.ports.Clock`: the machine's own clock, UTC; it may be set back."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds of a clock that only goes forward, and is the same for all processes of this machine."""
    return time.monotonic_ns() // 1_000_000
