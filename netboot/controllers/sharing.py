"""What other replicas told of boots, as objects of machines say it: it is written down here once, and the projection
takes it over as it does all other facts."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from netboot.controllers.refusals import said
from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import AnyRecord, SharedRecord
from netboot.lifecycle.object_boots import BootTold, boot_told
from netboot.lifecycle.object_shared import lacks, learnt, unbelievable
from netboot.lifecycle.objects import MachineObject
from netboot.lifecycle.ports import Clock, States

AGAIN_SECONDS = 60.0
"""Until what was written down and is not in the state is written down again: it was set aside, or lost."""


LEFT_OUT_SECONDS = 1_500.0
"""Each object is looked at in less; of one that is not any more nothing is said."""
RENAMED = (
    "if it was renamed, that is in force here soon, or is to be said by `former_names`; else somebody made this up"
)


class Appends(Protocol):
    """A journal: `netboot.stores.facts.Facts`."""

    def append(self, *records: AnyRecord) -> None:
        """Write records down, durably. Raises JournalUnavailableError."""
        ...


class Sharing:
    """For one thread; `problem` for others, too."""

    def __init__(
        self, states: States, journal: Appends, clock: Clock, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._states, self._journal, self._clock, self._monotonic = states, journal, clock, monotonic
        self._written = dict[str, tuple[SharedRecord, float]]()
        """Boot → what was written down of it last, and when."""
        self._unwritten = ""
        self._left_out = dict[str, tuple[str, float]]()
        """Name of an object → what of it is not taken over, and when that was seen last."""

    @property
    def problem(self) -> str:
        """Why what others told is not written down; empty: it is."""
        now = self._monotonic()
        told = {name: why for name, (why, at) in self._left_out.items() if now - at < LEFT_OUT_SECONDS}
        return "; ".join(filter(None, (self._unwritten, said(told, "is not believed"))))

    def look(self, objects: Iterable[MachineObject]) -> Mapping[str, tuple[BootTold, ...]]:
        """Write down what these say and is not known here. By name what is known here of the boots that each says.

        Raises:
            StateUnavailableError: what is known cannot be told.
        """
        now, now_ms = self._monotonic(), self._clock.now_ms()
        self._written = {boot: each for boot, each in self._written.items() if now - each[1] < AGAIN_SECONDS}
        new, known = list[SharedRecord](), dict[str, tuple[BootTold, ...]]()
        for machine in objects:
            records, why = learnt(machine.name, machine.status, now_ms), unbelievable(machine.status, now_ms)
            numbers = self._states.numbers([each.boot for each in records])
            for record in records:
                trace, (since, arrived) = self._states.boot(record.boot), numbers.get(record.boot, (0, 0))
                if trace is not None and trace.machine != machine.name:
                    why = f"boot {record.boot} is on record here as one of {trace.machine}: {RENAMED}"
                    continue
                if lacks(record, trace, since, arrived) and not self._is_written(record):
                    new.append(record)
                told = boot_told(trace, since) if trace is not None else None
                known[machine.name] = (*known.get(machine.name, ()), *([told] if told is not None else []))
            self._note(machine.name, why, now)
        self._write(new, now)
        return known

    def _note(self, name: str, why: str, now: float) -> None:
        left_out = {each: found for each, found in self._left_out.items() if now - found[1] < LEFT_OUT_SECONDS}
        left_out.pop(name, None)
        self._left_out = left_out | ({name: (why, now)} if why else {})

    def _is_written(self, record: SharedRecord) -> bool:
        before, _ = self._written.get(record.boot, (None, 0.0))
        return before is not None and before.model_copy(update={"at_ms": record.at_ms}) == record

    def _write(self, records: list[SharedRecord], now: float) -> None:
        self._unwritten = ""
        try:
            if records:
                self._journal.append(*records)
        except JournalUnavailableError as error:  # what is known here is told all the same
            self._unwritten = f"what other replicas told of boots cannot be written down: {error}"
        else:
            self._written |= {each.boot: (each, now) for each in records}
