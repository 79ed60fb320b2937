"""The gate's loop: what nodes say of their health, compared with the certificates of their boots, becomes taints.

It keeps nothing that must survive: after a restart every Node is listed anew, and what it says then was received then.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from images.values.backoff import Backoff
from netboot.controllers.nodes.attribution import registered
from netboot.controllers.nodes.gate import Budget, Decision, Known, decide, is_shut, was_closed
from netboot.controllers.nodes.reports import Entry, Reports
from netboot.join.errors import ConflictError, InvalidError
from netboot.join.labels import differ
from netboot.join.node_said import ACCEPTED
from netboot.join.ports import Nodes, NodeView
from netboot.lifecycle.ports import States
from netboot.machines.classes import Class, Gate
from netboot.machines.values import Machine

log = logging.getLogger(__name__)

LOOKS = Backoff(first=0.5, longest=60.0)
"""Until a certificate that is not of the boot may be looked up again: the state knows of a new one a little later."""
LOOKED_OFTEN = 6
"""Looks that are taken as soon as they are due; the later ones with the next sweep."""
SWEEP_SECONDS = 5.0
"""How often every Node is decided about; one of which something came, at once."""
MOST = 50
"""Nodes whose taints are changed with one step."""


class Holds(Protocol):
    """What is on machines."""

    def holds(self) -> Mapping[str, str] | None:
        """Machine → what keeps it from work (Held, Quarantined, Retired), "": nothing; one that is not in it is not
        judged yet. None: it cannot be told now."""
        ...


class GateStatus(NamedTuple):
    """`gates`: how many Nodes are `open`, `shut` or `closed` (after they had been open); `moved`: how many were opened
    and closed since the start; `withheld`: Nodes that the budget leaves open."""

    gates: Mapping[str, int]
    moved: Mapping[str, int]
    withheld: int


class GateController:
    """Of one cluster. `labels`: those that the service writes of a machine's Node; `accepted()`: machines whose gates
    open in spite of their checks, None: it cannot be told. `take` and `begin_round` are called by who watches its
    Nodes, `step` by one other thread."""

    def __init__(
        self,
        nodes: Callable[[], Nodes],
        machines: Callable[[], Mapping[str, Machine]],
        classes: Callable[[], Mapping[str, Class]],
        states: States,
        holds: Holds,
        labels: Callable[[Machine], Mapping[str, str]],
        accepted: Callable[[], Collection[str] | None],
        up_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nodes, self._machines, self._classes = nodes, machines, classes
        self._states, self._holds, self._up_ms, self._monotonic = states, holds, up_ms, monotonic
        self._labels, self._accepted = labels, accepted
        self._lock = threading.Lock()
        self._reports, self._round = Reports(), 0
        self._due: set[str] = set()
        self._swept = float("-inf")
        self._moved: Counter[str] = Counter({"opened": 0, "closed": 0})
        self._withheld: frozenset[str] = frozenset()

    def begin_round(self, *, well: bool) -> None:
        """All Nodes come anew; `well`: the round before brought every one there is."""
        with self._lock:
            if well:
                self._reports.forget(self._round)
            self._round += 1

    def take(self, node: NodeView) -> None:
        """A Node as it is now.

        Raises:
            NotReadyError: nothing has been published yet.
        """
        machine = self._machines().get(node.name)
        if machine is None:
            return
        with self._lock:
            self._reports.take(node, machine.name, machine.class_name or "", self._round)
            self._due.add(node.name)

    def step(self, *, followed: bool) -> None:
        """Decide what there is to decide. `followed`: Nodes are seen as they are.

        Raises:
            CannotTellError: the inventory, the state or the API server cannot be asked; it is tried again.
        """
        up_ms, now, machines = self._up_ms(), self._monotonic(), self._machines()
        with self._lock:
            self._reports.pass_time(up_ms, followed=followed)
            if now - self._swept >= SWEEP_SECONDS:
                self._due.update(self._reports.entries)
                self._swept = now
            self._due &= self._reports.entries.keys() & machines.keys()
            due = {name: self._reports.entries[name] for name in self._due}
        accepted = self._accepted()
        asked = {name: entry for name, entry in due.items() if not entry.counts and entry.look_at <= now}
        self._look_up({name: each for name, each in asked.items() if _speaks(each, accepted)}, up_ms)
        if followed and due:
            self._act(due, machines, accepted)

    def nodes(self) -> dict[str, tuple[str, str]]:
        """Machine → name and uid of its Node; one without a Node has the name that it would have, and no uid."""
        machines = self._machines()
        with self._lock:
            uids = {name: entry.node.uid for name, entry in self._reports.entries.items()}
        return {machine.name: (name, uids.get(name, "")) for name, machine in machines.items()}

    def status(self) -> GateStatus:
        """For metrics."""
        with self._lock:
            taints = [entry.node.taints for entry in self._reports.entries.values() if entry.node.marked]
        gates = Counter("closed" if was_closed(each) else "shut" if is_shut(each) else "open" for each in taints)
        return GateStatus({name: gates[name] for name in ("open", "shut", "closed")}, self._moved, len(self._withheld))

    def _look_up(self, entries: Mapping[str, Entry], up_ms: int) -> None:
        """Which certificates are of their boots now, where what they say is new, or does not count yet."""
        states = self._states.machines([entry.machine for entry in entries.values()]) if entries else {}
        for entry in entries.values():
            state = states.get(entry.machine)
            boot = state.current if state is not None else None
            signed = boot.certificates if boot is not None and registered(entry.node, boot) else ()
            entry.looks += 1
            entry.look_at = self._monotonic() + LOOKS.bound(entry.looks)
            with self._lock:
                self._reports.receive(entry, frozenset(each.sha256 for each in signed), up_ms)

    def _act(self, due: Mapping[str, Entry], machines: Mapping[str, Machine], accepted: Collection[str] | None) -> None:
        holds, classes, budget = self._holds.holds(), self._classes(), self._budget()
        withheld, changed = set[str](), 0
        for name, entry in sorted(due.items()):
            node, known = entry.node, self._known(entry, classes, holds, accepted)
            decision = decide(node, known)
            if decision.closes and not budget.allows(entry.place):
                withheld.add(name)
                _say(entry, f"stays open, for as many as may be are closed: {decision.words}", logging.ERROR)
                decision = decide(node, known._replace(may_close=False))
            labels = dict(self._labels(machines[name])) if node.marked else {}
            labels |= dict([ACCEPTED]) if decision.accepted else {}
            if decision.taints != node.taints or (node.marked and differ(node, labels)):
                if changed == MOST:
                    return  # the others wait, and so does what is known of the budget
                changed += 1
                self._move(entry, node, decision, labels)
                budget.closed[entry.place] += decision.closes
            elif is_shut(node.taints):
                _say(entry, f"waits ({decision.reason}): {decision.words}", logging.INFO)
            with self._lock:
                if entry.node is node and not (entry.counts is False and entry.looks < LOOKED_OFTEN):
                    self._due.discard(name)
        self._withheld = frozenset(withheld | (self._withheld - due.keys()))

    def _known(
        self,
        entry: Entry,
        classes: Mapping[str, Class],
        holds: Mapping[str, str] | None,
        accepted: Collection[str] | None,
    ) -> Known:
        hardware = classes.get(entry.place)
        return Known(
            certificates=entry.certificates,
            gate=hardware.gate if hardware is not None else Gate(),
            stale=self._reports.is_stale(entry),
            hold=holds.get(entry.machine) if holds is not None else None,
            accepted=entry.machine in accepted if accepted is not None else None,
        )

    def _budget(self) -> Budget:
        with self._lock:
            every = [
                (each.place, was_closed(each.node.taints))
                for each in self._reports.entries.values()
                if each.node.marked
            ]
        return Budget(Counter(place for place, _ in every), Counter(place for place, closed in every if closed))

    def _move(self, entry: Entry, node: NodeView, decision: Decision, labels: Mapping[str, str]) -> None:
        """Taints and labels with one write, so that no Pod is given to a Node before it says where it stands."""
        try:
            after = self._write(node, decision, labels)
        except ConflictError:
            return  # what it is since comes with the watch, and is due then
        except InvalidError as error:
            _say(entry, f"cannot be moved, for the apiserver does not take it: {error}", logging.ERROR)
            return
        with self._lock:
            # Where the watch was quicker, what it brought may be older: its version keeps us from writing by it.
            entry.node = after if entry.node is node else entry.node._replace(taints=after.taints)
        if is_shut(node.taints) and not is_shut(after.taints):
            self._moved["opened"] += 1
            by = "is open, for its machine is accepted, and in spite of this" if decision.accepted else "is open"
            _say(entry, f"{by}: {decision.words}", logging.INFO)
        elif decision.closes:
            self._moved["closed"] += 1
            _say(entry, f"is closed ({decision.reason}): {decision.words}", logging.WARNING)
        elif decision.taints != node.taints:
            _say(entry, "its hold is as that of its machine", logging.INFO)

    def _write(self, node: NodeView, decision: Decision, labels: Mapping[str, str]) -> NodeView:
        """A Node that has no room for labels has no way to stay open by that.

        Raises:
            ConflictError, InvalidError.
        """
        try:
            return self._nodes().taint(node, decision.taints, labels if differ(node, labels) else None)
        except InvalidError:
            if decision.taints == node.taints or decision.accepted:
                raise
            return self._nodes().taint(node, decision.taints)


def _speaks(entry: Entry, accepted: Collection[str] | None) -> bool:
    """Whether it matters which certificates are of its boot."""
    return entry.node.health is not None or entry.machine in (accepted or ())


def _say(entry: Entry, words: str, level: int) -> None:
    """Once, until there is something else to say."""
    if words != entry.said:
        entry.said = words
        fields = {"machine": entry.machine, "node": entry.node.name}
        log.log(level, "the gate of %s %s", entry.node.name, words, extra={"fields": fields})
