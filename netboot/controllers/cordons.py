"""Makes holds of cordons that would go with their Nodes. Join, which deletes those, may not write what is wanted of
machines: it waits until the hold stands (`netboot.join.taints`)."""

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from netboot.controllers.loop import Rollouts
from netboot.lifecycle.cordons import Cordon, hold_of, is_kept, loses_its_node
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import IntentStore
from netboot.lifecycle.ports import Clock, States
from netboot.status import FRESH_MS, up_ms
from netboot.status.controllers import RolloutsStatus

log = logging.getLogger(__name__)


class _Seen(NamedTuple):
    """Which Node of a machine was seen to be cordoned, and when, by `up_ms()`: for the first time, and the last."""

    uid: str
    first_ms: int
    last_ms: int


class AndCordons:
    """A loop, with this. `cordons()`: what is cordoned now, by machine; `joins_read_to(up_ms)`: whether what join wrote
    down before that moment of `up_ms()` is in the state."""

    def __init__(
        self,
        loop: Rollouts,
        intents: IntentStore,
        states: States,
        cordons: Callable[[], Mapping[str, Cordon]],
        joins_read_to: Callable[[int], bool],
        clock: Clock,
        up_ms: Callable[[], int] = up_ms,
    ) -> None:
        self._loop, self._intents, self._states = loop, intents, states
        self._cordons, self._joins_read_to, self._clock, self._up_ms = cordons, joins_read_to, clock, up_ms
        self._seen: dict[str, _Seen] = {}
        self._problem = ""

    def step(self) -> None:
        """Make what holds there are to make, then go on."""
        try:
            self._keep()
        except CannotTellError as error:
            self._problem = str(error)
        else:
            self._problem = ""
        self._loop.step()

    def status(self) -> RolloutsStatus:
        """The loop's; where that is in order, what keeps cordons from becoming holds."""
        status = self._loop.status()
        return status.model_copy(update={"problem": status.problem or self._problem})

    def _keep(self) -> None:
        cordons = self._seen_to()
        if not cordons:
            return
        states, now_ms = self._states.machines(list(cordons)), self._clock.now_ms()
        for machine, cordon in cordons.items():
            if loses_its_node(states.get(machine)) and not is_kept(self._intents.of(machine, now_ms)):
                self._intents.order(machine, hold_of(cordon), cordon.who, now_ms)
                fields = {"machine": machine, "node": cordon.node, "by": cordon.who}
                log.warning(
                    "%s is held, for its Node is cordoned and goes with this boot", machine, extra={"fields": fields}
                )

    def _seen_to(self) -> dict[str, Cordon]:
        """Those of which the state can be believed: whose boot has its Node by its token had that journalled before the
        Node could be seen, so what join wrote until then has to be read."""
        cordons, now = self._cordons(), self._up_ms()
        self._seen = {name: seen for name, seen in self._seen.items() if now - seen.last_ms <= FRESH_MS}
        for name, cordon in cordons.items():
            seen = self._seen.get(name)
            first_ms = seen.first_ms if seen is not None and seen.uid == cordon.uid else now
            self._seen[name] = _Seen(cordon.uid, first_ms, now)
        return {name: each for name, each in cordons.items() if self._joins_read_to(self._seen[name].first_ms)}
