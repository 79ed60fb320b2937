"""The collector's loop: watch Nodes, write down when the Node of an attested boot registered and became Ready, and show
each to the gate."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from images.values.backoff import Backoff
from netboot.controllers.nodes.attribution import Seen, belongs, facts, seen
from netboot.controllers.nodes.gating import GateStatus
from netboot.controllers.nodes.observed import how
from netboot.controllers.reflector import Reflector
from netboot.join.ports import Nodes, NodeView
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.known import Node
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.ports import Clock, States
from netboot.lifecycle.trace import Trace
from netboot.logs import Trouble
from netboot.machines.values import Machine
from netboot.status import DEFECT, up_ms
from netboot.status.nodes import NodesStatus

log = logging.getLogger(__name__)

ROUND_SECONDS = 600.0
LOOK_SECONDS = 0.5
LOOKS = Backoff(first=0.5, longest=30.0)
"""A Node that proves nothing now may do so when the state has caught up; looked at less and less often."""
BOOTS = 200
"""More than are kept of a machine."""


class Facts(Protocol):
    """Where facts are written down: `netboot.stores.facts.Facts`."""

    def append(self, record: EventRecord) -> None:
        """Durable when it returns; raises JournalUnavailableError."""
        ...


class Gate(Protocol):
    """Who opens and closes Nodes by what is seen of them: `netboot.controllers.nodes.gating`."""

    def begin_round(self, *, well: bool) -> None:
        """All Nodes come anew; `well`: the round before brought every one there is."""
        ...

    def take(self, node: NodeView) -> None:
        """A Node as it is now."""
        ...

    def step(self, *, followed: bool) -> None:
        """Do what is due; raises CannotTellError. `followed`: Nodes are seen as they are."""
        ...

    def status(self) -> GateStatus:
        """For metrics."""
        ...


@dataclass(slots=True)
class _Open:
    """A Node of which something may still have to be written down."""

    seen: Seen
    due: float
    up_ms: int
    """When it was seen first."""
    looks: int = 0


class Collector:
    """Of one cluster. `machines`: its machines by the name of their node; `joins_read_up_ms`: what join wrote down
    before that moment of `up_ms` is in the state; `several`: there are others. Memory: an entry for each Node."""

    def __init__(
        self,
        connect: Callable[[], Nodes],
        machines: Callable[[], dict[str, Machine]],
        states: States,
        facts: Facts,
        gate: Gate,
        clock: Clock,
        joins_read_up_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        several: bool = False,
    ) -> None:
        self._joins_read_up_ms, self._several = joins_read_up_ms, several
        self._connect, self._machines, self._states, self._facts = connect, machines, states, facts
        self._gate, self._clock, self._monotonic = gate, clock, monotonic
        self._nodes: Nodes | None = None
        self._reflector = Reflector("nodes", self._watch, self.take, ROUND_SECONDS)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
        self._known: dict[str, tuple[str, bool]] = {}
        """Nodes of our machines: uid, and whether it is ready now."""
        self._seen: dict[str, Node] = {}
        self._seen_before: dict[str, Node] = {}
        """How they are: in this round, and before it, which counts until this round has come to them."""
        self._rounds, self._complete = 0, False
        """Rounds begun; whether any of them went well to its end."""
        self._closed: dict[str, str] = {}
        """Nodes of which everything is written down: uid."""
        self._written: dict[str, tuple[str, set[Phase]]] = {}
        """Of each machine the latest boot and what was written down of it; the state knows of that a little later."""
        self._trouble = Trouble(log, "nodes", "nodes: in order again", logging.ERROR)
        self._gate_trouble = Trouble(log, "gate", "gate: in order again", logging.ERROR)

    def start(self) -> None:
        """Begin; the threads end with the process."""
        write, gate = (self._trouble, self.step), (self._gate_trouble, self._move_gates)
        for name, run in {
            "watch": self._reflector.run,
            "writer": lambda: self._for_ever(*write),
            "gate": lambda: self._for_ever(*gate),
        }.items():
            threading.Thread(target=run, name=name, daemon=True).start()

    def stop(self) -> None:
        """Begin nothing new; a round that waits for the apiserver is not waited for."""
        self._stopping.set()
        self._reflector.stop()

    def status(self) -> NodesStatus:
        """For `/readyz` and metrics."""
        blind, gates = self._reflector.problem or self._trouble.problem, self._gate.status()
        problem = blind or self._gate_trouble.problem
        with self._lock:
            registered, ready = len(self._known), sum(is_ready for _, is_ready in self._known.values())
        return NodesStatus(
            at_ms=self._clock.now_ms(),
            ok=problem is None,
            message=problem or "nodes are followed",
            remedy="see the log of the node collector; `netboot doctor` names what the cluster lacks",
            unavailable=self._reflector.unavailable,
            registered=registered,
            ready=ready,
            gates=dict(gates.gates),
            gates_moved=dict(gates.moved),
            gates_withheld=gates.withheld,
            gate_problem=self._gate_trouble.problem or "",
            followed=blind is None,
        )

    def nodes(self) -> dict[str, Node] | None:
        """How the Nodes of our machines are, by their names; one that was deleted is among them for a round more. None:
        not all have been listed yet."""
        with self._lock:
            return {**self._seen_before, **self._seen} if self._complete else None

    def take(self, node: NodeView) -> None:
        """A Node as it is now.

        Raises:
            NotReadyError: nothing has been published yet, so nobody's it is.
        """
        if node.name not in self._machines():
            return
        self._gate.take(node)
        with self._lock:
            self._known[node.name] = (node.uid, node.ready)
            self._seen[node.name] = how(node)
            if self._closed.get(node.name) == node.uid:
                return
            before = self._open.get(node.name)
            view = seen(before.seen if before else None, node, self._clock.now_ms())
            known = before is not None and before.seen.node.uid == node.uid
            first = before.up_ms if before is not None and known else up_ms()
            self._open[node.name] = _Open(view, self._monotonic(), first)

    def step(self) -> None:
        """Write down what can be: of a Node that the state may not know the boot of yet, nothing.

        Raises:
            CannotTellError: the inventory, the state or the journal; it is tried again.
        """
        now = self._monotonic()
        with self._lock:
            due = {name: entry for name, entry in self._open.items() if entry.due <= now}
        known_up_ms = self._joins_read_up_ms() if due else 0  # before the state is read
        due = {name: entry for name, entry in due.items() if entry.up_ms <= known_up_ms}
        if not due:
            return
        machines = self._machines()
        names = {name: machines[name].name for name in due if name in machines}
        states = self._states.machines(list(names.values()))
        for name, entry in due.items():
            state = states.get(names.get(name, ""))
            done = state is not None and state.current is not None and self._write(entry, state.current)
            with self._lock:
                self._settle(name, entry, done=done)

    def _write(self, entry: _Open, boot: Trace) -> bool:
        """What is missing of the boot to which it belongs; whether nothing was."""
        others = [trace for trace in self._states.boots(boot.machine, BOOTS) if trace.boot != boot.boot]
        if not belongs(entry.seen.node, boot, others, several=self._several):
            return False
        written_of, written = self._written.get(boot.machine, ("", set()))
        if written_of != boot.boot:
            written = set()
            self._written[boot.machine] = (boot.boot, written)
        for record in facts(entry.seen, boot):
            if record.phase not in written:
                self._facts.append(record)
                written.add(record.phase)
                fields = {"machine": record.machine, "boot": record.boot, "phase": str(record.phase)}
                log.info("%s: %s", record.phase, record.detail, extra={"fields": fields})
        return boot.phase(Phase.NODE_REGISTERED) is not None and boot.phase(Phase.READY) is not None

    def _settle(self, name: str, entry: _Open, *, done: bool) -> None:
        if self._open.get(name) is not entry:
            return  # it changed meanwhile
        if done:
            del self._open[name]
            self._closed[name] = entry.seen.node.uid
            return
        entry.looks += 1
        entry.due = self._monotonic() + LOOKS.bound(entry.looks)

    def _watch(self, seconds: float) -> Iterator[NodeView]:
        if self._nodes is None:
            self._nodes = self._connect()
        with self._lock:  # deletions are not told; what is still there comes again
            self._known.clear()
            well = self._rounds > 0 and not self._reflector.failures
            self._seen_before = self._seen if well else {**self._seen_before, **self._seen}
            self._seen, self._rounds, self._complete = {}, self._rounds + 1, self._complete or well
            self._open.clear()
        self._gate.begin_round(well=well)
        return self._nodes.watch(seconds)

    def _move_gates(self) -> None:
        self._gate.step(followed=self._reflector.problem is None and self._complete)

    def _for_ever(self, trouble: Trouble, step: Callable[[], None]) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                step()
                trouble.note(None)
            except CannotTellError as error:
                trouble.note(str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the next round is tried
                trouble.note(DEFECT, error)
