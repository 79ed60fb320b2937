"""Moments and durations as commands print them, and the options that take them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from time import time
from typing import Any

import click

from images.values.durations import duration
from netboot.clock import moment_ms, rfc3339

At = int | str
"""A moment: milliseconds since 1970, or as the API has it."""


def moment(at: At | None) -> str:
    """Date and time of here, with the zone, like `2026-11-24 08:00:00Z`; empty for never."""
    return _here(at).isoformat(" ", "seconds").replace("+00:00", "Z") if at is not None else ""


def clock(at: At) -> str:
    """The time of day of here, to the millisecond, with the zone."""
    return _here(at).timetz().isoformat("milliseconds").replace("+00:00", "Z")


def _here(at: At) -> datetime:
    when = datetime.fromtimestamp(ms(at) / 1000, UTC)
    with suppress(OverflowError):  # the last hours of the year 9999
        return when.astimezone()
    return when


def ms(at: At) -> int:
    """Milliseconds since 1970."""
    return at if isinstance(at, int) else moment_ms(at)


def ago(at: At | None) -> str:
    """`42 s ago`, `5 min ago`, `3 h ago`, `12 d ago`; empty for never."""
    return f"{age(at)} ago" if at is not None else ""


def age(at: At) -> str:
    """How long ago, like `42 s`, `5 min`, `3 h` or `12 d`."""
    seconds = max(0, int(time() - ms(at) / 1000))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def seconds(milliseconds: int | None) -> str:
    """Milliseconds as seconds, like `12.3`; empty where they are unknown."""
    return f"{milliseconds / 1000:.1f}" if milliseconds is not None else ""


def state(trace: Mapping[str, Any]) -> str:
    """How far a boot of the API is; of one of which only a script was served: that it is a claim."""
    return f"{trace['state']} (claim)" if trace["claim"] else str(trace["state"])


def boot_line(trace: Mapping[str, Any]) -> str:
    """A boot of the API in one line: which, how far, how we know, when it was last heard of."""
    ready = trace["seconds_to_ready"]
    took = f", Ready {ready:.1f} s after its kernel started" if ready is not None else ""
    return f"{trace['boot']}  {state(trace)}, {trace['standing']}{took}, last heard {ago(trace['last_at'])}"


def duration_option(
    name: str, default: str | None, least: str, most: str, description: str, *, field: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """An option that takes a duration from `least` to `most`; the command gets seconds, or None without a default.
    `field`: as what, where that is not the option's name."""

    def parse(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
        if value is None:
            return None
        try:
            seconds = duration(value)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
        if not duration(least) <= seconds <= duration(most):
            raise click.BadParameter(f"give one from {least} to {most}")
        return seconds

    names = (name, field) if field is not None else (name,)
    return click.option(
        *names, default=default, show_default=True, callback=parse, metavar="DURATION", help=description
    )


def _end(_context: click.Context, _option: click.Parameter, value: str | None) -> dict[str, int | str]:
    if value is None:
        return {}
    with suppress(ValueError):
        return {"seconds": duration(value)}
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            "give a duration from now like 90m or 48h, or a moment like 2026-11-24T08:00"
        ) from None
    try:
        seconds = when.timestamp()  # without an offset it is the time of here
        there_is = when.tzinfo is not None or datetime.fromtimestamp(seconds) == when  # noqa: DTZ006 - of here
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter("give a moment of these years") from None
    if not there_is:
        raise click.BadParameter("there is no such time here, for clocks are put forward over it: give another")
    return {"until": rfc3339(round(seconds * 1000))}


SAID_BY = {"seconds": "until", "fieldSelector": "field_selector"}
"""Values of the API that an option of another name says."""
_END = "It ends by itself: after 90m or 48h, or at 2026-11-24T08:00 (the time of here, unless it has an offset)."
until_option = click.option("--until", metavar="DURATION|MOMENT", callback=_end, help=_END)
"""The command gets `seconds` from now, or `until`, as the API takes them; nothing where there is no end."""
ending_option = click.option("--until", metavar="DURATION|MOMENT", callback=_end, help=_END, required=True)
"""The same, where there has to be one."""
window_option = duration_option("--window", "30m", "1m", "24h", "How long it is open.", field="window_seconds")
