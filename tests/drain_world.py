"""A cluster in memory with one machine, whose kubelet and whose agent work, and a service that may be killed at any
call it makes: for what drains and reboots."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from images.node.orders.order import Here, judged
from netboot.controllers.drains import finish, settled
from netboot.controllers.nodes.drainer import Drainer
from netboot.controllers.nodes.proven_boots import ProvenBoots
from netboot.join.errors import ConflictError
from netboot.join.node_drains import DRAIN, DrainedNode, Pod
from netboot.join.ports import MARK
from netboot.lifecycle.drains import Drain, DrainsStatus
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.machines.classes import Class, Vetoes
from netboot.machines.values import Machine, Match
from tests.drains import START, MemoryDrains
from tests.drains import drain as order
from tests.records import boot_id, event, script
from tests.states import MemoryStates

T = TypeVar("T")
FOREIGN = {"key": "example.com/busy", "effect": "NoSchedule"}
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
SECOND = 1_000


class KilledError(Exception):
    """The process ended here."""


def pod(name: str, owner: str = "ReplicaSet", *, namespace: str = "default", **more: bool) -> Pod:
    values = {"mirror": False, "local": False, "over": False, "leaving": False} | more
    return Pod(namespace=namespace, name=name, uid=f"uid-{name}", owner=owner, **values)


class World:
    """`kill`: (which call, whether before it has its effect), counted over all calls to the cluster; None: nobody is
    killed. `reboots`: boots that the agent ended. `refuses`: Pods that a budget keeps; `vetoes`: of its class; `deaf`:
    the agent is gone."""

    def __init__(self, *pods: Pod, kill: tuple[int, bool] | None = None) -> None:
        self.pods_, self.kill, self.calls = {one.name: one for one in pods}, kill, 0
        self.seconds, self.boot, self.version = 0.0, 1, 1
        self.reboots: list[str] = []
        self.refuses: set[str] = set()
        self.vetoes: Vetoes | None = None
        self.deaf, self.starting = False, 0.0
        self.evicted: list[str] = []
        self.states, self._taken = MemoryStates(), 0
        self.drains, self.said = MemoryDrains(), DrainsStatus(at_ms=START)
        self.register()
        self.drainer = self.started()

    def register(self) -> None:
        """The machine's Node of this boot, and what is written down of it."""
        uid = f"node-{self.boot}"
        self.node_: DrainedNode | None = DrainedNode(
            "n-1", uid, self.now_ms(), True, False, (FOREIGN,), {}, dict(MARK), "1"
        )
        self.know(script("n-1", self.boot), event("n-1", self.boot, Phase.ATTESTED))
        self.know(event("n-1", self.boot, Phase.NODE_REGISTERED, 700, f"node n-1 uid {uid}"))

    def know(self, *records: object) -> None:
        self._taken += len(records)
        self.states.take(Batch("any.db", 1, self._taken, records))  # type: ignore[arg-type] # records of the state

    def started(self) -> Drainer:
        """The process begins: it remembers nothing."""
        fields = {"name": "n-1", "match": Match(serial="n-1"), "profile": "p", "class": "c"}
        machine = Machine.model_validate(fields)
        return Drainer(
            connect=lambda: self,
            orders=self.drains.standing,
            machines=lambda: {"n-1": machine},
            classes=lambda: {"c": Class(name="c", vetoes=self.vetoes)},
            marked=lambda: ["n-1"] if self.value() is not None else [],
            boots=ProvenBoots(self.states),
            say=partial(setattr, self, "said"),
            lacks=lambda: "",
            now_ms=self.now_ms,
            monotonic=lambda: self.seconds,
        )

    def now_ms(self) -> int:
        return START + round(self.seconds * SECOND)

    def order(self, what: str = "drain", **more: Any) -> Drain:
        """An operator orders it."""
        name = f"order-{len(self.drains.of('n-1', 99)) + 1}"
        boot = boot_id("n-1", self.boot)
        asked = order("n-1", name, what, boot=boot, since_ms=self.now_ms(), **more)
        return self.drains.order(asked).drain

    # -- the cluster, as the service calls it

    def node(self, name: str) -> DrainedNode | None:
        return self._called(lambda: self.node_)

    def pods(self, name: str) -> list[Pod]:
        return self._called(lambda: list(self.pods_.values()))

    def evict(self, pod: Pod) -> str:
        return self._called(lambda: self._evict(pod))

    def change(
        self, node: DrainedNode, taints: Sequence[Mapping[str, str]], annotations: Mapping[str, str | None]
    ) -> None:
        self._called(lambda: self._change(node, taints, annotations))

    def _evict(self, pod: Pod) -> str:
        self.evicted.append(pod.name)
        if pod.name in self.refuses:
            return BUDGET
        if pod.name in self.pods_:
            self.pods_[pod.name] = pod._replace(leaving=True)
        return ""

    def _change(
        self, node: DrainedNode, taints: Sequence[Mapping[str, str]], annotations: Mapping[str, str | None]
    ) -> None:
        here = self.node_
        if here is None or (here.uid, here.version) != (node.uid, node.version):
            raise ConflictError("changed")
        kept = {**here.annotations, **annotations}
        self.alter(taints=tuple(taints), annotations={name: text for name, text in kept.items() if text is not None})

    def alter(self, **fields: Any) -> None:
        """Somebody writes the Node."""
        assert self.node_ is not None
        self.version += 1
        self.node_ = self.node_._replace(version=str(self.version), **fields)

    def _called(self, act: Callable[[], T]) -> T:
        self.calls += 1
        if self.kill == (self.calls, True):
            raise KilledError
        answer = act()
        if self.kill == (self.calls, False):
            raise KilledError
        return answer

    # -- what goes on

    def value(self) -> str | None:
        """Of the taint."""
        taints = self.node_.taints if self.node_ is not None else ()
        return next((taint["value"] for taint in taints if taint["key"] == DRAIN), None)

    def run(self, seconds: int, *, settling: bool = True) -> None:
        """Everybody does their work, second by second; whoever is killed is started again."""
        for _ in range(seconds):
            self.seconds += 1
            try:
                self.drainer.step()
            except KilledError:
                self.drainer = self.started()
            self.pods_ = {name: one for name, one in self.pods_.items() if not one.leaving}
            if settling:
                finish(self.drains, settled([self.said]), self.now_ms())
            if round(self.seconds) % 7 == 0:
                self.machine()

    def machine(self) -> None:
        """Its agent looks, and reboots where it is told to; it is up again after a minute."""
        if self.starting and self.seconds >= self.starting:
            self.starting, self.boot = 0.0, self.boot + 1
            self.register()
        elif not self.starting and not self.deaf and self.node_ is not None:
            node = {"metadata": {"annotations": self.node_.annotations}, "spec": {"taints": list(self.node_.taints)}}
            here = Here("n-1", boot_id("n-1", self.boot), self.now_ms() / 1000)
            verdict = judged(node, here)
            if verdict is not None and not verdict.dead:
                self.reboots.append(here.boot)
                self.starting = self.seconds + 60
                self.alter(ready=False)

    def last(self) -> Drain:
        return self.drains.of("n-1", 1)[0]
