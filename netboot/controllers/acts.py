"""What was done to machines and is so still, from where that is on record: enrolment says who is retired."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from netboot.controllers.changes import Changes
from netboot.controllers.surroundings import Acts
from netboot.join.enrolment import Record
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.transitions import Act

LOOK_SECONDS = 5.0
"""Joins write the file too; who is retired is no hurry."""


class EnrolledActs:
    """The very same object while nothing changed. `records()`: of enrolment; may raise CannotTellError, which leaves in
    force what was until it can be told."""

    def __init__(
        self,
        path: Path,
        records: Callable[[], Iterable[Record]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changes = Changes(lambda: (path, path.with_name(f"{path.name}-wal")), by_content=False)
        self._records, self._monotonic = records, monotonic
        self._looked = float("-inf")
        self._acts: Acts = {}
        self._unread = False

    def acts(self) -> Acts:
        """Machine → what was done to it."""
        if self._monotonic() - self._looked < LOOK_SECONDS:
            return self._acts
        self._looked = self._monotonic()
        if self._changes.settled(now=True) or self._unread:
            self._unread = True
            try:
                acts = {record.machine: (Act.RETIRE,) for record in self._records() if record.state == "retired"}
            except CannotTellError:
                return self._acts
            self._unread = False
            if acts != self._acts:
                self._acts = acts
        return self._acts
