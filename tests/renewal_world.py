"""Rollouts that drain and reboot by themselves: what `controllers` and `nodes-<cluster>` do of it, over real files, on
a cluster in memory whose machines take orders as the shipped agent does. Either process may be killed at any step."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from images.node.orders.order import Here, judged
from netboot.controllers.drains import AndDrains
from netboot.controllers.needless import NeedlessOrders
from netboot.controllers.nodes.drainer import Drainer
from netboot.controllers.nodes.proven_boots import ProvenBoots
from netboot.join.errors import ConflictError
from netboot.join.node_drains import DRAIN, ORDER, DrainedNode, Pod
from netboot.join.ports import MARK
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.intents import PutOn, TakeOff
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout_facts import left
from netboot.lifecycle.state import Batch, MachineState
from netboot.lifecycle.transitions import Mark
from netboot.machines.values import Machine, Match
from netboot.stores.intents import SqliteIntents
from tests.drain_world import BUDGET, FOREIGN, KilledError, pod
from tests.drains import drain as order
from tests.records import boot_id, event, script
from tests.rollout_world import World
from tests.states import MemoryStates

T = TypeVar("T")
TICK = 5
"""Seconds between two looks of everybody: as long as a node collector rests."""
STARTING = 20
"""Seconds from a reboot to the next registration."""
WRITES = frozenset({"finish", "order", "change"})


class Killable:
    """A store, of which each call that writes is a step."""

    def __init__(self, store: Any, step: Callable[[Callable[[], Any]], Any]) -> None:
        self._store, self._step = store, step

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        return (lambda *given: self._step(partial(method, *given))) if name in WRITES else method


class Ledger(Killable):
    """The store of orders. `told`: hears what was reserved, also where the process ends then."""

    def __init__(
        self, store: Any, step: Callable[[Callable[[], Any]], Any], told: Callable[[list[Drain]], None]
    ) -> None:
        super().__init__(store, step)
        self._told = told

    def reserve(self, asked: Sequence[Drain], known: Collection[str]) -> list[Drain]:
        def reserve() -> list[Drain]:
            drains: list[Drain] = self._store.reserve(asked, known)
            self._told(drains)
            return drains

        return cast("list[Drain]", self._step(reserve))


class Site(World):
    """`kill`: (at which step, whether before it has its effect), counted over all; None: nobody is killed. `refuses`:
    machines whose Pod a budget keeps; `deaf`: those that take no order; `reboots`: (machine, order)."""

    def __init__(self, folder: Path, count: int, kill: tuple[int, bool] | None = None) -> None:
        self.kill, self.steps = kill, 0
        self.states, self._taken, self._version = MemoryStates(), 0, 0
        self.nodes: dict[str, DrainedNode] = {}
        self.pods_: dict[str, Pod] = {}
        self.refuses: set[str] = set()
        self.deaf: set[str] = set()
        self.retired: set[str] = set()
        self.reboots: list[tuple[str, str]] = []
        self.on_reserve: Callable[[list[Drain]], None] = lambda _drains: None
        super().__init__(folder, count, 1, lambda _machine, _image: True, 0, TICK)
        self.intents = SqliteIntents(folder / "intents.db")
        self.store = Killable(self.store, self._stepped)  # type: ignore[assignment]
        told = lambda drains: self.on_reserve(drains)  # noqa: E731
        self.drains = Ledger(self.drains, self._stepped, told)  # type: ignore[assignment]
        for name in self.names:
            self.register(name)
        self.controllers, self.drainer = self.started(), self.drainer_started()

    # -- the processes: each remembers nothing

    def started(self) -> AndDrains:
        needless = NeedlessOrders(self.intents, self.judged, dict, self.lifecycle, self, lambda: self.now)
        return AndDrains(self.again(), self.drains, lambda: [self.drained], self.gone, needless.of, self)

    def gone(self, names: Sequence[str]) -> Mapping[str, str]:
        return left(self.snapshot, {"default"}, names, self.judged(names), {"default"})

    def drainer_started(self) -> Drainer:
        return Drainer(
            connect=lambda: self,
            orders=self.drains.standing,
            machines=lambda: {name: Machine(name=name, match=Match(serial=name), profile="p") for name in self.names},
            marked=lambda: [name for name in self.names if self.value(name) is not None],
            boots=ProvenBoots(self.states),
            say=lambda said: self._stepped(partial(setattr, self, "drained", said)),
            classes=dict,
            lacks=lambda: "",
            now_ms=self.now_ms,
            monotonic=lambda: self.now / 1000,
        )

    def _stepped(self, act: Callable[[], T]) -> T:
        self.steps += 1
        if self.kill == (self.steps, True):
            raise KilledError
        answer = act()
        if self.kill == (self.steps, False):
            raise KilledError
        return answer

    # -- the cluster, as the service calls it

    def node(self, name: str) -> DrainedNode | None:
        return self.nodes.get(name)

    def pods(self, name: str) -> list[Pod]:
        return [self.pods_[name]] if name in self.pods_ else []

    def evict(self, gone: Pod) -> str:
        def evict() -> str:
            if gone.name in self.refuses:
                return BUDGET
            self.pods_.pop(gone.name, None)
            return ""

        return self._stepped(evict)

    def change(
        self, node: DrainedNode, taints: Sequence[Mapping[str, str]], annotations: Mapping[str, str | None]
    ) -> None:
        def change() -> None:
            here = self.nodes[node.name]
            if (here.uid, here.version) != (node.uid, node.version):
                raise ConflictError("changed")
            kept = {**here.annotations, **annotations}
            said = {name: text for name, text in kept.items() if text is not None}
            self.alter(node.name, taints=tuple(taints), annotations=said)

        self._stepped(change)

    def alter(self, name: str, **fields: Any) -> None:
        self._version += 1
        self.nodes[name] = self.nodes[name]._replace(version=str(self._version), **fields)

    def value(self, name: str) -> str | None:
        """Of the taint."""
        return next((taint["value"] for taint in self.nodes[name].taints if taint["key"] == DRAIN), None)

    # -- what is known of machines

    def boot_of(self, name: str) -> str:
        return boot_id(name, self.boot[name])

    def known(self, names: Sequence[str]) -> Mapping[str, MachineState]:
        return self.states.machines(names)

    def numbers(self, boots: Sequence[str]) -> Mapping[str, tuple[int, int]]:
        return self.states.numbers(boots)

    def register(self, name: str) -> None:
        """Its Node of this boot, with a Pod, and what is written down of it."""
        uid, number = f"{name}-{self.boot[name]}", self.boot[name]
        self.nodes[name] = DrainedNode(name, uid, self.now_ms(), True, False, (FOREIGN,), {}, dict(MARK), uid)
        self.pods_[name] = pod(name)
        self.up[name] = True
        records: list[AnyRecord] = [
            script(name, number),
            event(name, number, Phase.ATTESTED),
            event(name, number, Phase.NODE_REGISTERED, 700, f"node {name} uid {uid}"),
        ]
        self._taken += len(records)
        self.states.take(Batch("any.db", 1, self._taken, records))

    def _judged(self, name: str) -> Judged:
        if name not in self.retired | self.held:
            judged = super()._judged(name)
            ready = Reason.NODE_READY if self.up[name] else Reason.NODE_NOT_READY
            reachable = MachineCondition.of(ConditionType.REACHABLE, ready, "", 1)
            return judged.model_copy(update={"conditions": (*judged.conditions, reachable)})
        reason = Reason.RETIRED if name in self.retired else Reason.HELD
        condition = MachineCondition.of(ConditionType.IN_SERVICE, reason, "", 1)
        return Judged(machine=name, conditions=(condition,), timers={}, boot=self.boot_of(name), image="")

    # -- what goes on

    def tick(self) -> None:
        """Everybody looks; who is killed is started anew. Conditions show orders of the look before."""
        self.now += TICK * 1000
        self.draining = frozenset(self.wanted)
        try:
            self.drainer.step()
        except KilledError:
            self.drainer = self.drainer_started()
        try:
            self.controllers.step()
        except KilledError:
            self.controllers = self.started()
        assert self.controllers.status().problem == ""
        self.snapshot = self._publish()
        self.most_out = max(self.most_out, len(self.out()))
        for name in self.names:
            self.machine(name)

    def machine(self, name: str) -> None:
        """Its agent looks, and reboots where it is told to; it is up again a little later."""
        if name in self.back:
            if self.now >= self.back[name]:
                self.begin_boot(name)
            return
        if name in self.deaf or not self.up[name]:
            return
        here, node = Here(name, self.boot_of(name), self.now_ms() / 1000), self.nodes[name]
        verdict = judged({"metadata": {"annotations": node.annotations}, "spec": {"taints": list(node.taints)}}, here)
        if verdict is not None and not verdict.dead:
            self.reboots.append((name, verdict.slot))
            self.leave(name)

    def leave(self, name: str) -> None:
        """It is rebooting, by whatever."""
        if name not in self.back:
            self.up[name], self.back[name] = False, self.now + STARTING * 1000
            self.alter(name, ready=False)

    def begin_boot(self, name: str) -> None:
        del self.back[name]
        assigned = self.snapshot.assigned.get(name)
        self.image[name] = assigned.image if assigned is not None else self.channel
        self.boot[name] += 1
        self.register(name)

    def order(self, name: str, what: str, **more: Any) -> Drain | None:
        """An operator orders it; None: the service ended before it was written, or answered."""
        asked = order(
            name,
            f"by-alice-{len(self.drains.of(name, 99))}-{name}",
            what,
            boot=self.boot_of(name),
            since_ms=self.now_ms(),
            deadline_ms=self.now_ms() + 120_000,
            **more,
        )
        with suppress(KilledError):
            return self.drains.order(asked).drain
        return None

    def undrain(self, name: str) -> None:
        """An operator takes off what stands."""
        if name in self.wanted:
            with suppress(KilledError):
                self.drains.finish(self.wanted[name].id, "taken-off", "by alice", self.now_ms())

    def hold(self, name: str, *, holds: bool = True) -> None:
        """An operator holds it, or does so no more."""
        order = PutOn(Mark.HELD, "DIMM 4") if holds else TakeOff(Mark.HELD, "")
        self.intents.order(name, order, "alice", self.now_ms())

    @property
    def held(self) -> set[str]:
        """Those that operators hold."""
        return {each.machine for each in self.intents.all(self.now_ms())}

    def out(self) -> set[str]:
        """Who is out of service, or will be."""
        return {name for name in self.names if not self.up[name]} | self.wanted.keys() | self.held

    def traces(self) -> list[str]:
        """What is left of orders: in the ledger, and on Nodes."""
        on_nodes = [name for name, node in self.nodes.items() if self.value(name) or ORDER in node.annotations]
        return [*self.wanted, *on_nodes]
