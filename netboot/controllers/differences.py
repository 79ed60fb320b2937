"""Which objects of machines say another thing than what is known, and which of these is to be written next.

By clocks that are handed in; for one thread at a time. Which of two words of an API server is the later one, no number
in them says (https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions): a list is how it is, what
a watch brings comes in its order, and what it brings of an object before it brings what was written here is older.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from netboot.controllers.in_force import InForce
from netboot.controllers.overwritten import ANOTHER, DROPPED, Overwritten
from netboot.controllers.refusals import Refusals
from netboot.controllers.shipped import LEFT_OUT_SECONDS, Due, Writing
from netboot.join.errors import ConflictError
from netboot.lifecycle.object_shared import foreign, kept_facts, lost, together
from netboot.lifecycle.object_status import Facts, ObjectStatus, Urgency, claimed, status_in, status_of, urgency_of
from netboot.lifecycle.objects import MachineObject, ObjectSeen, ObjectsListed, Seen
from netboot.lifecycle.pacing import Apart

_LONG_AGO = float("-inf")


class Differences:
    """Objects as they were seen, and what they are to say."""

    def __init__(self, ours: str, now_ms: Callable[[], int]) -> None:
        """`ours`: what other replicas that write these objects call themselves; empty: there is one, which leads.
        `now_ms`: the time of day."""
        self._replicas, self.leads, self._now_ms = ours, True, now_ms
        self._conflicts, self.dropped = set[str](), set[str]()
        """Names: another replica had written these, which is not seen yet; these lack what boots are told by."""
        self.listed = False
        """Whether all were seen."""
        self._objects = dict[str, MachineObject]()
        self._looked_for = dict[str, float]()
        """Name of one that is to be looked at → since when."""
        self._due, self._order = dict[str, Due](), deque[str]()
        self._in_force = InForce()
        self._writing = Writing("", set())
        self._awaited = dict[str, str]()
        """Name → the version that its object got here: what a watch brings before is older. `_ours`: with what was
        written then; nothing: it is gone."""
        self._ours = dict[str, tuple[str, Mapping[str, Any]]]()
        self._pruned = dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]()
        """Name → what was written, and what its object said then: API servers drop what definitions do not have."""
        self._apart, self.refusals, self.overwritten = Apart(), Refusals(), Overwritten()

    def __len__(self) -> int:
        return len(self._objects)

    def take(self, seen: Seen, now: float) -> None:
        """What the API server said."""
        if isinstance(seen, ObjectsListed):
            for name in self._objects.keys() - {each.name for each in seen.objects}:
                self._forget(name)
            self._awaited.clear()
            self._pruned = {name: pruned for name, pruned in self._pruned.items() if name not in self.dropped}
            self._writing = self._writing._replace(listed=True)
            for each in seen.objects:
                self._take(each)
                self._looked_for.setdefault(each.name, now)
            self.listed = True
        elif isinstance(seen, ObjectSeen) and seen.there:
            self._see(seen.machine, now)
        elif isinstance(seen, ObjectSeen):
            self._forget(seen.machine.name)

    def _see(self, machine: MachineObject, now: float) -> None:
        name, before = machine.name, self._objects.get(machine.name)
        awaited = self._awaited.get(name, machine.version)
        if before is not None and before.uid == machine.uid and awaited != machine.version:
            return
        self._awaited.pop(name, None)
        if self._replicas and before is not None and before.version != machine.version:
            self._by_another(before, machine, now)
        self._take(machine)
        if name == self._writing.name:
            self._writing.seen.add(machine.version)
        else:
            self._compare(machine, now)
        if before is None or before._replace(version="", writer="") != machine._replace(version="", writer=""):
            self._looked_for.setdefault(name, now)

    def _by_another(self, before: MachineObject, machine: MachineObject, now: float) -> None:
        """What is due was worked out from what it said before. A line of claims is one, whoever writes it."""
        self._looked_for.setdefault(machine.name, now)
        if self.leads and machine.writer == self._replicas and foreign(machine):
            self.overwritten.fights(machine.name, ANOTHER, now)
        if machine.name in self._conflicts:
            self._conflicts.remove(machine.name)
            self.refusals.taken(machine.name)
        if claimed(status_in(before.status)) != claimed(status_in(machine.status)):
            self._apart.claimed[machine.name] = now

    def _take(self, machine: MachineObject) -> None:
        before = self._objects.get(machine.name)
        if before is not None and before.uid != machine.uid:
            self._forget(machine.name)
        self._keep(machine)

    def _keep(self, machine: MachineObject) -> None:
        self._objects[machine.name] = machine
        dropped = self._replicas and not kept_facts(machine.status)
        (self.dropped.add if dropped else self.dropped.discard)(machine.name)

    def _compare(self, machine: MachineObject, now: float) -> None:
        """Whether somebody else changed what was written here."""
        version, ours = self._ours.get(machine.name, ("", {}))
        if any(machine.status.get(key) != value for key, value in ours.items()):
            self._ours[machine.name] = version, {}
            if not self._replicas or machine.writer != self._replicas:
                self.overwritten.found(machine.name, machine.writer, now)
            elif lost(ours, machine, self._now_ms()):
                self.overwritten.found(machine.name, ANOTHER, now)

    def _forget(self, name: str) -> None:
        for table in (self._objects, self._looked_for, self._due, self._pruned, self._awaited, self._ours):
            table.pop(name, None)
        self._in_force.forget(name)
        self._conflicts.discard(name)
        self.dropped.discard(name)
        for each in (self._apart, self.refusals, self.overwritten):
            each.forget(name)

    def look_for(self, names: Iterable[str] | None, now: float) -> None:
        """These are to be looked at, or all; and what is due is put in order."""
        for name in self._objects if names is None else self._objects.keys() & set(names):
            self._looked_for.setdefault(name, now)
        self._order = deque(sorted(self._due, key=lambda name: self._due[name][3:]))

    def some(self, most: int) -> dict[str, float]:
        """At most so many that are to be looked at, and since when."""
        return dict(list(self._looked_for.items())[:most])

    def objects(self, names: Iterable[str]) -> list[MachineObject]:
        """Those of them that there are, as they were seen last."""
        return [self._objects[name] for name in names if name in self._objects]

    def put_back(self, looked_for: Mapping[str, float]) -> None:
        """Of these it cannot be told now: others come first."""
        for name in looked_for:
            if (since := self._looked_for.pop(name, None)) is not None:
                self._looked_for[name] = since

    def found(
        self, looked_for: Mapping[str, float], facts: Mapping[str, Facts | None], objects: Iterable[MachineObject]
    ) -> None:
        """What is known of these now. `objects`: as they were when that was asked: of one that became another meanwhile
        nothing was learnt yet, so it is looked at again."""
        versions = {each.name: each.version for each in objects}
        for name, since in looked_for.items():
            if (machine := self._objects.get(name)) is not None:
                self._found(machine, facts.get(name), since)
            same = machine is None or versions.get(name, machine.version) == machine.version
            if same and self._looked_for.get(name) == since:
                del self._looked_for[name]

    def _found(self, machine: MachineObject, facts: Facts | None, since: float) -> None:
        name, before = machine.name, self._due.get(machine.name)
        status = self._status(machine, facts)
        document, said = status.document() if status is not None else machine.status, machine.status
        if status is None or document == said or self._pruned.get(name) == (document, said):
            self._due.pop(name, None)
            self.refusals.taken(name)
            return
        urgency, since = urgency_of(status_in(said), status), before.since if before is not None else since
        after = since + LEFT_OUT_SECONDS if facts is None else _LONG_AGO
        self._due[name] = Due(machine, status, document, urgency, since, after)
        if before is None or before.urgency != urgency:
            (self._order.appendleft if urgency is Urgency.NOW else self._order.append)(name)

    def _status(self, machine: MachineObject, facts: Facts | None) -> ObjectStatus | None:
        """What it is to say; None: that is for another replica to write."""
        mine = status_of(facts, self._in_force.generation(machine, facts))
        if not self._replicas:
            return mine
        if not self.leads and (facts is None or foreign(machine) or not kept_facts(machine.status)):
            return None
        known = facts.known if facts is not None else ()
        return together(machine, mine, known, leads=self.leads, now_ms=self._now_ms())

    def next(self, now: float) -> tuple[MachineObject, Due] | None:
        """The first that may be written now; None: none may."""
        while self._order:
            name = self._order[0]
            due = self._due.get(name)
            if due is not None and now >= max(due.after, self._from(name, due.urgency)):
                return due.machine, due
            self._order.popleft()
        return None

    def _from(self, name: str, urgency: Urgency) -> float:
        written = self._apart.written.get(name, _LONG_AGO)
        overwritten = self.overwritten.after(name, written)
        return max(self._apart.due(name, urgency), self.refusals.due(name), overwritten)

    def writes(self, machine: MachineObject) -> None:
        """It is sent now."""
        self._writing = Writing(machine.name, set())

    def wrote(self, machine: MachineObject, due: Due, after: MachineObject, now: float) -> bool:
        """Its object says that since `now`, and was `after` then; whether it said another thing before."""
        name, (_, seen, listed), self._writing = machine.name, self._writing, Writing("", set())
        known = self._objects.get(name)
        if known is None or known.uid != after.uid:
            return False
        self._due.pop(name, None)
        self.refusals.taken(name)
        self._apart.note(name, due.urgency, now)
        self._pruned.pop(name, None)
        if after.status != due.document:
            self._pruned[name] = due.document, after.status
        if self._replicas and not self.leads and not kept_facts(after.status):
            self.overwritten.fights(name, DROPPED, now)
        version, _ = self._ours.get(name, ("", {}))
        self._ours[name] = after.version, {key: after.status.get(key) for key in due.document}
        if after.version in seen:  # what is known is of then, or later
            self._compare(known, now)
        elif not listed:
            self._keep(after)
            if after.version != known.version:
                self._awaited[name] = after.version
        return not after.version or after.version != version

    def failed(self, machine: MachineObject) -> bool:
        """What was sent was not taken; whether there is such an object still."""
        self._writing = Writing("", set())
        return machine.name in self._objects

    def refused(self, machine: MachineObject, error: Exception, now: float) -> None:
        """What was sent was not taken, by this answer."""
        if not self.failed(machine):
            return
        if self._replicas and isinstance(error, ConflictError):
            self._due.pop(machine.name, None)
            self._looked_for.setdefault(machine.name, now)
            if self._objects[machine.name].version != machine.version:
                return
            self._conflicts.add(machine.name)
        self.refusals.refused(machine.name, error, now)

    def behind(self, now: float) -> tuple[int, float]:
        """How many are to be written or looked at, and for how long the one has been that has been so for longest, but
        for those that are refused."""
        refused = self.refusals.told()
        due = {name: each.since for name, each in self._due.items() if name not in refused}
        waits = [*due.values(), *self._looked_for.values()]
        return len(due.keys() | self._looked_for.keys()), max((now - since for since in waits), default=0.0)
