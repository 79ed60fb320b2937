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
from netboot.controllers.nodes.budget import Budget
from netboot.controllers.nodes.gate import Known, decide, is_shut, was_closed
from netboot.controllers.nodes.moves import MOST_REFUSED, Moves, opened_often, say
from netboot.controllers.nodes.reports import Entry, Reports
from netboot.join.labels import differ
from netboot.join.node_said import ACCEPTED
from netboot.join.ports import Nodes, NodeView
from netboot.lifecycle.cordons import Cordon
from netboot.lifecycle.known import NodeWord
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
    """Of one cluster. `take` and `begin_round` are called by who watches its Nodes, `step` by one other thread. With
    `told_ms`, the time of day, others are told of gates by the condition GATE. `leads`: whether this replica does."""

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
        told_ms: Callable[[], int] | None = None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._machines, self._classes = machines, classes
        self._states, self._holds, self._up_ms, self._monotonic = states, holds, up_ms, monotonic
        self._labels, self._accepted, self._leads = labels, accepted, leads
        self._lock = threading.Lock()
        self._reports, self._round = Reports(), 0
        self._due: set[str] = set()
        self._swept = float("-inf")
        self._moves = Moves(nodes, self._lock, told_ms)
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
            CannotTellError: the inventory, the state or the API server cannot be asked, or a Node cannot be written to,
                which hinders no other; it is tried again.
        """
        up_ms, now, machines = self._up_ms(), self._monotonic(), self._machines()
        with self._lock:
            self._reports.pass_time(up_ms, followed=followed)
            if now - self._swept >= SWEEP_SECONDS:
                self._due.update(self._reports.entries)
                self._swept = now
            ours = self._reports.entries.keys() & machines.keys()
            self._due &= ours
            self._withheld &= ours
            due = {name: self._reports.entries[name] for name in self._due}
        accepted = self._accepted()
        asked = {name: entry for name, entry in due.items() if not entry.counts and entry.look_at <= now}
        self._look_up({name: each for name, each in asked.items() if _speaks(each, accepted)}, up_ms)
        if followed and due and self._leads():
            self._act(due, machines, accepted, now)
            self._moves.tell([entry.node for entry in due.values()])
        self._moves.require_none_refused(ours)

    def nodes(self) -> dict[str, tuple[str, str]]:
        """Machine → name and uid of its Node; one without a Node has the name that it would have, and no uid."""
        machines = self._machines()
        with self._lock:
            uids = {name: entry.node.uid for name, entry in self._reports.entries.items()}
        return {machine.name: (name, uids.get(name, "")) for name, machine in machines.items()}

    def with_taint(self, key: str) -> list[str]:
        """Names of Nodes that have such a taint."""
        with self._lock:
            nodes = [entry.node for entry in self._reports.entries.values()]
        return [node.name for node in nodes if any(taint["key"] == key for taint in node.taints)]

    def cordons(self) -> dict[str, Cordon]:
        """Machine → the cordon of its Node."""
        with self._lock:
            entries = list(self._reports.entries.values())
        cordoned = [(each.machine, each.node) for each in entries if each.node.marked and each.node.cordoned]
        return {name: Cordon(node=node.name, by=node.cordoned_by, uid=node.uid) for name, node in cordoned}

    def words(self) -> dict[str, NodeWord]:
        """What else is to be seen on Nodes, by name, where there is anything: a check failed, who else has taken it."""
        found = {}
        with self._lock:
            for name, entry in self._reports.entries.items():
                failed = entry.failed()
                if failed and self._reports.is_stale(entry):
                    failed = ""
                if failed or entry.node.holder:
                    found[name] = NodeWord(failed, entry.node.holder)
        return found

    def status(self) -> GateStatus:
        """For metrics."""
        with self._lock:
            taints = [entry.node.taints for entry in self._reports.entries.values() if entry.node.marked]
        gates = Counter("closed" if was_closed(each) else "shut" if is_shut(each) else "open" for each in taints)
        return GateStatus(
            {name: gates[name] for name in ("open", "shut", "closed")}, self._moves.moved, len(self._withheld)
        )

    def _look_up(self, entries: Mapping[str, Entry], up_ms: int) -> None:
        """Which certificates are of their boots now, where what they say is new, or does not count yet."""
        states = self._states.machines([entry.machine for entry in entries.values()]) if entries else {}
        for entry in entries.values():
            state = states.get(entry.machine)
            boot = state.current if state is not None else None
            its = boot is not None and registered(entry.node.uid, boot)
            signed = boot.certificates if boot is not None and its else ()
            entry.boot = boot.boot if boot is not None and its else ""
            entry.looks += 1
            entry.look_at = self._monotonic() + LOOKS.bound(entry.looks)
            with self._lock:
                self._reports.receive(entry, frozenset(each.sha256 for each in signed), up_ms)

    def _act(
        self, due: Mapping[str, Entry], machines: Mapping[str, Machine], accepted: Collection[str] | None, now: float
    ) -> None:
        holds, classes, budget = self._holds.holds(), self._classes(), self._budget()
        withheld, tried, refused = set[str](), 0, 0
        for name, entry in sorted(due.items(), key=_in_turn):
            node, known = entry.node, self._known(entry, classes, holds, accepted, now)
            decision = decide(entry.judged(node), known)
            if decision.closes and not budget.allows(entry.place):
                withheld.add(name)
                say(entry, f"stays open, for as many as may be are closed: {decision.words}", logging.ERROR)
                decision = decide(entry.judged(node), known._replace(may_close=False))
            labels = dict(self._labels(machines[name])) if node.marked else {}
            labels |= dict([ACCEPTED]) if decision.accepted else {}
            if decision.taints == node.taints and not (node.marked and differ(node, labels)):
                self._moves.refused.pop(name, None)
                if is_shut(node.taints):
                    say(entry, f"waits ({decision.reason}): {decision.words}", logging.INFO)
            elif entry.again_at > now:
                continue
            elif tried == MOST or refused == MOST_REFUSED:
                return  # the others wait, and so does what is known of the budget
            else:
                tried += 1
                if not self._moves.move(entry, node, decision, labels, now):
                    refused += 1
                    continue
                budget.closed[entry.place] += decision.closes
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
        now: float,
    ) -> Known:
        hardware = classes.get(entry.place)
        return Known(
            certificates=entry.certificates,
            gate=hardware.gate if hardware is not None else Gate(),
            stale=self._reports.is_stale(entry),
            hold=holds.get(entry.machine) if holds is not None else None,
            accepted=entry.machine in accepted if accepted is not None else None,
            often=opened_often(entry, now),
        )

    def _budget(self) -> Budget:
        with self._lock:
            return Budget.of_nodes([(each.place, each.node) for each in self._reports.entries.values()])


def _speaks(entry: Entry, accepted: Collection[str] | None) -> bool:
    """Whether it matters which certificates are of its boot."""
    return bool(entry.words) or entry.node.health is not None or entry.machine in (accepted or ())


def _in_turn(due: tuple[str, Entry]) -> tuple[int, int, str]:
    """Who was refused, or opened lately, comes after the others: they must not wait for those."""
    name, entry = due
    return entry.failures, len(entry.opened), name
