"""The key of boot ids: a file of 32 random bytes. It opens nothing. Without a word in the configuration it is made by
whoever needs it first; one that is named there is brought by an operator, for other hosts may have the same."""

import hmac
import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from images.errors import StoreError
from images.values import files
from images.values.files import sync_folder
from netboot import credentials
from netboot.config import Config
from netboot.lifecycle.errors import StateUnavailableError
from netboot.reread import Reread

LENGTH = 32
LOOK_SECONDS = 0.5
"""Between two looks at the file, for every script and every event asks."""


def file_of(config: Config) -> Path:
    """Where the key is; services that have the same one take each other's boots over."""
    return config.boot_id_key or config.data / "boot-id.key"


def key_of(config: Config) -> bytes:
    """The key; made where there is none and `boot_id_key` does not say where it is.

    Raises:
        StateUnavailableError: it cannot be used, is named and not there, or cannot be made.
    """
    named = config.boot_id_key
    if named is None:
        return load_or_create(file_of(config))
    if not named.exists() and (shared := config.keys_kubernetes) is not None:
        raise StateUnavailableError(
            f"the key of boot ids, which the Secret {shared.namespace}/{shared.secret} gives, has not come yet: none "
            "is made up, and `keys` of `netboot doctor` says what to do"
        )
    if not named.exists():
        raise StateUnavailableError(
            f"boot_id_key names {named}, which is not there: bring the site's key (`netboot restore` does); a new one, "
            f"made with `(umask 077; head -c {LENGTH} /dev/urandom > {named})`, recognises no boot under way"
        )
    return _read(named)


def there(config: Config) -> bytes | None:
    """The key, where there is one; nothing is made.

    Raises:
        StateUnavailableError: it cannot be used.
    """
    path = file_of(config)
    try:
        return _read(path) if files.look(path) is not None else None
    except StoreError as error:
        raise StateUnavailableError(str(error)) from None


def mark_of(key: bytes) -> str:
    """The same where the key is: by it a service says whose it is, and gives nothing of the key away."""
    return hmac.new(key, b"netboot: whose service this is", "sha256").hexdigest()[:16]


def said(config: Config) -> str:
    """The mark, as a service says it to whoever asks, for whom no key is made; "": it is not there, or cannot be
    read."""
    try:
        key = there(config)
    except StateUnavailableError:
        return ""
    return mark_of(key) if key is not None else ""


class BootIdKey:
    """The key in force: the file's as it is now, or as it was when it could last be used.

    Raises:
        StateUnavailableError: it cannot be used.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._file = Reread(
            "the boot-id key", lambda: (path,), partial(_read, path), StateUnavailableError, monotonic=monotonic
        )
        self._monotonic = monotonic
        self._key, self._looked = self._file.current(), monotonic()

    def current(self) -> bytes:
        """The very same object for as long as it is the same key."""
        now = self._monotonic()
        if now - self._looked >= LOOK_SECONDS:
            key, self._looked = self._file.current(), now
            if key != self._key:
                self._key = key
        return self._key


def load_or_create(path: Path) -> bytes:
    """The key; made (mode 0600) where there is none. Workers that start at once all get the same one.

    Raises:
        StateUnavailableError: it cannot be read or written, or is not a key.
    """
    try:
        if not path.exists():
            _create(path)
    except OSError as error:
        raise StateUnavailableError(f"the boot-id key {path} cannot be used: {error.strerror}") from None
    return _read(path)


def _read(path: Path) -> bytes:
    try:
        key = credentials.read(path)
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
        if os.geteuid() == 0:  # a command of root's: it is of whom the folder is
            os.fchown(handle, path.parent.stat().st_uid, path.parent.stat().st_gid)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(LENGTH))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(staged)  # unlike a rename, this never replaces a key that somebody else has made meanwhile
    finally:
        staged.unlink()
    sync_folder(path.parent)
