"""The machine's clock, and moments in words: RFC 3339."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, for which there are words."""
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})\Z")


class SystemClock:
    """`netboot.lifecycle.ports.Clock`: the machine's own clock, UTC; it may be set back."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SteadyClock:
    """`netboot.lifecycle.ports.Clock`: what `now_ms` said at first, and what has gone by since: nobody sets it."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._ahead_ms = now_ms() - monotonic_ms()

    def now_ms(self) -> int:
        return self._ahead_ms + monotonic_ms()


def monotonic_ms() -> int:
    """Milliseconds of a clock that only goes forward, and is the same for all processes of this machine."""
    return time.monotonic_ns() // 1_000_000


def rfc3339(at_ms: int, timespec: str = "milliseconds") -> str:
    """Milliseconds since 1970 as `2026-11-24T08:00:00.000Z`. What no year has four digits for, as machines' clocks may
    say it, is the nearest moment that has. `timespec`: as `datetime.isoformat` has it."""
    at = _EPOCH + timedelta(milliseconds=min(max(at_ms, _FIRST_MS), _LAST_MS))
    return f"{at.replace(tzinfo=None).isoformat(timespec=timespec)}Z"


def moment_ms(text: str) -> int:
    """A moment of RFC 3339 as milliseconds since 1970, what is finer cut off.

    Raises:
        ValueError: it is none, or has no zone.
    """
    if not _MOMENT.match(text):
        raise ValueError("must be a moment with its zone, as RFC 3339 has it: 2026-11-24T08:00:00Z")
    try:
        return (datetime.fromisoformat(text) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise ValueError("is a moment of no calendar") from None


def _is_moment(text: str) -> str:
    moment_ms(text)
    return text


Moment = Annotated[str, StringConstraints(max_length=40), AfterValidator(_is_moment)]
"""As `moment_ms` takes it, in a document."""
