"""Facts: the journal of a process with threads. `append` returns when the record has survived a power cut.

The same file as the boot workers' (`journal_file`), one for each process: `data/journal/<process>.db`. One thread
writes; what is appended while a commit is on its way to the disk goes with the next one. On a disk that stands still
nobody waits longer than a commit may take, and who comes later does not wait at all.
"""

import logging
import queue
import threading
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from pathlib import Path

from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import AnyRecord
from netboot.stores import journal_file
from netboot.stores.journal import LOOK_SECONDS, MOST_BYTES, MOST_ROWS, Commit
from netboot.stores.journal_file import HOUSEKEEPING_SECONDS, STANDING, JournalFile

log = logging.getLogger(__name__)

_Waiting = tuple[int, str, "Future[str | None]"]


class Facts:
    """Safe for threads; not for a process that forks after making it. What the projection has taken over is purged."""

    def __init__(self, path: Path, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES) -> None:
        self._file = JournalFile(path, most_rows, most_bytes)
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._commit = Commit()
        self._failure: str | None = None
        self._noting = threading.Lock()
        self._thread = threading.Thread(target=self._commit_for_ever, name=f"facts {path.name}", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Why the last commit failed, or the one under way does not end, in words; None: it did not."""
        if self._commit.stands:
            self._note(STANDING)
        return self._failure

    def append(self, *records: AnyRecord) -> None:
        """Write records down, durably.

        Raises:
            JournalUnavailableError: the disk refuses or stands still, the journal is full, or it is closed.
        """
        waiting = [(record.at_ms, record.model_dump_json(), Future[str | None]()) for record in records]
        with self._lock:  # so that nothing is queued behind the end
            if self._closed:
                raise JournalUnavailableError("the journal is closed: the service is stopping")
            if self._commit.stands:
                raise JournalUnavailableError(self.failure)
            for each in waiting:
                self._queue.put(each)
        for _, _, done in waiting:
            while not wait_for((done,), LOOK_SECONDS).done:
                if self._commit.stands:  # it may be written all the same: a record without an answer does no harm
                    raise JournalUnavailableError(self.failure)
            if (failure := done.result()) is not None:
                raise JournalUnavailableError(failure)

    def close(self) -> None:
        """Commit what is queued, then close the file; later appends fail. A disk that stands still is not waited for
        longer than for any commit."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join(2 * journal_file.DEADLINE_SECONDS)
        if self._thread.is_alive():
            log.error("journal: left open: its disk does not answer")

    def _commit_for_ever(self) -> None:
        """The only thread that touches the file; without appends it still purges, and probes a disk that refused."""
        with self._commit:
            failure = self._file.commit([])
        self._note(failure)  # so that a disk that refuses is known before the first fact
        ending = False
        while not ending:
            batch, ending = self._gather()
            with self._commit:
                failure = self._file.commit([(at_ms, body) for at_ms, body, _ in batch])
            self._note(failure)
            for _, _, done in batch:
                done.set_result(failure)
        self._file.close()

    def _gather(self) -> tuple[list[_Waiting], bool]:
        """Everything that waits, and whether the end is behind it."""
        batch: list[_Waiting] = []
        try:
            entry = self._queue.get(timeout=HOUSEKEEPING_SECONDS)
            while entry is not None:
                batch.append(entry)
                entry = self._queue.get_nowait()
        except queue.Empty:
            return batch, False
        return batch, True

    def _note(self, failure: str | None) -> None:
        with self._noting:  # whoever waits finds out at the same time, and it is said once
            said, self._failure = self._failure, failure
        if failure == said:
            return
        if failure is not None:
            log.error("journal: %s", failure)
        else:
            log.warning("journal: records are written down again")
