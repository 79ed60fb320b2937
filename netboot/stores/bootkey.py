"""The key of boot ids: 32 random bytes in `data/boot-id.key`, made by whoever needs it first. It opens nothing."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from images.values.files import sync_folder
from netboot.lifecycle.errors import StateUnavailableError

LENGTH = 32


def load_or_create(path: Path) -> bytes:
    """The key; made (mode 0600) where there is none. Workers that start at once all get the same one.

    Raises:
        StateUnavailableError: it cannot be read or written, or is not a key.
    """
    try:
        if not path.exists():
            _create(path)
        key = path.read_bytes()
    except OSError as error:
        raise StateUnavailableError(f"the boot-id key {path} cannot be used: {error.strerror}") from None
    if len(key) != LENGTH:
        raise StateUnavailableError(
            f"{path} is not a boot-id key ({LENGTH} bytes); remove it, and boots under way will not be recognised"
        )
    return key


def _create(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}")
    handle = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(LENGTH))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(staged)  # unlike a rename, this never replaces a key that somebody else has made meanwhile
    finally:
        staged.unlink()
    sync_folder(path.parent)
