"""Objects whose status somebody else writes, too: who writes against whom is to be slow, and said.

Where two services write into one namespace each sees that its words are gone, and would write them again at once.
"""

import logging
from dataclasses import dataclass

from netboot.logs import Trouble

log = logging.getLogger(__name__)

MANY = 5
"""Times that what was written is gone, none long after the one before, are no accident any more."""
LASTS_SECONDS = 600.0
"""Since the last time."""
APART_SECONDS = 60.0
"""Between two writes of such an object, whatever for."""

ANOTHER = "another replica, of another version: all want the same one"
DROPPED = "the API server, whose definition of it is older: `netboot cluster crds | kubectl apply -f -`"


@dataclass(slots=True)
class _Overwritten:
    trouble: Trouble
    times: int = 0
    at: float = 0.0


class Overwritten:
    """By names of objects; for one thread at a time."""

    def __init__(self) -> None:
        self._each = dict[str, _Overwritten]()

    def found(self, name: str, writer: str, now: float) -> None:
        """What was written is another thing now. `writer`: as it calls itself; empty: nobody can tell."""
        if name not in self._each or now - self._each[name].at > LASTS_SECONDS:
            of = f"status of machine/{name}"
            trouble = Trouble(log, f"{of} is overwritten", f"{of} is overwritten no more")
            self._each[name] = _Overwritten(trouble)
        each = self._each[name]
        each.times, each.at = each.times + 1, now
        if each.times >= MANY:
            each.trouble.note(f"by {writer}" if writer else "by somebody")

    def fights(self, name: str, writer: str, now: float) -> None:
        """What is written comes to nothing for sure: that needs no counting."""
        self.found(name, writer, now)
        each = self._each[name]
        each.times = max(each.times, MANY)
        each.trouble.note(f"by {writer}")

    def after(self, name: str, written: float) -> float:
        """From when on it may be written, if it was last `written` then."""
        each = self._each.get(name)
        return written + APART_SECONDS if each is not None and each.times >= MANY else float("-inf")

    def told(self, now: float) -> dict[str, str]:
        """Those of which it is said, and by whom."""
        for name in [name for name, each in self._each.items() if now - each.at > LASTS_SECONDS]:
            self._each.pop(name).trouble.note(None)
        return {name: each.trouble.problem for name, each in self._each.items() if each.trouble.problem is not None}

    def forget(self, name: str) -> None:
        """There is no such object any more."""
        self._each.pop(name, None)
