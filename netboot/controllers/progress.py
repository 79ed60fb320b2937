"""How far the projection is, and what it met."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from netboot.status.controllers import ProjectionStatus


@dataclass(slots=True)
class Followed:
    """One journal as it was seen last."""

    path: Path
    seen: object = None
    looked: float = float("-inf")
    written: int = -1
    written_at: float = float("-inf")
    taken_up_to: int = 0
    lag: int | None = None
    """None: not read yet, since the start."""
    rests_until: float = float("-inf")
    problem: str | None = None


@dataclass(slots=True)
class Progress:
    """For `/readyz` and metrics: records taken since the start, rows set aside by origin, lag, trouble and times that
    it was replaced by an older copy of itself by journal."""

    taken: int = 0
    set_aside: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    lag: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    joins_read_up_ms: int = 0

    def note(
        self, journals: Mapping[str, Followed], owned: Collection[str] = (), read_up_ms: int | None = None
    ) -> None:
        """Where each journal is, by name; of one that has not been read yet nothing is known, which is a problem, and
        so is one of `owned` that is not there. `read_up_ms`: before that moment of `netboot.status.up_ms` everything
        had been written that was found since; None: not all journals have been looked at since."""
        self.lag = {name: journal.lag for name, journal in journals.items() if journal.lag is not None}
        self.problems = {
            name: journal.problem or f"the journal {name} has not been read yet"
            for name, journal in journals.items()
            if journal.problem or journal.lag is None
        } | {
            name: f"the journal {name} is not there: its process has not made it, or its folder is gone"
            for name in sorted(set(owned) - journals.keys())
        }
        behind = self.problems.keys() | {name for name, lag in self.lag.items() if lag}
        if read_up_ms is not None and not any(name.startswith("join-") for name in behind):
            self.joins_read_up_ms = read_up_ms

    def caught_up(self) -> bool:
        """Whether every journal has been read to its end, so that what is not in the state has not been heard."""
        return not self.problems and not any(self.lag.values())

    def status(self, now_ms: int) -> ProjectionStatus:
        """As it is the management server reads it."""
        return ProjectionStatus(
            at_ms=now_ms,
            taken=self.taken,
            set_aside=dict(self.set_aside),
            replaced=dict(self.replaced),
            lag_records=self.lag,
            problems=self.problems,
            joins_read_up_ms=self.joins_read_up_ms,
        )
