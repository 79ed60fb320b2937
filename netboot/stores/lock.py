"""The lock of a data folder: one instance works on it at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RESTORING = "restoring"
"""The marker in a data folder while `netboot restore` puts files in place."""


class AlreadyRunningError(Exception):
    """Another instance works on the same data; the message names its process id. Or a restore was interrupted."""


@contextmanager
def sole_instance(path: Path, *, interrupted: bool = False) -> Iterator[None]:
    """Hold the lock file while in the block; the kernel releases it when the process ends, however it ends.

    `interrupted`: also where a restore was, for to complete it.

    Raises:
        AlreadyRunningError: somebody else holds it.
        OSError: it cannot be made.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(handle, "r+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = file.read(20).decode("ascii", "replace").strip() or "unknown"
            raise AlreadyRunningError(
                f"process {pid} already serves {path.parent}; stop it first (`kill {pid}`), "
                "or give this instance another `data`"
            ) from None
        if path.with_name(RESTORING).exists() and not interrupted:
            raise AlreadyRunningError(
                f"a restore into {path.parent} was interrupted, so that what is there is part old and part new: "
                "run `netboot restore` again"
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
        yield
