"""Durations as operators write and read them: `90s`, `15m`, `2h`."""

_UNITS = {"s": 1, "m": 60, "h": 3600}


def duration(text: str) -> int:
    """`90s`, `30m`, `2h` in seconds.

    Raises:
        ValueError: not of that form.
    """
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdigit() and len(number) < 7):
        raise ValueError("a whole number and s, m or h, like 90s, 30m or 2h")
    return int(number) * _UNITS[unit]


def in_words(seconds: int) -> str:
    """The same backwards, in the largest unit of which it is a whole number."""
    unit = next(unit for unit in ("h", "m", "s") if seconds % _UNITS[unit] == 0)
    return f"{seconds // _UNITS[unit]}{unit}"
