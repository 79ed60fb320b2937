"""Where channels point, as objects in memory, as an API server keeps them:
`netboot.lifecycle.assignment_objects.AssignmentObjects`."""

import itertools
import threading
from collections.abc import Callable

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.assignment_objects import AssignmentObject, AssignmentSpec, assignment_object
from tests.order_objects import AWAY


class MemoryAssignments:
    """`before_write`: what happens between a read and the write that goes by it; `away`: nobody answers; `unheard`:
    what is written is, and no answer comes; `specs`: what was written last."""

    def __init__(self) -> None:
        self._lock, self._versions = threading.RLock(), itertools.count(1)
        self.objects: dict[str, AssignmentObject] = {}
        self.specs: dict[str, AssignmentSpec] = {}
        self.before_write: Callable[[], None] = lambda: None
        self.away = self.unheard = False

    def read(self, channel: str) -> AssignmentObject | None:
        if self.away:
            raise ClusterUnavailableError(AWAY)
        return self.objects.get(channel)

    def write(self, channel: str, spec: AssignmentSpec, before: AssignmentObject | None) -> AssignmentObject:
        if self.away:
            raise ClusterUnavailableError(AWAY)
        self.before_write()
        with self._lock:
            found, version = self.objects.get(channel), next(self._versions)
            if (found.version if found else None) != (before.version if before else None):
                raise ConflictError("409 Conflict: the object has been modified")
            uid, generation = (found.uid, found.generation + 1) if found is not None else (f"uid-{version}", 1)
            self.specs[channel] = spec
            said = spec.model_dump(mode="json")
            self.objects[channel] = assignment_object(channel, uid, generation, said, f"version-{version}")
            if self.unheard:
                raise ClusterUnavailableError(AWAY)
            return self.objects[channel]

    def all(self) -> list[AssignmentObject]:
        """As who follows them has them."""
        return list(self.objects.values())
