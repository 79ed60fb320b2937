"""Which boots of machines count, for orders that are bound to one."""

from typing import NamedTuple, Protocol

from netboot.controllers.nodes.attribution import registered
from netboot.controllers.nodes.draining import Known
from netboot.join.node_drains import DrainedNode
from netboot.lifecycle import history
from netboot.lifecycle.ports import States


class Boots(States, history.ProvenBoots, Protocol):
    """What is known of machines, and which boots of them proved themselves."""


class ProvenBoots(NamedTuple):
    """Which boots machines have. `several`: other replicas, too, are told of boots, and may know of newer ones."""

    states: Boots
    several: bool = False

    def known(self, machine: str, node: DrainedNode | None, boot: str) -> Known | None:
        """The current one, whether the Node is of it, and whether it came after `boot`; None: it has none. Raises
        CannotTellError."""
        state = self.states.machines([machine]).get(machine)
        if state is None or state.current is None:
            return None
        current = state.current.boot
        later = not self.several or self._after(machine, boot, current)
        return Known(current, its=node is not None and registered(node.uid, state.current), later=later)

    def _after(self, machine: str, before: str, boot: str) -> bool:
        boots = self.states.proven([machine]).get(machine, ())
        return before in boots and boot in boots and boots.index(before) < boots.index(boot)
