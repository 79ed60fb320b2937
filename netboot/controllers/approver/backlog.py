"""What the approver keeps in memory of requests, within bounds: what is to be done, and what was. Safe for threads."""

import heapq
import itertools
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from netboot.join.ports import Csr

MOST = 20_000
"""Entries. What is to be done beyond them is left to the next round of the watch, which brings everything again."""

SHARE = 64
"""Entries of one requester: a machine has three or four requests, and one that makes thousands is in nobody's way."""


@dataclass(slots=True)
class Task:
    """`failures`: tries that did not succeed; `looks`: those of them that found its requester's certificate not on
    record. `since`: when it came, by the monotonic clock."""

    csr: Csr
    since: float
    due: float
    failures: int = 0
    looks: int = 0


class Backlog:
    """What is to be done: requests by name, one entry for each, the latest that was seen of it. One that is in a
    worker's hands is given to no other, however often it is put again. No requester has more than `share` of them, and
    none is larger than `netboot.kube.requests` lets it be."""

    def __init__(self, most: int = MOST, share: int = SHARE, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._most, self._share, self._monotonic = most, share, monotonic
        self._of: Counter[str] = Counter()
        """Entries by requester."""
        self._changed = threading.Condition()
        self._tasks: dict[str, Task] = {}
        self._in_hand: dict[str, Csr] = {}
        self._forgotten: set[str] = set()
        """Of those in hand: nothing is to be done about them when they are put back."""
        self._heap: list[tuple[float, int, str]] = []
        self._number = itertools.count()
        self._closed = False

    def __len__(self) -> int:
        return len(self._tasks) + len(self._in_hand)

    def oldest_seconds(self) -> float:
        """How long the longest waiting has waited."""
        with self._changed:
            since = min((task.since for task in self._tasks.values()), default=None)
        return 0.0 if since is None else self._monotonic() - since

    def holds(self, right: Callable[[Csr], bool]) -> bool:
        """Whether something is to be done, or is being done, about such a request."""
        with self._changed:
            there = [*self._in_hand.values(), *(task.csr for task in self._tasks.values())]
        return any(right(csr) for csr in there)

    def put(self, csr: Csr, delay: float = 0.0) -> None:
        """Something is to be done about it in `delay` seconds. The very same once more changes nothing."""
        with self._changed:
            known = self._tasks.get(csr.name)
            if known is not None and (known.csr.uid, known.csr.version) == (csr.uid, csr.version):
                return
            if known is None and (len(self._tasks) >= self._most or self._of[csr.username] >= self._share):
                return
            now = self._monotonic()
            self._enter(Task(csr, known.since if known is not None else now, now + delay))

    def take(self) -> Task | None:
        """The one that is due first, once it is; None: closed."""
        with self._changed:
            while not self._closed:
                task = self._due()
                if task is not None:
                    return task
                soonest = self._heap[0][0] if self._heap else None
                self._changed.wait(None if soonest is None else max(0.001, soonest - self._monotonic()))
        return None

    def done(self, task: Task) -> None:
        """The task that `take` gave was carried out: a newer one of the same name may be taken."""
        with self._changed:
            self._let_go(task.csr.name)

    def age_seconds(self, task: Task) -> float:
        """For how long it has been there."""
        return self._monotonic() - task.since

    def forget(self, csr: Csr) -> None:
        """Nothing is to be done about the request any more; what is in hand goes on, and is not tried again."""
        with self._changed:
            self._leave(csr.name)
            if csr.name in self._in_hand:
                self._forgotten.add(csr.name)

    def again(self, task: Task, delay: float, *, failed: bool = True) -> None:
        """It was not: once more in `delay` seconds, unless something newer was put meanwhile, or it was forgotten.
        `failed`: in a try."""
        with self._changed:
            if task.csr.name not in self._tasks and task.csr.name not in self._forgotten:
                failures = task.failures + int(failed)
                self._enter(Task(task.csr, task.since, self._monotonic() + delay, failures, task.looks))
            self._let_go(task.csr.name)

    def close(self) -> None:
        """Wake everybody who waits in `take`; from now on it returns None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enter(self, task: Task) -> None:
        self._leave(task.csr.name)
        self._of[task.csr.username] += 1
        self._tasks[task.csr.name] = task
        heapq.heappush(self._heap, (task.due, next(self._number), task.csr.name))
        self._changed.notify()

    def _leave(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            self._of[task.csr.username] -= 1
            if not self._of[task.csr.username]:
                del self._of[task.csr.username]

    def _let_go(self, name: str) -> None:
        self._in_hand.pop(name, None)
        self._forgotten.discard(name)
        if name in self._tasks:  # it was passed over while it was in hand
            heapq.heappush(self._heap, (self._tasks[name].due, next(self._number), name))
            self._changed.notify()

    def _due(self) -> Task | None:
        now = self._monotonic()
        while self._heap and self._heap[0][0] <= now:
            due, _, name = heapq.heappop(self._heap)
            task = self._tasks.get(name)
            if task is None or task.due != due or name in self._in_hand:
                continue  # replaced, or in hand: `_let_go` enters it again
            self._leave(name)
            self._in_hand[name] = task.csr
            return task
        return None


class Recent:
    """What was said of requests, by name, in the last `seconds`, but of those that were forgotten. Safe for threads."""

    def __init__(self, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._monotonic, self._lock = seconds, monotonic, threading.Lock()
        self._said: OrderedDict[str, tuple[float, str]] = OrderedDict()
        """With the time; the latest last."""

    def say(self, name: str, words: str) -> None:
        """In place of what was said of it before."""
        with self._lock:
            self._said[name] = (self._monotonic(), words)
            self._said.move_to_end(name)
            if len(self._said) > MOST:
                self._said.popitem(last=False)

    def forget(self, name: str) -> None:
        """It is so no longer."""
        with self._lock:
            self._said.pop(name, None)

    def latest(self) -> str | None:
        """The latest words of any; None: there are none that are so recent."""
        with self._lock:
            at, words = next(reversed(self._said.values()), (float("-inf"), ""))
        return words if self._monotonic() - at < self._seconds else None


class Remembered:
    """Names, the latest: it forgets the oldest beyond `most`, so whoever asks must be right, only slower, where one was
    forgotten."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._lock = most, threading.Lock()
        self._names: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, name: str) -> bool:
        with self._lock:
            return name in self._names

    def add(self, name: str) -> None:
        """Remember a name as the latest; the oldest one beyond `most` is forgotten."""
        with self._lock:
            self._names[name] = None
            self._names.move_to_end(name)
            if len(self._names) > self._most:
                self._names.popitem(last=False)
