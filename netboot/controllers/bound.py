"""How much of an inventory may be another at once: what removes more machines, or makes more of them others, than
`inventory_limits` lets go unasked waits for an operator. What comes step by step within an hour counts together.
"""

import time
from collections.abc import Callable, Set

from netboot.config import InventoryLimits
from netboot.machines.another import became_others
from netboot.machines.declarations import Judged
from netboot.machines.difference import digest_of, names, too_many_of
from netboot.machines.former import staying
from netboot.machines.values import Inventory
from netboot.status.controllers import PendingInventory

NAMES_SHOWN = 20
REMEMBERED_SECONDS = 3600.0
"""A folder that is emptied file by file is no smaller accident than one that is emptied at once."""


class Bound:
    """Of one place where an inventory is declared. Forgets with the process."""

    def __init__(self, limits: InventoryLimits, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._monotonic = limits, monotonic
        self._gone: dict[str, float] = {}
        self._others: dict[str, float] = {}
        """Machines that went, and that became others: by what name, and when."""

    def held(self, before: Inventory, judged: Judged) -> PendingInventory | None:
        """Why `judged` has to be accepted before it takes the place of `before`; None: it need not be."""
        self._forget_the_old()
        inventory, in_force, limits = judged.inventory, names(before), self._limits
        were, after = in_force | self._gone.keys(), staying(inventory, in_force, self._gone.keys())
        removed, others = in_force - after, set(became_others(before, inventory))
        gone, lately = were - after, self._others.keys() - others
        count = len(gone) + len(others) + len(lately - gone)
        many = too_many_of(count, len(were), limits.removals_percent, limits.removals_minimum, left=bool(after))
        emptied = tuple(sorted(each for each in judged.absent if getattr(before, each)))
        if not emptied and not ((removed or others) and many):
            return None
        return PendingInventory(
            digest=digest_of(inventory),
            removed=len(removed),
            of=len(in_force),
            lately=len(gone - in_force) + len(lately - gone),
            names=_first(removed),
            lists=emptied,
            others=len(others),
            other_names=_first(others),
        )

    def took(self, before: Inventory | None, inventory: Inventory) -> None:
        """It is in force, and nobody had to be asked."""
        now, in_force = self._monotonic(), names(before) if before is not None else frozenset()
        after = staying(inventory, in_force, self._gone.keys())
        kept = {name: at for name, at in self._gone.items() if name not in after}
        self._gone = kept | dict.fromkeys(in_force - after, now)
        self._others |= dict.fromkeys(became_others(before, inventory) if before is not None else (), now)

    def accepted(self) -> None:
        """Somebody said yes: what went counts no more."""
        self._gone.clear()
        self._others.clear()

    @property
    def lately(self) -> int:
        """How many machines went or became others within the last hour."""
        self._forget_the_old()
        return len(self._gone.keys() | self._others.keys())

    def _forget_the_old(self) -> None:
        since = self._monotonic() - REMEMBERED_SECONDS
        self._gone = {name: at for name, at in self._gone.items() if at > since}
        self._others = {name: at for name, at in self._others.items() if at > since}


def _first(found: Set[str]) -> tuple[str, ...]:
    return tuple(sorted(found)[:NAMES_SHOWN])


def goes(pending: PendingInventory) -> str:
    """What the inventory would do that waits, in words."""
    lately = f", after {pending.lately} within the last hour" if pending.lately else ""
    said = list[str]()
    if pending.removed:
        of = f"{pending.removed} of {pending.of} machines"
        said.append(f"removes {of} ({_shown(pending.names, pending.removed)})")
    if pending.others:
        of = f"{pending.others} of {pending.of} machines are recognised or prove themselves"
        said.append(f"changes by what {of} ({_shown(pending.other_names, pending.others)})")
    if said:
        said[-1] += lately
    if pending.lists:
        lists = f"all that was declared of {', '.join(pending.lists)}"
        said.append(lists if pending.removed and not pending.others else f"removes {lists}")
    return " and ".join(said)


def _shown(names_: tuple[str, ...], count: int) -> str:
    return ", ".join(names_[:3]) + (", …" if count > 3 else "")
