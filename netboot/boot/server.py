"""A boot server's life: it listens, counts, stops gracefully. What it is made of: `netboot.processes.boot`."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass

from netboot.admission import Gate
from netboot.boot.acceptor import Acceptor
from netboot.boot.app import App
from netboot.boot.artifacts import Artifacts
from netboot.boot.discoveries import Discoveries
from netboot.boot.limits import prepare_listener
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.boot.readiness import Readiness
from netboot.boot.scripts import Catalogue
from netboot.config import Provisioning
from netboot.connections import Limited, Shortage
from netboot.lifecycle.ports import Clock
from netboot.listeners import BACKLOG, queued, take_no_more
from netboot.status.boot import BootStatus
from netboot.stores.journal import SqliteJournal
from netboot.stores.status import StatusWriter

log = logging.getLogger(__name__)

SAY_SECONDS = 1.0
UNREADY_SECONDS = 0.5
"""Between failing readiness and taking no more connections, so that whoever looks can look elsewhere."""
SETTLE_SECONDS = 0.1
"""For handshakes that are half done when the last connection was let in."""
QUIET_SECONDS = 3.0
"""For the first request of a connection that was made before the stop."""
STOP_SECONDS = 20.0
"""For requests in flight once the stop has begun; transfers that take longer are cut (the initrd resumes them)."""


@dataclass(slots=True)
class BootServer:
    """Belongs to the event loop in which its parts were made."""

    app: App
    artifacts: Artifacts
    clock: Clock
    counters: Counters
    discoveries: Discoveries
    gate: Gate
    journal: SqliteJournal
    limits: Provisioning
    live: Live[Catalogue]
    readiness: Readiness
    server: Limited
    status: StatusWriter

    async def serve(self, listener: socket.socket, ready: Callable[[], None], beat: Callable[[], None]) -> None:
        """Until SIGTERM or SIGINT; `ready` is called once `listener`, a bound TCP socket, is listened on, `beat` each
        second by the event loop. SIGHUP: read the snapshot again now."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.live.hurry)
        acceptor = await self.listen(listener)
        tasks = [loop.create_task(self.live.watch()), loop.create_task(self.say_for_ever(beat))]
        log.info("listening on %s", self.limits.listen)
        ready()
        await _first(stop, tasks)
        await self.drain(acceptor)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        self.status.close()

    async def listen(self, listener: socket.socket) -> Acceptor:
        """Read the snapshot that there is, then take connections."""
        await self.live.refresh()
        prepare_listener(listener, self.limits)
        shortage = Shortage()
        asyncio.get_running_loop().set_exception_handler(shortage)
        listener.listen(BACKLOG)
        acceptor = Acceptor(listener, self.server, self.app, shortage)
        acceptor.open()
        return acceptor

    async def say_for_ever(self, beat: Callable[[], None]) -> None:
        """Tell the supervisor that this event loop goes round, and the management server what was counted."""
        try:
            while True:
                beat()
                self.say()
                await asyncio.sleep(SAY_SECONDS)
        finally:
            self.say()

    def say(self) -> None:
        """What was counted and what is so now, for metrics."""
        self.counters.discoveries_dropped, self.counters.refused = self.discoveries.sighted.dropped, self.gate.refused
        now = self.clock.now_ms()
        self.status.say(self.counters.status(now, open_connections=self.gate.open, journal_lag=self.journal.lag))

    def go_on(self, before: BootStatus) -> None:
        """Count on where the one was whose place this one takes."""
        self.counters.go_on(before)
        self.discoveries.sighted.dropped, self.gate.refused = before.discoveries_dropped, before.refused

    async def drain(self, acceptor: Acceptor) -> None:
        """Stop: unready first, then no new connections, then the requests of those that there are, then the journal."""
        self.readiness.stopping = True
        await asyncio.sleep(UNREADY_SECONDS)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await _take_the_last(acceptor.listener)
        acceptor.close()
        while loop.time() < begun + STOP_SECONDS:
            quiet = self.server.unasked() if loop.time() < begun + QUIET_SECONDS else 0
            if not self.app.in_flight and not acceptor.under_way() and not quiet:
                break
            await asyncio.sleep(0.02)
        if self.app.in_flight:
            log.warning("stopping with %d requests unanswered", self.app.in_flight)
        await self.server.shutdown(1.0)
        await self.journal.aclose()


async def _take_the_last(listener: socket.socket) -> None:
    """Take every connection that the kernel has accepted for us, and have it accept no more."""
    loop = asyncio.get_running_loop()
    until = loop.time() + QUIET_SECONDS
    take_no_more(listener)
    await asyncio.sleep(SETTLE_SECONDS)
    while queued(listener) and loop.time() < until:
        await asyncio.sleep(0.01)


async def _first(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the signal; a background task that ends first is a defect, and the supervisor starts us again."""
    waiting = asyncio.ensure_future(stop.wait())
    done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for task in done:
        if task is not waiting and task in tasks and (error := task.exception()) is not None:
            raise error
