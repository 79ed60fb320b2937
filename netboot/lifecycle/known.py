"""What a machine is judged by, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import MachineState, Standing, standing
from netboot.lifecycle.trace import Trace
from netboot.lifecycle.transitions import PLACE, Course, Mark
from netboot.machines.deadlines import Deadline

BOOTED, READY = PLACE[Phase.BOOTED], PLACE[Phase.READY]


class Node(StrEnum):
    """How the cluster has a machine's Node: kept from work by our taint, not Ready, or neither."""

    IN_SERVICE = "in-service"
    GATED = "gated"
    NOT_READY = "not-ready"


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
    rollout: int | None = None
    """The rollout that assigned `image`; None: it is its channel's."""


@dataclass(frozen=True, slots=True)
class Known:
    """All that is known of a machine. `claim`: its newest boot of any standing; `node`: None: none is seen."""

    declared: Declared
    state: MachineState
    claim: Trace | None = None
    node: Node | None = None
    marks: frozenset[Mark] = frozenset()


class Subject(NamedTuple):
    """The boot that counts. `own`: it is the current one, so that node and health report are its own."""

    trace: Trace
    course: Course
    own: bool

    @property
    def at(self) -> int:
        """How far it is: the place of its step among all."""
        return PLACE[self.course.step]


def wants_claim(state: MachineState, node: Node | None) -> bool:
    """Whether the newest boot of any standing may be the one that counts: nothing is known of the current one's Node,
    and nothing that reported came after it."""
    if state.current is None:
        return True
    gone = node not in (Node.GATED, Node.IN_SERVICE) and standing(state.current) is Standing.PROVEN
    return gone and state.pending is None
