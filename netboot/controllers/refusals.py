"""Objects of which the API server does not take what they are to say: when each is tried again, and which these are.

Each has its own pause: what is refused of one holds up no other.
"""

import logging
from dataclasses import dataclass

from images.values.backoff import Backoff
from netboot.join.errors import ConflictError, InvalidError
from netboot.logs import Trouble
from netboot.status import DEFECT

log = logging.getLogger(__name__)

AGAIN = Backoff(first=10.0, longest=300.0)
"""Half of a pause is drawn: from 5 to 10 seconds after the first refusal, from 150 to 300 in the end."""
FORESEEN = (ConflictError, InvalidError)
"""By which the API server says that it does not take one."""
UNFORESEEN = f"no answer that is understood: {DEFECT}"
MOST_TOLD = 3
"""Objects that are named at once; the log has all."""


@dataclass(slots=True)
class _Refused:
    trouble: Trouble
    tries: int = 0
    again: float = 0.0


class Refusals:
    """By names of objects; for one thread at a time."""

    def __init__(self) -> None:
        self._each = dict[str, _Refused]()

    def refused(self, name: str, error: Exception, now: float) -> None:
        """It was not taken again, by this answer. One that is gone the watch says in a moment: that is told with the
        second time in a row."""
        found = self._of(name)
        found.tries += 1
        found.again = now + (AGAIN.bound(found.tries) + AGAIN.seconds(found.tries)) / 2
        if not isinstance(error, ConflictError) or found.tries > 1:
            foreseen = isinstance(error, FORESEEN)
            found.trouble.note(str(error) if foreseen else UNFORESEEN, None if foreseen else error)

    def unanswered(self, name: str, again_at: float, pauses: Backoff) -> None:
        """Nobody can tell whether it would be taken; all wait until `again_at`, this one longer with each time."""
        found = self._of(name)
        found.tries += 1
        found.again = again_at + pauses.bound(found.tries)

    def taken(self, name: str) -> None:
        """It says what it is to say."""
        if (found := self._each.pop(name, None)) is not None:
            found.trouble.note(None)

    def forget(self, name: str) -> None:
        """There is no such object any more."""
        self._each.pop(name, None)

    def due(self, name: str) -> float:
        """From when on it may be tried."""
        found = self._each.get(name)
        return found.again if found is not None else float("-inf")

    def told(self) -> dict[str, str]:
        """Those of which it is said, and why."""
        return {name: each.trouble.problem for name, each in self._each.items() if each.trouble.problem is not None}

    def _of(self, name: str) -> _Refused:
        if name not in self._each:
            of = f"status of machine/{name}"
            self._each[name] = _Refused(Trouble(log, f"{of} is refused", f"{of} is taken"))
        return self._each[name]


def said(told: dict[str, str], what: str) -> str:
    """Of each by name, as many as are named; empty: there is none."""
    names = sorted(told)
    words = [f"status of machine/{name} {what}: {told[name]}" for name in names[:MOST_TOLD]]
    more = [f"and of {len(names) - MOST_TOLD} more"] if len(names) > MOST_TOLD else []
    return "; ".join([*words, *more])
