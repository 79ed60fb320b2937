"""A whole fleet at the ports of the controller that drives rollouts: what was found of machines, the snapshot, clocks;
and a node collector that carries out what is ordered of them, in the real file."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from images.artifact.manifest import Artifact
from netboot.controllers.drains import finish, settled
from netboot.controllers.renewals import OrderedRenewals
from netboot.controllers.rollouts import RolloutController
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.control_planes import ControlNode, names_of
from netboot.lifecycle.drains import Drain, DrainsStatus, State
from netboot.lifecycle.errors import CannotTellError, StateUnavailableError
from netboot.lifecycle.phases import Phase, Source
from netboot.lifecycle.published import View
from netboot.lifecycle.reached import Reached
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import Rollout
from netboot.lifecycle.rollout_facts import facts_of
from netboot.lifecycle.rollout_orders import Wish, begin
from netboot.lifecycle.rollout_store import Note
from netboot.lifecycle.snapshot import Assignment, ImageFacts, Snapshot
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.trace import Trace
from netboot.machines.maintenance import Freeze, Signal
from netboot.machines.strategy import Strategy
from netboot.machines.values import Channel, Inventory, Machine, Profile, Rack
from netboot.status.controllers import LifecycleStatus
from netboot.stores import intents
from netboot.stores.drains import SqliteDrains
from netboot.stores.rollouts import SqliteRollouts, make
from tests.rollouts import NEW, OLD

TICK = 10
"""Seconds between two looks; a look every second, as the service has it, sees the same a little earlier."""


def facts(digest: str) -> ImageFacts:
    blob = Artifact(sha256="e" * 64, size=1)
    return ImageFacts(digest=digest, name="next", architecture="amd64", epoch=1, kernel=blob, initrd=blob, ram_mib=512)


class World:
    """`count` machines in racks of `per_rack`. `good(machine, image)`: whether it comes up with that image. A reboot
    takes `minutes`, a drain one."""

    def __init__(
        self, folder: Path, count: int, per_rack: int, good: Callable[[str, str], bool], minutes: int, tick: int = TICK
    ) -> None:
        self.tick_seconds, self.looked = tick, 0.0
        self.names = [f"m{number:04}" for number in range(count)]
        self.good, self.seconds = good, minutes * 60
        self.up = dict.fromkeys(self.names, True)
        self.image = dict.fromkeys(self.names, OLD)
        self.boot = dict.fromkeys(self.names, 1)
        self.intents = intents.SqliteIntents(folder / "intents.db")
        self.neighbours = set[str]()
        """Machines of other channels that are out of service."""
        self.found: dict[tuple[str, bool, int, bool], Judged] = {}
        self.back: dict[str, int] = {}
        """Machines that are rebooting: when they are through."""
        self.channel, self.pointed = OLD, 0
        self.now, self.most_out, self.most_of_rack = 0, 0, 0
        self.harmed: set[str] = set()
        self.named: Sequence[str] = ()
        """Machines of a control plane that are to go too."""
        self.shown: dict[str, ControlNode] | None = None
        """Nodes of the control plane; those of our machines are Ready while they are up. None: nobody says."""
        self.freeze: Freeze | None = None
        self.freezes_lost = False
        self.signal: Signal | None = None
        self.unusable, self.cause = dict[str, str](), ""
        self.seeing, self.draining = True, frozenset[str]()
        self.unseen: tuple[str, ...] = ()
        """Places that cannot be looked at."""
        self.unknown = set[str]()
        """Machines of whose boots nothing is known."""
        self.drained = DrainsStatus(at_ms=1)
        self.drains, self.orders = SqliteDrains(folder / "intents.db"), intents.make(folder / "intents.db")
        self.store = SqliteRollouts(folder / "rollouts.db")
        self.file = make(folder / "rollouts.db")
        self.inventory = Inventory(
            machines=tuple(
                Machine.model_validate(
                    {"name": name, "match": {"serial": name}, "profile": "p", "rack": f"r{number // per_rack}"}
                )
                for number, name in enumerate(self.names)
            ),
            profiles=(Profile(name="p", channel="stable"),),
            channels=(Channel(name="stable"),),
            racks=tuple(Rack(name=f"r{number}") for number in range(count // per_rack + 1)),
        )
        self.rack = {machine.name: machine.rack for machine in self.inventory.machines}
        self.snapshot = self._publish()
        self.controller = self.again()

    def again(self) -> RolloutController:
        """The program is started anew."""
        self.controller = RolloutController(
            self.store,
            self.judged,
            lambda: self.snapshot,
            self.lifecycle,
            lambda _channel: self.channel,
            self.complete,
            self,
            self,
            self,
            lambda: self.now,
            OrderedRenewals(
                self.drains,
                self.intents,
                lambda: [self.drained],
                self.known,
                lambda _machine: True,
                self,
            ),
            lambda: {name for name in self.names if not self.up[name]} | self.neighbours,
            self.unusable.get,
            lambda: self.cause,
            self,
            self.numbers,
        )
        return self.controller

    # -- the ports

    def judged(self, names: Sequence[str] | None = None) -> Mapping[str, Judged]:
        return {name: self._judged(name) for name in (self.names if names is None else names)}

    def _judged(self, name: str) -> Judged:
        key = name, self.up[name], self.boot[name], name in self.draining
        if key not in self.found:
            self.found[key] = self._find(name)
        return self.found[key]

    def _find(self, name: str) -> Judged:
        reason = Reason.IN_SERVICE if self.up[name] else Reason.NODE_NOT_READY
        reason = Reason.DRAINING if name in self.draining else reason
        condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, "", 1)
        return Judged(machine=name, conditions=(condition,), timers={}, boot=self.boot_of(name), image=self.image[name])

    def numbers(self, boots: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        """Each boot is known, and later than those that the machine had before it."""
        return {boot: (int(boot.rpartition(" ")[2]), 0) for boot in boots}

    def boot_of(self, name: str) -> str:
        return f"{name} {self.boot[name]}"

    def known(self, names: Sequence[str]) -> Mapping[str, MachineState]:
        reached = Reached.model_construct(phase=Phase.NODE_REGISTERED, source=Source.OBSERVED, at_ms=1)
        traces = {
            name: Trace.model_construct(boot=self.boot_of(name), machine=name, reached=(reached,))
            for name in names
            if name not in self.unknown
        }
        return {name: MachineState.model_construct(machine=name, current=trace) for name, trace in traces.items()}

    def lifecycle(self) -> LifecycleStatus:
        unseen = self.unseen if self.seeing else ("reports",)
        return LifecycleStatus(at_ms=1, up_ms=self.now, conditions=(), overdue={}, waiting=0, unseen=unseen)

    def standing(self, now_ms: int) -> Freeze | None:
        if self.freezes_lost:
            raise StateUnavailableError("intents.db is torn")
        return self.freeze if self.freeze is not None and self.freeze.stands(now_ms) else None

    def said(self) -> Signal | None:
        return self.signal

    def seen(self, cluster: str) -> Mapping[str, ControlNode]:
        if self.shown is None:
            raise CannotTellError(f"nodes-{cluster} has not said for a while how it is")
        return self.shown | {name: ControlNode(ready=self.up[name]) for name in self.shown if name in self.up}

    def now_ms(self) -> int:
        return 1_700_000_000_000 + self.now

    def complete(self, rollout: Rollout) -> None:
        self.channel, self.pointed = rollout.image, self.pointed + 1

    @property
    def wanted(self) -> dict[str, Drain]:
        """What stands, by machine."""
        return {drain.machine: drain for drain in self.drains.standing()}

    # -- what happens

    def start(self, **strategy: object) -> Rollout:
        view = View.of(self.snapshot)
        wish = Wish("stable", facts(NEW), Strategy.model_validate(strategy), False, "alice", "", self.named)
        known = facts_of(self.snapshot, "stable", self.names, self.judged(), {})
        control = names_of(self.snapshot, self)
        rollout, members = begin(wish, view, self.store.assigned(), known, self.channel, 1, control)
        return self.store.start(rollout, members, Note(1, "alice", "start"))

    def tick(self) -> None:
        """Seconds pass; machines reboot as they are wanted; a look; what is assigned is published."""
        self.now += self.tick_seconds * 1000
        self.drained = DrainsStatus(
            at_ms=self.now_ms(), drains={name: self._carry_out(each) for name, each in self.wanted.items()}
        )
        for name in [name for name, at in self.back.items() if at <= self.now]:
            assigned = self.snapshot.assigned.get(name)
            self.image[name] = assigned.image if assigned is not None else self.channel
            self.boot[name] += 1
            if self.good(name, self.image[name]):
                self.up[name] = True
                del self.back[name]
            else:
                self.harmed.add(name)
                self.back[name] = self.now + self.seconds * 1000  # it tries again, by itself
        out = [name for name in self.names if not self.up[name]]
        self.most_out = max(self.most_out, len(out))
        racks = [self.rack[name] for name in out]
        self.most_of_rack = max([self.most_of_rack, *map(racks.count, set(racks))])
        began = time.process_time()
        finish(self.drains, settled([self.drained]), self.now_ms())
        self.draining = frozenset(self.wanted)
        self.controller.step()
        self.looked += time.process_time() - began
        assert self.controller.status().problem == ""
        self.snapshot = self._publish()

    def _carry_out(self, drain: Drain) -> State:
        name, state = drain.machine, "draining"
        if drain.boot != self.boot_of(name):
            state = "rebooted"
        elif name in self.back:
            state = "ordered"
        elif self.now_ms() - drain.since_ms >= 60_000:
            state, self.up[name] = "ordered", False
            self.back[name] = self.now + self.seconds * 1000
        return State.model_validate({"id": drain.id, "state": state, "words": "", "since_ms": self.now_ms()})

    def rollout(self) -> Rollout:
        return self.store.listed(1)[0].rollout

    def _publish(self) -> Snapshot:
        assigned = {
            name: Assignment(image=said.image, rollout=said.rollout) for name, said in self.store.assigned().items()
        }
        return Snapshot.model_construct(
            site="test",
            published_ms=1,
            inventory=self.inventory,
            channels={"stable": self.channel},
            unusable={},
            images={OLD: facts(OLD), NEW: facts(NEW)},
            url="http://192.0.2.1",
            origins=(),
            assigned=assigned,
            unusable_images=dict(self.unusable),
        )

    def close(self) -> None:
        self.file.close()
        self.orders.close()
