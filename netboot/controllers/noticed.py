"""What the lifecycle keeps of machines, handed on to whoever writes down when it changed."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from netboot.lifecycle.conditions import Judged, JudgedMachines
from netboot.lifecycle.ports import Clock


class Noticed(JudgedMachines):
    """What was found of machines, as `kept` keeps it; what changed is handed on besides, until it is taken."""

    def __init__(self, kept: JudgedMachines, clock: Clock) -> None:
        self._kept, self._clock = kept, clock
        self._changed: dict[str, tuple[Judged, int]] = {}
        self._gone: set[str] = set()

    def judged(self, names: Sequence[str]) -> dict[str, Judged]:
        return self._kept.judged(names)

    def names(self) -> set[str]:
        return self._kept.names()

    def seen_time(self) -> dict[str, int]:
        return self._kept.seen_time()

    def keep(self, judged: Sequence[Judged], forget: Collection[str], seen_time: Mapping[str, int]) -> None:
        self._kept.keep(judged, forget, seen_time)
        for name in forget:
            self._changed.pop(name, None)
        self.put(((each, self._clock.now_ms()) for each in judged), forget)

    def put(self, judged: Iterable[tuple[Judged, int]], gone: Iterable[str] = ()) -> None:
        """Hand these on (again)."""
        self._gone.update(gone)
        self._changed |= {each.machine: (each, at_ms) for each, at_ms in judged}

    def take(self, most: int) -> tuple[list[tuple[Judged, int]], set[str]]:
        """What changed since this was asked last, and when that was found; and who is judged no more: these first, for
        they may have been judged again since."""
        gone = set(islice(self._gone, most))
        self._gone -= gone
        names = [] if self._gone else list(islice(self._changed, most))
        return [self._changed.pop(name) for name in names], gone
