"""What was done to machines and is so still, from where that is on record: enrolment says who is retired, intents who
is held, in quarantine or to be drained."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from netboot.controllers.surroundings import Acts
from netboot.lifecycle.drains import Drains
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import Intents
from netboot.lifecycle.transitions import EFFECTS, Act, Mark
from netboot.stores.commits import Changed
from netboot.stores.said_enrolments import Recorded

LOOK_SECONDS = 5.0
"""Joins write enrolment too; who is retired or held is no hurry."""
_PUT_ON: Mapping[Mark, Act] = {effect.on: act for act, effect in EFFECTS.items() if effect.on is not None}


@dataclass(slots=True)
class _Record:
    """One file, asked when it changed. `read()` may raise CannotTellError: then what was stays in force until it can be
    told; before the first answer nothing can."""

    file: Changed
    read: Callable[[], list[tuple[str, Act]]]
    found: list[tuple[str, Act]] | None = None

    def look(self, *, anew: bool) -> list[tuple[str, Act]]:
        if self.file.changed() or anew:
            try:
                self.found = self.read()
            except CannotTellError:
                if self.found is None:
                    raise
                return self.found
            self.file.taken()
        return self.found or []


class RecordedActs:
    """The very same object while nothing changed. `now_ms`: the time of day, by which intents end."""

    def __init__(
        self,
        enrolments: Recorded,
        intents: Intents,
        drains: Drains,
        now_ms: Callable[[], int],
        enrolled: Changed,
        wanted: Changed,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`enrolled`: where `enrolments` are on record; `wanted`: where `intents` and `drains` are."""
        self._now_ms, self._monotonic, self._intents = now_ms, monotonic, intents
        self._drains = drains
        self._retired = _Record(enrolled, lambda: _retired(enrolments))
        self._wanted = _Record(wanted, self._read_intents)
        self._looked = float("-inf")
        self._next_end: int | None = None
        """When the first of those that have an end ends."""
        self._acts: Acts = {}

    def acts(self) -> Acts:
        """Machine → what was done to it.

        Raises:
            CannotTellError: it could not be told since the start.
        """
        if self._monotonic() - self._looked < LOOK_SECONDS:
            return self._acts
        over = self._next_end is not None and self._now_ms() >= self._next_end
        found: dict[str, list[Act]] = {}
        for machine, act in [*self._retired.look(anew=False), *self._wanted.look(anew=over)]:
            found.setdefault(machine, []).append(act)
        self._looked = self._monotonic()
        acts = {machine: tuple(done) for machine, done in found.items()}
        if acts != self._acts:
            self._acts = acts
        return self._acts

    def _read_intents(self) -> list[tuple[str, Act]]:
        intents = self._intents.all(self._now_ms())
        draining = [(one.machine, Act.DRAIN) for one in self._drains.standing()]
        # last: where anything of it cannot be read, an end that has passed is one still
        self._next_end = min((one.until_ms for one in intents if one.until_ms is not None), default=None)
        return [*((one.machine, _PUT_ON[one.mark]) for one in intents if isinstance(one.mark, Mark)), *draining]


def _retired(enrolments: Recorded) -> list[tuple[str, Act]]:
    return [(record.machine, Act.RETIRE) for record in enrolments.records() if record.state == "retired"]
