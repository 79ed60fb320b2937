"""Makes holds of cordons that would go with their Nodes. Join, which deletes those, may not write what is wanted of
machines: it waits until the hold stands (`netboot.join.taints`)."""

import logging
from collections.abc import Callable, Mapping

from netboot.controllers.loop import Rollouts
from netboot.lifecycle.cordons import Cordon, hold_of, is_kept, loses_its_node
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import IntentStore
from netboot.lifecycle.ports import Clock, States
from netboot.status.controllers import RolloutsStatus

log = logging.getLogger(__name__)


class AndCordons:
    """A loop, with this. `cordons()`: what is cordoned now, by machine; `caught_up()`: all that was journalled is in
    the state, so that a boot that has its token is known to have it."""

    def __init__(
        self,
        loop: Rollouts,
        intents: IntentStore,
        states: States,
        cordons: Callable[[], Mapping[str, Cordon]],
        caught_up: Callable[[], bool],
        clock: Clock,
    ) -> None:
        self._loop, self._intents, self._states = loop, intents, states
        self._cordons, self._caught_up, self._clock = cordons, caught_up, clock
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
        cordons = self._cordons()  # first: whoever has its Node by its token had that journalled before
        if not cordons or not self._caught_up():
            return
        states, now_ms = self._states.machines(list(cordons)), self._clock.now_ms()
        for machine, cordon in cordons.items():
            if loses_its_node(states.get(machine)) and not is_kept(self._intents.of(machine, now_ms)):
                self._intents.order(machine, hold_of(cordon), cordon.who, now_ms)
                fields = {"machine": machine, "node": cordon.node, "by": cordon.who}
                log.warning(
                    "%s is held, for its Node is cordoned and goes with this boot", machine, extra={"fields": fields}
                )
