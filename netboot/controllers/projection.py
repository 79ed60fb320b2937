"""The projection: what the service's processes journalled becomes the state that operators see.

For each journal: read what is new, take it over together with the new cursor (exactly once), then tell the journal's
owner, who purges. Journals do not wait for each other: one that cannot be read is tried again and named in the status.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from netboot.controllers.named import NamedMachines
from netboot.controllers.progress import Followed, Progress
from netboot.controllers.records import boot_reporting, read_record, require_known
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import AnyRecord, DiscoveryRecord, HardwareRecord, WaitRecord
from netboot.lifecycle.ports import Projection
from netboot.lifecycle.state import Batch, SetAside
from netboot.machines.values import Inventory
from netboot.reread import look
from netboot.status import up_ms
from netboot.stores import journal_reader
from netboot.stores.journal_reader import Row
from netboot.stores.state_rows import raw, why

log = logging.getLogger(__name__)

MOST_ROWS = 20_000
"""Records taken over with one commit. Of a machine's many claims few are kept: the more at once, the less to write."""
LEAST_ROWS = 500
"""Of the first batch, and of those after one that took long; each takes up to twice as many as the one before. Whoever
works at low priority on a saturated machine comes round between batches, or is taken for frozen."""
LONG_SECONDS = 30.0
"""A batch that takes longer was too large; a commit of ten seconds alone is a slow disk, which larger batches suit."""
MOST_BYTES = 4 * 1024**2
"""Of their bodies; parsed, they take some twenty times as much memory."""
LOOK_SECONDS = 1.0
"""A journal whose files look unchanged is looked into all the same this often: clocks of file systems are coarse."""
FRESH_SECONDS = 10.0
"""What was read longer ago does not tell that nothing has come."""
AGAIN_SECONDS = 5.0
"""How long a journal rests that failed for a reason that nobody foresaw."""
INSPECT_REST = 60
"""Rest between two looks at the state's own rows, as a multiple of what the last took: millions are no hurry."""
SHARED = "shipper.db"
"""The journal of what other replicas told."""
SAY_SECONDS = 1.0
"""How often a journal's owner is told how far it may purge; each time costs an fsync."""


