"""Ctrl-C at each line that the main thread runs while it starts, waits for and ends what works beside it.

Run by itself, `python -m tests.unit.images.instants graph|tool`: it prints how many lines there were, and what went
otherwise than KeyboardInterrupt, with nobody left. A test's own process must not be interrupted so.
"""

import contextlib
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from images import cancel
from images.build.cache import Cache
from images.build.graph import Graph
from images.run import run
from tests.unit.images.test_graph import Inputs, Told, named

TRACED = ("/images/build/graph.py", "/images/cancel.py", "/images/run.py", "/threading.py", "/subprocess.py")
LOOK_SECONDS = 0.02
STANDS_STILL = 25
"""After so many looks that see no line more, the main thread waits for others, and Ctrl-C comes then."""


class Instant:
    """Ctrl-C once: before the `number`-th line that is run, or where the main thread comes to rest before."""

    def __init__(self, number: int) -> None:
        self.number, self.seen, self.where = number, 0, ""
        self._once, self._over = threading.Lock(), threading.Event()
        self._watcher = threading.Thread(target=self._watch)

    def _ctrl_c(self, where: str) -> None:
        if self._once.acquire(blocking=False):
            self.where = where
            os.kill(os.getpid(), signal.SIGINT)

    def _watch(self) -> None:
        seen, looks = -1, 0
        while looks < STANDS_STILL and not self._over.wait(LOOK_SECONDS):
            seen, looks = self.seen, looks + 1 if seen == self.seen else 0
        if looks >= STANDS_STILL:
            self._ctrl_c("")

    def _trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if not frame.f_code.co_filename.endswith(TRACED):
            return None
        if event == "line":
            if self.seen == self.number:
                self._ctrl_c(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}")
            self.seen += 1
        return self._trace

    def run(self, work: Callable[[], None]) -> None:
        """The work, and what it raises."""
        self._watcher.start()
        try:
            sys.settrace(self._trace)
            work()
        finally:
            sys.settrace(None)
            self._over.set()
            self._watcher.join()


def graph(folder: Path) -> None:
    def endless(_inputs: object, _out: Path, _say: object) -> None:
        cancel.pause(1000)

    with Cache(folder) as cache, Graph(cache, Told()) as steps:
        one = steps.step(named("one", endless), lambda: Inputs("1"))
        steps.step(named("two", endless), lambda: Inputs("2"))
        steps.step(named("three"), lambda: Inputs("3", (one(),)))


def tool(_folder: Path) -> None:
    run(["sleep", "1000"])


def outcome(work: Callable[[Path], None], instant: Instant) -> str:
    """What was raised, what was raised in other threads, and who is left; empty: as it must be."""
    found, raised = [], "nothing"
    threading.excepthook = lambda arguments: found.append(f"in a thread: {arguments.exc_value!r}")
    with tempfile.TemporaryDirectory() as folder:
        try:
            instant.run(lambda: work(Path(folder)))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
            raised = repr(error)
        if raised != "KeyboardInterrupt()":
            found.append(raised)
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join(60)
                found += [f"{thread.name} is left"] * thread.is_alive()
        with contextlib.suppress(ChildProcessError):
            found.append(f"a process is left: {os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)}")
    return "; ".join(found)


def main(work: Callable[[Path], None]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    number = unreached = 0
    while unreached < 3:  # how many lines there are differs by how the threads come on
        instant = Instant(number)
        if said := outcome(work, instant):
            print(f"{instant.where or 'at rest'}: {said}", flush=True)
        unreached = 0 if instant.where else unreached + 1
        number += 1
    print(f"{number} instants")


if __name__ == "__main__":
    main({"graph": graph, "tool": tool}[sys.argv[1]])
