"""What each process of `netboot serve` is made of. A process imports what it runs, and nothing of the others."""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netboot import logs
from netboot.config import Config
from netboot.lifecycle.errors import CannotTellError
from netboot.process import Orders, end_with, say_ready
from netboot.processes.clock import SystemClock
from netboot.status import FetcherStatus
from netboot.stores.status import StatusFolder, write_status

if TYPE_CHECKING:
    from netboot.boot.nonces import Seal
    from netboot.controllers.snapshot_publisher import Windows
    from netboot.lifecycle.snapshot import BootWindow
    from netboot.machines.values import Inventory
    from netboot.stores.state_writer import SqliteProjection


def run_plane(orders: Orders) -> None:
    """Be one of the planes, until told to stop."""
    end_with(orders.supervisor)
    logs.set_up(orders.name)
    runs: dict[str, Callable[[Orders], None]] = {
        "boot": _run_boot,
        "web": _run_web,
        "controllers": _run_controllers,
        "join": _run_join,
        "approver": _run_approver,
        "nodes": _run_nodes,
        "fetcher": _run_fetcher,
    }
    runs[orders.plane](orders)


def journals(config: Config) -> frozenset[str]:
    """Names of the journals that processes of this configuration write; any other has no owner any more."""
    names = [f"boot-{index}" for index in range(config.provisioning.workers)]
    names += [f"join-{index}" for index in range(config.join.workers if config.join is not None else 0)]
    names += [f"{kind}-{cluster}" for kind in ("approver", "nodes") for cluster in config.clusters]
    return frozenset(f"{name}.db" for name in names)


def _inherited(orders: Orders) -> socket.socket:
    assert orders.listener is not None
    return socket.socket(fileno=orders.listener)


def _run_boot(orders: Orders) -> None:
    from netboot.boot.worker import run

    assert orders.listener is not None
    seal = _nonces(orders.config.site, orders.config.join.nonce_keys) if orders.config.join is not None else None
    run(orders.config, orders.index, orders.listener, lambda: say_ready(orders), seal)


def _nonces(site: str, path: Path) -> "Seal":
    """What seals nonces of boot windows: the one key of join that the boot plane works with, and never sees."""
    from netboot.join.state import Nonce, seal_nonce
    from netboot.stores.sealing import NONCES, SealingKeys

    keys = SealingKeys(path, NONCES)

    def seal(*, mac: str, address: str, machine: str, window: str, now_ms: int) -> bytes:
        nonce = Nonce(mac=mac, address=address, machine=machine, window=window)
        return seal_nonce(keys(), site, nonce, now_ms, os.urandom)

    return seal


def _boot_windows(config: Config) -> "Windows":
    from netboot.stores.register import open_register

    def windows(inventory: "Inventory", now_ms: int) -> "Mapping[str, BootWindow]":
        return open_register(config, lambda: inventory).boot_windows(now_ms)

    return windows


def _run_controllers(orders: Orders) -> None:
    from netboot.controllers.loop import Controllers
    from netboot.controllers.projection import ProjectionController
    from netboot.controllers.snapshot_publisher import SnapshotPublisher
    from netboot.processes.image_repository import open_image_repository
    from netboot.stores.state import SqliteStates
    from netboot.stores.state_writer import SqliteProjection

    config, clock = orders.config, SystemClock()
    repository = open_image_repository(config)
    windows = _boot_windows(config) if config.join is not None else None
    upstream = partial(_absent, config.data / "status") if config.upstream is not None else None
    states = SqliteStates(config.data / "state.db")
    publisher = SnapshotPublisher(config, repository, repository, states, clock, windows=windows, upstream=upstream)
    projection = SqliteProjection(config.data / "state.db")
    controller = ProjectionController(config.data / "journal", projection, owned=journals(config))
    _make(projection)
    status = config.data / "status"
    Controllers(publisher, controller, lambda name, said: write_status(status, name, said), clock).run(
        lambda: say_ready(orders)
    )
    projection.close()


def _absent(status: Path) -> Mapping[str, str]:
    """Image → why it is not here, as the fetcher says; empty where it has said nothing yet."""
    try:
        fetcher = StatusFolder(status).read("fetcher", FetcherStatus)
    except CannotTellError:
        return {}
    return fetcher.images if fetcher is not None else {}


def _run_approver(orders: Orders) -> None:
    from netboot.controllers.approver.process import run

    run(orders.config, orders.cluster, SystemClock(), lambda: say_ready(orders))


def _run_nodes(orders: Orders) -> None:
    from netboot.controllers.nodes.process import run

    run(orders.config, orders.cluster, SystemClock(), lambda: say_ready(orders))


def _run_fetcher(orders: Orders) -> None:
    from netboot.controllers import runner
    from netboot.controllers.fetcher import Fetcher
    from netboot.lifecycle.upstream import wanted
    from netboot.processes.image_repository import open_image_repository
    from netboot.stores.live import LiveView
    from netboot.stores.upstream import StoreUpstream

    config = orders.config
    live, repository = LiveView(config.data / "snapshot.json"), open_image_repository(config)
    fetcher: Fetcher
    upstream = StoreUpstream(config, lambda seconds: fetcher.pause(seconds))
    fetcher = Fetcher(upstream, lambda: wanted(live.view().snapshot.inventory, repository), SystemClock())
    say = partial(write_status, config.data / "status", "fetcher")
    runner.run(fetcher, say, lambda: say_ready(orders))


def _run_web(orders: Orders) -> None:
    from netboot.processes.control import make_web
    from netboot.web.server import Server

    config = orders.config
    Server(_inherited(orders), lambda stopping: make_web(config, stopping), lambda: say_ready(orders)).run()


def _run_join(orders: Orders) -> None:
    from netboot.web.join.compose import compose
    from netboot.web.join.server import settings
    from netboot.web.join.tls import Certificate
    from netboot.web.server import Server

    config, index = orders.config, orders.index
    assert config.join is not None
    certificate = Certificate(config.join.certificate, config.join.key)
    certificate.context()  # so that a certificate that cannot be used is said at once, and not to every machine

    def make(stopping: Callable[[], bool]) -> Any:
        return compose(config, index, certificate, SystemClock(), stopping)

    Server(_inherited(orders), make, lambda: say_ready(orders), settings=settings(config.join, certificate)).run()


def _make(projection: "SqliteProjection") -> None:
    """So that the control plane finds the state file; where it cannot be made the projection says so soon enough."""
    with suppress(CannotTellError):
        projection.cursor("")
