"""The processes `boot-<index>`: scripts, artifacts, events and nonces for machines.

They do not know each other. Each listens on a socket of its own for the same address (SO_REUSEPORT), bound and kept
open by the supervisor: the kernel shares new connections out evenly, and those of a process that died wait in its
socket's queue for the one that takes its place. Each has a journal of its own; everything else it only reads.
"""

import asyncio
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from netboot.boot.app import App
from netboot.boot.artifacts import Artifacts
from netboot.boot.binaries import Binaries
from netboot.boot.discoveries import Discoveries
from netboot.boot.discovery import Discovering, Strangers, share
from netboot.boot.ingest import Ingest
from netboot.boot.limits import gate_of, limited, share_of
from netboot.boot.live import Live
from netboot.boot.metrics import Counters
from netboot.boot.nonces import Nonces, Seal
from netboot.boot.readiness import Readiness
from netboot.boot.reports import Reports
from netboot.boot.scripts import Catalogue, Scripts
from netboot.boot.server import BootServer
from netboot.boot.waiting import Waiting
from netboot.clock import SystemClock
from netboot.config import Config
from netboot.connections import allow_files
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.snapshot import Snapshot
from netboot.process import ProcessSpec
from netboot.status.boot import BootStatus
from netboot.stores import bootkey
from netboot.stores.journal import SqliteJournal
from netboot.stores.status import StatusFolder, StatusWriter


def run(spec: ProcessSpec) -> None:
    """Serve until SIGTERM or SIGINT, then stop gracefully and return.

    Raises:
        StateUnavailableError: the boot-id key cannot be read or made.
    """
    config = spec.config
    allow_files(share_of(config.provisioning))
    seal = _nonces(config.site, config.join.nonce_keys) if config.join is not None else None

    async def serve() -> None:
        server = compose(config, spec.index, SystemClock(), seal)
        await server.serve(spec.inherited(), spec.say_ready, spec.heartbeat())

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(serve())


def compose(config: Config, index: int, clock: Clock, seal: Seal | None = None) -> BootServer:
    """A boot server; in the event loop that it will run in. `seal`: for nonces, where machines join.

    Raises:
        StateUnavailableError: the boot-id key cannot be read or made.
    """
    bootkey.key_of(config)
    limits, key, counters = config.provisioning, bootkey.BootIdKey(bootkey.file_of(config)).current, Counters()
    journal = SqliteJournal(config.data / "journal" / f"boot-{index}.db")
    live = Live(config.data / "snapshot.json", partial(Catalogue, retry=config.retry.unavailable_seconds))
    discoveries = Discoveries(journal, clock)
    readiness = Readiness(live, journal)
    ingest = Ingest(limits.ingest_kib_per_second)
    waiting = Waiting(config, live, counters)
    reports = Reports(key, live, journal, clock, counters, ingest, limits.body_seconds)
    artifacts = Artifacts(
        config.store, counters, reports.fetched, limits.send_stall_seconds, lambda: _revoked(live.snapshot)
    )
    discovering = Discovering(
        settings=config.discovery,
        most=share(index, limits.workers),
        key=key,
        live=live,
        journal=journal,
        clock=clock,
        counters=counters,
        ingest=ingest,
        body_seconds=limits.body_seconds,
        retry=config.retry.unknown_seconds,
    )
    strangers = Strangers(discoveries, waiting, discovering)
    app = App(
        Scripts(key, live, journal, clock, counters, strangers, ingest, waiting),
        waiting,
        artifacts,
        Binaries(limits.ipxe, artifacts),
        reports,
        Nonces(key, live, clock, seal),
        discovering,
        readiness,
        counters,
    )
    gate = gate_of(limits)
    server = BootServer(
        app=app,
        artifacts=artifacts,
        clock=clock,
        counters=counters,
        discoveries=discoveries,
        gate=gate,
        journal=journal,
        limits=limits,
        live=live,
        readiness=readiness,
        server=limited(app.handle, limits, gate),
        status=StatusWriter(config.data / "status", f"boot-{index}"),
    )
    with suppress(CannotTellError):
        before = StatusFolder(config.data / "status").read(f"boot-{index}", BootStatus)
        if before is not None:
            server.go_on(before)
    return server


def _revoked(snapshot: Snapshot | None) -> tuple[str, ...]:
    return snapshot.revocations.images if snapshot is not None else ()


def _nonces(site: str, path: Path) -> Seal:
    """What seals nonces of boot windows: the one key of join that a boot server works with, and never sees."""
    from netboot.join.state import Nonce, seal_nonce  # what opens credentials is loaded only where machines join
    from netboot.stores.sealing import NONCES, sealing_keys

    keys = sealing_keys(path, NONCES)

    def seal(*, mac: str, address: str, machine: str, window: str, now_ms: int) -> bytes:
        nonce = Nonce(mac=mac, address=address, machine=machine, window=window)
        return seal_nonce(keys.current(), site, nonce, now_ms, os.urandom)

    return seal
