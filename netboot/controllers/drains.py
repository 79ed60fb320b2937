"""Ends orders to drain and to reboot, of which a node collector says that nothing more is to come, or whose machine is
not there any more. Who orders, who carries out and who ends are three processes, each of which goes on by itself."""

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from netboot.controllers.loop import Rollouts
from netboot.lifecycle.drains import AT_ONCE_SECONDS, Drain, DrainsStatus, DrainStore, End, reserved
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import OPERATORS
from netboot.lifecycle.ports import Clock
from netboot.status.controllers import RolloutsStatus

log = logging.getLogger(__name__)

Needless = Callable[[Mapping[str, Drain]], Mapping[str, str]]
Over = tuple[str, End, str]
"""The id of an order, how it has ended, and why."""


class AndDrains:
    """The loop of rollouts, with this. `said()`: what node collectors say; `left(machines)`: which of these are not
    there to be drained any more, and why; `needless(orders)`: machine → why what acts by itself has no reason any more
    for its order."""

    def __init__(
        self,
        rollouts: Rollouts,
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
        said, problems = self._said(), list[str]()
        looks: tuple[Callable[[], Iterable[Over]], ...] = (
            lambda: settled(said),
            lambda: released(self._drains, self._left),
            lambda: withdrawn(self._drains, said, self._needless),
        )
        for look in looks:  # what keeps one from being told keeps none of the others
            try:
                finish(self._drains, look(), self._clock.now_ms())
            except CannotTellError as error:
                problems.append(str(error))
        self._problem = problems[0] if problems else ""
        self._rollouts.step()

    def status(self) -> RolloutsStatus:
        """The rollouts'; where that is in order, what keeps orders from being ended."""
        status = self._rollouts.status()
        return status.model_copy(update={"problem": status.problem or self._problem})


def finish(
    drains: DrainStore, over: Iterable[Over], now_ms: int, monotonic: Callable[[], float] = time.monotonic
) -> list[Drain]:
    """End these; which were. One that cannot be ended keeps no other.

    Raises:
        CannotTellError: not all; told again it ends each but once.
    """
    ended, failed = list[Drain](), list[CannotTellError]()
    until, turns = monotonic() + AT_ONCE_SECONDS, list(over)
    random.shuffle(turns)  # that those which take long come first again and again
    for order, how, why in turns:
        if monotonic() >= until:
            failed.append(CannotTellError("orders take long to end, and go on with the next look"))
            break
        try:
            drain = drains.finish(order, how, why, now_ms)
        except CannotTellError as error:
            failed.append(error)
            continue
        if drain is not None:
            ended.append(drain)
            log.info(
                "%s of %s has ended: %s: %s", drain.what, drain.machine, how, why, extra={"fields": _fields(drain)}
            )
    if failed:
        raise failed[0]
    return ended


def settled(said: Sequence[DrainsStatus]) -> list[Over]:
    """Orders that are undone, or whose machine was rebooted."""
    return [
        (state.id, state.state, state.words)
        for status in said
        for state in status.drains.values()
        if state.state == "undone" or state.state == "rebooted"
    ]


def released(drains: DrainStore, left: Callable[[Sequence[str]], Mapping[str, str]]) -> list[Over]:
    """Orders of machines that no cluster carries them out on: nobody else would end them.

    Raises:
        CannotTellError: not now.
    """
    standing = {one.machine: one for one in drains.standing()}
    return [(standing[name].id, "undone", why) for name, why in left(list(standing)).items()] if standing else []


def withdrawn(drains: DrainStore, said: Sequence[DrainsStatus], needless: Needless) -> list[Over]:
    """What acts by itself ordered and has no reason for any more, unless its machine was told, or may have been.

    Raises:
        CannotTellError: not now.
    """
    known = reserved(drains.standing(), said, drains.elsewhere())
    orders = {name: each.drain for name, each in known.items() if each.told is False}
    orders = {name: drain for name, drain in orders.items() if drain.owner != OPERATORS}
    return [(orders[name].id, "withdrawn", why) for name, why in needless(orders).items()] if orders else []


def _fields(drain: Drain) -> dict[str, str]:
    return {"machine": drain.machine, "boot": drain.boot, "order": drain.id}
