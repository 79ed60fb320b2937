"""Whose turn it is: canaries across racks and classes, then batches within the budgets. Pure."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from netboot.lifecycle.budget import BY_ITSELF, Out, Places
from netboot.lifecycle.rollout import ANEW, MOVING, Fact, Member, MemberState, Rollout


def racks_of(members: Iterable[Member]) -> set[str]:
    """Those machines' racks; all that are in no declared one count as one."""
    return {each.rack for each in members}


@dataclass(frozen=True, slots=True)
class Batch:
    """What can begin now, without more machines out of service than may be. `by`: machine → by whose word it is out;
    `near`: others that are out, in racks of these."""

    rollout: Rollout
    members: Mapping[str, Member]
    facts: Mapping[str, Fact]
    by: Mapping[str, str] = field(default_factory=dict)
    near: Mapping[str, Out] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """How many may be out at once."""
        there = sum(each.state is not MemberState.LEFT for each in self.members.values())
        return 1 if self.rollout.unproven else self.rollout.strategy.budget(there)

    def crowded(self) -> dict[str, Member]:
        """Those whose turn came and who were not ordered yet, and have no room since others went out of service, or are
        out by somebody else's word: they wait again, as they are then."""
        if self.rollout.on_next_boot:
            return {}
        unbegun = {name: each for name, each in self.members.items() if self._unbegun(each)}
        going = unbegun.keys() - self.by.keys()
        places = self._places({name: each for name, each in self.members.items() if name not in going})
        back: dict[str, Member] = {}
        for member in sorted(unbegun.values(), key=lambda each: lot(self.rollout.number, each.machine)):
            if member.machine in going and places.fits(member.rack):
                places.take(member.machine, self._as_out(member))
            else:
                back[member.machine] = waiting(self.rollout, member)
        return back

    def _unbegun(self, member: Member) -> bool:
        fact = self.facts.get(member.machine)
        return member.state is MemberState.ASSIGNED and fact is not None and fact.up

    def _places(self, members: Mapping[str, Member]) -> Places:
        out = {name: self._as_out(each) for name, each in members.items() if self.out(each)}
        return Places(self.most, self.rollout.strategy.per_rack, out, self.near)

    def _as_out(self, member: Member) -> Out:
        own = _by(self.rollout) if member.state in MOVING else BY_ITSELF
        return Out(member.rack, self.by.get(member.machine, own))

    def begin(self) -> dict[str, Member]:
        """The members whose turn comes now, as they are then."""
        places, begun = self._places(self.members), dict[str, Member]()

        def fits(member: Member) -> bool:
            return self._free or places.fits(member.rack)

        for member in self._candidates(fits):
            if fits(member):
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
        racks = {each.rack: None for each in waiting if not self.out(each)} or {each.rack: None for each in waiting}
        if self._free or any(map(places.fits, racks)):
            return ""
        refusals = filter(None, map(places.refusal, racks))
        return next((str(each) for each in refusals if not self._on_their_way(each.who)), "")

    def _on_their_way(self, names: Iterable[str]) -> bool:
        return all(name in self.members and self.members[name].state in MOVING for name in names)

    def out(self, member: Member) -> bool:
        """Whether it fills a place."""
        fact = self.facts.get(member.machine)
        gone = fact is None or not fact.up or member.machine in self.by
        return member.state is not MemberState.LEFT and (member.state in MOVING or gone)

    def _begun(self, member: Member) -> Member:
        trying = not self.rollout.rolling and not self.rollout.undoing
        now = {"state": MemberState.ASSIGNED, "since": self.rollout.clock_ms, "canary": trying, "tries": 0}
        return member.model_copy(update={**now, **ANEW, "boot": self.facts[member.machine].boot})

    def _candidates(self, fits: Callable[[Member], bool]) -> Iterator[Member]:
        waiting = [each for each in self.members.values() if each.state is MemberState.WAITING and not self.out(each)]
        waiting.sort(key=lambda each: lot(self.rollout.number, each.machine))
        return iter(waiting) if self.rollout.rolling or self.rollout.undoing else self._canaries(waiting, fits)

    def _canaries(self, waiting: list[Member], fits: Callable[[Member], bool]) -> Iterator[Member]:
        """So many as are wanted still, each where the fewest are: in another rack, then of another class. One in the
        rack of all others proves little: none is drawn beyond the number but for a second rack."""
        live = (*MOVING, MemberState.DONE)
        drawn = [each for each in self.members.values() if each.canary and each.state in live]
        while able := [each for each in waiting if fits(each)]:
            racks, classes = Counter(each.rack for each in drawn), Counter(each.class_name for each in drawn)
            wants_rack = not self.rollout.unproven and len(racks) < 2
            if len(drawn) >= self.rollout.strategy.canary and not wants_rack:
                return
            choice = min(able, key=lambda each: (racks[each.rack], classes[each.class_name]))
            if len(drawn) >= self.rollout.strategy.canary and choice.rack in racks:
                return
            waiting.remove(choice)
            drawn.append(choice)
            yield choice


def turns(rollout: Rollout, members: Mapping[str, Member]) -> dict[str, str]:
    """Machines that fill a place of it however they are: by whose word."""
    return {name: _by(rollout) for name, each in members.items() if each.state in MOVING}


def _by(rollout: Rollout) -> str:
    return f"by rollout {rollout.number} of channel {rollout.channel}"


def waiting(rollout: Rollout, member: Member) -> Member:
    """One that was not begun: it waits again."""
    return member.model_copy(update={"state": MemberState.WAITING, "since": rollout.clock_ms, "canary": False})


def lot(number: int, machine: str) -> bytes:
    """Its place in the order, which is another one for each rollout and the same after a restart."""
    return hashlib.sha256(f"{number} {machine}".encode()).digest()
