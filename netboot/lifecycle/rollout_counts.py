"""What follows from a rollout's machines for whoever looks at the rollout as a whole. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator

from images.values.strict import Strict
from netboot.lifecycle.rollout import APART, Member, MemberState
from netboot.lifecycle.rollout_batch import largest, racks_of, units_of
from netboot.lifecycle.rollout_member import turn_came
from netboot.machines.positions import runs, standing


def _of_each(machines: dict[MemberState, int]) -> dict[MemberState, int]:
    if machines.keys() != set(MemberState):
        raise ValueError("it was counted when there were other states")
    return machines


class Counts(Strict):
    """`machines`: state → how many; `racks`: how many; `domains`: accelerator domain → how many machines of it go
    together; `named`, `kept`: machines of a control plane. `racks`, `domains` and `named` are without those that are
    kept. `largest`: machines of the largest turn; `assigned`: machine whose turn came → what it booted before.

    Kept with the rollout: raise `rule` where `counted` comes to other values, or to more, and all are counted anew."""

    rule: Literal[1] = 1
    machines: Annotated[dict[MemberState, int], AfterValidator(_of_each)]
    racks: int
    domains: dict[str, int]
    named: tuple[str, ...]
    kept: tuple[str, ...]
    largest: int
    assigned: dict[str, str]

    @property
    def of(self) -> int:
        """Machines, but for those that are kept."""
        return sum(self.machines.values()) - self.machines[MemberState.KEPT]

    @property
    def going(self) -> int:
        """Machines that it brings somewhere, of which its budget is a share."""
        return sum(count for state, count in self.machines.items() if state not in APART)


class RolloutRun(Strict):
    """Machines of a rack that stand beside each other and are in one state. `first`: the first of them, `position`: its
    unit; `gap`: units are free before it."""

    state: MemberState
    first: str
    count: int
    position: int | None = None
    gap: bool = False


class RackRuns(Strict):
    """`machines`: how many of this rack the rollout has, those that left and are kept too; `runs`: all of them."""

    rack: str
    machines: int
    runs: tuple[RolloutRun, ...]


class ByRack(Strict):
    """By their names, each with its machines as they stand. Kept with the rollout: see `Counts`."""

    rule: Literal[3] = 3
    racks: tuple[RackRuns, ...]


def counted(members: Mapping[str, Member]) -> Counts:
    """Of all machines of a rollout, by name."""
    there = {name: each for name, each in members.items() if each.state is not MemberState.KEPT}
    return Counts(
        machines=by_state(members.values()),
        racks=len(racks_of(there.values())),
        domains={unit[0].domain: len(unit) for unit in units_of(there.values()) if len(unit) > 1},
        named=tuple(sorted(name for name, each in there.items() if each.named)),
        kept=tuple(sorted(members.keys() - there.keys())),
        largest=largest(there.values()),
        assigned=turn_came(members),
    )


def by_rack(members: Mapping[str, Member]) -> ByRack:
    """Of all machines of a rollout, by name."""
    racks: dict[str, list[Member]] = {}
    for each in sorted(members.values(), key=lambda each: standing(each.rack, each.position, each.machine)):
        racks.setdefault(each.rack, []).append(each)
    found = (RackRuns.model_construct(rack=rack, machines=len(of), runs=_runs(of)) for rack, of in racks.items())
    return ByRack(racks=tuple(found))


def _runs(members: Sequence[Member]) -> tuple[RolloutRun, ...]:
    found = runs([each.position for each in members], [each.state for each in members])
    return tuple(
        RolloutRun.model_construct(
            state=first.state, first=first.machine, count=run.size, position=first.position, gap=run.gap
        )
        for run in found
        for first in (members[run.begin],)
    )


def by_state(members: Iterable[Member]) -> dict[MemberState, int]:
    """How many are in each state, those in which none is too."""
    counts = dict.fromkeys(MemberState, 0)
    for each in members:
        counts[each.state] += 1
    return counts
