"""A floor under a dead clock. TLS needs a time; what is older than the image and the site bundle cannot be now.

A time service comes first: while it holds the clock nobody else does. Without one the service's own word is taken:
unauthenticated (the Date of its plain HTTP) only where join's certificate is not valid yet, and only forward, so that a
certificate that has expired stays so; authenticated, once TLS has believed join by the clock as it was.
"""

import email.utils
import errno
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from .errors import NetworkError
from .net import Server

TOLERATED = 60.0
"""Seconds by which this machine's clock and the service's may differ."""
UNKNOWN_ERROR = 16_000_000
"""Microseconds: NTP_PHASE_LIMIT of the kernel (kernel/time/ntp.c)."""
TIMEX_BYTES = 512
"""More than `struct timex` has (adjtimex(2): modes, offset, freq, maxerror, then others)."""
SERVICES = ("run/systemd/timesync", "run/chrony")
"""Of systemd-timesyncd and chronyd, as long as they run."""


def set_time(seconds: float) -> None:
    """Set the machine's clock; needs CAP_SYS_TIME."""
    time.clock_settime(time.CLOCK_REALTIME, seconds)


def not_ours(_seconds: float) -> None:
    """For an agent whose root is not this machine's: the clock is not its to set."""
    raise PermissionError(errno.EPERM, "it is not this root's")


@dataclass(frozen=True, slots=True)
class Clock:
    """Reads and sets the machine's clock, in seconds since 1970; `say` tells of each change."""

    say: Callable[[str], object]
    floor: float
    now: Callable[[], float] = time.time
    set: Callable[[float], None] = not_ours

    def raise_to_floor(self) -> None:
        """Before TLS: a clock without a battery says 1970."""
        if self.now() < self.floor:
            self._move(self.floor, "this image was built then, so it cannot be earlier")

    def advance(self, seconds: float, whose: str) -> None:
        """Take over a time that nobody has signed: forward only."""
        if seconds > self.now() + TOLERATED:
            self._move(seconds, f"that is {whose}'s time")

    def correct(self, seconds: float, whose: str) -> None:
        """Take over the time of somebody whom TLS believes, if ours differs much; nothing below the floor."""
        if seconds >= self.floor and abs(self.now() - seconds) > TOLERATED:
            self._move(seconds, f"that is {whose}'s time")

    def _move(self, seconds: float, because: str) -> None:
        old, new = (datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d %H:%M:%S") for t in (self.now(), seconds))
        try:
            self.set(seconds)
        except OSError as error:
            self.say(f"the clock says {old}, and cannot be set: {error.strerror}")
        else:
            self.say(f"the clock said {old}, now {new}: {because}")


def disciplined() -> bool:
    """Whether a time service holds this machine's clock, whichever it is: the kernel's own word, as `NTPSynchronized`
    of timedatectl(1) has it. Its estimate of the error is at the limit until a service has said better, and again when
    the clock was set by hand, or no service has been heard of for hours."""
    import ctypes

    now = ctypes.create_string_buffer(TIMEX_BYTES)  # modes 0: asks, and sets nothing
    state = ctypes.CDLL(None).adjtimex(now)
    _modes, _offset, _frequency, error = struct.unpack_from("@Illl", now)
    return bool(state >= 0 and error < UNKNOWN_ERROR)


def nobody_s() -> bool:
    """For an agent whose root is not this machine's."""
    return False


def time_service(root: Path, disciplined: Callable[[], bool]) -> Literal["none", "running", "synchronised"]:
    """Whether a time service holds the clock; or one that we know by its files runs, and has not said the time yet."""
    if disciplined():
        return "synchronised"
    return "running" if any((root / path).exists() for path in SERVICES) else "none"


def floor(root: Path, issued: int) -> float:
    """The image's time (its build gives it to /usr) or the site bundle's, whichever is later."""
    images = (path.stat().st_mtime for path in (root / "usr", root / "usr/lib/clock-epoch") if path.exists())
    return max([float(issued), *images])


def date_of(server: Server) -> float:
    """The time by a server's Date header.

    Raises:
        NetworkError: it does not answer, or not with a date.
    """
    with server.open("HEAD", "/") as response:
        date = response.headers.get("Date", "")
    try:
        return email.utils.parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        raise NetworkError(f"{server.url} does not say what time it is") from None
