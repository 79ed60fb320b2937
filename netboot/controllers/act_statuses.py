"""In the process `shipper`: Holds say what became of them, as the controllers wrote it, and Orders how far they are, as
the leading node collector did. Beside who writes of machines, for one cannot keep the other back.

What was written is remembered, and written anew now and then: a process that was started again, and a status that
somebody wiped, are one case.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from images.values.backoff import Backoff
from images.values.faults import first_few
from netboot.controllers.refusals import UNFORESEEN
from netboot.controllers.shipped import REMEDY
from netboot.join.errors import ConflictError, InvalidError
from netboot.lifecycle.errors import CannotTellError
from netboot.logs import Trouble
from netboot.status import DEFECT
from netboot.status.resources import ShipperStatus

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
ANEW_SECONDS = 600.0
GONE_SECONDS = 30.0
"""That an object is gone is known by then: where it is said still, it is refused."""
PACE_SECONDS = 0.2
"""Between two writes: five a second, beside those of machines."""
AGAIN = Backoff(first=1.0, longest=30.0)
_Status = tuple[str, Mapping[str, Any]]
"""The uid of an object, and what it is to say."""


def _but_for_words(status: _Status) -> tuple[str, Mapping[str, Any]]:
    return status[0], {key: value for key, value in status[1].items() if key != "message"}


class Objects(Protocol):
    """Where the objects are: `netboot.kube.machine_objects.KubeStatuses`."""

    def write(self, name: str, uid: str, status: Mapping[str, Any]) -> None:
        """It says this from now on. Raises ClusterUnavailableError; InvalidError: this one is not taken; ConflictError:
        it is gone, or another one has its name, or the API server says so."""
        ...


class Said(Protocol):
    """What became of objects, as it was written down."""

    def statuses(self) -> dict[str, _Status]:
        """Name → the uid of the object, and what it is to say."""
        ...


class Ships(Protocol):
    """Who writes of machines, with these or without."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def status(self) -> ShipperStatus: ...


class AndStatuses:
    """A shipper, with this. `kind`: of the objects; `said()`: what became of them, the very same value while it is,
    None: nothing is known; raises CannotTellError."""

    def __init__(
        self,
        shipper: Ships,
        kind: str,
        said: Callable[[], Said | None],
        connect: Callable[[], Objects],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shipper, self._said, self._connect, self._monotonic = shipper, said, connect, monotonic
        self._kind, self._kinds = kind, f"{kind}s"
        self._objects: Objects | None = None
        self._written = dict[str, tuple[_Status, float]]()
        """Name → what was written, and when."""
        self._unanswered = ""
        """Whose write failed last: it is tried after all others."""
        self._refused = dict[str, tuple[str, float]]()
        """Name → the API server's words, and from when on they are told. It holds up no other, and is tried again with
        all."""
        self._due: tuple[Said | None, dict[str, _Status]] = None, {}
        """What became of them, as it was read last, and what they are to say then."""
        self._failures, self._problem = 0, ""
        self._stopping = threading.Event()
        called = self._kinds.capitalize()
        self._trouble = Trouble(log, f"{called} may not say what became of them", f"{called} say what became of them")
        self._thread = threading.Thread(target=self._work, name=self._kinds, daemon=True)

    def start(self) -> None:
        self._shipper.start()
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._shipper.stop()

    def status(self) -> ShipperStatus:
        """The shipper's, and what is wrong with this."""
        status, problem = self._shipper.status(), self._problem
        if not problem:
            return status
        words = f"{self._kinds}: {problem}"
        message = words if status.ok else f"{status.message}; {words}"
        return status.model_copy(update={"ok": False, "message": message, "remedy": REMEDY})

    def step(self) -> float:
        """Write one that is due; seconds until there may be more to do."""
        try:
            more = self._write()
        except CannotTellError as error:
            return self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - said with its traceback; nobody waits for this
            return self._failed(DEFECT, error)
        self._failures, self._problem = 0, self._of_refused(self._monotonic())
        self._trouble.note(self._problem or None)
        return PACE_SECONDS if more else LOOK_SECONDS

    def _failed(self, problem: str, defect: Exception | None = None) -> float:
        self._failures, self._problem = self._failures + 1, problem
        self._trouble.note(problem, defect)
        return AGAIN.seconds(self._failures)

    def _write(self) -> bool:
        said, now = self._said(), self._monotonic()
        if said is not self._due[0]:
            self._due = said, said.statuses() if said is not None else {}
        due = self._due[1]
        self._written = {name: each for name, each in self._written.items() if name in due}
        self._refused = {name: why for name, why in self._refused.items() if name in due}
        if (name := self._first(due, now)) is None:
            return False
        self._objects, before = self._objects or self._connect(), self._unanswered
        self._unanswered = name
        try:
            self._objects.write(name, *due[name])
            self._refused.pop(name, None)
        except InvalidError as error:
            self._refused[name] = str(error), now
        except ConflictError as error:  # who reads objects says in a moment that it is gone
            self._refused[name] = str(error), now + GONE_SECONDS
        except CannotTellError:
            raise
        except Exception as error:  # of this one: said with its traceback, and others go on
            self._refused[name] = UNFORESEEN, now
            log.exception("status of %s/%s could not be written (%s)", self._kind, name, type(error).__name__)
        self._unanswered = before if before != name else ""
        self._written[name] = due[name], now
        return True

    def _first(self, due: Mapping[str, _Status], now: float) -> str | None:
        """What says another thing comes before what is written anew, more than other words before those; then whose
        turn was longest ago, so that nobody waits for ever."""
        never: tuple[_Status | None, float] = (None, float("-inf"))
        written = {name: self._written.get(name, never) for name in due}
        found = [name for name in due if written[name][0] != due[name] or now - written[name][1] >= ANEW_SECONDS]

        def turn(name: str) -> tuple[bool, bool, bool, float]:
            before, at = written[name]
            words_alone = before is not None and _but_for_words(before) == _but_for_words(due[name])
            return name == self._unanswered, before == due[name], words_alone, at

        return min(found, key=turn, default=None)

    def _of_refused(self, now: float) -> str:
        told = sorted((name, why) for name, (why, told_from) in self._refused.items() if now >= told_from)
        return first_few([f"status of {self._kind}/{name} is refused: {why}" for name, why in told])

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self.step())
