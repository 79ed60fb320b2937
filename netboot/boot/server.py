"""A boot server's life: it listens, counts, stops gracefully. What it is made of: `netboot.processes.boot`."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass

from netboot.admission import Gate
from netboot.boot.app import App
from netboot.boot.artifacts import Artifacts
from netboot.boot.discoveries import Discoveries
from netboot.boot.limits import prepare_listener
from netboot.boot.live import Live
from netboot.boot.metrics import Counters, Exporter
from netboot.boot.readiness import Readiness
from netboot.boot.scripts import Catalogue
from netboot.config import Provisioning
from netboot.connections import Limited
from netboot.stores.journal import SqliteJournal

log = logging.getLogger(__name__)

BACKLOG = 2048
FLUSH_SECONDS = 1.0
UNREADY_SECONDS = 0.5
"""Between failing readiness and taking no more connections, so that whoever looks can look elsewhere."""
STOP_SECONDS = 20.0
"""For requests in flight once the stop has begun; transfers that take longer are cut (the initrd resumes them)."""


@dataclass(slots=True)
class BootServer:
    """Belongs to the event loop in which its parts were made."""

    app: App
    artifacts: Artifacts
    counters: Counters
    discoveries: Discoveries
    gate: Gate
    journal: SqliteJournal
    limits: Provisioning
    live: Live[Catalogue]
    readiness: Readiness
    server: Limited

    async def serve(self, listener: socket.socket, ready: Callable[[], None]) -> None:
        """Until SIGTERM or SIGINT; `ready` is called once `listener`, a bound TCP socket, is listened on. SIGHUP: read
        the snapshot again now."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.live.hurry)
        listening = await self.listen(listener)
        tasks = [loop.create_task(self.live.watch()), loop.create_task(self.export())]
        log.info("listening on %s", self.limits.listen)
        ready()
        await _first(stop, tasks)
        await self.drain(listening)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def listen(self, listener: socket.socket) -> asyncio.Server:
        """Read the snapshot that there is, then take connections."""
        await self.live.refresh()
        prepare_listener(listener, self.limits)
        return await asyncio.get_running_loop().create_server(self.server, sock=listener, backlog=BACKLOG)

    async def export(self) -> None:
        """Carry counts into Prometheus' files until cancelled, and once more then."""
        exporter = Exporter(self.counters)
        try:
            while True:
                self._flush(exporter)
                await asyncio.sleep(FLUSH_SECONDS)
        finally:
            self._flush(exporter)

    def _flush(self, exporter: Exporter) -> None:
        self.counters.discoveries_dropped = self.discoveries.dropped
        exporter.flush(lag=self.journal.lag, open_connections=self.gate.open, refused=self.gate.refused)

    async def drain(self, listening: asyncio.Server) -> None:
        """Stop: unready first, then no new connections, then the requests in flight, then the journal."""
        self.readiness.stopping = True
        await asyncio.sleep(UNREADY_SECONDS)
        listening.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + STOP_SECONDS
        while self.app.in_flight and loop.time() < deadline:
            await asyncio.sleep(0.02)
        if self.app.in_flight:
            log.warning("stopping with %d requests unanswered", self.app.in_flight)
        await self.server.shutdown(1.0)
        await self.journal.aclose()


async def _first(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the signal; a background task that ends first is a defect, and the supervisor starts us again."""
    waiting = asyncio.ensure_future(stop.wait())
    done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for task in done:
        if task is not waiting and task in tasks and (error := task.exception()) is not None:
            raise error