class ProjectionController:
    """Follows every `*.db` of `folder`. `owned`: names of the journals that have an owner now; what others left behind
    is drained and then removed. `inventory()`: the one in force; None: nothing is yet; `told(machines)`: facts of
    these have been taken over."""

    def __init__(
        self,
        folder: Path,
        projection: Projection,
        *,
        owned: Collection[str],
        inventory: Callable[[], Inventory | None] = lambda: None,
        told: Callable[[Iterable[str]], None] = lambda _: None,
        most_rows: int = MOST_ROWS,
        most_bytes: int = MOST_BYTES,
        long_seconds: float = LONG_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._projection = folder, projection
        self._most_rows, self._most_bytes, self._long_seconds = most_rows, most_bytes, long_seconds
        self._rows_at_once = min(LEAST_ROWS, most_rows)
        self._owned = frozenset(owned)
        self._monotonic = monotonic
        self._named, self._told = NamedMachines(projection, inventory, monotonic), told
        self._inspects_at = float("-inf")
        self._followed: dict[str, Followed] = {}
        self._looked = float("-inf")
        """When the last look at every journal began."""
        self.progress = Progress()

    def step(self, going: Callable[[], None] = lambda: None) -> bool:
        """Look at every journal once; whether there is more to take at once. `going` is called between any two pieces
        of work that wait for a disk."""
        began, began_up_ms = self._monotonic(), up_ms()
        paths = {path.name: path for path in sorted(self._folder.glob("*.db"))}
        for gone in self._followed.keys() - paths.keys():
            del self._followed[gone]
        for name, path in paths.items():
            self._followed.setdefault(name, Followed(path))
        self.progress.note(self._followed, self._owned)
        more = False
        for followed in sorted(self._followed.values(), key=_shared_first):
            going()
            if self._monotonic() >= followed.rests_until:
                more = self._try_to_follow(followed) or more
                self.progress.note(self._followed, self._owned)
        self._looked = began
        if not more:
            if not any(journal.problem for journal in self._followed.values()):
                self._projection.settle()
            for work in (self._inspect, self._named.declare):
                going()
                work()
        self.progress.note(self._followed, self._owned, began_up_ms - round(LOOK_SECONDS * 1000))
        return more

    def _try_to_follow(self, followed: Followed) -> bool:
        more = False
        try:
            more = self._follow(followed)
            self._trouble(followed, None)
        except (CannotTellError, OSError) as error:
            self._trouble(followed, str(error))
        except Exception as error:  # whatever it is: it stops this journal, and none of the others
            name, followed.rests_until = followed.path.name, self._monotonic() + AGAIN_SECONDS
            if followed.problem is None:
                log.exception("projection: the journal %s", name)
            self._trouble(followed, f"the journal {name} cannot be taken over: {error!r}; it is tried again")
        return more

    def caught_up(self) -> bool:
        """Whether every journal was read to its end a moment ago; called by other threads. One look that hangs (a slow
        disk, a processor that others have) tells nothing of what came meanwhile."""
        return self._monotonic() - self._looked <= FRESH_SECONDS and self.progress.caught_up()

    def joins_read_to(self, up_ms: int) -> bool:
        """Whether what join wrote down before that moment of `netboot.status.up_ms` is in the state; whatever becomes
        of other journals. Called by other threads."""
        return self.progress.joins_read_up_ms >= up_ms

    def finish(self) -> None:
        """Take over everything that is there and tell the owners."""
        for followed in self._followed.values():
            followed.looked = followed.written_at = followed.rests_until = float("-inf")
        while self.step():
            pass

    def _inspect(self) -> None:
        began = self._monotonic()
        if began < self._inspects_at:
            return
        try:
            self.progress.set_aside.update(self._projection.inspect() or {})
            self._inspects_at = self._monotonic() + INSPECT_REST * (self._monotonic() - began)
        except CannotTellError:
            return  # each journal has its words

    def _follow(self, followed: Followed) -> bool:
        now = self._monotonic()
        seen = _look(followed.path)
        if seen == followed.seen and now - followed.looked < LOOK_SECONDS:
            return False
        end = journal_reader.end_of(followed.path)
        if end is None:
            return False
        identity, last = cursor = self._projection.cursor(followed.path.name)
        if identity != end.identity:
            last = 0  # never seen, or it took the place of one that was lost: taking a record twice does no harm
        elif end.last < last:
            log.warning(
                "journal %s ends at record %d, %d were taken over: it was replaced by an older copy of itself, and is "
                "read again from its beginning",
                *(followed.path.name, end.last, last),
            )
            self._projection.rewind(followed.path.name, end.last)
            self.progress.replaced[followed.path.name] += 1
            last = 0
        rows = list[Row]()
        if end.last > last:
            rows = journal_reader.read_after(followed.path, last, self._rows_at_once, self._most_bytes)
        if rows and rows[0].id > last + 1 and cursor[1] <= end.last:
            lost = followed.path.name, last + 1, rows[0].id - 1
            log.warning("state.db is older than journal %s: records %d to %d went into one that is gone", *lost)
        if rows:
            self._take(followed, end.identity, rows)
            last = rows[-1].id
            long = self._monotonic() - now > self._long_seconds
            wanted = len(rows) // 2 if long else 2 * len(rows)
            self._rows_at_once = min(max(wanted, LEAST_ROWS), self._most_rows)
        followed.taken_up_to, followed.lag = last, max(0, end.last - last) if rows else 0
        more = bool(rows) and last < end.last
        if not more:
            followed.seen, followed.looked = seen, now
            self._say(followed, now)
            self._remove_if_drained(followed)
        return more

    def _take(self, followed: Followed, identity: int, rows: Sequence[Row]) -> None:
        name, ids, records, set_aside = followed.path.name, list[int](), list[AnyRecord](), list[SetAside]()
        reported: set[str] = set()
        self._named.rename()
        for row in reversed(rows):  # the latest first: of a boot's health reports no other is even parsed
            boot = boot_reporting(row.body)
            if boot in reported:
                continue
            try:
                record = self._named.present(read_record(row.body))
                require_known(name, record)
            except ValueError as error:
                set_aside.append(SetAside(name, f"record {row.id}", why(error), raw(row.body)))
                continue
            records.append(record)
            ids.append(row.id)
            if boot is not None:
                reported.add(boot)
        for taken in (records, ids, set_aside):
            taken.reverse()
        self.progress.set_aside.update(
            self._projection.take(Batch(name, identity, rows[-1].id, records, ids, set_aside))
        )
        self.progress.taken += len(rows) - len(set_aside)
        untold = DiscoveryRecord | HardwareRecord | WaitRecord  # of no machine, or of none whose boot it changes
        self._told(record.machine for record in records if not isinstance(record, untold))

    def _say(self, followed: Followed, now: float) -> None:
        """Only after what it stands for is durable."""
        if followed.taken_up_to != followed.written and now - followed.written_at >= SAY_SECONDS:
            journal_reader.write_cursor(journal_reader.cursor_path(followed.path), followed.taken_up_to)
            followed.written, followed.written_at = followed.taken_up_to, now

    def _remove_if_drained(self, followed: Followed) -> None:
        """Nobody else has it open: the supervisor's lock says that only the processes of this configuration run."""
        if followed.path.name in self._owned or followed.lag:
            return
        log.info("journal %s is drained; its owner is not there any more, so it is removed", followed.path.name)
        for suffix in (".cursor", ".db-wal", ".db-shm", ".db"):
            followed.path.with_suffix(suffix).unlink(missing_ok=True)

    def _trouble(self, followed: Followed, problem: str | None) -> None:
        if problem != followed.problem:
            if problem is not None:
                log.error("projection: %s", problem)
            else:
                log.warning("projection: journal %s is read again", followed.path.name)
        followed.problem = problem


def _shared_first(followed: Followed) -> bool:
    """What other replicas told is read before what came after it here: see `netboot.lifecycle.arrivals`."""
    return followed.path.name != SHARED


def _look(path: Path) -> object:
    """What changes with every commit, and not when it is read: inode, time and size of database and write-ahead log."""
    found = (look(file) for file in (path, path.with_name(path.name + "-wal")))
    return [(seen[0], seen[1], seen[3]) if seen is not None else None for seen in found]
