"""Ends orders to drain and to reboot, of which a node collector says that nothing more is to come, or whose machine is
not there any more. Who orders, who carries out and who ends are three processes, each of which goes on by itself."""

import logging
from collections.abc import Callable, Mapping, Sequence

from netboot.controllers.rollouts import RolloutController
from netboot.lifecycle.drains import Drain, DrainsStatus, DrainStore, reserved
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import OPERATORS
from netboot.lifecycle.ports import Clock
from netboot.status.controllers import RolloutsStatus

log = logging.getLogger(__name__)

Needless = Callable[[Mapping[str, Drain]], Mapping[str, str]]


class AndDrains:
    """The loop of rollouts, with this. `said()`: what node collectors say; `left(machines)`: which of these are not
    there to be drained any more, and why; `needless(orders)`: machine → why what acts by itself has no reason any more
    for its order."""

    def __init__(
        self,
        rollouts: RolloutController,
        drains: DrainStore,
        said: Callable[[], Sequence[DrainsStatus]],
        left: Callable[[Sequence[str]], Mapping[str, str]],
        needless: Needless,
        clock: Clock,
    ) -> None:
        self._rollouts, self._drains, self._said, self._clock = rollouts, drains, said, clock
        self._left, self._needless = left, needless
        self._problem = ""

    def step(self) -> None:
        """End what has come to its end, then look at rollouts."""
        try:
            now_ms, said = self._clock.now_ms(), self._said()
            settle(self._drains, said, now_ms)
            release(self._drains, self._left, now_ms)
            withdraw(self._drains, said, self._needless, now_ms)
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
                    words = (drain.what, machine, state.state, state.words)
                    log.info("%s of %s has ended: %s: %s", *words, extra={"fields": _fields(drain)})
    return ended


def release(drains: DrainStore, left: Callable[[Sequence[str]], Mapping[str, str]], now_ms: int) -> None:
    """End orders of machines that no cluster carries them out on: nobody else would.

    Raises:
        CannotTellError: not now.
    """
    standing = {one.machine: one for one in drains.standing()}
    for machine, why in left(list(standing)).items() if standing else ():
        drains.finish(standing[machine].id, "undone", why, now_ms)
        drain = standing[machine]
        log.info("%s of %s has ended: undone: %s", drain.what, machine, why, extra={"fields": _fields(drain)})


def withdraw(drains: DrainStore, said: Sequence[DrainsStatus], needless: Needless, now_ms: int) -> None:
    """Take back what acts by itself ordered and has no reason for any more, unless its machine was told, or may have
    been.

    Raises:
        CannotTellError: not now.
    """
    orders = {name: one.drain for name, one in reserved(drains.standing(), said).items() if one.told is False}
    orders = {name: drain for name, drain in orders.items() if drain.owner != OPERATORS}
    for machine, why in needless(orders).items() if orders else ():
        if drains.finish(orders[machine].id, "withdrawn", why, now_ms) is not None:
            drain = orders[machine]
            log.info("%s of %s has ended: withdrawn: %s", drain.what, machine, why, extra={"fields": _fields(drain)})


def _fields(drain: Drain) -> dict[str, str]:
    return {"machine": drain.machine, "boot": drain.boot, "order": drain.id}
