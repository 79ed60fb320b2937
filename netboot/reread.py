"""Files that are read again when they change; what cannot be used leaves in force what was read before, and is said.

Whether a file changed is told by what `stat` says of it. Two kinds of change escape that, and both are met by reading
once more a little later: a write that follows another within the grain of the file system's clock (a second on some),
and a file that could not be used and looks the same when it can be (the disk failed, not the file).
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Generic, TypeVar

log = logging.getLogger(__name__)
T = TypeVar("T")

Look = tuple[int, int, int, int] | None

GRAIN_SECONDS = 2.0
"""No file system in use has a coarser clock (FAT's)."""
AGAIN_SECONDS = 10.0
"""Between tries of a file that cannot be used though it looks the same."""


def look(path: Path) -> Look:
    """What changes when a file does: inode, times of change of its content and of itself (ns), size; None: no file, or
    it cannot be looked at. The time of the inode's change cannot be set, and changes with its mode and owner."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


class Reread(Generic[T]):
    """What `read()`, which is never None, makes of the files and folders that `paths()` names. Safe for threads.

    `name`: what they are, for the log. `unusable`: what `read` raises where they cannot be used. `replaced_whole`:
    whoever writes them only ever renames a whole new file to their name, so that the clock's grain does not matter; for
    what is large.
    """

    def __init__(
        self,
        name: str,
        paths: Callable[[], Iterable[Path]],
        read: Callable[[], T],
        unusable: type[Exception],
        *,
        replaced_whole: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._name, self._paths, self._read, self._unusable = name, paths, read, unusable
        self._replaced_whole, self._monotonic, self._now = replaced_whole, monotonic, now
        self._lock = threading.Lock()
        self._seen: tuple[Look, ...] | None = None
        self._again = float("inf")
        self._error: Exception | None = None
        self.value: T | None = None
        """What is in force, as of the last look; None: nothing yet."""

    @property
    def problem(self) -> str | None:
        """Why the files, as of the last look, are not what is in force, in words; None: they are."""
        error = self._error
        if error is None:
            return None
        return str(error) if self.value is None else f"{error}; the one before stays in force"

    def current(self) -> T:
        """What is in force, after a look.

        Raises:
            `unusable`: nothing is, for what was there could never be used; as `read` said it.
        """
        with self._lock:
            return self._current()

    def strict(self) -> T:
        """The same for what must not stay in force without its file, because taking the file away takes it back.

        Raises:
            `unusable`: the files, as they are now, cannot be used.
        """
        with self._lock:  # for both: else another thread could clear the error of what this one would return
            value = self._current()
            if self._error is not None:
                raise self._error.with_traceback(None)
            return value

    def due(self) -> bool:
        """Whether there is something to read: a look, which costs a `stat`."""
        with self._lock:
            return self._due()

    def refresh(self) -> bool:
        """Read now, changed or not; whether that can be used."""
        with self._lock:
            self._refresh()
            return self._error is None

    def _current(self) -> T:
        if self._due():
            self._refresh()
        if self.value is None:
            assert self._error is not None
            raise self._error.with_traceback(None)
        return self.value

    def _due(self) -> bool:
        return self._look() != self._seen or self._monotonic() >= self._again

    def _look(self) -> tuple[Look, ...]:
        return tuple(map(look, self._paths()))

    def _refresh(self) -> None:
        self._seen = self._look()  # before it is read: what changes meanwhile is seen with the next look
        try:
            value = self._read()
        except self._unusable as error:
            if str(error) != str(self._error or ""):
                kept = "" if self.value is None else "; the one before stays in force"
                log.error("%s: %s%s", self._name, error, kept)  # noqa: TRY400 - the words are all there is
            self._error, self._again = error, self._monotonic() + AGAIN_SECONDS
            return
        except BaseException:
            self._seen = None  # nobody knows what is there: the next look reads it again, and what was is not returned
            raise
        if self._error is not None and self.value is not None:
            log.warning("%s: in order again", self._name)
        self.value, self._error, self._again = value, None, float("inf")
        if not self._replaced_whole and self._fresh():
            self._again = self._monotonic() + GRAIN_SECONDS

    def _fresh(self) -> bool:
        """Whether the next write may bear the same time as the one that has been read."""
        assert self._seen is not None
        return any(seen is not None and self._now() - seen[2] / 1e9 < GRAIN_SECONDS for seen in self._seen)
