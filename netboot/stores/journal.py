"""The journal of one process: SQLite in WAL mode, one file, one writer, group commit with fsync.

The projection reads `data/journal/boot-<n>.db` (`journal_reader`) and writes the highest id that it has safely taken
over into `boot-<n>.cursor` (decimal digits); the owner then purges those rows. The file itself: `journal_file`.

Whoever appends waits for the commit that holds the record; while one commit is on its way to the disk, everything that
arrives queues up and is the next one. So a slow disk makes larger commits, not a longer queue of them.

Commits are made by a thread, so that a disk that stands still stops nothing but scripts. While the disk is quick the
event loop makes them itself: handing a batch to the thread and back costs more processor time than the commit.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import AnyRecord
from netboot.stores.journal_file import HOUSEKEEPING_SECONDS, ROWS_A_STATEMENT, JournalFile

log = logging.getLogger(__name__)

MOST_ROWS = 2_000_000
"""Records that the projection has not yet taken over; beyond it machines are told to come back."""
MOST_BYTES = 2 * 1024**3
QUICK_SECONDS = 0.002
"""Commits that take less on average are made by the event loop itself; everything else on it waits as long."""
_Waiting = tuple[int, str, "asyncio.Future[None]"]


class SqliteJournal:
    """`netboot.lifecycle.ports.Journal` on a file. Belongs to the event loop that it was opened on.

    `most_rows`, `most_bytes`: how much may wait for the projection. The file is opened at once, and again after any
    failure, so that a disk that comes back is used again without a restart.
    """

    def __init__(self, path: Path, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES) -> None:
        self._file = JournalFile(path, most_rows, most_bytes)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Waiting] = []
        self._kicked = self._closing = False
        self._busy = threading.Lock()
        """Whoever is at the file has it."""
        self._pace = 2 * QUICK_SECONDS
        """Seconds that a commit takes, a moving average; slow until proven quick."""
        self._batches: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._closed = self._loop.create_future()
        self.failure: str | None = None
        """Why the last commit failed, in words; None: it did not."""
        self._thread = threading.Thread(target=self._commit_for_ever, name=f"journal {path.name}", daemon=True)
        self._thread.start()

    @property
    def lag(self) -> int:
        """Records that the projection has not yet taken over."""
        return self._file.unshipped

    async def append(self, record: AnyRecord) -> None:
        """Return when the record has survived a power cut; see `ports.Journal`."""
        await self.append_json(record.at_ms, record.model_dump_json())

    def append_json(self, at_ms: int, body: str) -> "asyncio.Future[None]":
        """The same for a record that is JSON already; a future instead of a coroutine because it is cheaper."""
        done: asyncio.Future[None] = self._loop.create_future()
        if self._closing:
            done.set_exception(JournalUnavailableError("the journal is closed: the service is stopping"))
            return done
        self._waiting.append((at_ms, body, done))
        if not self._kicked:
            # Not at once: whatever else this turn of the loop appends goes with the same commit.
            self._kicked = True
            self._loop.call_soon(self._gather, 0)
        return done

    async def aclose(self) -> None:
        """Commit what is queued, then close the file. Later appends fail."""
        self._closing = True
        if not self._kicked:
            self._kick()
        await self._closed
        self._thread.join()

    def _gather(self, had: int) -> None:
        """Wait while each turn of the loop brings more: one commit for all that are here costs half as much as two."""
        have = len(self._waiting)
        if had < have < ROWS_A_STATEMENT:
            self._loop.call_soon(self._gather, have)
        else:
            self._kick()

    def _kick(self) -> None:
        """Hand over everything that waits as one batch; with the answer to that the next one goes."""
        batch, self._waiting = self._waiting, []
        self._kicked = bool(batch)
        if not batch:
            if self._closing:
                self._batches.put(None)
        elif self._pace < QUICK_SECONDS and not self._file.due and self._busy.acquire(blocking=False):
            self._answer(batch, self._commit(batch))
        else:
            self._batches.put(batch)

    def _commit(self, batch: list[_Waiting]) -> str | None:
        """Commit and give the file back; None, or why it failed."""
        start = time.perf_counter()
        try:
            return self._file.commit([(at_ms, body) for at_ms, body, _ in batch])
        finally:
            self._busy.release()
            if batch:
                self._pace += (time.perf_counter() - start - self._pace) / 8

    def _answer(self, batch: list[_Waiting], failure: str | None) -> None:
        self._note(failure)
        for _, _, done in batch:
            if done.done():
                continue  # whoever waited has gone; the record stays
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(JournalUnavailableError(failure))
        if batch:
            self._gather(0)

    def _commit_for_ever(self) -> None:
        """The journal's thread: commits batches, and looks after the file when there are none."""
        batch: list[_Waiting] | None = []
        while batch is not None:
            self._busy.acquire()
            if not self._tell(self._answer, batch, self._commit(batch)):
                break
            try:
                batch = self._batches.get(timeout=HOUSEKEEPING_SECONDS)
            except queue.Empty:
                batch = []
        self._file.close()
        self._tell(self._closed.set_result, None)

    def _tell(self, callback: Callable[..., None], *values: object) -> bool:
        """Have the event loop call; False: it is closed, and there is nobody left to tell."""
        try:
            self._loop.call_soon_threadsafe(callback, *values)
        except RuntimeError:
            return False
        return True

    def _note(self, failure: str | None) -> None:
        if failure == self.failure:
            return
        if failure is not None:
            log.error("journal: %s", failure)
        else:
            log.warning("journal: records are written down again")
        self.failure = failure
