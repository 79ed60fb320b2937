"""The lifecycle's loop with all that it looks at in memory, for tests."""

from collections.abc import Mapping
from typing import Any

from netboot.controllers.lifecycle import LifecycleController
from netboot.controllers.sight import Sight
from netboot.controllers.surroundings import Acts
from netboot.lifecycle.known import Declared, Node, NodeWord, Places
from netboot.lifecycle.state import Batch
from netboot.machines.deadlines import in_force
from tests.conditions import MemoryJudged
from tests.records import START
from tests.states import MemoryStates

ALL = frozenset({"reports", "cluster/default"})


def declared(name: str, **changed: Any) -> Declared:
    places = Places("reports", "cluster/default", "nodes/default/hgx")
    known = Declared(name, "default", name, True, True, "stable", "a" * 64, in_force(), places)
    return known._replace(**changed)


class World:
    """What the loop sees, set by hand; `pass_seconds` lets time pass in steps of a second."""

    def __init__(self, *names: str) -> None:
        self.states, self.kept = MemoryStates(), MemoryJudged()
        self.declared: Mapping[str, Declared] | None = {name: declared(name) for name in names or ("gpu-001",)}
        self.acts: Acts = {}
        self.seeing, self.nodes = ALL, {"default": dict[str, Node]()}
        self.words: Mapping[str, Mapping[str, NodeWord]] = {}
        self.now_ms_, self.up = START, 1_000
        self.taken = 0
        self.start()

    def start(self) -> None:
        self.loop = LifecycleController(
            self.states,
            self.kept,
            lambda _: self.declared,
            lambda: self.acts,
            lambda _: Sight(self.seeing, self.nodes, self.words),
            self,
            lambda: self.up,
        )

    def now_ms(self) -> int:
        return self.now_ms_

    def take(self, *records: Any) -> None:
        self.taken += len(records)
        self.states.take(Batch("boot-0.db", 1, self.taken, list(records)))
        self.loop.told(record.machine for record in records)

    def judge(self) -> int:
        steps = 1
        while self.loop.step():
            steps += 1
        return steps

    def pass_seconds(self, seconds: int) -> None:
        for _ in range(seconds):
            self.up += 1_000
            self.now_ms_ += 1_000
            self.loop.step()

    def found(self, kind: str = "Booted", name: str = "gpu-001") -> tuple[str, str]:
        return next((each.status, each.reason.value) for each in self.kept.conditions()[name] if each.type == kind)
