"""The inventory in force: its files are taken whole or not at all, and no accident in them empties a fleet.

With any fault the one before stays in force. So it does where more machines would go than `inventory_limits` lets go
unasked, until an operator accepts that very inventory. What goes step by step within an hour counts together.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from images.values.strict import FaultsError
from netboot.config import Config
from netboot.controllers.changes import Changes
from netboot.machines.difference import digest_of, names, too_many
from netboot.machines.values import Inventory
from netboot.status import InventoryStatus, PendingInventory
from netboot.stores.acceptance import Acceptance
from netboot.stores.inventory import read_inventory

log = logging.getLogger(__name__)

FAULTS_SHOWN = 20
NAMES_SHOWN = 20
REMEMBERED_SECONDS = 3600.0
"""A folder that is emptied file by file is no smaller accident than one that is emptied at once."""


class InventoryInForce:
    """`value`: what is in force; None: nothing yet."""

    def __init__(
        self,
        config: Config,
        value: Inventory | None,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        in_background: bool = False,
    ) -> None:
        """`value`: of the snapshot that was published last, so that a restart forgets nothing. `in_background`: read in
        a thread, for the files of 50,000 machines take many seconds; not while nothing is in force."""
        self.value, self._config = value, config
        self._folder, self._limits, self._monotonic = config.inventory, config.inventory_limits, monotonic
        self._changes = Changes(self._files, monotonic=monotonic)
        self._acceptance = Acceptance(config.data)
        self._faults: tuple[str, ...] = ()
        self._pending: PendingInventory | None = None
        self._gone: dict[str, float] = {}
        self._in_background = in_background
        self._reading: _Reading | None = None

    @property
    def valid(self) -> bool:
        """Whether the inventory's files, as they are now, are in force."""
        return not self._faults and self._pending is None

    def step(self, *, now: bool) -> bool:
        """Look, and read what changed or was accepted; whether anything was read."""
        if self._reading is not None:
            return self._read_meanwhile(self._reading)
        if self._changes.settled(now=now) or (self._pending is not None and self._accepted() == self._pending.digest):
            reading = _Reading(self._config)
            if self.value is not None and self._in_background:
                self._reading = reading
                reading.start()
                return False
            reading.run()
            self._load(reading)
            return True
        return False

    def _read_meanwhile(self, reading: "_Reading") -> bool:
        if reading.is_alive():
            return False
        self._reading = None
        if self._changes.moved():  # one file may have been read before an edit of all, another after it
            return False
        self._load(reading)
        return True

    def published(self) -> None:
        """What is in force is on the disk: the word of an operator that it needed is spent."""
        if self.valid:
            try:
                self._acceptance.spend()
            except OSError as error:
                log.warning("inventory: what was accepted cannot be forgotten: %s", error.strerror)

    def _files(self) -> Iterable[Path]:
        """The folder itself where there are none: not there and empty are two things."""
        return list(self._folder.glob("*.yaml")) or [self._folder]

    def _accepted(self) -> str | None:
        return self._acceptance.read()

    def _load(self, reading: "_Reading") -> None:
        faults: tuple[str, ...] = ()
        try:
            self._take(reading.inventory())
        except FaultsError as error:
            faults, self._pending = tuple(map(str, error.faults)), None
        if self._faults and not faults:
            log.warning("inventory: in order again")
        if faults and faults != self._faults:
            log.error("inventory: %d faults; %s", len(faults), self._kept())
            for fault in faults[:FAULTS_SHOWN]:
                log.error("inventory: %s", fault)
        self._faults = faults

    def _take(self, inventory: Inventory) -> None:
        pending = self._held(inventory)
        if pending is None:
            self._remember(inventory)
            self.value, self._pending = inventory, None
        elif pending.digest == self._accepted():
            log.warning("inventory: an operator accepted that it %s", _goes(pending))
            self._gone.clear()
            self.value, self._pending = inventory, None
        else:
            if pending != self._pending:
                log.error("inventory: it %s; %s until an operator accepts it", _goes(pending), self._kept())
            self._pending = pending

    def _held(self, inventory: Inventory) -> PendingInventory | None:
        """What has to be accepted first; None: nothing, as for a site's first inventory, whatever its size."""
        if self.value is None:
            return None
        since = self._monotonic() - REMEMBERED_SECONDS
        self._gone = {name: at for name, at in self._gone.items() if at > since}
        in_force, after = names(self.value), names(inventory)
        before = in_force | self._gone.keys()
        limits = self._limits
        if not in_force - after or not too_many(before, after, limits.removals_percent, limits.removals_minimum):
            return None
        removed = sorted(in_force - after)
        return PendingInventory(
            digest=digest_of(inventory),
            removed=len(removed),
            of=len(in_force),
            lately=len(before - in_force - after),
            names=tuple(removed[:NAMES_SHOWN]),
        )

    def _remember(self, inventory: Inventory) -> None:
        now, after = self._monotonic(), names(inventory)
        removed = names(self.value) - after if self.value is not None else frozenset()
        kept = {name: at for name, at in self._gone.items() if name not in after}
        self._gone = kept | dict.fromkeys(removed, now)

    def _kept(self) -> str:
        return "the one before stays in force" if self.value is not None else "nothing is in force"

    def status(self, problem: str | None) -> InventoryStatus:
        """For `/readyz` and metrics. `problem`: why what is in force could not be published; None: it was."""
        if self._faults:
            message = f"{len(self._faults)} faults; {self._kept()}"
            faults, remedy = self._faults[:FAULTS_SHOWN], "run `netboot config check`"
            return InventoryStatus(ok=False, valid=False, message=message, faults=faults, remedy=remedy)
        if self._pending is not None:
            message = f"its files changed: it {_goes(self._pending)}; {self._kept()} until an operator accepts it"
            remedy = "look with `netboot config diff`; then `netboot config accept`, or put the files back"
            return InventoryStatus(ok=False, valid=False, message=message, remedy=remedy, pending=self._pending)
        if problem is not None:
            remedy = "free space, and let the service write there"
            return InventoryStatus(ok=False, valid=True, message=problem, remedy=remedy)
        return InventoryStatus(ok=True, valid=True, message="in force")


class _Reading(threading.Thread):
    """The inventory's files, read in this thread (`start`) or the caller's (`run`)."""

    def __init__(self, config: Config) -> None:
        super().__init__(name="inventory", daemon=True)
        self._config = config
        self._outcome: Inventory | Exception | None = None

    def run(self) -> None:
        try:
            self._outcome = read_inventory(self._config)
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            self._outcome = error

    def inventory(self) -> Inventory:
        """What was read, after the end.

        Raises:
            FaultsError: the files' faults; or whatever else the reading raised.
        """
        if isinstance(self._outcome, Exception):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome


def _goes(pending: PendingInventory) -> str:
    shown = ", ".join(pending.names[:3]) + (", …" if pending.removed > 3 else "")
    lately = f", after {pending.lately} within the last hour" if pending.lately else ""
    return f"removes {pending.removed} of {pending.of} machines ({shown}){lately}"
