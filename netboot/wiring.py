"""Puts the parts together: what `netboot serve` starts, and what each of its processes is made of."""

import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import netboot
from netboot import logs
from netboot.config import Config
from netboot.lifecycle.errors import CannotTellError
from netboot.listeners import bind, bind_all
from netboot.planes import Orders, end_with, say_ready
from netboot.stores.lock import sole_instance
from netboot.stores.status import read_status, wipe, write_status
from netboot.supervise import Child, Plane, Supervisor

if TYPE_CHECKING:
    from netboot.join.register import Register
    from netboot.lifecycle.decide import View
    from netboot.stores.state_writer import SqliteProjection


class SystemClock:
    """`netboot.lifecycle.ports.Clock` by the machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000


def serve(config: Config, say: Callable[[str], None]) -> None:
    """Run the service until it is told to stop. `say` shows a line to whoever started it.

    Raises:
        AlreadyRunningError, ListenError: with the remedy. OSError: `data` cannot be written.
    """
    config.data.mkdir(parents=True, exist_ok=True)
    with sole_instance(config.data / "lock"):
        status = config.data / "status"
        for folder in (status, config.data / "metrics"):
            wipe(folder)
        supervisor = Supervisor(
            [sys.executable, "-P", "-m", "netboot.cli.main", "plane"],
            _planes(config),
            environment=_environment(config),
            report=lambda state, children: write_status(status, "planes", _report(state, children)),
            once_ready=lambda: say("ready"),
            died=lambda pid: _forget_gauges(config.data / "metrics", pid),
        )
        say(f"provisioning (machines)   {config.provisioning.listen}, reached as {config.provisioning.url}")
        if config.join is not None:
            say(f"join (machines, TLS)      {config.join.listen}, reached as {config.join.url}")
        say(f"management (operators)    {config.management.listen}, reached as {config.management.base_url}")
        supervisor.run()


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
    }
    runs[orders.plane](orders)


def _planes(config: Config) -> list[Plane]:
    provisioning, key = config.provisioning.listen, "provisioning.listen"
    management = bind(config.management.listen, "management.listen")
    workers = bind_all(provisioning, key, config.provisioning.workers)
    joining = config.join.listen if config.join is not None else provisioning
    doors = bind_all(joining, "join.listen", config.join.workers) if config.join is not None else []
    pid = os.getpid()

    def plane(kind: str, name: str, **more: Any) -> Plane:
        index, cluster = more.pop("index", 0), more.pop("cluster", "")

        def orders(ready: int, listener: int | None) -> bytes:
            fields = {"plane": kind, "index": index, "name": name, "config": config, "listener": listener}
            fields["cluster"] = cluster
            return Orders.model_validate({**fields, "ready": ready, "supervisor": pid}).model_dump_json().encode()

        return Plane(name, orders, **more)

    return [
        plane("controllers", "controllers", stage=2, reload=True),
        *(
            plane(
                "boot",
                f"boot-{index}",
                index=index,
                listener=listener,
                listen=lambda: bind(provisioning, key, shared=True),
            )
            for index, listener in enumerate(workers)
        ),
        plane("web", "web", stage=1, listener=management),
        *(
            plane(
                "join",
                f"join-{index}",
                index=index,
                listener=listener,
                listen=lambda: bind(joining, "join.listen", shared=True),
                stage=1,
            )
            for index, listener in enumerate(doors)
        ),
        *(
            plane(kind, f"{kind}-{cluster}", cluster=cluster, stage=1)
            for cluster in config.clusters
            for kind in ("approver", "nodes")
        ),
    ]


def journals(config: Config) -> frozenset[str]:
    """Names of the journals that processes of this configuration write; any other has no owner any more."""
    names = [f"boot-{index}" for index in range(config.provisioning.workers)]
    names += [f"join-{index}" for index in range(config.join.workers if config.join is not None else 0)]
    names += [f"{kind}-{cluster}" for kind in ("approver", "nodes") for cluster in config.clusters]
    return frozenset(f"{name}.db" for name in names)


def _environment(config: Config) -> dict[str, str]:
    """Ours, with the very package that runs here first on the path (`-P` keeps the working folder off it)."""
    paths = [str(Path(netboot.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PROMETHEUS_MULTIPROC_DIR": str(config.data / "metrics"),
    }


def _report(state: str, children: Sequence[Child]) -> dict[str, Any]:
    planes = {
        child.plane.name: {
            "ready": child.ready,
            "pid": child.process.pid if child.process is not None else None,
            "restarts": child.restarts,
            "last_exit": child.last_exit,
        }
        for child in children
    }
    return {"state": state, "pid": os.getpid(), "planes": planes}


def _forget_gauges(metrics: Path, pid: int) -> None:
    """A dead worker has no open connections and no lag; its counters count on."""
    for path in metrics.glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)


def _inherited(orders: Orders) -> socket.socket:
    assert orders.listener is not None
    return socket.socket(fileno=orders.listener)


def _run_boot(orders: Orders) -> None:
    from netboot.boot.worker import run

    assert orders.listener is not None
    run(orders.config, orders.index, orders.listener, lambda: say_ready(orders))


def _run_controllers(orders: Orders) -> None:
    from netboot.controllers.keeper import Keeper
    from netboot.controllers.loop import Controllers
    from netboot.controllers.projector import Projector
    from netboot.stores.state import SqliteStates
    from netboot.stores.state_writer import SqliteProjection

    config, clock = orders.config, SystemClock()
    shelf = _shelf(config)
    keeper = Keeper(config, shelf, shelf, SqliteStates(config.data / "state.db"), clock)
    projection = SqliteProjection(config.data / "state.db")
    projector = Projector(config.data / "journal", projection, owned=journals(config))
    _make(projection)
    status = config.data / "status"
    Controllers(keeper, projector, lambda name, said: write_status(status, name, said), clock).run(
        lambda: say_ready(orders)
    )
    projection.close()


def _run_approver(orders: Orders) -> None:
    from netboot.controllers.approver.process import run

    run(orders.config, orders.cluster, SystemClock(), lambda: say_ready(orders))


def _run_nodes(orders: Orders) -> None:
    from netboot.controllers.nodes.process import run

    run(orders.config, orders.cluster, SystemClock(), lambda: say_ready(orders))


def _run_web(orders: Orders) -> None:
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
    """So that the control plane finds the state file; where it cannot be made the projector says so soon enough."""
    with suppress(CannotTellError):
        projection.cursor("")


def make_web(config: Config, stopping: Callable[[], bool]) -> Any:
    """The control plane's application."""
    from netboot.stores.bootkey import load_or_create
    from netboot.stores.live import LiveView
    from netboot.stores.register import open_register
    from netboot.stores.state import SqliteStates
    from netboot.web import create_app
    from netboot.web.measures import Now, exposition
    from netboot.web.parts import Parts
    from netboot.web.probe import Probe
    from netboot.web.tokens import TokenFile
    from netboot.web.watch import MOST_WATCHERS

    live, states = LiveView(config.data / "snapshot.json"), SqliteStates(config.data / "state.db")
    shelf = _shelf(config)
    register = open_register(config, lambda: live.view().snapshot.inventory)

    def status(name: str) -> dict[str, Any] | None:
        return read_status(config.data / "status", name)

    now = Now(live, states, status)
    return create_app(
        Parts(
            live=live,
            states=states,
            sightings=states,
            shelf=shelf,
            shelf_keeper=shelf,
            tokens=TokenFile(config.management.token_file),
            clock=SystemClock(),
            inventory=config.inventory,
            status=status,
            probe=Probe(config.provisioning.listen),
            metrics=lambda: exposition(config.data / "metrics", now),
            stopping=stopping,
            watchers=threading.BoundedSemaphore(MOST_WATCHERS),
            register=register,
            joining=_joining(config, live.view, register) if config.clusters else None,
            boot_key=lambda: load_or_create(config.data / "boot-id.key"),
        )
    )


def _joining(config: Config, view: "Callable[[], View]", register: "Register") -> Any:
    """For operators' tokens: no exchange is sealed or opened here, and no fact of a boot is learnt."""
    from netboot.join.parts import Parts
    from netboot.kube.targets import Targets

    def no_keys() -> Any:
        raise CannotTellError("the control plane has no sealing keys")

    return Parts(
        site=config.site,
        clusters=Targets(config.clusters),
        view=view,
        enrolments=register,
        keyset=no_keys,
        belongs=lambda _boot, _machine: False,
        journal=lambda _record: None,
        now_ms=SystemClock().now_ms,
        random=os.urandom,
        choice=secrets.choice,
        token_seconds=300,
    )


def _shelf(config: Config) -> Any:
    from images.keyring import KeyRing
    from images.store import Store
    from netboot.stores.shelf import StoreShelf

    return StoreShelf(Store(config.store), KeyRing(config.keys))
