"""Carries orders to drain and to reboot out, on the Nodes of one cluster, and says how far each is
(`data/status/drains-<cluster>.json`). It keeps nothing that must survive: see `draining`.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from netboot.controllers.nodes.draining import Known, Step, Write, after_pods, decide, sorted_out, undone
from netboot.controllers.nodes.proven_boots import ProvenBoots
from netboot.controllers.nodes.vetoes import vetoed
from netboot.join.errors import ConflictError
from netboot.join.node_drains import DRAIN, DRAIN_ORDER, DrainedNode, NodeDrains, Pod
from netboot.lifecycle.drains import Drain, DrainsStatus, State
from netboot.lifecycle.errors import CannotTellError
from netboot.logs import Trouble
from netboot.machines.classes import Class, Vetoes
from netboot.machines.values import Machine
from netboot.status import DEFECT

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
DRIVE_SECONDS = 5.0
"""Between two looks at a machine's Node and Pods, and two tries at an eviction, as kubectl has it (drain.go)."""
STATUS_SECONDS = 30.0
RIGHTS_SECONDS = 300.0
"""Between two questions whether the account has its rights, and LACKS_SECONDS where it has not, or cannot be asked."""
LACKS_SECONDS = 30.0
UNKNOWN_SECONDS = 300.0
"""Orders of other replicas are known here by then, or they are none any more."""
ELSEWHERE = "the replica that leads carries out the orders that were given to itself (docs/ha.md)"
SETTLED = ("undone", "rebooted")
"""Of these nothing more is to come: whoever keeps the orders ends them."""


@dataclass(slots=True)
class _Under:
    """An order that is being carried out."""

    drain: Drain
    due: float = 0.0
    empty: bool = False
    """The last look found no Pod that is to go."""
    state: State | None = None


