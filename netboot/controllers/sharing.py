"""What other replicas told of boots, as objects of machines say it: it is written down here once, and the projection
takes it over as it does all other facts."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import AnyRecord, SharedRecord
from netboot.lifecycle.object_boots import BootTold, boot_told
from netboot.lifecycle.object_shared import lacks, learnt
from netboot.lifecycle.objects import MachineObject
from netboot.lifecycle.ports import Clock, States

AGAIN_SECONDS = 60.0
"""Until what was written down and is not in the state is written down again: it was set aside, or lost."""


class Appends(Protocol):
    """A journal: `netboot.stores.facts.Facts`."""

    def append(self, *records: AnyRecord) -> None:
        """Write records down, durably. Raises JournalUnavailableError."""
        ...


class Sharing:
    """For one thread. `problem`: why what others told is not written down; empty: it is."""

    def __init__(
        self, states: States, journal: Appends, clock: Clock, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._states, self._journal, self._clock, self._monotonic = states, journal, clock, monotonic
        self._written = dict[str, tuple[SharedRecord, float]]()
        """Boot → what was written down of it last, and when."""
        self.problem = ""

    def look(self, objects: Iterable[MachineObject]) -> Mapping[str, tuple[BootTold, ...]]:
        """Write down what these say and is not known here. By name what is known here of the boots that each says.

        Raises:
            StateUnavailableError: what is known cannot be told.
        """
        now = self._monotonic()
        self._written = {boot: each for boot, each in self._written.items() if now - each[1] < AGAIN_SECONDS}
        new, known = list[SharedRecord](), dict[str, tuple[BootTold, ...]]()
        for machine in objects:
            records = learnt(machine.name, machine.status, self._clock.now_ms())
            numbers = self._states.numbers([each.boot for each in records])
            for record in records:
                trace, (since, arrived) = self._states.boot(record.boot), numbers.get(record.boot, (0, 0))
                if lacks(record, trace, since, arrived) and not self._is_written(record):
                    new.append(record)
                told = boot_told(trace, since) if trace is not None and trace.machine == machine.name else None
                known[machine.name] = (*known.get(machine.name, ()), *([told] if told is not None else []))
        self._write(new, now)
        return known

    def _is_written(self, record: SharedRecord) -> bool:
        before, _ = self._written.get(record.boot, (None, 0.0))
        return before is not None and before.model_copy(update={"at_ms": record.at_ms}) == record

    def _write(self, records: list[SharedRecord], now: float) -> None:
        self.problem = ""
        try:
            if records:
                self._journal.append(*records)
        except JournalUnavailableError as error:  # what is known here is told all the same
            self.problem = f"what other replicas told of boots cannot be written down: {error}"
        else:
            self._written |= {each.boot: (each, now) for each in records}
