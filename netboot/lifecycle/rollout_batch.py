"""Whose turn it is: canaries across racks and classes, then batches within the budgets. Pure."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from netboot.lifecycle.rollout import ANEW, MOVING, Fact, Member, MemberState, Rollout


def racks_of(members: Iterable[Member]) -> set[str]:
    """Those machines' racks; all that are in no declared one count as one."""
    return {each.rack for each in members}


@dataclass(frozen=True, slots=True)
class Batch:
    """What can begin now, without more machines out of service than may be."""

    rollout: Rollout
    members: Mapping[str, Member]
    facts: Mapping[str, Fact]

    @property
    def most(self) -> int:
        """How many may be out at once."""
        there = sum(each.state is not MemberState.LEFT for each in self.members.values())
        return 1 if self.rollout.unproven else self.rollout.strategy.budget(there)

    def crowded(self) -> dict[str, Member]:
        """Those whose turn came and who were not ordered yet, and have no room since others went out of service: they
        wait again, as they are then."""
        if self.rollout.on_next_boot:
            return {}
        unbegun = [each for each in self.members.values() if self._unbegun(each)]
        out = Counter(each.rack for each in self.members.values() if self._out(each))
        out.subtract(each.rack for each in unbegun)
        back: dict[str, Member] = {}
        for member in sorted(unbegun, key=lambda each: lot(self.rollout.number, each.machine)):
            if out.total() < self.most and self._fits(member, out):
                out[member.rack] += 1
            else:
                back[member.machine] = waiting(self.rollout, member)
        return back

    def _unbegun(self, member: Member) -> bool:
        fact = self.facts.get(member.machine)
        return member.state is MemberState.ASSIGNED and fact is not None and fact.up

    def _fits(self, member: Member, out: Mapping[str, int]) -> bool:
        per_rack = self.rollout.strategy.per_rack
        return per_rack is None or out[member.rack] < per_rack

    def begin(self) -> dict[str, Member]:
        """The members whose turn comes now, as they are then."""
        rollout = self.rollout
        # machines are not rebooted by us, and all of them are assigned what they had already
        free = rollout.undoing and rollout.on_next_boot
        out = Counter(each.rack for each in self.members.values() if self._out(each))
        room = len(self.members) if free else self.most - out.total()
        begun: dict[str, Member] = {}

        def fits(member: Member) -> bool:
            return free or self._fits(member, out)

        for member in self._candidates(fits):
            if room <= 0:
                break
            if not fits(member):
                continue
            begun[member.machine] = self._begun(member)
            out[member.rack] += 1
            room -= 1
        return begun

    def _out(self, member: Member) -> bool:
        fact = self.facts.get(member.machine)
        return member.state is not MemberState.LEFT and (member.state in MOVING or fact is None or not fact.up)

    def _begun(self, member: Member) -> Member:
        trying = not self.rollout.rolling and not self.rollout.undoing
        now = {"state": MemberState.ASSIGNED, "since": self.rollout.clock_ms, "canary": trying, "tries": 0}
        return member.model_copy(update={**now, **ANEW, "boot": self.facts[member.machine].boot})

    def _candidates(self, fits: Callable[[Member], bool]) -> Iterator[Member]:
        waiting = [each for each in self.members.values() if each.state is MemberState.WAITING and not self._out(each)]
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


def waiting(rollout: Rollout, member: Member) -> Member:
    """One that was not begun: it waits again."""
    return member.model_copy(update={"state": MemberState.WAITING, "since": rollout.clock_ms, "canary": False})


def lot(number: int, machine: str) -> bytes:
    """Its place in the order, which is another one for each rollout and the same after a restart."""
    return hashlib.sha256(f"{number} {machine}".encode()).digest()
