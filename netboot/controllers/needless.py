"""For which orders what acts by itself has no reason any more: its machine is somebody's since, or is well again."""

from collections.abc import Callable, Mapping, Sequence

from netboot.controllers.watching import unheard
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.intents import Intents, by_machine
from netboot.lifecycle.known import Declared
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.remedies import OWNED, needless
from netboot.status.controllers import LifecycleStatus


class NeedlessOrders:
    """`judged(names)`: what was found of machines; `declared()`: the machines that are judged; `said()`: what the
    lifecycle's loop said last."""

    def __init__(
        self,
        intents: Intents,
        judged: Callable[[Sequence[str]], Mapping[str, Judged]],
        declared: Callable[[], Mapping[str, Declared]],
        said: Callable[[], LifecycleStatus | None],
        clock: Clock,
        up_ms: Callable[[], int],
    ) -> None:
        self._intents, self._judged, self._declared, self._said = intents, judged, declared, said
        self._clock, self._up_ms = clock, up_ms

    def of(self, orders: Mapping[str, Drain]) -> dict[str, str]:
        """Machine → why, of those orders that are so.

        Raises:
            CannotTellError: not now.
        """
        intents, said, declared = by_machine(self._intents.all(self._clock.now_ms())), self._said(), self._declared()
        blind = None if said is None or unheard(said, self._up_ms()) else set(said.unseen)
        helped = [name for name, drain in orders.items() if drain.owner.startswith(OWNED)]
        judged = self._judged(helped) if helped and blind is not None else {}
        found = {}
        for name, drain in orders.items():
            seen = blind is not None and name in declared and declared[name].places.nodes not in blind
            why = needless(drain, intents.get(name, ()), judged.get(name) if seen else None)
            if why:
                found[name] = why
        return found
