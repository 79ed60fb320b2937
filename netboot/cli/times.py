"""Times for people."""

from time import localtime, strftime, time


def moment(at_ms: int | None) -> str:
    """Date and time of here; empty for never."""
    return strftime("%Y-%m-%d %H:%M:%S", localtime(at_ms / 1000)) if at_ms is not None else ""


def clock(at_ms: int) -> str:
    """The time of day of here, to the millisecond."""
    return f"{strftime('%H:%M:%S', localtime(at_ms / 1000))}.{at_ms % 1000:03d}"


def ago(at_ms: int | None) -> str:
    """`42 s`, `5 min`, `3 h`, `12 d` ago; empty for never."""
    if at_ms is None:
        return ""
    seconds = max(0, int(time() - at_ms / 1000))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def seconds(milliseconds: int | None) -> str:
    """`12.3`; empty for unknown."""
    return f"{milliseconds / 1000:.1f}" if milliseconds is not None else ""
