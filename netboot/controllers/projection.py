"""The projection: what the service's processes journalled becomes the state that operators see.

For each journal: read what is new, take it over together with the new cursor (exactly once), then tell the journal's
owner, who purges. Journals do not wait for each other: one that cannot be read is tried again and named in the status.
"""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from images.values.faults import first_fault
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.events import AnyRecord, Record
from netboot.lifecycle.state import Batch, Projection
from netboot.status import ProjectionStatus
from netboot.stores import journal_reader
from netboot.stores.journal_reader import Row

log = logging.getLogger(__name__)

MOST_ROWS = 20_000
"""Records taken over with one commit. Of a machine's many claims few are kept: the more at once, the less to write."""
LOOK_SECONDS = 1.0
"""A journal whose files look unchanged is looked into all the same this often: clocks of file systems are coarse."""
SAY_SECONDS = 1.0
"""How often a journal's owner is told how far it may purge; each time costs an fsync."""

_RECORD: TypeAdapter[AnyRecord] = TypeAdapter(Record)


@dataclass(slots=True)
class _Followed:
    """One journal as it was seen last."""

    path: Path
    seen: object = None
    looked: float = float("-inf")
    written: int = -1
    written_at: float = float("-inf")
    taken_up_to: int = 0
    lag: int = 0
    problem: str | None = None


@dataclass(slots=True)
class Progress:
    """For `/readyz` and metrics: records taken since the start, what was no record, lag and trouble by journal."""

    taken: int = 0
    unreadable: int = 0
    lag: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)

    def status(self, now_ms: int) -> ProjectionStatus:
        """As it is the management server reads it."""
        return ProjectionStatus(
            at_ms=now_ms,
            taken=self.taken,
            unreadable=self.unreadable,
            lag_records=self.lag,
            problems=self.problems,
        )


class ProjectionController:
    """Follows every `*.db` of `folder`. `owned`: names of the journals that have an owner now; what others left behind
    is drained and then removed."""

    def __init__(
        self,
        folder: Path,
        projection: Projection,
        *,
        owned: Collection[str],
        most_rows: int = MOST_ROWS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._projection, self._most_rows = folder, projection, most_rows
        self._owned = frozenset(owned)
        self._monotonic = monotonic
        self._followed: dict[str, _Followed] = {}
        self.progress = Progress()

    def step(self) -> bool:
        """Look at every journal once; whether there is more to take at once."""
        paths = sorted(self._folder.glob("*.db"))
        for gone in self._followed.keys() - {path.name for path in paths}:
            del self._followed[gone]
        more = False
        for path in paths:
            followed = self._followed.setdefault(path.name, _Followed(path))
            try:
                more = self._follow(followed) or more
                self._trouble(followed, None)
            except (CannotTellError, OSError) as error:
                self._trouble(followed, str(error))
        self.progress.lag = {name: journal.lag for name, journal in self._followed.items()}
        self.progress.problems = {name: journal.problem for name, journal in self._followed.items() if journal.problem}
        return more

    def finish(self) -> None:
        """Take over everything that is there and tell the owners."""
        for followed in self._followed.values():
            followed.looked = followed.written_at = float("-inf")
        while self.step():
            pass

    def _follow(self, followed: _Followed) -> bool:
        now = self._monotonic()
        seen = _look(followed.path)
        if seen == followed.seen and now - followed.looked < LOOK_SECONDS:
            return False
        end = journal_reader.end_of(followed.path)
        if end is None:
            return False
        identity, last = self._projection.cursor(followed.path.name)
        if identity != end.identity:
            last = 0  # never seen, or it took the place of one that was lost: taking a record twice does no harm
        rows = journal_reader.read_after(followed.path, last, self._most_rows) if end.last > last else []
        if rows:
            self._take(followed, end.identity, rows)
            last = rows[-1].id
        followed.taken_up_to, followed.lag = last, max(0, end.last - last) if rows else 0
        more = len(rows) == self._most_rows
        if not more:
            followed.seen, followed.looked = seen, now
            self._say(followed, now)
            self._remove_if_drained(followed)
        return more

    def _take(self, followed: _Followed, identity: int, rows: Sequence[Row]) -> None:
        records, unreadable = [], 0
        for row in rows:
            try:
                records.append(_RECORD.validate_json(row.body))
            except ValidationError as error:
                if not unreadable:
                    fault = first_fault(error).message
                    log.warning("journal %s: record %d cannot be read: %s", followed.path.name, row.id, fault)
                unreadable += 1
        self._projection.take(Batch(followed.path.name, identity, rows[-1].id, records, unreadable))
        self.progress.taken += len(records)
        self.progress.unreadable += unreadable

    def _say(self, followed: _Followed, now: float) -> None:
        """Only after what it stands for is durable."""
        if followed.taken_up_to != followed.written and now - followed.written_at >= SAY_SECONDS:
            journal_reader.write_cursor(journal_reader.cursor_path(followed.path), followed.taken_up_to)
            followed.written, followed.written_at = followed.taken_up_to, now

    def _remove_if_drained(self, followed: _Followed) -> None:
        """Nobody else has it open: the supervisor's lock says that only the processes of this configuration run."""
        if followed.path.name in self._owned or followed.lag:
            return
        log.info("journal %s is drained; its owner is not there any more, so it is removed", followed.path.name)
        for suffix in (".cursor", ".db-wal", ".db-shm", ".db"):
            followed.path.with_suffix(suffix).unlink(missing_ok=True)

    def _trouble(self, followed: _Followed, problem: str | None) -> None:
        if problem != followed.problem:
            if problem is not None:
                log.error("projection: %s", problem)
            else:
                log.warning("projection: journal %s is read again", followed.path.name)
        followed.problem = problem


def _look(path: Path) -> object:
    """What changes with every commit: size and time of the database and of its write-ahead log."""
    seen = []
    for file in (path, path.with_name(path.name + "-wal")):
        try:
            status = file.stat()
            seen.append((status.st_ino, status.st_mtime_ns, status.st_size))
        except FileNotFoundError:
            seen.append((0, 0, 0))
    return tuple(seen)
