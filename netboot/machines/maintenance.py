"""Maintenance windows, the freeze and a signal from outside: when what acts by itself may begin something. A window is
days, a start and an end by the clock of a place, as kured and Rancher's system-upgrade-controller have it
(docs/decisions/121). Pure.
"""

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated, Literal, NamedTuple, get_args
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

from images.values.strict import Fault, Strict
from images.values.types import Matching, Name
from netboot.machines.declared import Declared

Day = Literal["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
DAYS: tuple[Day, ...] = get_args(Day)
Hour = Annotated[str, Matching(r"([01]\d|2[0-3]):[0-5]\d", 'must be a time of day like "22:00", in quotes')]
_AHEAD = 15
"""Days: a window that opens once a week, and not in the hour that clocks leave out, opens within them."""
_NO_NAMES = frozenset({"localtime", "posixrules", "Factory"})
"""Files beside those of places: what they say is another thing on each host."""


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):  # ZoneInfoNotFoundError is a KeyError
        return None


def unknown_zones(items: Sequence[Declared]) -> Iterator[Fault]:
    """Time zones of windows that are no names of places here. Asked of the inventory's files alone: what is in force
    already stays so, and boots machines, on a host whose database lacks one."""
    for item in items:
        name = item.value.get("time_zone", "UTC") if item.kind == "window" else "UTC"
        if isinstance(name, str) and (name in _NO_NAMES or _zone(name) is None):
            said = "no such time zone is known here: a name of the IANA database, like Europe/Berlin or UTC"
            yield item.fault(said, "time_zone")


def _once(days: tuple[Day, ...]) -> tuple[Day, ...]:
    if len(set(days)) < len(days):
        raise ValueError("each day once")
    return days


class Window(Strict):
    """Open on these days from `start` to `end`, by the clocks of `time_zone`. One whose end is not after its start ends
    on the next day. An hour that clocks leave out is taken as the next one, of one that they repeat the first counts.
    Where the time zone is not known (any more) it is shut."""

    name: Name
    """What it is called."""
    days: Annotated[tuple[Day, ...], Field(min_length=1, max_length=7), AfterValidator(_once)] = DAYS
    """Days of the week on which it opens. Left out: every day."""
    start: Hour
    """When it opens, like `22:00`."""
    end: Hour
    """When it closes."""
    time_zone: str = "UTC"
    """A name of the IANA database, like `Europe/Berlin`."""

    def opened(self, now_ms: int) -> int | None:
        """When it closes, in ms since 1970, while it is open; else None."""
        zone = _zone(self.time_zone)
        if zone is None:
            return None
        now = datetime.fromtimestamp(now_ms / 1000, zone)
        for day in (now.date() - timedelta(days=1), now.date()):
            begins, ends = self._on(day, zone)
            if DAYS[day.weekday()] in self.days and begins <= now_ms < ends:
                return ends
        return None

    def opens(self, now_ms: int) -> int | None:
        """When it opens next, in ms since 1970, after this moment; None: that cannot be told."""
        zone = _zone(self.time_zone)
        if zone is None:
            return None
        today = datetime.fromtimestamp(now_ms / 1000, zone).date()
        days = [today + timedelta(days=ahead) for ahead in range(_AHEAD)]
        spans = (self._on(day, zone) for day in days if DAYS[day.weekday()] in self.days)
        return next(begins for begins, ends in spans if now_ms < begins < ends)

    def _on(self, day: date, zone: ZoneInfo) -> tuple[int, int]:
        """Its start and end on a day, in ms since 1970."""
        begins = datetime.combine(day, time.fromisoformat(self.start))
        ends = datetime.combine(day, time.fromisoformat(self.end))
        ends = ends if ends > begins else ends + timedelta(days=1)
        first, last = (round(each.replace(tzinfo=zone).timestamp() * 1000) for each in (begins, ends))
        return first, last


SHUT = Window(name="left-out-for-faults", start="00:00", end="00:00", time_zone="left-out")
"""In the place of windows that were left out: without any, what acts by itself would act at any time."""


class Freeze(Strict):
    """Nothing that acts by itself begins anything. `until_ms` None: until somebody ends it."""

    who: str
    reason: str
    since_ms: int
    until_ms: int | None = None

    def stands(self, now_ms: int) -> bool:
        """Whether it has not ended."""
        return self.until_ms is None or now_ms < self.until_ms


def frozen(before: Freeze | None, asked: Freeze) -> tuple[Freeze, str]:
    """What an order to freeze makes of what stands, and which word it is: put-on, extended, or "" where it is so
    already. Nobody's freeze is cut short by another."""
    if before is None or not before.stands(asked.since_ms):
        return asked, "put-on"
    if before.until_ms is None or (asked.until_ms is not None and asked.until_ms <= before.until_ms):
        return before, ""
    return before.model_copy(update={"until_ms": asked.until_ms}), "extended"


class Signal(NamedTuple):
    """What somebody outside says, or why that cannot be told, in words that stay the same while it does."""

    may: bool
    reason: str


class Permission(NamedTuple):
    """Whether what acts by itself may begin something now, why, and when that is another, in ms since 1970; None: when
    somebody says so."""

    may: bool
    reason: str
    until_ms: int | None = None


def may_act(windows: Sequence[Window], freeze: Freeze | None, signal: Signal | None, now_ms: int) -> Permission:
    """By what an operator said, then what somebody outside says (None: nobody is asked), then what the inventory
    declares. Without any window: at any time."""
    if freeze is not None and freeze.stands(now_ms):
        return Permission(may=False, reason=f"frozen by {freeze.who}: {freeze.reason}", until_ms=freeze.until_ms)
    if signal is not None and not signal.may:
        return Permission(may=False, reason=signal.reason)
    return _by_windows(windows, now_ms)


def _by_windows(windows: Sequence[Window], now_ms: int) -> Permission:
    if not windows:
        return Permission(may=True, reason="no maintenance window is declared: at any time")
    closing = [(until, window.name) for window in windows if (until := window.opened(now_ms)) is not None]
    if closing:
        until_ms, name = max(closing)
        return Permission(may=True, reason=f"maintenance window {name} is open", until_ms=until_ms)
    coming = [(opens, window.name) for window in windows if (opens := window.opens(now_ms)) is not None]
    if not coming:
        return Permission(may=False, reason=f"no maintenance window is open; {_why_none_opens(windows)}")
    opens_ms, name = min(coming)
    return Permission(may=False, reason=f"no maintenance window is open; the next one is {name}", until_ms=opens_ms)


def _why_none_opens(windows: Sequence[Window]) -> str:
    names = ", ".join(window.name for window in windows if window != SHUT)
    unknown = f"the time zone of {names} is not known here" if names else ""
    faulty = "those with faults are shut: `netboot config check`" if SHUT in windows else ""
    return "; ".join(filter(None, (unknown, faulty)))
