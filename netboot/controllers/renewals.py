"""Has machines of rollouts drained and rebooted, by the very orders that people give (`netboot machine reboot`): the
adapter of `netboot.controllers.rollouts.Renewals`.

It keeps nothing. What a rollout ordered is in the ledger of orders (`netboot.lifecycle.drains`), bound to the boot that
is to end, so one that was given is not given again, wherever the program ended.
"""

import logging
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence

from netboot.controllers.drains import Over, finish
from netboot.lifecycle.budget import slots
from netboot.lifecycle.drains import LONGEST_MS, Drain, DrainsStatus, DrainStore, Reserved, orderable, reserved
from netboot.lifecycle.errors import ActRefusedError
from netboot.lifecycle.intents import Intents
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.renewals import Ledger
from netboot.lifecycle.rollout import Renewal, Rollout
from netboot.lifecycle.state import MachineState

log = logging.getLogger(__name__)

_OWNED = "rollout/"
_UNWANTED = "its rollout does not want it now: it was paused, undone or ended, or the machine left it"


class OrderedRenewals:
    """`said()`: what node collectors say of the orders that they carry out; `states(machines)`: what is known of these;
    `joins(machine)`: whether it joins a cluster that the service knows."""

    def __init__(
        self,
        drains: DrainStore,
        intents: Intents,
        said: Callable[[], Sequence[DrainsStatus]],
        states: Callable[[Sequence[str]], Mapping[str, MachineState]],
        joins: Callable[[str], bool],
        clock: Clock,
    ) -> None:
        self._drains, self._intents, self._said, self._states = drains, intents, said, states
        self._joins, self._clock = joins, clock

    def ledger(self) -> Ledger:
        orders = reserved(self._drains.standing(), self._said(), self._drains.elsewhere())
        return Ledger(orders, self._intents.all(self._clock.now_ms()))

    def want(self, machines: Mapping[str, Renewal], ledger: Ledger, unknown: Collection[int]) -> Mapping[str, str]:
        orders = ledger.orders
        self._withdraw(machines, orders, unknown)
        free = {name: renewal for name, renewal in machines.items() if name not in orders}
        refused = self._ended(free)
        asked = []
        begin = [name for name, renewal in free.items() if renewal.may_begin and name not in refused]
        states = self._states(begin) if begin else {}
        for name in begin:
            try:
                boot = orderable(name, states.get(name), joins=self._joins(name))
            except ActRefusedError as error:
                refused[name] = str(error)
                continue
            if boot == free[name].boot:  # else it was rebooted meanwhile, by whomever
                asked.append(self._order(name, free[name]))
        if asked:
            for drain in self._drains.reserve(asked, slots(ledger.drains, ledger.intents)):
                log.info("%s is to be drained and rebooted, by %s", drain.machine, drain.who, extra=_fields(drain))
        return refused

    def _withdraw(
        self, machines: Mapping[str, Renewal], orders: Mapping[str, Reserved], unknown: Collection[int]
    ) -> None:
        """Orders of rollouts that want it no more. Who was told to reboot is on its way: that goes on to its end, and
        whoever may have been is taken for one who was."""
        silent, over = {_owner(number) for number in unknown}, list[Over]()
        for name, (drain, told) in orders.items():
            wanted = machines.get(name)
            if not drain.owner.startswith(_OWNED) or drain.owner in silent or told is not False:
                continue
            if wanted is None or (_owner(wanted.rollout.number), wanted.boot) != (drain.owner, drain.boot):
                over.append((drain.id, "withdrawn", _UNWANTED))
        finish(self._drains, over, self._clock.now_ms())

    def _ended(self, free: Mapping[str, Renewal]) -> dict[str, str]:
        """Why machines of which nothing stands will not be rebooted: what was ordered of the boot that runs came to
        nothing. What the rollout itself withdrew is ordered anew."""
        refused = {}
        for number in {renewal.rollout.number for renewal in free.values()}:
            names = [name for name, renewal in free.items() if renewal.rollout.number == number]
            for name, drain in self._drains.last(_owner(number), names).items():
                if drain.boot == free[name].boot and drain.end in ("undone", "taken-off", "replaced"):
                    said = drain.words if drain.words.startswith("by ") else f"({drain.words})"
                    refused[name] = f"its order was taken off {said}" if drain.end == "taken-off" else drain.words
        return refused

    def _order(self, machine: str, renewal: Renewal) -> Drain:
        rollout, now = renewal.rollout, self._clock.now_ms()
        return Drain(
            id=secrets.token_hex(8),
            machine=machine,
            what="reboot",
            boot=renewal.boot,
            who=f"rollout {rollout.number} of channel {rollout.channel}",
            reason=_reason(rollout),
            since_ms=now,
            deadline_ms=now + min(rollout.strategy.deadline * 1000, LONGEST_MS),
            bare=rollout.strategy.allow_bare,
            local=rollout.strategy.allow_local_data,
            owner=_owner(rollout.number),
        )


def _owner(rollout: int) -> str:
    """Of its orders. Where replicas share orders they share rollouts, and so their numbers, too."""
    return f"{_OWNED}{rollout}"


def _reason(rollout: Rollout) -> str:
    if rollout.undoing:
        return f"back to the image before it{', for the rollout undoes itself' if rollout.verdict else ''}"
    return f"to image {rollout.image_name} {rollout.image[:12]}"


def _fields(drain: Drain) -> dict[str, object]:
    return {"fields": {"machine": drain.machine, "order": drain.id}}
