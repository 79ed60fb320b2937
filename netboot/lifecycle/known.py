"""What a machine is judged by, as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import CLAIMS_KEPT, MachineState, Standing, standing
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.transitions import PLACE, Course, Mark
from netboot.machines.boot_limit import NONE, BootLimit
from netboot.machines.deadlines import Deadline
from netboot.machines.remedies import Rules

BOOTED, READY = PLACE[Phase.BOOTED], PLACE[Phase.READY]
MOST_COUNTED = CLAIMS_KEPT
"""Boots that are looked at to tell a loop: no storm of scripts or reports makes a judgement cost more."""


class Node(StrEnum):
    """How the cluster has a machine's Node: not Ready, kept from work by our taint, cordoned by somebody, or none of
    these."""

    IN_SERVICE = "in-service"
    CORDONED = "cordoned"
    GATED = "gated"
    NOT_READY = "not-ready"


UP = (Node.IN_SERVICE, Node.CORDONED, Node.GATED)
"""Its Node is Ready."""


class NodeWord(NamedTuple):
    """What else is to be seen on a machine's Node. `failed`: the boot under whose own certificate the node says that a
    check failed; `holder`: who else has taken it, in words. Empty: none."""

    failed: str = ""
    holder: str = ""


NO_WORD = NodeWord()


class Places(NamedTuple):
    """Names of the clocks (`SeenTime`) that count for a machine: where its reports come from, where its join is seen,
    and where its Node is seen while not most of its class has gone at once."""

    reports: str
    cluster: str
    nodes: str


class Declared(NamedTuple):
    """What the inventory in force says of a machine. `node`: the name of its Node; `image`: what it would be served
    now; None: nothing usable."""

    name: str
    cluster: str
    node: str
    enabled: bool
    joins: bool
    channel: str
    image: str | None
    deadlines: Mapping[str, Deadline]
    places: Places
    boot_limit: BootLimit = BootLimit()
    rollout: int | None = None
    """The rollout that assigned `image`; None: it is its channel's."""
    rack: str = ""
    rules: Rules = Rules()


@dataclass(frozen=True, slots=True)
class Known:
    """All that is known of a machine. `claim`: its newest boot of any standing; `node`: None: none is seen; `tries`:
    boots since the last that is Ready, as `counted` wants them, newest first, at most MOST_COUNTED."""

    declared: Declared
    state: MachineState
    claim: Trace | None = None
    node: Node | None = None
    marks: frozenset[Mark] = frozenset()
    tries: Sequence[Trace] = ()
    word: NodeWord = NO_WORD


class Subject(NamedTuple):
    """The boot that counts. `own`: it is the current one, so that node and health report are its own; `newer`: one that
    was reported after it and has not proven itself; `tries`: it is the newest of these,
    which are too many; empty: they are not."""

    trace: Trace
    course: Course
    own: bool
    newer: tuple[Trace, Course] | None = None
    tries: tuple[Trace, ...] = ()

    @property
    def at(self) -> int:
        """How far it is: the place of its step among all."""
        return PLACE[self.course.step]


def wants_claim(state: MachineState, node: Node | None) -> bool:
    """Whether the newest boot of any standing may be the one that counts: nothing is known of the current one's Node,
    and nothing that reported came after it."""
    if state.current is None:
        return True
    gone = node not in UP and standing(state.current) is Standing.PROVEN
    return gone and state.pending is None


def counted(declared: Declared, state: MachineState, claim: Trace | None, node: Node | None) -> Standing | None:
    """Of which standing boots count that may be a loop: of at least that of the one which then explains the machine, so
    that no script that was served adds to boots that reported, and no report to boots that proved themselves. None:
    there is none that would be told."""
    if node in UP or declared.boot_limit.boots == NONE:
        return None
    current = state.current
    there = current is not None and current.phase(Phase.READY if declared.joins else Phase.BOOTED) is not None
    explains = state.pending or claim if current is None or there else current
    return standing(explains) if explains is not None and not (there and explains == current) else None
