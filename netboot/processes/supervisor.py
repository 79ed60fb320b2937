"""What `netboot serve` starts: the supervisor, and the table of what it keeps running."""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import netboot
from netboot.addresses import Address
from netboot.config import Config
from netboot.listeners import bind, bind_all
from netboot.process import Kind, ProcessSpec
from netboot.status import ProcessStatus, SupervisorStatus
from netboot.stores.lock import sole_instance
from netboot.stores.status import wipe, write_status
from netboot.supervise.process import Definition, Process
from netboot.supervise.supervisor import Supervisor


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
            [sys.executable, "-P", "-m", "netboot.cli.main", "process"],
            _definitions(config),
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


def _definitions(config: Config) -> list[Definition]:
    """What is started, in this order; stages of the stop: first those who serve machines, last who keeps the books."""
    clusters = list(config.clusters)
    return [
        _definition(config, "controllers", "controllers", stage=2, reload=True),
        *_servers(config, "boot", config.provisioning.listen, "provisioning.listen", config.provisioning.workers, 0),
        *([_definition(config, "fetcher", "fetcher", stage=1)] if config.upstream is not None else []),
        _definition(
            config, "management", "management", stage=1, listener=bind(config.management.listen, "management.listen")
        ),
        *(
            _servers(config, "join", config.join.listen, "join.listen", config.join.workers, 1)
            if config.join is not None
            else []
        ),
        *(_definition(config, "approver", f"approver-{name}", cluster=name, stage=1) for name in clusters),
        *(_definition(config, "nodes", f"nodes-{name}", cluster=name, stage=1) for name in clusters),
    ]


def _servers(config: Config, kind: Kind, address: Address, key: str, count: int, stage: int) -> list[Definition]:
    """`count` processes that share an address, each with a socket of its own."""
    again = partial(bind, address, key, shared=True)
    return [
        _definition(config, kind, f"{kind}-{index}", index=index, stage=stage, listener=listener, listen=again)
        for index, listener in enumerate(bind_all(address, key, count))
    ]


def _definition(config: Config, kind: Kind, name: str, *, index: int = 0, cluster: str = "", **more: Any) -> Definition:
    supervisor = os.getpid()

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
            )
            .model_dump_json()
            .encode()
        )

    return Definition(name, spec, **more)


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