@dataclass(slots=True)
class Drainer:
    """`orders()`: those that stand, of all machines (raises CannotTellError); `machines()`: of this cluster by the name
    of their node; `classes()`: by name; `marked()`: names of Nodes that have our taint; `say`: publishes; `lacks()`:
    which rights the account has not that it needs, in words; `leads()`: whether this replica does; `given(machine)`:
    ids of the orders that it was given, those that have ended too; None: there is no other replica; `untold()`: why it
    cannot be told what was ordered or taken off elsewhere, "": it can; None: no orders of others are known here. One
    thread's."""

    connect: Callable[[], NodeDrains]
    orders: Callable[[], list[Drain]]
    machines: Callable[[], Mapping[str, Machine]]
    classes: Callable[[], Mapping[str, Class]]
    marked: Callable[[], Collection[str]]
    boots: ProvenBoots
    say: Callable[[DrainsStatus], object]
    lacks: Callable[[], str]
    now_ms: Callable[[], int]
    leads: Callable[[], bool] = lambda: True
    given: Callable[[str], Collection[str]] | None = None
    untold: Callable[[], str] | None = None
    monotonic: Callable[[], float] = time.monotonic
    _nodes: NodeDrains | None = None
    _under: dict[str, _Under] = field(default_factory=dict)
    _said: tuple[dict[str, State], str, bool] | None = None
    _said_at: float = float("-inf")
    _lacks: str = ""
    _ask_at: float = float("-inf")
    _unknown: dict[str, float] = field(default_factory=dict)
    """Since when a Node has our taint by an order that is not known here."""
    _trouble: Trouble = field(default_factory=lambda: Trouble(log, "drains", "drains: in order again", logging.ERROR))

    def start(self) -> None:
        """Begin; the thread ends with the process."""
        threading.Thread(target=self._for_ever, name="drains", daemon=True).start()

    def step(self) -> None:
        """Do what is due.

        Raises:
            CannotTellError: the orders, the inventory, the state or the API server; it is tried again.
        """
        nodes = {machine.name: name for name, machine in self.machines().items()}
        drains = {drain.id: drain for drain in self.orders() if drain.machine in nodes}
        if not self.leads():
            self._under = {}
            self._tell([f"{len(drains)} orders wait: {ELSEWHERE}"] if drains and self.untold is None else [])
            return
        self._under = {name: self._under.get(name) or _Under(drain) for name, drain in drains.items()}
        if self.untold is not None and (why := self.untold()):
            self._tell([f"orders wait: {why}"])
            return
        now = self.monotonic()
        if now >= self._ask_at:
            self._lacks = _lacking(self.lacks)
            self._ask_at = now + (LACKS_SECONDS if self._lacks else RIGHTS_SECONDS)
        if self._nodes is None and (self._under or self.marked()):
            self._nodes = self.connect()
        problems = []
        for under in self._under.values():
            if under.due <= now and (under.state is None or under.state.state not in SETTLED):
                under.due = now + DRIVE_SECONDS
                problems += _tried(partial(self._drive, under, nodes[under.drain.machine]))
        wanted = {nodes[drain.machine] for drain in drains.values()}
        unknown = sorted(set(self.marked()) - wanted)
        self._unknown = {name: since for name, since in self._unknown.items() if name in unknown}
        problems += [words for name in unknown for words in _tried(partial(self._clear, name))]
        self._tell(problems)

    def _tell(self, problems: list[str]) -> None:
        self._publish(problems[0] if problems else "")
        if problems:
            raise CannotTellError(problems[0])

    def _drive(self, under: _Under, name: str) -> None:
        nodes, drain = self._nodes, under.drain
        assert nodes is not None  # there is an order, so it was connected
        node = nodes.node(name)
        known = self.boots.known(drain.machine, node, drain.boot) or Known(drain.boot, its=False)
        step = decide(drain, node, known, self.now_ms(), under.state)
        if step.look and node is not None:
            step = self._look(under, node)
        else:
            under.empty = False
        write = self._signed(step.write, drain.id)
        if write is not None and node is not None and not _written(nodes, node, write):
            return  # somebody wrote meanwhile: the next look decides anew
        self._note(under, step)

    def _look(self, under: _Under, node: DrainedNode) -> Step:
        nodes, drain = self._nodes, under.drain
        assert nodes is not None
        pods = sorted_out(drain, nodes.pods(node.name))
        veto = vetoed(drain, node, pods.left, self._vetoes(node.name), self.now_ms())
        if veto is not None and not pods.blocking:
            under.empty = False
            return Step("draining", veto.words)
        refused: dict[Pod, str] = {}
        for pod in pods.evict:
            if why := nodes.evict(pod):
                refused[pod] = why
        step = after_pods(drain, node, pods, refused, self.now_ms(), empty_before=under.empty)
        under.empty = not pods.left
        return step

    def _vetoes(self, node: str) -> Vetoes | None:
        machine = self.machines().get(node)
        hardware = self.classes().get(machine.class_name or "") if machine is not None else None
        return hardware.vetoes if hardware is not None else None

    def _clear(self, name: str) -> None:
        """The Node has our taint, and nobody wants it drained."""
        nodes = self._nodes
        assert nodes is not None
        node = nodes.node(name)
        if node is not None and self._elsewhere(node):
            unknown = f"{name} is being drained by an order that this replica does not have"
            if self.untold is None:
                raise CannotTellError(f"{unknown}: {ELSEWHERE}")
            if self.monotonic() - self._unknown.setdefault(name, self.monotonic()) < UNKNOWN_SECONDS:
                raise CannotTellError(f"{unknown}: unless it comes to know it, that ends in five minutes")
        write = self._signed(undone(node), None)
        if node is not None and write is not None and _written(nodes, node, write):
            log.info("%s is drained no more", name, extra={"fields": {"node": name}})

    def _elsewhere(self, node: DrainedNode) -> bool:
        """Whether it is drained by an order that only another replica has."""
        if self.given is None:
            return False
        machine = self.machines().get(node.name)
        return machine is None or node.annotations.get(DRAIN_ORDER) not in self.given(machine.name)

    def _signed(self, write: Write | None, order: str | None) -> Write | None:
        """With whose taint it is, for other replicas."""
        if write is None or self.given is None:
            return write
        tainted = any(taint["key"] == DRAIN for taint in write.taints)
        return write._replace(annotations={**write.annotations, DRAIN_ORDER: order if tainted else None})

    def _note(self, under: _Under, step: Step) -> None:
        before, drain = under.state, under.drain
        if before is not None and (before.state, before.words) == (step.state, step.words):
            return
        since = before.since_ms if before is not None and before.state == step.state else self.now_ms()
        under.state = State.model_validate(
            {"id": drain.id, "state": step.state, "words": step.words, "since_ms": since}
        )
        level = logging.WARNING if step.state == "undone" else logging.INFO
        words = f"{step.state}{': ' if step.words else ''}{step.words}"
        fields = {"machine": drain.machine, "boot": drain.boot, "order": drain.id}
        log.log(level, "%s of %s: %s", drain.what, drain.machine, words, extra={"fields": fields})

    def _publish(self, problem: str) -> None:
        states = {under.drain.machine: under.state for under in self._under.values() if under.state is not None}
        late = self.monotonic() - self._said_at >= STATUS_SECONDS
        if (states, self._lacks, self.leads()) != self._said or problem or late:
            leads = self.leads()
            self.say(DrainsStatus(at_ms=self.now_ms(), leads=leads, problem=problem, lacks=self._lacks, drains=states))
            self._said, self._said_at = (states, self._lacks, leads), self.monotonic()

    def _for_ever(self) -> None:
        pause = threading.Event()
        while not pause.wait(LOOK_SECONDS):
            try:
                self.step()
                self._trouble.note(None)
            except CannotTellError as error:
                self._trouble.note(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look is tried
                self._trouble.note(DEFECT, error)
                pause.wait(DRIVE_SECONDS)


def _lacking(lacks: Callable[[], str]) -> str:
    try:
        return lacks()
    except CannotTellError as error:
        return f"whether the nodes account has its rights cannot be told: {error}"


def _tried(act: Callable[[], None]) -> list[str]:
    """Of one machine: what hinders it hinders no other."""
    try:
        act()
    except CannotTellError as error:
        return [str(error)]
    return []


def _written(nodes: NodeDrains, node: DrainedNode, write: Write) -> bool:
    try:
        nodes.change(node, write.taints, write.annotations)
    except ConflictError:
        return False
    return True
