"""Whose turn it is: canaries across racks and classes, then batches within the budgets. Pure.

A turn is of a unit: a machine, or all of an accelerator's domain that are in service and had none yet.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from netboot.lifecycle.budget import BY_ITSELF, Out, Places
from netboot.lifecycle.rollout import ANEW, APART, MOVING, Fact, Member, MemberState, Rollout, Stage

Unit = list[Member]
UNNAMED = "it is of a control plane, and was not named"
NO_MORE = "neither the inventory nor its Node says any more that it is of a control plane"


def racks_of(members: Iterable[Member]) -> set[str]:
    """Those machines' racks; all that are in no declared one count as one."""
    return {each.rack for each in members}


@dataclass(frozen=True, slots=True)
class Batch:
    """What can begin now, without more machines out of service than may be. `by`: machine → by whose word it is out;
    `near`: others that are out, in racks of these; `control`: as `World` has it."""

    rollout: Rollout
    members: Mapping[str, Member]
    facts: Mapping[str, Fact]
    by: Mapping[str, str] = field(default_factory=dict)
    near: Mapping[str, Out] = field(default_factory=dict)
    control: Mapping[str, str] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """How many may be out at once."""
        there = sum(each.state not in APART for each in self.members.values())
        return most(self.rollout, there, lambda: largest(self.members.values()))

    def crowded(self) -> dict[str, Member]:
        """Those whose turn came and who were not ordered yet, and have no room since others went out of service, or are
        out by somebody else's word: they wait again, as they are then."""
        if self.rollout.on_next_boot:
            return {}
        unbegun = {name: each for name, each in self.members.items() if self._unbegun(each)}
        going = {name: each for name, each in unbegun.items() if name not in self.by}
        places = self._places({name: each for name, each in self.members.items() if name not in going})
        back = unbegun.keys() - going.keys()
        for unit in self._by_lot(going.values()):
            if places.fits(*_racks(unit)):
                for member in unit:
                    places.take(member.machine, self._as_out(member))
            else:
                back |= {member.machine for member in unit}
        return {name: waiting(self.rollout, unbegun[name]) for name in back}

    def endangering(self) -> dict[str, Member]:
        """Machines of a control plane whose turn came and that may not go any more, for another one goes or there is no
        majority without them: they wait again, also those that are being drained."""
        named = [each for each in self.members.values() if each.named]
        turn = sorted((each for each in named if each.state is MemberState.ASSIGNED), key=self._not_begun)
        out = any(each.state is MemberState.OUT for each in named)
        may = [each.machine for each in turn if not out and not self._hindered(each)][:1]
        return {each.machine: waiting(self.rollout, each) for each in turn if each.machine not in may}

    def _not_begun(self, member: Member) -> bool:
        fact = self.facts.get(member.machine)
        return fact is None or fact.stage is Stage.NONE

    def _hindered(self, member: Member) -> str:
        return self.control.get(member.machine, NO_MORE) if member.named else ""

    def _singly(self, unit: Unit, begun: Container[str] = ()) -> bool:
        """Whether no other machine of a control plane has its turn."""
        me, members = unit[0], self.members.values()
        return not me.named or not any(
            each.named and each.machine != me.machine and (each.state in MOVING or each.machine in begun)
            for each in members
        )

    def _unbegun(self, member: Member) -> bool:
        fact = self.facts.get(member.machine)
        return member.state is MemberState.ASSIGNED and fact is not None and fact.up

    def _places(self, members: Mapping[str, Member]) -> Places:
        out = {name: self._as_out(each) for name, each in members.items() if self.out(each)}
        return Places(self.most, self.rollout.strategy.per_rack, out, self.near, alone=self.rollout.unproven)

    def _as_out(self, member: Member) -> Out:
        own = _by(self.rollout) if member.state in MOVING else BY_ITSELF
        return Out(member.rack, self.by.get(member.machine, own))

    def begin(self) -> dict[str, Member]:
        """The members whose turn comes now, as they are then."""
        places, begun = self._places(self.members), dict[str, Member]()

        def fits(unit: Unit) -> bool:
            may = self._singly(unit, begun) and not self._hindered(unit[0])
            return may and (self._free or places.fits(*_racks(unit)))

        for unit in self._candidates(fits):
            for member in unit if fits(unit) else ():
                begun[member.machine] = self._begun(member)
                places.take(member.machine, self._as_out(begun[member.machine]))
        return begun

    @property
    def _free(self) -> bool:
        """Machines are not rebooted by us, and all of them are assigned what they had already."""
        return self.rollout.undoing and self.rollout.on_next_boot

    def waits(self) -> str:
        """What keeps the next turn from coming, but for machines that are on their way with it; "": nothing."""
        places = self._places(self.members)
        waiting = [each for each in self.members.values() if each.state is MemberState.WAITING]
        units = _in_turn(units_of(each for each in waiting if not self.out(each)) or units_of(waiting))
        if units and not any(self._singly(unit) for unit in units):
            return ""
        hindered = [self._hindered(unit[0]) for unit in units]
        if units and all(hindered):
            return f"{units[0][0].machine} may not go: {hindered[0]}"
        alike: dict[tuple[str, ...], Unit] = {}
        for unit in units:
            alike.setdefault(tuple(_racks(unit)), unit)
        if self._free or any(places.fits(*racks) for racks in alike):
            return ""
        for racks, unit in alike.items():
            refusal = places.refusal(*racks)
            if refusal is not None and not (refusal.who and self._on_their_way(refusal.who)):
                return f"{refusal}{_together(unit)}{self._never(unit)}"
        return ""

    def _never(self, unit: Unit) -> str:
        """A share of those that are left may have become smaller than a domain that it had room for."""
        if len(unit) <= self.most:
            return ""
        return f": `netboot channel set {self.rollout.channel} IMAGE --force` ends this rollout, for another one"

    def _on_their_way(self, names: Iterable[str]) -> bool:
        return all(name in self.members and self.members[name].state in MOVING for name in names)

    def out(self, member: Member) -> bool:
        """Whether it fills a place."""
        fact = self.facts.get(member.machine)
        gone = fact is None or not fact.up or member.machine in self.by
        return member.state not in APART and (member.state in MOVING or gone)

    def _begun(self, member: Member) -> Member:
        trying = not self.rollout.rolling and not self.rollout.undoing
        now = {"state": MemberState.ASSIGNED, "since": self.rollout.clock_ms, "canary": trying, "tries": 0}
        return member.model_copy(update={**now, **ANEW, "boot": self.facts[member.machine].boot})

    def _candidates(self, fits: Callable[[Unit], bool]) -> Iterator[Unit]:
        members = [each for each in self.members.values() if each.state is MemberState.WAITING and not self.out(each)]
        waiting = _in_turn(self._by_lot(members))
        return iter(waiting) if self.rollout.rolling or self.rollout.undoing else self._canaries(waiting, fits)

    def _by_lot(self, members: Iterable[Member]) -> list[Unit]:
        return sorted(units_of(members), key=lambda unit: lot(self.rollout.number, unit[0].domain or unit[0].machine))

    def _canaries(self, waiting: list[Unit], fits: Callable[[Unit], bool]) -> Iterator[Unit]:
        """So many as are wanted still, each where the fewest are: in another rack, then of another class, then the
        fewest at once. One in the rack of all others proves little: none is drawn beyond the number but for a second
        rack."""
        live = (*MOVING, MemberState.DONE)
        drawn = [each for each in self.members.values() if each.canary and each.state in live]
        while able := [unit for unit in waiting if fits(unit)]:
            racks, classes = Counter(_racks(drawn)), Counter(each.class_name for each in drawn)
            wants_rack = not self.rollout.unproven and len(racks) < 2
            if len(drawn) >= self.rollout.strategy.canary and not wants_rack:
                return

            def few(unit: Unit, racks: Counter[str] = racks, classes: Counter[str] = classes) -> tuple[int, ...]:
                return min(racks[each.rack] for each in unit), min(classes[each.class_name] for each in unit), len(unit)

            choice = min(able, key=few)
            if len(drawn) >= self.rollout.strategy.canary and racks.keys() >= racks_of(choice):
                return
            waiting.remove(choice)
            drawn += choice
            yield choice


