"""What was found of machines, in memory: the contract suite holds it against the one on disk."""

from collections.abc import Collection, Mapping, Sequence

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.summary import MachineSummary, summary_of


class MemoryJudged:
    """Reads and writes; `refuses`: as a disk that is full."""

    def __init__(self) -> None:
        self.kept: dict[str, Judged] = {}
        self.clocks: dict[str, int] = {}
        self.refuses = False
        self.writes = 0

    def judged(self, names: Sequence[str] | None = None) -> dict[str, Judged]:
        return {name: each for name, each in self.kept.items() if names is None or name in names}

    def names(self) -> set[str]:
        return set(self.kept)

    def seen_time(self) -> dict[str, int]:
        return dict(self.clocks)

    def keep(self, judged: Sequence[Judged], forget: Collection[str], seen_time: Mapping[str, int]) -> None:
        if self.refuses:
            raise StateUnavailableError("no space left")
        self.writes += 1
        self.kept |= {each.machine: each for each in judged}
        for name in forget:
            self.kept.pop(name, None)
        self.clocks |= seen_time

    def conditions(self, names: Sequence[str] | None = None) -> dict[str, tuple[MachineCondition, ...]]:
        wanted = self.kept if names is None else self.judged(names)
        return {name: each.conditions for name, each in wanted.items()}

    def summaries(self) -> dict[str, MachineSummary]:
        return {name: summary_of(each) for name, each in self.kept.items()}
