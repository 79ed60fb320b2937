"""Rollouts as objects in memory, as an API server keeps them: `netboot.lifecycle.rollout_objects.RolloutObjects`."""

import itertools
import threading
from collections.abc import Callable

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.rollout_objects import KIND, RolloutObject, RolloutSpec, rollout_object, spec_of
from netboot.machines.resources import Resource
from tests.order_objects import AWAY


class MemoryRolloutObjects:
    """`before_write`: what happens between a read and the write that goes by it; `away`: nobody answers; `unheard`:
    what is written is, and no answer comes; `asked`: how often anything was."""

    def __init__(self) -> None:
        self._lock, self._versions = threading.RLock(), itertools.count(1)
        self.objects: dict[int, RolloutObject] = {}
        self.before_write: Callable[[], None] = lambda: None
        self.away = self.unheard = False
        self.asked = 0

    def _answer(self) -> None:
        self.asked += 1
        if self.away:
            raise ClusterUnavailableError(AWAY)

    def read(self, number: int) -> RolloutObject | None:
        self._answer()
        return self.objects.get(number)

    def all(self) -> list[RolloutObject]:
        self._answer()
        return [self.objects[number] for number in sorted(self.objects)]

    def write(self, number: int, spec: RolloutSpec, before: RolloutObject | None) -> RolloutObject:
        self._answer()
        self.before_write()
        with self._lock:
            found, version = self.objects.get(number), next(self._versions)
            if (found.version if found else None) != (before.version if before else None):
                raise ConflictError("409 Conflict: the object has been modified")
            uid, generation = (found.uid, found.generation + 1) if found is not None else (f"uid-{version}", 1)
            said = spec.model_dump(mode="json", exclude_none=True)
            self.objects[number] = rollout_object(str(number), uid, generation, said, f"version-{version}")
            if self.unheard:
                raise ClusterUnavailableError(AWAY)
            return self.objects[number]

    def delete(self, there: RolloutObject) -> None:
        self._answer()
        with self._lock:
            found = self.objects.get(there.number)
            if found is None or found.version != there.version:
                raise ConflictError("409 Conflict: the object has been modified")
            del self.objects[there.number]

    def kept(self) -> list[Resource]:
        """All, as who follows them keeps them."""
        return [resource(each) for each in self.all() if each.said is not None]


def resource(each: RolloutObject) -> Resource:
    assert each.said is not None
    spec = spec_of(each.said).model_dump(mode="json", exclude_none=True)
    name = str(each.number)
    return Resource(
        kind=KIND,
        name=name,
        shown=f"{KIND}/{name}",
        spec=spec,
        uid=each.uid,
        generation=each.generation,
        version=each.version,
    )
