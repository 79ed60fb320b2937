"""Files of what processes say of themselves (`netboot.status`): `data/status/<process>.json`, swapped whole."""

import errno
import logging
import os
import secrets
import shutil
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from images.values.strict import Strict
from netboot.lifecycle.errors import CannotTellError
from netboot.logs import Trouble

S = TypeVar("S", bound=Strict)

log = logging.getLogger(__name__)

LONGEST = 4 * 1024**2
"""Bytes of a status; that of 10,000 faults has fewer."""


class StatusFolder:
    """`data/status`, for those who read it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, process: str, model: type[S], most: int = LONGEST) -> S | None:
        """What a process said last, of `most` bytes; None: nothing since the service began.

        Raises:
            CannotTellError: the file cannot be read, or is not what this version writes.
        """
        file = self._path / f"{process}.json"
        try:
            return model.model_validate_json(_content(file, most), strict=True)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CannotTellError(f"cannot tell: {file} cannot be read: {error.strerror}") from None
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the file"
            message = f"cannot tell: {file} is not what this version writes: {where}: {first['msg']}"
            raise CannotTellError(message) from None


def write_status(folder: Path, process: str, status: Strict) -> None:
    """Swap the file. Not worth an fsync: a restart writes it anew.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # other processes write here too: under a name that nobody can know, and never through a link
    staged = folder / f".{process}.{secrets.token_hex(16)}"
    try:
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(status.model_dump_json())
        staged.replace(folder / f"{process}.json")
    except OSError:
        with suppress(OSError):
            staged.unlink()
        raise


class StatusFile:
    """The file of one process, or loop, for whoever it is of. What cannot be written is said in the log, once while
    that lasts; the file keeps what was written last, whose age its readers see."""

    def __init__(self, folder: Path, process: str) -> None:
        self._folder, self._process = folder, process
        of = f"status of the {process}"
        self._trouble = Trouble(log, f"{of} cannot be written", f"{of} is written again")

    def write(self, status: Strict) -> bool:
        """Swap the file, if that can be; whether it could."""
        try:
            write_status(self._folder, self._process, status)
        except OSError as error:
            self._trouble.note(error.strerror)
            return False
        self._trouble.note(None)
        return True


class StatusWriter:
    """Writes the latest of what a process says of itself, in a thread: who says it waits for no disk, and fails never.

    What cannot be written now is written when there is room again.
    """

    def __init__(self, folder: Path, process: str) -> None:
        self._file = StatusFile(folder, process)
        self._changed = threading.Condition()
        self._latest: Strict | None = None
        self._ending = False
        self._thread = threading.Thread(target=self._write_for_ever, name="status", daemon=True)

    def say(self, status: Strict) -> None:
        """Have this written; what was said before and is not written yet is passed over."""
        with self._changed:
            self._latest = status
            self._changed.notify()
        if self._thread.ident is None:
            self._thread.start()

    def close(self, seconds: float = 1.0) -> None:
        """Wait until the last word is written, but not longer than this."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join(seconds)

    def _write_for_ever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._latest is not None or self._ending)
                status, self._latest = self._latest, None
            if status is None:
                return
            self._file.write(status)


def _content(path: Path, most: int) -> bytes:
    """Of a plain file that is not longer than what a process says of itself can be."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it is longer than {most} bytes")
    return content


def wipe(folder: Path) -> None:
    """Forget what processes of an earlier run said."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def room(folder: Path) -> int | None:
    """Bytes that may still be written to the file system of `folder`; None: it cannot be told."""
    try:
        system = os.statvfs(folder)
    except OSError:
        return None
    return system.f_bavail * system.f_frsize
