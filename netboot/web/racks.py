"""Racks with their machines as they stand, for whoever draws them."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from netboot.lifecycle.summary import MachineStatus
from netboot.machines.positions import runs, standing
from netboot.machines.values import Machine
from netboot.web.fleet_shapes import Rack, Run

Placed = tuple[Machine, MachineStatus]


def as_they_stand(machines: Iterable[Machine]) -> list[Machine]:
    """Rack by rack, in the order in which they are shown."""
    return sorted(machines, key=lambda each: standing(each.rack or "", each.position, each.name))


def racks(machines: Iterable[Placed]) -> tuple[Rack, ...]:
    """Of machines in that order."""
    by_rack = ((rack, list(there)) for rack, there in groupby(machines, lambda each: each[0].rack or ""))
    return tuple(Rack(rack=rack, machines=len(there), runs=_runs(there)) for rack, there in by_rack)


def _runs(there: Sequence[Placed]) -> tuple[Run, ...]:
    found = runs([machine.position for machine, _ in there], [status for _, status in there])
    return tuple(
        Run.model_construct(status=status, first=machine.name, count=run.size, position=machine.position, gap=run.gap)
        for run in found
        for machine, status in (there[run.begin],)
    )
