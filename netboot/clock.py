"""The machine's clock."""

import time


class SystemClock:
    """`netboot.lifecycle.ports.Clock` by the machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000
