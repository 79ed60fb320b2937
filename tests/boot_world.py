"""What is written down of boots, in a service in which time passes when it is told so."""

from pathlib import Path
from typing import Any

from images.artifact.signing import SigningKey
from netboot.controllers.boot_records import BootRecords
from netboot.controllers.decisions import Snapshots
from netboot.controllers.noticed import Noticed
from netboot.controllers.proofs import Proofs, Prover
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.snapshot import Snapshot
from netboot.lifecycle.state import Batch
from netboot.machines.classes import Class
from netboot.machines.values import Machine, Profile
from netboot.stores.history import SqliteHistory
from netboot.stores.history_writer import HistoryFile
from tests.conditions import MemoryJudged
from tests.records import START, boot_id, event, script
from tests.sockets.boot_server import MAC1, MAC2
from tests.sockets.boot_server import snapshot as served_snapshot
from tests.states import MemoryStates

MINUTE = 60.0


class World:
    """`kept`: what the lifecycle keeps; `watched`: what it finds was so a moment ago."""

    def __init__(self, root: Path) -> None:
        self.states, self.root = MemoryStates(), root
        self.kept = MemoryJudged()
        self.watched = True
        self.shown = SqliteHistory(root / "history.db")
        self.caught_up = True
        self.now = START
        self.seconds = 0.0
        self.snapshot = snapshot()
        self.key: SigningKey | None = SigningKey.generate()
        self.key_problem = ""
        self.taken = 0
        self.start()

    def start(self) -> None:
        """Also again: what was only in memory is gone."""
        self.noticed = Noticed(self.kept, self)
        self.history = HistoryFile(self.root / "history.db")
        self.records = BootRecords(
            self.states,
            self.noticed,
            self.history,
            Snapshots(lambda: self.snapshot),
            Proofs(Prover("test", self.sign, self.states.health, self), self.history),
            lambda: self.caught_up,
            self,
            lambda: self.seconds,
        )

    def sign(self) -> SigningKey | None:
        if self.key_problem:
            raise StateUnavailableError(self.key_problem)
        return self.key

    def now_ms(self) -> int:
        return self.now

    def batch(self, *records: Any) -> Batch:
        self.taken += len(records)
        return Batch("boot-0.db", 1, self.taken, list(records))

    def take(self, *records: Any) -> None:
        self.states.take(self.batch(*records))
        self.records.told({record.machine for record in records})

    def restart(self) -> None:
        self.history.close()
        self.start()

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds
        self.now += int(seconds * 1000)

    def look(self) -> None:
        """Once."""
        self.records.step(watched=self.watched)

    def step(self, seconds: float = 0.0) -> None:
        """Twice, a minute apart by the monotonic clock alone: what is new has settled."""
        self.pass_time(seconds)
        for _ in range(2):
            self.look()
            assert self.records.problem == ""
            self.seconds += MINUTE

    def judge(self, reason: Reason, number: int, machine: str = "gpu-001") -> None:
        condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, "said", self.now)
        boot = boot_id(machine, number)
        self.noticed.keep([Judged(machine=machine, conditions=(condition,), timers={}, boot=boot)], (), {})

    def counted(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Target and class → boots, milliseconds, and of these unaccounted for."""
        return {
            (each.target, each.hardware): (sum(each.counts), each.ms, each.unaccounted_ms)
            for each in self.shown.durations()
            if each.phase is None
        }

    def phases(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Phase and class → boots, milliseconds."""
        counted = [each for each in self.shown.durations() if each.phase is not None]
        return {(each.phase or "", each.hardware): (sum(each.counts), each.ms) for each in counted}


def snapshot(*arguments: str) -> Snapshot:
    """What is in force: gpu-001 has a class, gpu-002 none."""
    machines = tuple(
        Machine.model_validate({"name": name, "match": {"macs": [mac]}, "profile": "compute", "class": hardware})
        for name, mac, hardware in (("gpu-001", MAC1, "hgx"), ("gpu-002", MAC2, None))
    )
    profile = Profile(name="compute", channel="stable", kernel_arguments=arguments)
    served = served_snapshot(80)
    declared = {"machines": machines, "profiles": (profile,), "classes": (Class(name="hgx"),)}
    return served.model_copy(update={"inventory": served.inventory.model_copy(update=declared)})


def ready(number: int = 0, machine: str = "gpu-001") -> list[Any]:
    """A boot that is Ready 20 s after its script, and of which nothing is known between its initrd and that."""
    return [
        script(machine, number),
        event(machine, number, Phase.INITRD_STARTED, 4_000),
        event(machine, number, Phase.ATTESTED, 15_000, "by tpm, PCR policy: none"),
        event(machine, number, Phase.READY, 20_000),
    ]
