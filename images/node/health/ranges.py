"""Lists of numbers as sysfs has them: `0-3,8`. Source: Linux Documentation/admin-guide/cputopology.rst."""

MOST = 2**16


def in_list(text: str) -> list[int] | None:
    """The numbers that a list names; None: it is no list, or one of more than 65,536. Never raises."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        last = last or first
        if not all(end.isascii() and end.isdigit() and len(end) < 8 for end in (first, last)):
            return None
        if not 0 <= int(last) - int(first) < MOST - len(numbers):
            return None
        numbers += range(int(first), int(last) + 1)
    return numbers
