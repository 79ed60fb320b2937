"""What `netboot serve` starts: the supervisor, and the table of what it keeps running."""

import logging
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import netboot
from netboot import logs
from netboot.addresses import Address
from netboot.clock import SystemClock
from netboot.config import Config
from netboot.confine.access import Access, access_of, exposed, strays
from netboot.confine.enter import shortcomings
from netboot.dhcp.binaries import lacking
from netboot.kube.errors import KubeconfigError
from netboot.kube.kubeconfig import named_files
from netboot.lifecycle.errors import StateUnavailableError
from netboot.listeners import SharedAddress, bind
from netboot.process import Kind, ProcessSpec
from netboot.stores import audit, enrolment_schema, intents, rollouts
from netboot.stores.bootkey import key_of
from netboot.stores.lock import sole_instance
from netboot.stores.status import wipe
from netboot.supervise.broker import Broker
from netboot.supervise.changed import RunningConfig
from netboot.supervise.notify import Manager
from netboot.supervise.process import Definition
from netboot.supervise.pulse import Silence
from netboot.supervise.supervisor import Supervisor
from netboot.supervise.told import Told

log = logging.getLogger(__name__)


def serve(config: Config, file: Path, say: Callable[[str], None], adapt: Callable[[Config], Config]) -> None:
    """Run the service until it is told to stop. `file`: what the configuration was read from; `adapt`: what the command
    line says over it; `say` shows a line to whoever started it.

    Raises:
        AlreadyRunningError, ListenError, StateUnavailableError: with the remedy. OSError: `data` cannot be written.
    """
    if config.boot_id_key is not None and config.keys_kubernetes is None:
        key_of(config)  # one that is named is never made: refused now, and not by each boot server for ever
    config.data.mkdir(parents=True, exist_ok=True)
    if config.management.exposed:
        log.warning("operators' tokens cross a network unencrypted: `netboot config check` says what to do")
    if lacks := lacking(config.provisioning.ipxe, arm64=False):
        log.warning("firmware that boots by HTTP gets no iPXE from here: %s", lacks)
    with sole_instance(config.data / "lock"), _walls(config) as broker:
        wipe(config.data / "status")
        manager = Manager(os.environ)
        running = RunningConfig(file, config, adapt)
        told = Told(config.data / "status", manager, running)
        supervisor = Supervisor(
            [sys.executable, "-P", "-m", "netboot.cli.main", "process"],
            _definitions(config, broker, running),
            environment=_environment(),
            report=told.report,
            once_ready=lambda: say("ready"),
            beat=told.beat,
            reload=partial(_reload, running),
        )
        say(f"provisioning (machines)   {config.provisioning.listen}, reached as {config.provisioning.url}")
        if config.join is not None:
            say(f"join (machines, TLS)      {config.join.listen}, reached as {config.join.url}")
        say(f"management (operators)    {config.management.listen}, reached as {config.management.base_url}")
        if unheard := manager.unheard():
            log.warning("%s", unheard)
        manager.tell("READY=1")  # its addresses are bound; what is not ready yet must not end what is
        supervisor.run()
        told.close()


def _reload(running: RunningConfig) -> bool:
    """Whether anything of netboot.yaml was taken; the supervisor's own log goes by it at once."""
    taken = running.reload()
    logs.set_up("supervisor", "supervisor", running.value.log)
    return taken


def _definitions(config: Config, broker: Broker, running: RunningConfig) -> list[Definition]:
    """What is started, in this order; stages of the stop: first those who serve machines, last who keeps the books."""
    clusters = list(config.clusters)
    one = partial(_definition, config, broker, running)
    return [
        *([one("keys", "keys", stage=1)] if config.keys_kubernetes is not None else []),
        one("controllers", "controllers", stage=2, reload=True),
        *_servers(one, "boot", config.provisioning.listen, "provisioning.listen", config.provisioning.workers, 0),
        *([one("fetcher", "fetcher", stage=1)] if config.upstream is not None else []),
        *([one("pause", "pause", stage=1)] if config.pause is not None else []),
        *([one("traces", "traces", stage=1)] if config.traces is not None else []),
        *([one("resources", "resources", stage=1)] if config.inventory_kubernetes is not None else []),
        *([one("shipper", "shipper", stage=1)] if _ships(config) else []),
        one("management", "management", stage=1, listener=bind(config.management.listen, "management.listen")),
        *(
            _servers(one, "join", config.join.listen, "join.listen", config.join.workers, 1)
            if config.join is not None
            else []
        ),
        *(one("approver", f"approver-{name}", cluster=name, stage=1) for name in clusters),
        *(one("nodes", f"nodes-{name}", cluster=name, stage=1) for name in clusters),
    ]


