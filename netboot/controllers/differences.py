"""Which objects of machines say another thing than what is known, and which of these is to be written next.

By clocks that are handed in; for one thread at a time.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from netboot.lifecycle.object_status import Facts, ObjectStatus, Urgency, status_in, status_of, urgency_of
from netboot.lifecycle.objects import MachineObject, ObjectSeen, ObjectsListed, Seen
from netboot.lifecycle.pacing import Apart
from netboot.machines.resources import declared_as

LEFT_OUT_SECONDS = 30.0
"""For so long an object may be known here, and not be in force yet."""
_LONG_AGO = float("-inf")


class Due(NamedTuple):
    """What an object is to say. `since`: when that was first another thing than it says; `after`: not before."""

    status: ObjectStatus
    document: Mapping[str, Any]
    urgency: Urgency
    since: float
    after: float = _LONG_AGO


class Differences:
    """Objects as they were seen, and what they are to say."""

    def __init__(self) -> None:
        self.listed = False
        """Whether all were seen."""
        self._objects = dict[str, MachineObject]()
        self._looked_for = dict[str, float]()
        """Name of one that is to be looked at → since when."""
        self._due, self._order = dict[str, Due](), deque[str]()
        self._in_force = dict[str, tuple[str, int]]()
        """Name → the uid of its object, and the generation of which the spec is in force."""
        self._pruned = dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]]()
        """Name → what was written, and what its object said then, where that is another thing: an API server drops
        what its definitions do not have, and others may have written there."""
        self._apart = Apart()

    def __len__(self) -> int:
        return len(self._objects)

    def take(self, seen: Seen, now: float) -> None:
        """What the API server said."""
        if isinstance(seen, ObjectsListed):
            for name in self._objects.keys() - {each.name for each in seen.objects}:
                self._forget(name)
            for each in seen.objects:
                self._take(each)
                self._looked_for.setdefault(each.name, now)
            self.listed = True
        elif isinstance(seen, ObjectSeen) and seen.there:
            before = self._objects.get(seen.machine.name)
            self._take(seen.machine)
            if before is None or before._replace(version=0) != self._objects[before.name]._replace(version=0):
                self._looked_for.setdefault(seen.machine.name, now)
        elif isinstance(seen, ObjectSeen):
            self._forget(seen.machine.name)

    def _take(self, machine: MachineObject) -> None:
        """Unless what was written here since says more."""
        before = self._objects.get(machine.name)
        if before is None or before.uid != machine.uid or not 0 < machine.version < before.version:
            self._objects[machine.name] = machine

    def _forget(self, name: str) -> None:
        for table in (self._objects, self._looked_for, self._due, self._in_force, self._pruned):
            table.pop(name, None)
        self._apart.forget(name)

    def look_for(self, names: Iterable[str] | None, now: float) -> None:
        """These are to be looked at, or all; and what is due is put in order."""
        for name in self._objects if names is None else self._objects.keys() & set(names):
            self._looked_for.setdefault(name, now)
        self._order = deque(sorted(self._due, key=lambda name: self._due[name][2:]))

    def some(self, most: int) -> dict[str, float]:
        """At most so many that are to be looked at, and since when."""
        return dict(list(self._looked_for.items())[:most])

    def put_back(self, looked_for: Mapping[str, float]) -> None:
        """Of these it cannot be told now: others come first."""
        for name in looked_for:
            if (since := self._looked_for.pop(name, None)) is not None:
                self._looked_for[name] = since

    def found(self, looked_for: Mapping[str, float], facts: Mapping[str, Facts | None]) -> None:
        """What is known of these now."""
        for name, since in looked_for.items():
            if self._looked_for.get(name) == since:
                del self._looked_for[name]
            if (machine := self._objects.get(name)) is not None:
                self._found(machine, facts.get(name), since)

    def _found(self, machine: MachineObject, facts: Facts | None, since: float) -> None:
        name, before = machine.name, self._due.get(machine.name)
        status = status_of(facts, self._generation(machine, facts))
        document, said = status.document(), machine.status
        if document == said or self._pruned.get(name) == (document, said):
            self._due.pop(name, None)
            return
        urgency, since = urgency_of(status_in(said), status), before.since if before is not None else since
        after = since + LEFT_OUT_SECONDS if facts is None else _LONG_AGO
        self._due[name] = Due(status, document, urgency, since, after)
        if before is None or before.urgency != urgency:
            (self._order.appendleft if urgency is Urgency.NOW else self._order.append)(name)

    def _generation(self, machine: MachineObject, facts: Facts | None) -> int:
        """Of which the spec is in force: the last that was seen to declare the machine that there is."""
        uid, generation = self._in_force.get(machine.name, ("", 0))
        if facts is None or (uid, generation) == (machine.uid, machine.generation):
            return generation
        if declared_as(machine.name, machine.spec) == facts.machine:
            uid, generation = self._in_force[machine.name] = machine.uid, machine.generation
        return generation if uid == machine.uid else 0

    def next(self, now: float) -> tuple[MachineObject, Due] | None:
        """The first that may be written now; None: none may."""
        while self._order:
            name = self._order[0]
            due = self._due.get(name)
            if due is not None and now >= max(due.after, self._apart.due(name, due.urgency)):
                return self._objects[name], due
            self._order.popleft()
        return None

    def wrote(self, machine: MachineObject, due: Due, after: MachineObject | None, now: float) -> None:
        """Its object says that since `now`, and is `after` now; None: it is gone."""
        self._due.pop(machine.name, None)
        if after is None or machine.name not in self._objects:
            return
        self._apart.note(machine.name, due.urgency, now)
        self._pruned.pop(machine.name, None)
        if after.status != due.document:
            self._pruned[machine.name] = due.document, after.status
        self._take(after)

    def refused(self, machine: MachineObject, due: Due, again: float) -> None:
        """The API server did not take it; `again`: when to try anew."""
        if self._due.get(machine.name) is due:
            self._due[machine.name] = due._replace(after=again)

    def behind(self, now: float) -> tuple[int, float]:
        """How many are to be written or looked at, and for how long the one has been that has been so for longest."""
        waits = [*(due.since for due in self._due.values()), *self._looked_for.values()]
        return len(self._due.keys() | self._looked_for.keys()), max((now - since for since in waits), default=0.0)
