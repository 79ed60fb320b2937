"""The inventory in force: files are taken whole or not at all, of objects all that have no faults, and no accident
empties a fleet.

With any fault of files the one before stays in force. So it does where more machines would go than `inventory_limits`
lets go unasked, until an operator accepts that very inventory. What goes step by step within an hour counts together.
"""

import logging
import time
from collections.abc import Callable

from images.values.strict import Fault, FaultsError
from netboot.config import Config
from netboot.controllers.changes import Changes
from netboot.controllers.reading import Reading
from netboot.machines.declarations import Judged
from netboot.machines.difference import digest_of, names, too_many
from netboot.machines.former import staying
from netboot.machines.values import Inventory
from netboot.status.controllers import InventoryStatus, PendingInventory
from netboot.stores.acceptance import Acceptance
from netboot.stores.inventory import declarations_of

log = logging.getLogger(__name__)

_LEFT_OUT = "objects that are named are left out, all others are in force"
FAULTS_SHOWN = 20
NAMES_SHOWN = 20
QUICK_SECONDS = 0.1
"""Waited for a thread that reads: most reading is over by then, and what it found is in force with the same step."""
LATE_SECONDS = 60.0
"""What has changed and is not read after so long is said: 50,000 machines take 14 s of a free core."""
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
        """`value`: of the snapshot that was published last, so that a restart forgets nothing. `in_background`: look
        and read in a thread, for the files of 50,000 machines take many seconds, and those of a file server that does
        not answer for ever; not while nothing is in force."""
        self.value, self._config = value, config
        self._declared, self._limits, self._monotonic = declarations_of(config), config.inventory_limits, monotonic
        self._changes = Changes(self._declared.paths, by_content=self._declared.by_content, monotonic=monotonic)
        self._acceptance = Acceptance(config.data)
        self._faults: tuple[str, ...] = ()
        self._left_out: tuple[str, ...] = ()
        self._pending: PendingInventory | None = None
        self._gone: dict[str, float] = {}
        self._in_background = in_background
        self._reading: Reading | None = None
        self._hurry = self._late = False
        self._began = 0.0
        self._behind_since: float | None = None
        """When the first look began since which it is not known that what is in force is what the files say."""

    @property
    def valid(self) -> bool:
        """Whether what is declared now is in force, but for what is left out of it."""
        return not self._faults and self._pending is None

    def step(self, *, now: bool) -> bool:
        """Look, and read what changed or was accepted; whether anything was read."""
        self._hurry = self._hurry or now
        if self._reading is None:
            self._begin()
        read = self._reading is not None and self._end(self._reading)
        self._tell_late()
        return read

    def _begin(self) -> None:
        if self._behind_since is None:
            self._behind_since = self._monotonic()
        accepted = self._pending is not None and self._accepted() == self._pending.digest
        self._reading = Reading(self._config, self._declared, self._changes, now=self._hurry, anyway=accepted)
        self._hurry, self._began = False, self._monotonic()
        if self.value is not None and self._in_background:
            self._reading.start()
        else:
            self._reading.run()

    def _end(self, reading: "Reading") -> bool:
        """Take what was read, if that has ended; whether there was anything."""
        if reading.ident is not None:
            reading.join(QUICK_SECONDS)
        if reading.is_alive():
            return False
        self._reading = None
        read = reading.judged_or_none()
        if not reading.unread:
            self._behind_since = None
        if read is not None:
            self._load(read)
        return read is not None

    def published(self) -> None:
        """What is in force is on the disk: the word of an operator that it needed is spent."""
        if self.valid:
            try:
                self._acceptance.spend()
            except OSError as error:
                log.warning("inventory: what was accepted cannot be forgotten: %s", error.strerror)

    def _accepted(self) -> str | None:
        return self._acceptance.read()

    def _tell_late(self) -> None:
        late = bool(self._lateness())
        if late and not self._late:
            log.error("inventory: %s; %s", self._lateness(), self._kept())
        self._late = late

    def _lateness(self) -> str:
        """What keeps the files as they are now from being read; empty: nothing, or not for long."""
        seconds = 0.0 if self._behind_since is None else self._monotonic() - self._behind_since
        if seconds <= LATE_SECONDS:
            return ""
        if self._reading is not None and self._monotonic() - self._began > LATE_SECONDS:
            return f"its {self._declared.called} are being read for {seconds:.0f} s, without an end"
        return f"its {self._declared.called} change more often than they can be read, for {seconds:.0f} s"

    def _load(self, read: Judged | FaultsError) -> None:
        faults, left_out, before = tuple[Fault, ...](), tuple[Fault, ...](), self._faults + self._left_out
        if isinstance(read, FaultsError):
            faults, self._pending = read.faults, None
        else:
            left_out = read.left_out
            self._take(read)
        self._faults, self._left_out = tuple(map(str, faults)), tuple(map(str, left_out))
        said = self._faults + self._left_out
        if before and not said:
            log.warning("inventory: in order again")
        if said and said != before:
            log.error("inventory: %d faults; %s", len(said), self._kept() if faults else _LEFT_OUT)
            for fault in (faults + left_out)[:FAULTS_SHOWN]:
                kind, _, name = fault.item.partition("/")
                of = {"machine": name} if kind == "machines" else {}
                log.error("inventory: a fault", extra={"fields": {**of, "fault": str(fault)}})

    def _take(self, judged: Judged) -> None:
        inventory, pending = judged.inventory, self._held(judged)
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

    def _held(self, judged: Judged) -> PendingInventory | None:
        """What has to be accepted first; None: nothing, as for a site's first inventory, whatever its size."""
        if self.value is None:
            return None
        since = self._monotonic() - REMEMBERED_SECONDS
        self._gone = {name: at for name, at in self._gone.items() if at > since}
        inventory, in_force = judged.inventory, names(self.value)
        before, after = in_force | self._gone.keys(), staying(inventory, in_force, self._gone.keys())
        limits, emptied = self._limits, tuple(sorted(each for each in judged.absent if getattr(self.value, each)))
        many = too_many(before, after, limits.removals_percent, limits.removals_minimum)
        if not emptied and not (in_force - after and many):
            return None
        removed = sorted(in_force - after)
        return PendingInventory(
            digest=digest_of(inventory),
            removed=len(removed),
            of=len(in_force),
            lately=len(before - in_force - after),
            names=tuple(removed[:NAMES_SHOWN]),
            lists=emptied,
        )

    def _remember(self, inventory: Inventory) -> None:
        now, in_force = self._monotonic(), names(self.value) if self.value is not None else frozenset()
        after = staying(inventory, in_force, self._gone.keys())
        removed = in_force - after
        kept = {name: at for name, at in self._gone.items() if name not in after}
        self._gone = kept | dict.fromkeys(removed, now)

    def _kept(self) -> str:
        return "the one before stays in force" if self.value is not None else "nothing is in force"

    def status(self, problem: str | None) -> InventoryStatus:
        """For `/readyz` and metrics. `problem`: why what is in force could not be published; None: it was."""
        since = self._monotonic() - REMEMBERED_SECONDS
        lately = sum(at > since for at in self._gone.values())
        return self._status(problem).model_copy(update={"lately": lately})

    def _status(self, problem: str | None) -> InventoryStatus:
        if late := self._lateness():
            remedy = "see whether the file system of `inventory` answers, and who writes there all the time"
            return InventoryStatus(
                ok=False,
                valid=False,
                message=f"{late}; {self._kept()}",
                remedy=remedy,
                faults=self._faults[:FAULTS_SHOWN],
                pending=self._pending,
                late=late,
            )
        if self._faults:
            message = f"{len(self._faults)} faults; {self._kept()}"
            faults, remedy = self._faults[:FAULTS_SHOWN], "run `netboot config check`"
            return InventoryStatus(ok=False, valid=False, message=message, faults=faults, remedy=remedy)
        if self._pending is not None:
            called, goes = self._declared.called, _goes(self._pending)
            message = f"its {called} changed: it {goes}; {self._kept()} until an operator accepts it"
            remedy = f"look with `netboot config diff`; then `netboot config accept`, or put the {called} back"
            return InventoryStatus(
                ok=False,
                valid=False,
                message=message,
                remedy=remedy,
                pending=self._pending,
                faults=self._left_out[:FAULTS_SHOWN],
                left_out=len(self._left_out),
            )
        if problem is not None:
            remedy = "free space, and let the service write there"
            return InventoryStatus(ok=False, valid=True, message=problem, remedy=remedy)
        if self._left_out:
            return InventoryStatus(
                ok=False,
                valid=False,
                message=f"{len(self._left_out)} faults; {_LEFT_OUT}",
                remedy="correct the objects that are named: `netboot config check` has all faults",
                faults=self._left_out[:FAULTS_SHOWN],
                left_out=len(self._left_out),
            )
        return InventoryStatus(ok=True, valid=True, message="in force")


def _goes(pending: PendingInventory) -> str:
    shown = ", ".join(pending.names[:3]) + (", …" if pending.removed > 3 else "")
    lately = f", after {pending.lately} within the last hour" if pending.lately else ""
    machines = f"{pending.removed} of {pending.of} machines ({shown}){lately}" if pending.removed else ""
    lists = f"all that was declared of {', '.join(pending.lists)}" if pending.lists else ""
    return f"removes {' and '.join(filter(None, (machines, lists)))}"
