"""Until when what objects say is known to be so: one Lease for all of them, as an API server has one for each Node."""

import platform

from netboot.controllers.shipped import Known, Objects
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock

RENEW_SECONDS = 15.0


class KnownUntil:
    """`problem`: why it cannot be said; empty: it can. For one thread."""

    def __init__(self, known: Known, clock: Clock) -> None:
        self._known, self._clock = known, clock
        self._tried_at = float("-inf")
        self.problem = ""

    def may(self, now: float) -> bool:
        """Whether it is time to say it."""
        return now - self._tried_at >= RENEW_SECONDS

    def renew(self, objects: Objects, now: float) -> None:
        """Say that all is so now, if it is. Raises CannotTellError: whether it is cannot be told."""
        self._tried_at = now
        if not self._known.of_now():
            return
        try:
            objects.renew(platform.node(), self._clock.now_ms())
        except CannotTellError as error:
            self.problem = f"until when it is known cannot be said: {error}"
        else:
            self.problem = ""
