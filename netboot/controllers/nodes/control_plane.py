"""Looks at the control plane of one cluster, and says how it is (`data/status/control-plane-<cluster>.json`): for
whoever wants one of its machines to go out of service."""

import logging
import threading
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from netboot.join.control_plane import ControlPlane
from netboot.lifecycle.control_planes import ControlNode, ControlPlaneStatus
from netboot.lifecycle.errors import CannotTellError
from netboot.logs import Trouble
from netboot.status import DEFECT

log = logging.getLogger(__name__)

LOOK_SECONDS = 10.0


@dataclass(slots=True)
class ControlPlaneLook:
    """`machines()`: names of our machines' Nodes; where the control plane has none of them, its etcd is not looked at.
    `say`: publishes. One thread's."""

    connect: Callable[[], ControlPlane]
    machines: Callable[[], Container[str]]
    say: Callable[[ControlPlaneStatus], object]
    now_ms: Callable[[], int]
    _port: ControlPlane | None = None
    _trouble: Trouble = field(
        default_factory=lambda: Trouble(log, "control plane", "control plane: in order again", logging.ERROR)
    )

    def start(self) -> None:
        """Begin; the thread ends with the process."""
        threading.Thread(target=self._for_ever, name="control-plane", daemon=True).start()

    def step(self) -> None:
        """Look, and say what was seen, or why that cannot be told."""
        try:
            said = ControlPlaneStatus(at_ms=self.now_ms(), nodes=self._seen())
            self._trouble.note(None)
        except CannotTellError as error:
            said = ControlPlaneStatus(at_ms=self.now_ms(), problem=str(error))
            self._trouble.note(str(error))
        self.say(said)

    def _seen(self) -> dict[str, ControlNode]:
        if self._port is None:
            self._port = self.connect()
        nodes, machines = self._port.nodes(), self.machines()
        ours = any(name in machines for name in nodes)
        etcd = {name: self._port.etcd(name) for name in nodes} if ours else {}
        return {name: ControlNode(ready=ready, etcd=etcd.get(name)) for name, ready in nodes.items()}

    def _for_ever(self) -> None:
        pause = threading.Event()
        while True:
            try:
                self.step()
            except Exception as error:  # noqa: BLE001 - whatever it is, the next look is tried
                self._trouble.note(DEFECT, error)
            pause.wait(LOOK_SECONDS)
