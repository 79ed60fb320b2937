"""Machines whose gates open in spite of their checks, by an operator's word: `netboot machine accept`."""

import logging
import time
from collections.abc import Callable, Sequence

from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import Exemption, Intent, Intents
from netboot.logs import Trouble
from netboot.stores.commits import Changed

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often the file is looked at."""


class AcceptedNow:
    """`file`: the one that `intents` reads; `now_ms()`: the time of day, by which acceptances end. One thread's."""

    def __init__(
        self,
        file: Changed,
        intents: Intents,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file, self._intents, self._now_ms, self._monotonic = file, intents, now_ms, monotonic
        self._looked = float("-inf")
        self._found: Sequence[Intent] | None = None
        self._trouble = Trouble(log, "accepted", "accepted: can be told again", logging.ERROR)

    def machines(self) -> frozenset[str] | None:
        """Those that are accepted now. Where the file cannot be read, what it said before counts; None: it could not be
        told since the start."""
        if self._monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = self._monotonic()
            self._look()
        now_ms = self._now_ms()
        return None if self._found is None else frozenset(one.machine for one in self._found if one.stands(now_ms))

    def _look(self) -> None:
        if not self._file.changed():
            return
        try:
            standing = self._intents.all(self._now_ms())
        except CannotTellError as error:
            self._trouble.note(str(error))
            return
        self._found = [one for one in standing if one.mark is Exemption.ACCEPTED]
        self._file.taken()
        self._trouble.note(None)
