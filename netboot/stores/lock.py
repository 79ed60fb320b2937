"""The lock of a data folder: one instance works on it at a time."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from images.values.flock import HeldError, exclusive

RESTORING = "restoring"
"""The marker in a data folder while `netboot restore` puts files in place."""


class AlreadyRunningError(Exception):
    """Another instance works on the same data; the message names its process id. Or a restore was interrupted."""


def holder(path: Path) -> int | None:
    """The process that works on the data folder of this lock; None: none does.

    Raises:
        OSError: it cannot be looked at.
    """
    if not path.exists():
        return None
    try:
        with exclusive(path, str(path.parent)):
            return None
    except HeldError as error:
        return int(error.holder) if error.holder.isdecimal() else None


@contextmanager
def sole_instance(path: Path, *, interrupted: bool = False) -> Iterator[None]:
    """Hold the lock file while in the block; the kernel releases it when the process ends, however it ends.

    `interrupted`: also where a restore was, for to complete it.

    Raises:
        AlreadyRunningError: somebody else holds it.
        OSError: it cannot be made.
    """
    with ExitStack() as held:
        try:
            held.enter_context(exclusive(path, str(path.parent)))
        except HeldError as error:
            raise AlreadyRunningError(
                f"process {error.holder} already serves {path.parent}; stop it first (`kill {error.holder}`), "
                "or give this instance another `data`"
            ) from None
        if path.with_name(RESTORING).exists() and not interrupted:
            raise AlreadyRunningError(
                f"a restore into {path.parent} was interrupted, so that what is there is part old and part new: "
                "run `netboot restore` again"
            )
        yield
