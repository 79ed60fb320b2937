"""What the lifecycle's loop found of a cluster's machines, read again when its file changes."""

import time
from collections.abc import Callable, Collection, Mapping

from netboot.lifecycle.conditions import Conditions, MachineCondition
from netboot.lifecycle.errors import CannotTellError
from netboot.stores.commits import Changed

LOOK_SECONDS = 5.0
"""How often the file is looked at; it changes with every machine's conditions."""
Found = Mapping[str, tuple[MachineCondition, ...]]
"""Machine → its conditions."""


class JudgedNow:
    """`file`: the one that `conditions` reads; `machines()`: names of those that are asked for. One thread's."""

    def __init__(
        self,
        file: Changed,
        conditions: Conditions,
        machines: Callable[[], Collection[str]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file, self._conditions, self._machines, self._monotonic = file, conditions, machines, monotonic
        self._looked = float("-inf")
        self._found: Found | None = None

    def found(self) -> Found | None:
        """The very same object while nothing changed; a machine that is not in it is not judged yet. None: it cannot be
        told yet. Where the file cannot be read, what it said before counts."""
        if self._monotonic() - self._looked < LOOK_SECONDS:
            return self._found
        self._looked = self._monotonic()
        if self._file.changed():
            try:
                self._found = self._conditions.conditions(list(self._machines()))
            except CannotTellError:
                return self._found
            self._file.taken()
        return self._found
