"""What somebody cordoned of a cluster's Nodes, as a node collector hands it to the controllers, who make holds of it:
`data/status/cordons-<cluster>.json`."""

import time
from collections.abc import Callable, Mapping

from netboot.lifecycle.cordons import Cordon, CordonsStatus

AGAIN_SECONDS = 3.0
"""How often it is said that it is so still."""


def file_of(cluster: str) -> str:
    """The name under which it lies in `data/status`."""
    return f"cordons-{cluster}"


class CordonsSaid:
    """`cordons()`: by machine; `write` publishes; whether it could. Says nothing while Nodes are not followed: what was
    said before is too old then soon enough."""

    def __init__(
        self,
        cordons: Callable[[], Mapping[str, Cordon]],
        write: Callable[[CordonsStatus], bool],
        now_ms: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cordons, self._write, self._now_ms, self._monotonic = cordons, write, now_ms, monotonic
        self._said: Mapping[str, Cordon] = {}
        self._said_at = float("-inf")

    def say(self, *, followed: bool) -> None:
        """What is so now, if that is new, or was said a while ago."""
        if not followed:
            return
        cordons = self._cordons()
        late = bool(cordons) and self._monotonic() - self._said_at >= AGAIN_SECONDS
        if (cordons != self._said or late) and self._write(CordonsStatus(at_ms=self._now_ms(), cordons=cordons)):
            self._said, self._said_at = cordons, self._monotonic()
