"""What the supervisor says of itself and its processes, and to whom."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from netboot.clock import monotonic_ms
from netboot.status.supervisor import ProcessStatus, SupervisorStatus
from netboot.stores.status import StatusWriter
from netboot.supervise.changed import RunningConfig
from netboot.supervise.notify import Manager
from netboot.supervise.process import Process

SAY_SECONDS = 2.0
"""So often it says that it is there, whether anything changed or not."""


class Told:
    """What the supervisor says of itself: to the service manager, and in `data/status` for `/readyz` and metrics."""

    def __init__(self, folder: Path, manager: Manager, config: RunningConfig) -> None:
        self._writer, self._manager, self._config = StatusWriter(folder, "supervisor"), manager, config
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
        self._status = SupervisorStatus(
            state=state,
            pid=os.getpid(),
            uptime_ms=monotonic_ms(),
            processes=status,
            file=str(self._config.file.absolute()),
            changed=self._config.words(),
            reloads=self._config.reloads,
            taken=self._config.taken,
        )
        self._say()
        down = ", ".join(sorted(name for name, process in status.items() if not process.ready))
        self._manager.tell(f"STATUS={f'not ready: {down}' if down else 'ready'}")
        # readiness is said again, for a word that was lost would end the service when its time to start has passed
        self._manager.tell("STOPPING=1" if state == "stopping" else "READY=1")

    def beat(self) -> None:
        """Its loop goes round."""
        self._manager.beat()
        if self._status is not None and time.monotonic() - self._said >= SAY_SECONDS:
            self._status = self._status.model_copy(
                update={"uptime_ms": monotonic_ms(), "changed": self._config.words()}
            )
            self._say()

    def close(self) -> None:
        """Wait a moment until the last word is written."""
        self._writer.close()
        self._manager.close()

    def _say(self) -> None:
        assert self._status is not None
        self._said = time.monotonic()
        self._writer.say(self._status)
