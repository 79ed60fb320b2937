"""The journal of one process: SQLite in WAL mode, one file, one writer, group commit with fsync.

The projection reads `data/journal/boot-<n>.db` (`journal_reader`) and writes the highest id that it has safely taken
over into `boot-<n>.cursor` (decimal digits); the owner then purges those rows. The file itself: `journal_file`.

Whoever appends waits for the commit that holds the record; while one commit is on its way to the disk, everything that
arrives queues up and is the next one. So a slow disk makes larger commits, not a longer queue of them.

Nothing of the event loop touches the file: commits are made by a thread, so that a disk that stands still (a frozen
file system, a controller that resets) stops nothing but what has to be written down. Whoever waits for a commit that
takes longer than a deadline is told that it failed, and so is everybody who comes until it has ended. What was
in that commit may be written all the same: a record without an answer does no harm, an answer without a record does.
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
from netboot.stores import journal_file
from netboot.stores.journal_file import HOUSEKEEPING_SECONDS, ROWS_A_STATEMENT, STANDING, JournalFile

log = logging.getLogger(__name__)

MOST_ROWS = 2_000_000
"""Records that the projection has not yet taken over; beyond it machines are told to come back."""
MOST_BYTES = 2 * 1024**3
LOOK_SECONDS = 0.25
CROWDED = "the journal is nearly full, and what is left is for scripts of known machines"
_Waiting = tuple[int, str, "asyncio.Future[None]"]


class Commit:
    """Around what a journal's thread does with the file, for those who wait for it: whether that takes too long."""

    def __init__(self) -> None:
        self._began: float | None = None

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._began = None

    @property
    def stands(self) -> bool:
        """The disk has not answered within the deadline."""
        began = self._began
        return began is not None and time.monotonic() - began > journal_file.DEADLINE_SECONDS


class SqliteJournal:
    """`netboot.lifecycle.ports.Journal` on a file. Belongs to the event loop that it was opened on.

    `most_rows`, `most_bytes`: how much may wait for the projection. The file is opened at once, and again after any
    failure, so that a disk that comes back is used again without a restart.
    """

    def __init__(self, path: Path, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES) -> None:
        self._file = JournalFile(path, most_rows, most_bytes)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Waiting] = []
        self._under_way: list[_Waiting] = []
        self._commit = Commit()
        self._kicked = self._closing = self._standing = self._crowded = False
        self._batches: queue.SimpleQueue[list[_Waiting] | None] = queue.SimpleQueue()
        self._closed = self._loop.create_future()
        self.failure: str | None = None
        """Why the last commit failed, in words; None: it did not."""
        self._thread = threading.Thread(target=self._commit_for_ever, name=f"journal {path.name}", daemon=True)
        self._thread.start()
        self._watch = self._loop.call_later(LOOK_SECONDS, self._look)

    @property
    def lag(self) -> int:
        """Records that the projection has not yet taken over."""
        return self._file.unshipped

    async def append(self, record: AnyRecord) -> None:
        """Return when the record has survived a power cut; see `ports.Journal`."""
        await self.append_json(record.at_ms, record.model_dump_json())

    def append_json(self, at_ms: int, body: str, *, reserved: bool = False) -> "asyncio.Future[None]":
        """The same for a record that is JSON already; a future instead of a coroutine because it is cheaper."""
        done: asyncio.Future[None] = self._loop.create_future()
        refusal = self._refusal(reserved=reserved)
        if refusal is not None:
            done.set_exception(JournalUnavailableError(refusal))
            return done
        self._waiting.append((at_ms, body, done))
        if not self._kicked:
            # Not at once: whatever else this turn of the loop appends goes with the same commit.
            self._kicked = True
            self._loop.call_soon(self._gather, 0)
        return done

    async def aclose(self) -> None:
        """Commit what is queued, then close the file. Later appends fail. A disk that stands still is not waited for
        longer than for any commit."""
        self._closing = True
        if not self._kicked:
            self._kick()
        done, _ = await asyncio.wait((self._closed,), timeout=2 * journal_file.DEADLINE_SECONDS)
        self._watch.cancel()
        if done:
            self._thread.join()
        else:
            log.error("journal: left open: its disk does not answer")

    def _refusal(self, *, reserved: bool) -> str | None:
        """Why a record is not even queued; None: it is."""
        if self._closing:
            return "the journal is closed: the service is stopping"
        if self._standing:
            return self.failure
        crowded = not reserved and self._file.crowded(len(self._waiting))
        if crowded != self._crowded and not reserved:
            self._crowded = crowded
            log.warning("journal: %s", CROWDED if crowded else "there is room for everything again")
        return CROWDED if crowded else None

    def _look(self) -> None:
        """Has the commit that is under way, or a look at the disk, been so for too long?"""
        self._watch = self._loop.call_later(LOOK_SECONDS, self._look)
        if self._commit.stands:
            self._standing = True
            self._note(STANDING)
            late, self._waiting = [*self._under_way, *self._waiting], []
            self._tell_all(late, self.failure)

    def _gather(self, had: int) -> None:
        """Wait while each turn of the loop brings more: one commit for all that are here costs half as much as two."""
        have = len(self._waiting)
        if had < have < ROWS_A_STATEMENT:
            self._loop.call_soon(self._gather, have)
        else:
            self._kick()

    def _kick(self) -> None:
        """Hand over everything that waits as one batch; with the answer to that the next one goes."""
        self._under_way, self._waiting = self._waiting, []
        self._kicked = bool(self._under_way)
        if self._under_way:
            self._batches.put(self._under_way)
        elif self._closing:
            self._batches.put(None)

    def _answer(self, batch: list[_Waiting], failure: str | None) -> None:
        self._standing = False
        self._note(failure)
        self._tell_all(batch, failure)
        if batch:
            self._under_way = []
            self._gather(0)

    def _tell_all(self, batch: list[_Waiting], failure: str | None) -> None:
        for _, _, done in batch:
            if done.done():
                continue  # whoever waited has gone, or was told that it takes too long; the record stays
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(JournalUnavailableError(failure))

    def _commit_for_ever(self) -> None:
        """The journal's thread: commits batches, and looks after the file when there are none."""
        batch: list[_Waiting] | None = []
        while batch is not None:
            with self._commit:
                failure = self._file.commit([(at_ms, body) for at_ms, body, _ in batch])
            if not self._tell(self._answer, batch, failure):
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
