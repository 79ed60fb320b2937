"""Ends orders to drain and to reboot, of which a node collector says that nothing more is to come, or whose machine is
not there any more. Who orders, who carries out and who ends are three processes, each of which goes on by itself."""

import logging
from collections.abc import Callable, Mapping, Sequence

from netboot.controllers.rollouts import RolloutController
from netboot.lifecycle.drains import Drain, DrainsStatus, DrainStore
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.status.controllers import RolloutsStatus

log = logging.getLogger(__name__)


class AndDrains:
    """The loop of rollouts, with this. `said()`: what node collectors say; `left(machines)`: which of these are not
    there to be drained any more, and why."""

    def __init__(
        self,
        rollouts: RolloutController,
        drains: DrainStore,
        said: Callable[[], Sequence[DrainsStatus]],
        left: Callable[[Sequence[str]], Mapping[str, str]],
        clock: Clock,
    ) -> None:
        self._rollouts, self._drains, self._said, self._left, self._clock = rollouts, drains, said, left, clock
        self._problem = ""

    def step(self) -> None:
        """End what has come to its end, then look at rollouts."""
        try:
            now_ms = self._clock.now_ms()
            settle(self._drains, self._said(), now_ms)
            release(self._drains, self._left, now_ms)
        except CannotTellError as error:
            self._problem = str(error)
        else:
            self._problem = ""
        self._rollouts.step()

    def status(self) -> RolloutsStatus:
        """The rollouts'; where that is in order, what keeps orders from being ended."""
        status = self._rollouts.status()
        return status.model_copy(update={"problem": status.problem or self._problem})


def settle(drains: DrainStore, said: Sequence[DrainsStatus], now_ms: int) -> list[Drain]:
    """End those that are undone, or whose machine was rebooted; which these were.

    Raises:
        CannotTellError: not now; told again it ends each but once.
    """
    ended = []
    for status in said:
        for machine, state in status.drains.items():
            if state.state in ("undone", "rebooted"):
                drain = drains.finish(state.id, state.state, state.words, now_ms)
                if drain is not None:
                    ended.append(drain)
                    log.info("%s of %s has ended: %s: %s", drain.what, machine, state.state, state.words)
    return ended


def release(drains: DrainStore, left: Callable[[Sequence[str]], Mapping[str, str]], now_ms: int) -> None:
    """End orders of machines that no cluster carries them out on: nobody else would.

    Raises:
        CannotTellError: not now.
    """
    standing = {one.machine: one for one in drains.standing()}
    for machine, why in left(list(standing)).items() if standing else ():
        drains.finish(standing[machine].id, "undone", why, now_ms)
        log.info("%s of %s has ended: undone: %s", standing[machine].what, machine, why)
