"""What `netboot serve` starts: the supervisor and its table of processes."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import netboot
from netboot.config import Config
from netboot.listeners import bind, bind_all
from netboot.process import Orders
from netboot.status import ProcessStatus, SupervisorStatus
from netboot.stores.lock import sole_instance
from netboot.stores.status import wipe, write_status
from netboot.supervise import Child, Plane, Supervisor


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
            report=lambda state, children: write_status(status, "supervisor", _status(state, children)),
            once_ready=lambda: say("ready"),
            died=lambda pid: _forget_gauges(config.data / "metrics", pid),
        )
        say(f"provisioning (machines)   {config.provisioning.listen}, reached as {config.provisioning.url}")
        if config.join is not None:
            say(f"join (machines, TLS)      {config.join.listen}, reached as {config.join.url}")
        say(f"management (operators)    {config.management.listen}, reached as {config.management.base_url}")
        supervisor.run()


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
        *([plane("fetcher", "fetcher", stage=1)] if config.upstream is not None else []),
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


def _environment(config: Config) -> dict[str, str]:
    """Ours, with the very package that runs here first on the path (`-P` keeps the working folder off it)."""
    paths = [str(Path(netboot.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PROMETHEUS_MULTIPROC_DIR": str(config.data / "metrics"),
    }


def _status(state: Literal["running", "stopping"], children: Sequence[Child]) -> SupervisorStatus:
    processes = {
        child.plane.name: ProcessStatus(
            ready=child.ready,
            pid=child.process.pid if child.process is not None else None,
            restarts=child.restarts,
            last_exit=child.last_exit,
        )
        for child in children
    }
    return SupervisorStatus(state=state, pid=os.getpid(), processes=processes)


def _forget_gauges(metrics: Path, pid: int) -> None:
    """A dead worker has no open connections and no lag; its counters count on."""
    for path in metrics.glob(f"gauge_live*_{pid}.db"):
        path.unlink(missing_ok=True)
