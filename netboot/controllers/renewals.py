"""Has machines of rollouts drained and rebooted, by the very orders that people give (`netboot machine reboot`): the
adapter of `netboot.controllers.rollouts.Renewals`.

It keeps nothing. What a rollout ordered is in the ledger of orders (`netboot.lifecycle.drains`), bound to the boot that
is to end, so one that was given is not given again, wherever the program ended.
"""

import logging
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence

from netboot.controllers.rollouts import Ledger
from netboot.lifecycle.budget import slots
from netboot.lifecycle.drains import LONGEST_MS, Drain, DrainsStatus, DrainStore, Reserved, orderable, reserved
from netboot.lifecycle.errors import ActRefusedError
from netboot.lifecycle.intents import Intents
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.rollout import Renewal, Rollout
from netboot.lifecycle.state import MachineState

log = logging.getLogger(__name__)

_OWNED = "rollout/"


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
        self._owned = f"{_OWNED}{drains.replica}/" if drains.replica else _OWNED
        self._where = f" at {drains.replica}" if drains.replica else ""
        """Rollouts are each replica's own, and so are their numbers."""

    def ledger(self) -> Ledger:
        standing = self._drains.standing()
        return Ledger(reserved(standing, self._said()), self._intents.all(self._clock.now_ms()))

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
        silent = [self._owner(number) for number in unknown]
        for name, (drain, told) in orders.items():
            wanted = machines.get(name)
            if not drain.owner.startswith(self._owned) or drain.owner in silent or told is not False:
                continue
            if wanted is None or (self._owner(wanted.rollout.number), wanted.boot) != (drain.owner, drain.boot):
                words = "its rollout does not want it now: it was paused, undone or ended, or the machine left it"
                if self._drains.finish(drain.id, "withdrawn", words, self._clock.now_ms()) is not None:
                    log.info("%s is not to be rebooted now, by %s", name, drain.who, extra=_fields(drain))

    def _ended(self, free: Mapping[str, Renewal]) -> dict[str, str]:
        """Why machines of which nothing stands will not be rebooted: what was ordered of the boot that runs came to
        nothing. What the rollout itself withdrew is ordered anew."""
        refused = {}
        for number in {renewal.rollout.number for renewal in free.values()}:
            names = [name for name, renewal in free.items() if renewal.rollout.number == number]
            for name, drain in self._drains.last(self._owner(number), names).items():
                if drain.boot == free[name].boot and drain.end in ("undone", "taken-off", "replaced"):
                    refused[name] = f"{'its order was taken off ' if drain.end == 'taken-off' else ''}{drain.words}"
        return refused

    def _order(self, machine: str, renewal: Renewal) -> Drain:
        rollout, now = renewal.rollout, self._clock.now_ms()
        return Drain(
            id=secrets.token_hex(8),
            machine=machine,
            what="reboot",
            boot=renewal.boot,
            who=f"rollout {rollout.number} of channel {rollout.channel}{self._where}",
            reason=_reason(rollout),
            since_ms=now,
            deadline_ms=now + min(rollout.strategy.deadline * 1000, LONGEST_MS),
            bare=rollout.strategy.allow_bare,
            local=rollout.strategy.allow_local_data,
            owner=self._owner(rollout.number),
        )

    def _owner(self, rollout: int) -> str:
        return f"{self._owned}{rollout}"


def _reason(rollout: Rollout) -> str:
    if rollout.undoing:
        return f"back to the image before it{', for the rollout undoes itself' if rollout.verdict else ''}"
    return f"to image {rollout.image_name} {rollout.image[:12]}"


def _fields(drain: Drain) -> dict[str, object]:
    return {"fields": {"machine": drain.machine, "order": drain.id}}
