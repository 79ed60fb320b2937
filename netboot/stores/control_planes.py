"""What node collectors say of control planes: `netboot.lifecycle.control_planes.ControlPlanes`."""

from collections.abc import Callable, Mapping

from netboot.lifecycle.control_planes import ControlNode, ControlPlaneStatus
from netboot.lifecycle.errors import CannotTellError
from netboot.stores.status import StatusFolder

FRESH_MS = 30_000
"""How old it may be; it is written each ten seconds."""


def file_of(cluster: str) -> str:
    """The name under which it lies in `data/status`."""
    return f"control-plane-{cluster}"


class SaidControlPlanes:
    """`now_ms()`: of the clock by which it was written."""

    def __init__(self, status: StatusFolder, now_ms: Callable[[], int]) -> None:
        self._status, self._now_ms = status, now_ms

    def seen(self, cluster: str) -> Mapping[str, ControlNode]:
        said = self._status.read(file_of(cluster), ControlPlaneStatus)
        if said is None or abs(self._now_ms() - said.at_ms) > FRESH_MS:
            raise CannotTellError(f"nodes-{cluster} has not said for a while how it is")
        if said.problem:
            raise CannotTellError(said.problem)
        return said.nodes