def units_of(members: Iterable[Member]) -> list[Unit]:
    """These machines by whose turn comes together, in their order."""
    found: dict[tuple[str, str], Unit] = {}
    for each in members:
        found.setdefault((each.domain, "" if each.domain else each.machine), []).append(each)
    return list(found.values())


def _in_turn(units: list[Unit]) -> list[Unit]:
    """Machines of a control plane wait for all others that can go."""
    return [unit for unit in units if not unit[0].named] or units


def most(rollout: Rollout, there: int, whole: Callable[[], int]) -> int:
    """How many of so many machines may be out at once; `whole`: how many the largest turn is of."""
    budget = rollout.strategy.budget(there)
    return min(budget, whole()) if rollout.unproven else budget


def largest(members: Iterable[Member]) -> int:
    """How many machines the largest turn is of."""
    there = (each for each in members if each.state not in APART)
    return max(map(len, units_of(there)), default=1)


def _racks(unit: Unit) -> list[str]:
    return [each.rack for each in unit]


def _together(unit: Unit) -> str:
    return f"; the {len(unit)} machines of accelerator domain {unit[0].domain} go together" if len(unit) > 1 else ""


def turns(rollout: Rollout, members: Mapping[str, Member]) -> dict[str, str]:
    """Machines that fill a place of it however they are: by whose word."""
    return {name: _by(rollout) for name, each in members.items() if each.state in MOVING}


def _by(rollout: Rollout) -> str:
    return f"by rollout {rollout.number} of channel {rollout.channel}"


def waiting(rollout: Rollout, member: Member) -> Member:
    """One that was not begun: it waits again."""
    return member.model_copy(update={"state": MemberState.WAITING, "since": rollout.clock_ms, "canary": False})


def unnamed(members: Mapping[str, Member], control: Container[str]) -> dict[str, Member]:
    """Those of a control plane that nobody named, and that were not rebooted: they keep what they had."""
    kept = {"state": MemberState.KEPT, "why": UNNAMED, "canary": False}
    return {
        name: each.model_copy(update=kept)
        for name, each in members.items()
        if name in control and not each.named and each.state in (MemberState.WAITING, MemberState.ASSIGNED)
    }


def lot(number: int, machine: str) -> bytes:
    """Its place in the order, which is another one for each rollout and the same after a restart."""
    return hashlib.sha256(f"{number} {machine}".encode()).digest()
