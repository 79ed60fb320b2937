"""How much of an inventory may be another at once: what removes more machines, or makes more of them others, than
`inventory_limits` lets go unasked waits for an operator. What comes step by step within an hour counts together.
"""

import logging
from collections.abc import Callable, Set

from images.errors import StoreError
from netboot.config_limits import InventoryLimits
from netboot.lifecycle.errors import StateUnavailableError
from netboot.logs import Trouble
from netboot.machines.declarations import Judged
from netboot.machines.difference import digest_of
from netboot.machines.removals import (
    Part,
    Removals,
    counted,
    moved,
    taken,
    with_faults,
    within_the_hour,
    without_the_oldest,
)
from netboot.machines.values import Inventory
from netboot.status.controllers import PendingInventory
from netboot.stores.removals import RemovalsFile

log = logging.getLogger(__name__)

NAMES_SHOWN = 20
UNTOLD = "which machines went within the last hour cannot be told"
WAITS = "for an hour what removes machines, adds some, or changes by what they are known, waits for an operator"


class Bound:
    """Of one place where an inventory is declared. What it remembers is kept on the disk."""

    def __init__(
        self,
        limits: InventoryLimits,
        file: RemovalsFile,
        monotonic: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        """`now_ms`: by which what is kept says when it was; it may be set, which makes nothing older while this
        lives."""
        self._limits, self._file, self._monotonic, self._now_ms = limits, file, monotonic, now_ms
        self._trouble = Trouble(log, "removals are not kept", "removals are kept again", logging.ERROR)
        self._unkept = False
        """Whether something of it is not on the disk."""
        self._removals = self._read()

    def _read(self) -> Removals:
        try:
            kept = self._file.read()
        except StateUnavailableError as error:
            why = str(error)
        else:
            return moved(kept, self._now() - self._now_ms(), self._now())
        log.error("inventory: %s: %s; %s", UNTOLD, why, WAITS)
        self._unkept = True
        return Removals(untold_ms=self._now())

    def _now(self) -> int:
        return round(self._monotonic() * 1000)

    def held(self, before: Inventory, judged: Judged) -> PendingInventory | None:
        """Why `judged` has to be accepted before it takes the place of `before`; None: it need not be."""
        self._remember(within_the_hour(with_faults(self._removals, judged), self._now()))
        found, limits = counted(before, judged.inventory, self._removals), self._limits
        many = found.too_many(limits.removals_percent, limits.removals_minimum)
        emptied = tuple(sorted(each for each in judged.absent if getattr(before, each)))
        if not emptied and not ((found.removed or found.others) and (many or self.untold)):
            return None
        older = found.older if many is found.older else Part(0, 0)
        return PendingInventory(
            digest=digest_of(judged.inventory),
            removed=len(found.removed),
            of=len(before.machines),
            older=older.gone,
            of_older=older.of,
            lately=found.lately,
            names=_first(found.removed),
            lists=emptied,
            others=len(found.others),
            other_names=_first(found.others),
            untold=self.untold,
        )

    def took(self, before: Inventory | None, judged: Judged, *, accepted: bool = False) -> None:
        """It is in force. `accepted`: somebody said yes, and what went counts no more."""
        before = before if before is not None else judged.inventory
        self._remember(taken(before, judged, self._removals, self._now(), accepted=accepted))

    def _remember(self, removals: Removals) -> None:
        self._unkept = self._unkept or removals != self._removals
        self._removals = removals

    def keep(self) -> None:
        """Write down what is not on the disk. What is wrong with it is said, and it is tried again: until then a
        restart would forget."""
        self._remember(within_the_hour(self._removals, self._now()))
        if not self._unkept:
            return
        try:
            self._file.write(moved(self._removals, self._now_ms() - self._now(), self._now_ms()))
        except ValueError as error:
            log.warning("inventory: %s: the earlier half is forgotten; %s", error, WAITS)
            self._removals = without_the_oldest(self._removals, self._now())
            self.keep()
        except StoreError as error:
            self._trouble.note(str(error))
        else:
            self._unkept = False
            self._trouble.note(None)

    @property
    def lately(self) -> int:
        """How many machines went or became others within the last hour."""
        removals = within_the_hour(self._removals, self._now())
        return len(removals.counting | removals.others.keys())

    @property
    def untold(self) -> bool:
        """Whether nobody can tell which machines went within the last hour."""
        return within_the_hour(self._removals, self._now()).untold_ms is not None

    @property
    def problem(self) -> str | None:
        """Why it is not kept on the disk; None: it is."""
        return self._trouble.problem


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
        older = f", {pending.older} of the {pending.of_older} that were there before this hour" if pending.older else ""
        said[-1] += lately + older
    if pending.lists:
        lists = f"all that was declared of {', '.join(pending.lists)}"
        said.append(lists if pending.removed and not pending.others else f"removes {lists}")
    if pending.untold:
        said += [] if said else ["changes"]
        said[-1] += f", and {UNTOLD}"
    return " and ".join(said)


def _shown(names_: tuple[str, ...], count: int) -> str:
    return ", ".join(names_[:3]) + (", …" if count > 3 else "")
