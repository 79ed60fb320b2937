"""What the log of a whole service must not have, whichever test it ran for."""

import re
from collections.abc import Iterable

_TRACEBACK = "Traceback (most recent call last)"


def defects(log: str, expected: Iterable[str] = ()) -> list[str]:
    """Lines with a traceback: what nobody foresaw and gave words to. `expected`: patterns of those that a test brings
    about on purpose."""
    lines = [line for line in log.splitlines() if _TRACEBACK in line]
    return [line for line in lines if not any(re.search(pattern, line) for pattern in expected)]
