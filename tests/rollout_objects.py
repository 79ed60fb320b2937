"""Where channels point, and their rollouts, as objects in memory, as an API server keeps them:
`netboot.lifecycle.rollout_objects.RolloutObjects`."""

import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace

from netboot.join.errors import ClusterUnavailableError, ConflictError
from netboot.lifecycle.rollout_objects import KIND, RolloutObject, rollout_object
from netboot.lifecycle.rollout_specs import RolloutSpec
from netboot.machines.resources import Resource
from tests.order_objects import AWAY


class MemoryRolloutObjects:
    """`before_write`: what happens between a read and the write that goes by it; `away`: nobody answers; `unheard`:
    what is written is, and no answer comes; `asked`: how often anything was; `numbers`: the last that was given."""

    def __init__(self) -> None:
        self._lock, self._versions = threading.RLock(), itertools.count(1)
        self.objects: dict[str, RolloutObject] = {}
        self.before_write: Callable[[], None] = lambda: None
        self.away = self.unheard = False
        self.asked = self.numbers = 0

    def _answer(self) -> None:
        self.asked += 1
        if self.away:
            raise ClusterUnavailableError(AWAY)

    def read(self, channel: str) -> RolloutObject | None:
        self._answer()
        return self.objects.get(channel)

    def all(self) -> list[RolloutObject]:
        self._answer()
        return [self.objects[channel] for channel in sorted(self.objects)]

    def write(self, channel: str, spec: RolloutSpec, before: RolloutObject | None) -> RolloutObject:
        self._answer()
        self.before_write()
        with self._lock:
            found, version = self.objects.get(channel), next(self._versions)
            if (found.version if found else None) != (before.version if before else None):
                raise ConflictError("409 Conflict: the object has been modified")
            uid, generation = (found.uid, found.generation + 1) if found is not None else (f"uid-{version}", 1)
            said = spec.model_dump(mode="json", exclude_none=True)
            self.objects[channel] = rollout_object(channel, uid, generation, said, f"version-{version}")
            if self.unheard:
                raise ClusterUnavailableError(AWAY)
            return self.objects[channel]

    def number(self, least: int) -> int:
        self._answer()
        self.numbers = max(least, self.numbers + 1)
        return self.numbers

    def kept(self) -> list[Resource]:
        """All, as who follows them keeps them."""
        return [resource(each) for each in self.all() if each.spec is not None]


def resource(each: RolloutObject) -> Resource:
    assert each.spec is not None
    return Resource(
        kind=KIND,
        name=each.channel,
        shown=f"{KIND}/{each.channel}",
        spec=each.spec.model_dump(mode="json", exclude_none=True),
        uid=each.uid,
        generation=each.generation,
        version=each.version,
    )


class AnyImages:
    """Has every image; a channel points where it was pointed to last. `netboot.stores.image_repository`, as
    `SharedRollouts` asks it."""

    def __init__(self) -> None:
        self.channels: dict[str, str] = {}

    def channel(self, name: str) -> str | None:
        return self.channels.get(name)

    def point(self, channel: str, digest: str, **_: object) -> None:
        self.channels[channel] = digest

    def verified(self, digest: str) -> None:
        """It is."""

    def image(self, digest: str) -> SimpleNamespace:
        return SimpleNamespace(name=digest[:4])
