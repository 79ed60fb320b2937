"""A fleet for rollouts: machines that leave service, and come back with what they were assigned, or do not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from netboot.lifecycle.budget import Out
from netboot.lifecycle.rollout import Fact, Member, MemberState, Rollout, target
from netboot.lifecycle.rollout_engine import World, step
from netboot.machines.strategy import Strategy

OLD, NEW, OTHER = "a" * 64, "b" * 64, "c" * 64


@dataclass
class Simulated:
    """A machine: what it runs, the number of its boot, whether it is in service."""

    image: str = OLD
    boot: int = 1
    up: bool = True
    gone: str = ""
    held: str = ""
    known: bool = True
    past: bool = False

    def fact(self) -> Fact:
        return Fact(self.up, self.image, f"boot-{self.boot}", self.held, self.gone, past=self.past)


def rollout(*, on_next_boot: bool = True, unproven: bool = False, **strategy: object) -> Rollout:
    said = {"canary": 2, "max_unavailable": "5%", "bake": 60, "deadline": 600, **strategy}
    return Rollout(
        number=7,
        channel="stable",
        image=NEW,
        image_name="next",
        base=OLD,
        strategy=Strategy.model_validate(said),
        on_next_boot=on_next_boot,
        unproven=unproven,
        operator="alice",
        started_ms=1,
    )


@dataclass
class Fleet:
    """`racks`: of each machine, by its number."""

    rollout: Rollout
    members: dict[str, Member]
    machines: dict[str, Simulated]
    seeing: bool = True
    obstacle: str = ""
    refused: dict[str, str] = field(default_factory=dict)
    withheld: str = ""
    unseen: str = ""
    by: dict[str, str] = field(default_factory=dict)
    near: dict[str, Out] = field(default_factory=dict)
    kept: str = ""
    control: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, begun: Rollout, count: int, racks: Callable[[int], str]) -> "Fleet":
        names = [f"m{number:04}" for number in range(count)]
        members = {name: Member(machine=name, rack=racks(n), previous=OLD) for n, name in enumerate(names)}
        return cls(begun, members, {name: Simulated() for name in names})

    def of_domains(self, domains: Sequence[str]) -> None:
        """Machines' accelerator domains, in the order of their names; "": it is in none."""
        for (name, each), domain in zip(list(self.members.items()), domains, strict=False):
            self.members[name] = each.model_copy(update={"domain": domain})

    def of_control_plane(self, *names: str) -> None:
        """These are of one, and named; they may go."""
        for name in names:
            self.members[name] = self.members[name].model_copy(update={"named": True, "domain": ""})
            self.control[name] = ""

    def facts(self) -> Mapping[str, Fact]:
        return {name: each.fact() for name, each in self.machines.items() if each.known}

    def look(self, seconds: int = 0) -> None:
        """Time passes where it can be seen; then a step, unless the rollout has ended: as its controller does."""
        if not self.rollout.under_way:
            return
        if self.seeing:
            clock = self.rollout.clock_ms + seconds * 1000
            self.rollout = self.rollout.model_copy(update={"clock_ms": clock})
        said = (self.seeing, self.obstacle, self.refused, self.withheld, self.unseen, self.by, self.near, self.kept)
        world = World(self.facts(), *said, self.control)
        self.rollout, self.members = step(self.rollout, self.members, world)

    def of_state(self, *states: MemberState) -> list[str]:
        return sorted(name for name, each in self.members.items() if each.state in states)

    @property
    def assigned(self) -> list[str]:
        return self.of_state(MemberState.ASSIGNED)

    def leave(self, name: str) -> None:
        """It is rebooted, or crashes."""
        self.machines[name].up = False

    def come(self, name: str, image: str | None = None) -> None:
        """Back in service, with what it is to boot or with another image."""
        machine = self.machines[name]
        machine.image = image or target(self.rollout, self.members[name])
        machine.boot += 1
        machine.up = True

    def reboot(self, name: str, image: str | None = None) -> None:
        """All of it, seen from both sides."""
        self.leave(name)
        self.look(1)
        self.come(name, image)
        self.look(1)


def fleet(count: int = 40, racks: int = 4, **changed: Any) -> Fleet:
    return Fleet.of(rollout(**changed), count, lambda number: f"r{number % racks}")


def proved(**changed: Any) -> Fleet:
    """Its canaries are in service for as long as they have to be."""
    world = fleet(**changed)
    world.look()
    for name in world.assigned:
        world.reboot(name)
    world.look(60)
    return world
