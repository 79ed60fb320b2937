"""Whether a process goes on: each of its loops is heard again and again, or it is taken for frozen."""

from dataclasses import dataclass, field

from netboot.process import LOOPS, READY

_NAMES = {byte[0]: name for name, byte in LOOPS.items()}


@dataclass(frozen=True, slots=True)
class Silence:
    """How long a process may be silent, in seconds: while it starts, and each of its loops once it is ready."""

    start_seconds: float
    seconds: float


UNWATCHED = Silence(float("inf"), float("inf"))


@dataclass(slots=True)
class Pulse:
    """What was heard of a process, and when, by the monotonic clock. A loop counts from its first beat on."""

    allowed: Silence
    ready: bool = False
    heard: dict[str, float] = field(default_factory=dict)

    def start(self, now: float) -> None:
        """It was started."""
        self.ready, self.heard = False, {"start": now}

    def hear(self, data: bytes, now: float) -> None:
        """It wrote this."""
        if READY in data and not self.ready:
            self.ready = True
            self.heard = dict.fromkeys([*self.heard.keys() - {"start"}, "main loop"], now)
        self.heard |= {_NAMES[byte]: now for byte in set(data) & _NAMES.keys()}

    def excuse(self, now: float) -> None:
        """Nobody could be heard until now."""
        self.heard = dict.fromkeys(self.heard, now)

    def quietest(self, now: float) -> tuple[str, float]:
        """The loop that was heard longest ago, and how much of the silence that it may keep has passed (1: all)."""
        if not self.ready:
            return "start", (now - self.heard["start"]) / self.allowed.start_seconds
        loop = min(self.heard, key=self.heard.__getitem__)
        return loop, (now - self.heard[loop]) / self.allowed.seconds
