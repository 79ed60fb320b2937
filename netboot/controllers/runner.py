"""What a controller of a cluster does in its process besides its work: it reports how it is, and ends when told to."""

import signal
import time
from collections.abc import Callable
from typing import Protocol

from netboot.status.reporting import Reporting

LOOK_SECONDS = 0.1
STATUS_SECONDS = 1.0


class Controller(Protocol):
    """Works in threads of its own."""

    def start(self) -> None:
        """Start the threads, and return."""
        ...

    def stop(self) -> None:
        """Begin nothing new."""
        ...

    def status(self) -> Reporting:
        """For `/readyz` and metrics; with `at_ms`."""
        ...


def run(
    controller: Controller, say: Callable[[Reporting], object], ready: Callable[[], None], beat: Callable[[], None]
) -> None:
    """Until SIGTERM or SIGINT. Ready at once: an apiserver that does not answer is for the status to say.

    The signal handler only sets a plain flag: an Event's lock may be held by the very thread that is interrupted.
    """
    stop = False

    def heed(_number: int, _frame: object) -> None:
        nonlocal stop
        stop = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, heed)
    controller.start()
    ready()
    reported = float("-inf")
    while not stop:
        beat()
        if time.monotonic() - reported >= STATUS_SECONDS:
            reported = time.monotonic()
            say(controller.status())
        time.sleep(LOOK_SECONDS)
    controller.stop()
