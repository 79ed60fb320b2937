"""Enrolments as objects in memory, as an API server keeps them: `netboot.join.enrolment_objects.EnrolmentObjects`."""

import itertools
import threading
from collections.abc import Callable, Mapping

from netboot.join.enrolment import Act
from netboot.join.enrolment_documents import EnrolmentSpec, EnrolmentStatus
from netboot.join.enrolment_objects import EnrolmentObject
from netboot.join.errors import ClusterUnavailableError, ConflictError

AWAY = "the apiserver 192.0.2.1:6443 could not be reached within 3 s"
DAMAGED = "enrolment/gpu-099: spec.window.until: is a moment of no calendar: correct it there"


class MemoryObjects:
    """`before_write`: what happens between a read and the write that goes by it, a Lease's too; `away`: nobody
    answers; `damaged`: one more there is, which cannot be read."""

    def __init__(self, now_ms: int = 0) -> None:
        self._lock, self._versions, self._now_ms = threading.RLock(), itertools.count(1), now_ms
        self.objects: dict[str, EnrolmentObject] = {}
        self.leases: dict[tuple[str, str], str] = {}
        self.before_write: Callable[[], None] = lambda: None
        self.away, self.damaged, self.writes = False, False, 0

    def _answer(self) -> None:
        if self.away:
            raise ClusterUnavailableError(AWAY)

    def read(self, machine: str) -> EnrolmentObject | None:
        self._answer()
        return self.objects.get(machine)

    def all(self, *, damaged: bool = True) -> list[EnrolmentObject]:
        self._answer()
        if self.damaged and not damaged:
            raise ClusterUnavailableError(DAMAGED)
        return [self.objects[name] for name in sorted(self.objects)]

    def noticed(self) -> list[EnrolmentObject]:
        windows = {each.name: each.spec.window for each in self.all()}
        boots = {name for name, window in windows.items() if window is not None and window.kind == "boot"}
        return [each for each in self.all() if each.spec.retired or each.name in boots]

    def approved(self, ek_sha256: str) -> list[EnrolmentObject]:
        return [each for each in self.all() if each.spec.ek_sha256 == ek_sha256]

    def proposed(self, ek_sha256: str) -> list[EnrolmentObject]:
        found = self.all()
        return [each for each in found if each.status.proposed and each.status.proposed.ek_sha256 == ek_sha256]

    def write_spec(
        self, machine: str, spec: EnrolmentSpec, before: EnrolmentObject | None, act: Act
    ) -> EnrolmentObject:
        new = EnrolmentObject(machine, f"uid-{machine}", "", 0, self._now_ms, spec, EnrolmentStatus())
        number = (before.generation if before is not None else 0) + 1
        return self._put((before or new)._replace(spec=spec, generation=number), before)

    def write_status(self, status: EnrolmentStatus, before: EnrolmentObject) -> EnrolmentObject:
        return self._put(before._replace(status=status), before)

    def _put(self, new: EnrolmentObject, before: EnrolmentObject | None) -> EnrolmentObject:
        self._answer()
        self.before_write()
        with self._lock:
            found = self.objects.get(new.name)
            if (found.version if found else None) != (before.version if before else None):
                raise ConflictError("409 Conflict: the object has been modified")
            self.writes += 1
            self.objects[new.name] = new._replace(version=str(next(self._versions)))
            return self.objects[new.name]

    def use_window(self, machine: str, window: str, by: str) -> bool:
        self._answer()
        self.before_write()
        with self._lock:
            if (machine, window) in self.leases:
                return False
            self.leases[machine, window] = by
            return True

    def used_by(self, machine: str, window: str) -> str | None:
        self._answer()
        return self.leases.get((machine, window))

    def used(self) -> Mapping[tuple[str, str], str]:
        self._answer()
        return dict(self.leases)

    def lose_statuses(self) -> None:
        """As a restore of the cluster may."""
        self.objects = {name: each._replace(status=EnrolmentStatus()) for name, each in self.objects.items()}