def _ships(config: Config) -> bool:
    return config.inventory_kubernetes is not None and config.inventory_kubernetes.shipper is not None


def _servers(
    one: Callable[..., Definition], kind: Kind, address: Address, key: str, count: int, stage: int
) -> list[Definition]:
    """`count` processes that share an address, each with a socket of its own."""
    again = SharedAddress(address, key).listen
    return [
        one(kind, f"{kind}-{index}", index=index, stage=stage, listener=again(), listen=again) for index in range(count)
    ]


def _definition(
    config: Config,
    broker: Broker,
    running: RunningConfig,
    kind: Kind,
    name: str,
    *,
    index: int = 0,
    cluster: str = "",
    **more: Any,
) -> Definition:
    supervisor, files = os.getpid(), broker.offer(partial(_may, access_of(kind, name, cluster, config)))

    def spec(ready: int, listener: int | None) -> bytes:
        return (
            ProcessSpec(
                kind=kind,
                index=index,
                cluster=cluster,
                name=name,
                config=running.value,
                listener=listener,
                ready=ready,
                supervisor=supervisor,
                broker=files.fileno(),
            )
            .model_dump_json()
            .encode()
        )

    watchdog, serves = config.watchdog, kind in ("boot", "join", "management")
    silence = Silence(watchdog.start_seconds, watchdog.server_seconds if serves else watchdog.controller_seconds)
    return Definition(name, spec, silence=silence, inherits=(files.fileno(),), **more)


@contextmanager
def _walls(config: Config) -> Iterator[Broker]:
    """What processes need that may not open or make it themselves; says what is not kept from them.

    Databases that several write are kept open: SQLite removes and makes two files beside a database with the last and
    the first who opens it, and a process may write, or read, those that there were when it started.
    """
    for lack in shortcomings():
        log.warning("processes are not confined: this kernel cannot enforce %s", lack)
    for problem in exposed(config):
        log.warning("processes are not confined: %s", problem)
    for stray in strays(config):
        log.warning("%s", stray)
    broker = Broker()
    with ExitStack() as held:
        for path, make, table in _shared(config):
            if table == "intents" and not path.exists() and (config.data / "enrolment.db").exists():
                log.warning("%s was not there, and is made anew: nothing is held or in quarantine", path)
            try:
                database = held.enter_context(closing(make(path)))
                database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608 - our own names
            except (StateUnavailableError, sqlite3.Error, OSError) as error:
                log.warning("%s: %s: once it can be used, restart the service", path, error)
        _end_own(config)
        broker.start()
        yield broker


def _end_own(config: Config) -> None:
    """Where replicas share rollouts those of this one's own file are over: they would go on if the key were gone."""
    own = config.data / "rollouts.db"
    if config.rollouts == own or not own.exists():
        return
    try:
        rollouts.end_all(own, "rollouts are objects now (inventory_kubernetes.orders)", SystemClock().now_ms())
    except (StateUnavailableError, sqlite3.Error, OSError) as error:
        log.warning("%s: rollouts of before are not ended: %s", own, error)


def _shared(config: Config) -> Iterator[tuple[Path, Callable[[Path], sqlite3.Connection], str]]:
    """Databases that several processes write, or must find: where, who makes them, and a table."""
    yield config.data / "intents.db", intents.make, "intents"
    yield config.data / "enrolment.db", enrolment_schema.connect, "machines"
    yield config.rollouts, rollouts.make, "rollouts"
    yield config.data / "audit.db", audit.make, "audit"


def _may(access: Access, path: Path) -> bool:
    """Whether the process may have this file opened."""
    if path in access.handed or path in access.kubeconfigs:
        return True
    if path.suffix == ".pub" and path.parent in access.public_keys:
        return True
    for kubeconfig in access.kubeconfigs:
        with suppress(KubeconfigError):
            if path in named_files(kubeconfig):
                return True
    return False


def _environment() -> dict[str, str]:
    """Ours, with the very package that runs here first on the path (`-P` keeps the working folder off it)."""
    paths = [str(Path(netboot.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
