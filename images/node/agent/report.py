"""Events for the boot service (netboot.lifecycle.events.BootEvent), sent beside the work: nothing waits for them."""

import contextlib
import queue
import threading
import time

from .errors import AgentError, RefusedError
from .net import Server, plain
from .settings import Settings


class Reporter:
    """Sends what is said to it, in order, from a thread of its own. What cannot be sent in three tries is dropped."""

    def __init__(self, settings: Settings) -> None:
        self._server = Server(settings.report, seconds=10)
        self._boot, self._mac, self._name = settings.boot, settings.mac or None, settings.name or None
        self._waiting: queue.Queue[dict[str, object] | None] = queue.Queue(64)
        self._last = ""
        self._thread = threading.Thread(target=self._send_all, daemon=True)
        self._thread.start()

    def say(self, phase: str, detail: str = "") -> None:
        """Report a phase; the same failure again is not news."""
        if not (self._mac or self._name) or self._last == phase + detail:
            return
        self._last = phase + detail
        uptime = int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000)
        event: dict[str, object] = {
            "mac": self._mac,
            "machine": self._name,
            "phase": phase,
            "uptime_ms": uptime,
            "detail": plain(detail),
        }
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(event)

    def close(self, seconds: float = 1.0) -> None:
        """Wait at most so long for what has not been sent."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        self._thread.join(seconds)

    def _send_all(self) -> None:
        while (event := self._waiting.get()) is not None:
            for wait in (1, 3, 0):
                try:
                    self._server.call("POST", f"/v1/boots/{self._boot}/events", event)
                except RefusedError as error:
                    if error.status < 500 and error.status not in (408, 429):
                        break
                except AgentError:
                    pass
                else:
                    break
                time.sleep(wait)
