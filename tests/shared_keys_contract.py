"""What the Secret with the keys that replicas share says to whoever follows it: one suite for the real API server and
the one in memory."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from netboot.controllers.shared_keys import Follows
from netboot.kube.errors import ClusterRefusedError
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.shared_keys import InUse, SeenSecret
from tests.processes import wait_for

GONE = (
    "there is no Secret netboot/netboot-keys: `netboot cluster keys push`, on a host that has the keys, makes it; "
    "where it was there before: `push --in-use`"
)
SECONDS = 180.0
"""Against hanging alone."""
ONE, TWO = {"sealing.keys": "b25l"}, {"sealing.keys": "dHdv", "other": "eA=="}


class World(Protocol):
    """A namespace, and its Secret, which is not there at first."""

    follows: Follows

    def put(self, data: Mapping[str, str], retired: str = "") -> None:
        """Make it, or change what it has."""
        ...

    def remove(self) -> None: ...

    def replicas(self) -> Mapping[str, InUse]:
        """What each has said."""
        ...


class FakeSecret:
    """The API server in memory."""

    def __init__(self) -> None:
        self.follows: Follows = self
        self.away = ""
        self.told: list[tuple[str, InUse]] = []
        self._changed = threading.Condition()
        self._there: SeenSecret | None = None
        self._number = 0

    def put(self, data: Mapping[str, str], retired: str = "") -> None:
        with self._changed:
            self._number += 1
            uid = self._there.uid if self._there is not None else f"uid-{self._number}"
            self._there = SeenSecret(uid, str(self._number), data, frozenset(retired.split()))
            self._changed.notify_all()

    def remove(self) -> None:
        with self._changed:
            self._there = None
            self._changed.notify_all()

    def watch(self, seconds: float) -> Iterator[SeenSecret | None]:
        seen: SeenSecret | None = None
        while True:
            with self._changed:
                if self._there is None:
                    raise ClusterRefusedError(GONE)
                while seen is self._there:
                    if not self._changed.wait(seconds):
                        return
                if self._there is not None:
                    seen = self._there
            yield seen

    def tell(self, replica: str, said: InUse) -> None:
        if self.away:
            raise ClusterRefusedError(self.away)
        self.told.append((replica, said))

    def replicas(self) -> Mapping[str, InUse]:
        return dict(self.told)


class Follower:
    """Follows in a thread, for as long as a test may last."""

    def __init__(self, world: World) -> None:
        self.seen: list[SeenSecret] = []
        self.ended = ""
        self._world = world
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for seen in self._world.follows.watch(SECONDS):
                self.seen += [seen] if seen is not None else []
        except CannotTellError as error:
            self.ended = str(error)

    def has(self, data: Mapping[str, str]) -> SeenSecret:
        """Once that is what it saw last."""
        return wait_for(lambda: [seen for seen in self.seen[-1:] if seen.data == data], SECONDS)[0]


def one_that_is_not_there_is_no_empty_one(world: World) -> None:
    follower = Follower(world)
    assert wait_for(lambda: follower.ended, SECONDS) == GONE


def what_becomes_of_it_is_seen_and_its_end(world: World) -> None:
    world.put(ONE)
    follower = Follower(world)
    first = follower.has(ONE)
    world.put(TWO, retired="aa bb")
    second = follower.has(TWO)
    assert (first.retired, second.retired) == (frozenset(), frozenset({"aa", "bb"}))
    assert (first.uid, first.version != second.version) == (second.uid, True)
    assert "dHdv" not in repr(second)
    world.remove()
    assert wait_for(lambda: follower.ended, SECONDS) == GONE


def one_that_was_made_anew_is_another_one(world: World) -> None:
    world.put(ONE)
    before = Follower(world).has(ONE)
    world.remove()
    world.put(ONE)
    after = Follower(world).has(ONE)
    assert (before.data, before.uid != after.uid) == (after.data, True)


def what_a_replica_said_last_is_what_it_has(world: World) -> None:
    said = InUse(at="2026-11-28T22:00:00Z", sealing=("aa", "bb"), sealing_for_seconds=3, boot_ids="cc")
    for replica, each in (("a", InUse(at="")), ("b.example", said), ("a", said)):
        world.follows.tell(replica, each)
    assert world.replicas() == {"a": said, "b.example": said}


CASES: tuple[Callable[[World], None], ...] = (
    one_that_is_not_there_is_no_empty_one,
    what_becomes_of_it_is_seen_and_its_end,
    one_that_was_made_anew_is_another_one,
    what_a_replica_said_last_is_what_it_has,
)
