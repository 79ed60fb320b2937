"""The inventory in force: files are taken whole or not at all, of objects all that have no faults, and no accident
empties a fleet.

With any fault of files the one before stays in force. So it does where more machines would go, or be others, than
`inventory_limits` lets go unasked (`Bound`), until an operator accepts that very inventory.
"""

import logging
import time
from collections.abc import Callable

from images.values.strict import Fault, FaultsError
from netboot.clock import SystemClock
from netboot.config import Config
from netboot.controllers.bound import UNTOLD, WAITS, Bound, goes
from netboot.controllers.changes import Changes
from netboot.controllers.reading import Reading
from netboot.machines.declarations import Judged
from netboot.machines.values import Inventory
from netboot.status.controllers import InventoryStatus, PendingInventory
from netboot.stores.acceptance import Acceptance
from netboot.stores.inventory import declarations_of, forget_objects
from netboot.stores.removals import RemovalsFile

log = logging.getLogger(__name__)

_LEFT_OUT = "objects that are named are left out, all others are in force"
_NOW_MS = SystemClock().now_ms
FAULTS_SHOWN = 20
QUICK_SECONDS = 0.1
"""Waited for a thread that reads: most reading is over by then, and what it found is in force with the same step."""
LATE_SECONDS = 60.0
"""What has changed and is not read after so long is said: 50,000 machines take 14 s of a free core."""


class InventoryInForce:
    """`value`: what is in force; None: nothing yet."""

    def __init__(
        self,
        config: Config,
        value: Inventory | None,
        monotonic: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = _NOW_MS,
        *,
        in_background: bool = False,
    ) -> None:
        """`value`: of the snapshot that was published last, so that a restart forgets nothing; `now_ms`: by which it is
        kept who went when. `in_background`: look and read in a thread, for the files of 50,000 machines take many
        seconds, and those of a file server that does not answer for ever; not while nothing is in force."""
        self.value, self._config = value, config
        self._declared, self._monotonic = declarations_of(config), monotonic
        self._changes = Changes(self._declared.paths, by_content=self._declared.by_content, monotonic=monotonic)
        self._acceptance = Acceptance(config.data)
        self._faults: tuple[str, ...] = ()
        self._left_out: tuple[str, ...] = ()
        self._pending: PendingInventory | None = None
        self._bound = Bound(config.inventory_limits, RemovalsFile(config.data), monotonic, now_ms)
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
        self._bound.keep()  # before what went is published, so that no crash forgets it
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
                forget_objects(self._config)
            except OSError as error:
                log.warning("inventory: what was accepted, or kept of objects, cannot be forgotten: %s", error.strerror)

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
        pending = self._bound.held(self.value, judged) if self.value is not None else None  # a first one, of any size
        accepted = pending is not None and pending.digest == self._accepted()
        if pending is not None and not accepted:
            if pending != self._pending:
                log.error("inventory: it %s; %s until an operator accepts it", goes(pending), self._kept())
            self._pending = pending
            return
        if pending is not None:
            log.warning("inventory: an operator accepted that it %s", goes(pending))
        self._bound.took(self.value, judged, accepted=accepted)
        self.value, self._pending = judged.inventory, None

    def _kept(self) -> str:
        return "the one before stays in force" if self.value is not None else "nothing is in force"

    def status(self, problem: str | None) -> InventoryStatus:
        """For `/readyz` and metrics. `problem`: why what is in force could not be published; None: it was."""
        return self._status(problem).model_copy(update={"lately": self._bound.lately})

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
            called = self._declared.called
            message = f"its {called} changed: it {goes(self._pending)}; {self._kept()} until an operator accepts it"
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
        if problem is None and self._bound.problem is not None:
            problem = f"{self._bound.problem}; a restart would forget which machines went within the last hour"
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
        if self._bound.untold:
            message, remedy = f"in force; {UNTOLD}: {WAITS}", "see the log for why; `netboot config accept` what waits"
            return InventoryStatus(ok=False, valid=True, message=message, remedy=remedy)
        return InventoryStatus(ok=True, valid=True, message="in force")
