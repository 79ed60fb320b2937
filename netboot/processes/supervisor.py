"""What `netboot serve` starts: the supervisor, and the table of what it keeps running."""

import logging
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import netboot
from netboot.addresses import Address
from netboot.config import Config
from netboot.confine.access import Access, access_of, exposed
from netboot.confine.enter import shortcomings
from netboot.kube.errors import KubeconfigError
from netboot.kube.kubeconfig import named_files
from netboot.lifecycle.errors import StateUnavailableError
from netboot.listeners import bind, bind_all
from netboot.process import Kind, ProcessSpec
from netboot.status import ProcessStatus, SupervisorStatus
from netboot.stores.enrolment_schema import connect
from netboot.stores.lock import sole_instance
from netboot.stores.status import wipe, write_status
from netboot.supervise.broker import Broker
from netboot.supervise.process import Definition, Process
from netboot.supervise.supervisor import Supervisor

log = logging.getLogger(__name__)


def serve(config: Config, say: Callable[[str], None]) -> None:
    """Run the service until it is told to stop. `say` shows a line to whoever started it.

    Raises:
        AlreadyRunningError, ListenError: with the remedy. OSError: `data` cannot be written.
    """
    config.data.mkdir(parents=True, exist_ok=True)
    with sole_instance(config.data / "lock"), _walls(config) as broker:
        status = config.data / "status"
        for folder in (status, config.data / "metrics"):
            wipe(folder)
        supervisor = Supervisor(
            [sys.executable, "-P", "-m", "netboot.cli.main", "process"],
            _definitions(config, broker),
            environment=_environment(config),
            report=lambda state, processes: write_status(status, "supervisor", _status(state, processes)),
            once_ready=lambda: say("ready"),
            died=lambda pid: _forget_gauges(config.data / "metrics", pid),
        )
        say(f"provisioning (machines)   {config.provisioning.listen}, reached as {config.provisioning.url}")
        if config.join is not None:
            say(f"join (machines, TLS)      {config.join.listen}, reached as {config.join.url}")
        say(f"management (operators)    {config.management.listen}, reached as {config.management.base_url}")
        supervisor.run()


def _definitions(config: Config, broker: Broker) -> list[Definition]:
    """What is started, in this order; stages of the stop: first those who serve machines, last who keeps the books."""
    clusters = list(config.clusters)
    one = partial(_definition, config, broker)
    return [
        one("controllers", "controllers", stage=2, reload=True),
        *_servers(one, "boot", config.provisioning.listen, "provisioning.listen", config.provisioning.workers, 0),
        *([one("fetcher", "fetcher", stage=1)] if config.upstream is not None else []),
        one("management", "management", stage=1, listener=bind(config.management.listen, "management.listen")),
        *(
            _servers(one, "join", config.join.listen, "join.listen", config.join.workers, 1)
            if config.join is not None
            else []
        ),
        *(one("approver", f"approver-{name}", cluster=name, stage=1) for name in clusters),
        *(one("nodes", f"nodes-{name}", cluster=name, stage=1) for name in clusters),
    ]


def _servers(
    one: Callable[..., Definition], kind: Kind, address: Address, key: str, count: int, stage: int
) -> list[Definition]:
    """`count` processes that share an address, each with a socket of its own."""
    again = partial(bind, address, key, shared=True)
    return [
        one(kind, f"{kind}-{index}", index=index, stage=stage, listener=listener, listen=again)
        for index, listener in enumerate(bind_all(address, key, count))
    ]


def _definition(
    config: Config, broker: Broker, kind: Kind, name: str, *, index: int = 0, cluster: str = "", **more: Any
) -> Definition:
    supervisor, files = os.getpid(), broker.offer(partial(_may, access_of(kind, name, cluster, config)))

    def spec(ready: int, listener: int | None) -> bytes:
        return (
            ProcessSpec(
                kind=kind,
                index=index,
                cluster=cluster,
                name=name,
                config=config,
                listener=listener,
                ready=ready,
                supervisor=supervisor,
                broker=files.fileno(),
            )
            .model_dump_json()
            .encode()
        )

    return Definition(name, spec, inherits=(files.fileno(),), **more)


@contextmanager
def _walls(config: Config) -> Iterator[Broker]:
    """What processes need that may not open or make it themselves; says what is not kept from them.

    The enrolments are kept open: SQLite removes and makes two files beside them with the last and the first who opens
    them, and a process may write those that there were when it started.
    """
    for lack in shortcomings():
        log.warning("processes are not confined: this kernel cannot enforce %s", lack)
    for problem in exposed(config):
        log.warning("processes are not confined: %s", problem)
    broker = Broker()
    with ExitStack() as held:
        try:
            enrolments = held.enter_context(closing(connect(config.data / "enrolment.db")))
            enrolments.execute("SELECT count(*) FROM machines").fetchone()
        except (StateUnavailableError, sqlite3.Error, OSError) as error:
            log.warning("%s: once it can be used, restart the service", error)
        broker.start()
        yield broker


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


def _environment(config: Config) -> dict[str, str]:
    """Ours, with the very package that runs here first on the path (`-P` keeps the working folder off it)."""
    paths = [str(Path(netboot.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PROMETHEUS_MULTIPROC_DIR": str(config.data / "metrics"),
    }


def _status(state: Literal["running", "stopping"], processes: Sequence[Process]) -> SupervisorStatus:
    status = {
        process.definition.name: ProcessStatus(
            ready=process.ready, pid=process.pid, restarts=process.restarts, last_exit=process.last_exit
        )
        for process in processes
    }
    return SupervisorStatus(state=state, pid=os.getpid(), processes=status)


def _forget_gauges(metrics: Path, pid: int) -> None:
    """A dead process has no open connections and no lag; its counters count on."""
    for path in metrics.glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)
