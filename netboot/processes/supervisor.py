"""What `netboot serve` starts: the supervisor, and the table of what it keeps running."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import netboot
from netboot.addresses import Address
from netboot.clock import monotonic_ms
from netboot.config import Config
from netboot.listeners import SharedAddress, bind
from netboot.process import Kind, ProcessSpec
from netboot.status import ProcessStatus, SupervisorStatus
from netboot.stores.lock import sole_instance
from netboot.stores.status import StatusWriter, wipe
from netboot.supervise.notify import Manager
from netboot.supervise.process import Definition, Process
from netboot.supervise.pulse import Silence
from netboot.supervise.supervisor import Supervisor

SAY_SECONDS = 2.0
"""So often it says that it is there, whether anything changed or not."""


def serve(config: Config, say: Callable[[str], None]) -> None:
    """Run the service until it is told to stop. `say` shows a line to whoever started it.

    Raises:
        AlreadyRunningError, ListenError: with the remedy. OSError: `data` cannot be written.
    """
    config.data.mkdir(parents=True, exist_ok=True)
    with sole_instance(config.data / "lock"):
        wipe(config.data / "status")
        manager = Manager(os.environ)
        told = Told(config.data / "status", manager)
        supervisor = Supervisor(
            [sys.executable, "-P", "-m", "netboot.cli.main", "process"],
            _definitions(config),
            environment=_environment(),
            report=told.report,
            once_ready=lambda: say("ready"),
            beat=told.beat,
        )
        say(f"provisioning (machines)   {config.provisioning.listen}, reached as {config.provisioning.url}")
        if config.join is not None:
            say(f"join (machines, TLS)      {config.join.listen}, reached as {config.join.url}")
        say(f"management (operators)    {config.management.listen}, reached as {config.management.base_url}")
        manager.tell("READY=1")  # its addresses are bound; what is not ready yet must not end what is
        supervisor.run()
        told.close()


class Told:
    """What the supervisor says of itself: to the service manager, and in `data/status` for `/readyz` and metrics."""

    def __init__(self, folder: Path, manager: Manager) -> None:
        self._writer, self._manager = StatusWriter(folder, "supervisor"), manager
        self._status: SupervisorStatus | None = None
        self._said = float("-inf")

    def report(self, state: Literal["running", "stopping"], processes: Sequence[Process]) -> None:
        """Something changed."""
        status = {
            process.definition.name: ProcessStatus(
                ready=process.ready,
                pid=process.pid,
                restarts=process.restarts,
                last_exit=process.last_exit,
                problem=process.problem,
            )
            for process in processes
        }
        self._status = SupervisorStatus(state=state, pid=os.getpid(), uptime_ms=monotonic_ms(), processes=status)
        self._say()
        down = ", ".join(sorted(name for name, process in status.items() if not process.ready))
        self._manager.tell(f"STATUS={f'not ready: {down}' if down else 'ready'}")
        if state == "stopping":
            self._manager.tell("STOPPING=1")

    def beat(self) -> None:
        """Its loop goes round."""
        self._manager.beat()
        if self._status is not None and time.monotonic() - self._said >= SAY_SECONDS:
            self._status = self._status.model_copy(update={"uptime_ms": monotonic_ms()})
            self._say()

    def close(self) -> None:
        """Wait a moment until the last word is written."""
        self._writer.close()

    def _say(self) -> None:
        assert self._status is not None
        self._said = time.monotonic()
        self._writer.say(self._status)


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
    again = SharedAddress(address, key).listen
    return [
        _definition(config, kind, f"{kind}-{index}", index=index, stage=stage, listener=again(), listen=again)
        for index in range(count)
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

    watchdog, serves = config.watchdog, kind in ("boot", "join", "management")
    seconds = watchdog.server_seconds if serves else watchdog.controller_seconds
    return Definition(name, spec, silence=Silence(watchdog.start_seconds, seconds), **more)


def _environment() -> dict[str, str]:
    """Ours, with the very package that runs here first on the path (`-P` keeps the working folder off it)."""
    paths = [str(Path(netboot.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
