"""One boot worker: a process with a listening socket, a journal of its own, and everything else read-only.

Workers do not know each other. Each listens on a socket of its own for the same address (SO_REUSEPORT), bound and kept
open by the supervisor: the kernel shares new connections out evenly, and those of a worker that died wait in its
socket's queue for the one that takes its place.
"""

import asyncio
import logging
import os
import resource
import signal
import socket
import time
from collections.abc import Callable

from netboot.boot.app import App
from netboot.boot.artifacts import Artifacts
from netboot.boot.discoveries import Discoveries
from netboot.boot.events import Events
from netboot.boot.health import Health
from netboot.boot.limits import Gate, Limited, gate_of, prepare_listener
from netboot.boot.live import Live
from netboot.boot.metrics import Counters, Exporter
from netboot.boot.nonces import Nonces, Seal
from netboot.boot.readiness import Readiness
from netboot.boot.scripts import Scripts
from netboot.config import Config
from netboot.lifecycle.ports import Clock
from netboot.stores.bootkey import load_or_create
from netboot.stores.journal import SqliteJournal

log = logging.getLogger(__name__)

BACKLOG = 2048
FLUSH_SECONDS = 1.0
UNREADY_SECONDS = 0.5
"""Between failing readiness and taking no more connections, so that whoever looks can look elsewhere."""
STOP_SECONDS = 20.0
"""For requests in flight once the stop has begun; transfers that take longer are cut (the initrd resumes them)."""


class SystemClock:
    """`netboot.lifecycle.ports.Clock` by the machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000


def run(
    config: Config, index: int, socket_fd: int, ready: Callable[[], None] = lambda: None, seal: Seal | None = None
) -> None:
    """Serve until SIGTERM or SIGINT, then stop gracefully and return. `socket_fd`: a bound TCP socket, inherited;
    `ready` is called once it is listened on; `seal`: for nonces, where machines join.

    Raises:
        StateUnavailableError: the boot-id key cannot be read or made.
    """
    metrics = config.data / "metrics"
    metrics.mkdir(parents=True, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    _allow_files(config.provisioning.max_connections)
    listener = socket.socket(fileno=socket_fd)
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(_serve(config, index, listener, ready, seal))


class Worker:
    """The parts of one worker, wired."""

    def __init__(self, config: Config, index: int, clock: Clock, seal: Seal | None = None) -> None:
        key = load_or_create(config.data / "boot-id.key")
        self._limits = config.provisioning
        self.counters = Counters()
        self.journal = SqliteJournal(config.data / "journal" / f"boot-{index}.db")
        self.live = Live(config.data / "snapshot.json", config.retry.unavailable_seconds)
        self.discoveries = Discoveries(self.journal, clock)
        self.readiness = Readiness(self.live, self.journal)
        self.gate: Gate = gate_of(config.provisioning)
        scripts = Scripts(config, key, self.live, self.journal, clock, self.counters, self.discoveries)
        events = Events(key, self.live, self.journal, clock, self.counters, config.provisioning.body_seconds)
        health = Health(key, self.live, self.journal, clock, self.counters, config.provisioning.body_seconds)
        self.artifacts = Artifacts(config.store, self.counters, events.fetched, config.provisioning.send_stall_seconds)
        nonces = Nonces(key, self.live, clock, seal)
        self.app = App(scripts, self.artifacts, events, health, nonces, self.readiness)
        self.server = Limited(self.app.handle, self.gate, config.provisioning.idle_seconds)

    async def listen(self, listener: socket.socket) -> asyncio.Server:
        """Read the snapshot that there is, then take connections."""
        await self.live.refresh()
        prepare_listener(listener, self._limits)
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


async def _serve(
    config: Config, index: int, listener: socket.socket, ready: Callable[[], None], seal: Seal | None
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    worker = Worker(config, index, SystemClock(), seal)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, worker.live.hurry)
    listening = await worker.listen(listener)
    tasks = [loop.create_task(worker.live.watch()), loop.create_task(worker.export())]
    log.info("boot worker %d listens on %s", index, config.provisioning.listen)
    ready()
    await _first(stop, tasks)
    await worker.drain(listening)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def _first(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the signal; a background task that ends first is a defect, and the supervisor starts us again."""
    waiting = asyncio.ensure_future(stop.wait())
    done, _ = await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    for task in done:
        if task is not waiting and task in tasks and (error := task.exception()) is not None:
            raise error


def _allow_files(connections: int) -> None:
    """Two descriptors for each connection (itself and a file), and some; more than we may have is said in the log."""
    wanted = 2 * connections + 256
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most not in (-1, resource.RLIM_INFINITY) and most < wanted:
        log.warning("the limit of open files is %d; %d connections may need %d (ulimit -n)", most, connections, wanted)
        wanted = most
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0]), most))
