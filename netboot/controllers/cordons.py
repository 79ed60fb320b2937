"""Makes holds of cordons that would go with their Nodes. Join, which deletes those, may not write what is wanted of
machines: it waits until the hold stands (`netboot.join.taints`)."""

import logging
from collections.abc import Callable, Mapping

from netboot.controllers.loop import Rollouts
from netboot.lifecycle.cordons import Cordon, hold_of, is_kept, loses_its_node
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import IntentStore
from netboot.lifecycle.ports import Clock, States
from netboot.status import up_ms
from netboot.status.controllers import RolloutsStatus

log = logging.getLogger(__name__)


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
        self._since: dict[str, tuple[Cordon, int]] = {}
        """Of each machine, the cordon that there is, and when it was first seen."""
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
        cordons = self._cordons()
        now, before = self._up_ms(), self._since
        known = {name: before[name] for name, cordon in cordons.items() if name in before and before[name][0] == cordon}
        self._since = {name: (cordon, now) for name, cordon in cordons.items()} | known
        return {name: cordon for name, (cordon, since) in self._since.items() if self._joins_read_to(since)}
