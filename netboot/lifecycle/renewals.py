"""Whom rollouts ask to drain and reboot machines: a port."""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from netboot.lifecycle.drains import Drain, Reserved
from netboot.lifecycle.intents import Intent
from netboot.lifecycle.rollout import Renewal


class Ledger(NamedTuple):
    """By what is counted who is out of service. `orders`: what stands, by machine; `intents`: holds and the like."""

    orders: Mapping[str, Reserved] = MappingProxyType({})
    intents: Sequence[Intent] = ()

    @property
    def drains(self) -> list[Drain]:
        """The orders themselves."""
        return [each.drain for each in self.orders.values()]


class Renewals(Protocol):
    """Drains and reboots machines. Every method raises CannotTellError: not now."""

    def ledger(self) -> Ledger:
        """What is ordered and wanted now, by whomever."""
        ...

    def want(self, machines: Mapping[str, Renewal], ledger: Ledger, unknown: Collection[int]) -> Mapping[str, str]:
        """From now on these are to be renewed, and no others that were wanted before, but for those that were told to
        reboot already; told again it changes nothing. `ledger`: that by which room was counted; where more is in it by
        now none is added. `unknown`: rollouts of which it cannot be told whom they want. Returns machine → why it
        will not be, in words."""
        ...
