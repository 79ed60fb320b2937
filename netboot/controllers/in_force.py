"""Of which generation of an object's spec what is said of its machine is."""

from typing import Any, NamedTuple

from netboot.lifecycle.object_status import Facts, status_in
from netboot.lifecycle.objects import MachineObject
from netboot.machines.inventory import completed
from netboot.machines.resources import declared_as


class _InForce(NamedTuple):
    """An object whose spec is in force, or was the last that was."""

    uid: str
    generation: int
    spec: Any


class InForce:
    """By names of objects."""

    def __init__(self) -> None:
        self._known = dict[str, _InForce]()

    def forget(self, name: str) -> None:
        """There is no such object any more."""
        self._known.pop(name, None)

    def generation(self, machine: MachineObject, facts: Facts | None) -> int:
        """Of which the spec is in force: the last that was seen to declare the machine that there is. Where none was
        since the start it is what the object itself says, if that is one of before; never the one that it has."""
        known, now = self._known.get(machine.name), _InForce(machine.uid, machine.generation, machine.spec)
        if known != now and facts is not None and _declares(machine, facts):
            known = self._known[machine.name] = now
        if known == now:
            return machine.generation
        said = [each.observedGeneration for each in status_in(machine.status).conditions]
        before = known.generation if known is not None and known.uid == machine.uid else max(said, default=0)
        return before if before < machine.generation else 0


def _declares(machine: MachineObject, facts: Facts) -> bool:
    """Whether the machine is what the object declares, with what it leaves to its profile and its class."""
    declared = declared_as(machine.name, machine.spec)
    return declared is not None and completed(declared, facts.profile, facts.of_class) == facts.machine
