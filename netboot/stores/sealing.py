"""The sealing keys that replicas share: a file of mode 0600, one base64 key of 32 bytes a line, `#` begins a comment.

The first key seals, all open. So a key is rotated in three steps, each carried to every replica before the next one:
`added` (it opens everywhere), `promoted` (it seals), `retired` (the others go, not before the longest state is over).
"""

import base64
import binascii
import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from images.values import files
from netboot.lifecycle.errors import StateUnavailableError
from tokens.sealed import Keyset, SealingKey

log = logging.getLogger(__name__)

MODE = 0o600


class Kind(NamedTuple):
    """Which keys, for words. `group`: of the commands that make them."""

    name: str
    group: str


SEALING = Kind("sealing keys", "sealing")
"""Of join's state."""
NONCES = Kind("nonce keys", "nonces")
"""Of the nonces of boot windows: a keyset of its own, for the boot plane has it too."""


class SealingKeysError(StateUnavailableError):
    """The file cannot be used; the words say why and what to do, and nothing of what is in it."""


def read_keys(path: Path, kind: Kind = SEALING) -> Keyset:
    """The keys of a file.

    Raises:
        SealingKeysError: not there, for others to read, or not keys.
    """
    remedy = f"`netboot key {kind.group} rotate` makes the first one; replicas must share the file"
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(65536)
    except OSError as error:
        raise SealingKeysError(f"the {kind.name} {path} cannot be read: {error.strerror}; {remedy}") from None
    if mode & 0o077:
        raise SealingKeysError(f"others can read the {kind.name} {path} (mode {mode:04o}): `chmod 600 {path}`")
    keys = []
    for number, line in enumerate(data.decode("ascii", "replace").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            keys.append(SealingKey(base64.b64decode(text, validate=True)))
        except (binascii.Error, ValueError):
            raise SealingKeysError(f"{path}:{number}: not a sealing key (32 bytes in base64)") from None
    if not keys:
        raise SealingKeysError(f"the {kind.name} {path} hold no key: {remedy}")
    if len({key.id for key in keys}) != len(keys):
        raise SealingKeysError(f"the {kind.name} {path} hold a key twice")
    return Keyset(tuple(keys))


def write_keys(path: Path, keys: Keyset, kind: Kind = SEALING) -> None:
    """Replace the file, mode 0600 from its first byte.

    Raises:
        OSError: it cannot be written.
    """
    lines = [f"{base64.b64encode(key.material).decode()}  # {key.id.hex()}\n" for key in keys.keys]
    header = f"# The {kind.name} of join: the first seals, all open. `netboot key {kind.group} list`\n"
    files.write(path, (header + "".join(lines)).encode(), mode=MODE)


def new_key(random: Callable[[int], bytes] = os.urandom) -> SealingKey:
    """A key that nobody has."""
    return SealingKey(random(32))


def added(keys: Keyset, new: SealingKey) -> Keyset:
    """With a new key that opens and does not seal yet."""
    return Keyset((*keys.keys, new))


def promoted(keys: Keyset) -> Keyset:
    """With the newest key sealing."""
    return Keyset((keys.keys[-1], *keys.keys[:-1]))


def retired(keys: Keyset) -> Keyset:
    """With the sealing key alone."""
    return Keyset(keys.keys[:1])


class SealingKeys:
    """The keys in force, read again when the file changed. Safe for threads.

    A file that cannot be used any more leaves the keys before in force, and says so in `problem`.
    """

    def __init__(self, path: Path, kind: Kind = SEALING) -> None:
        self._path, self._kind = path, kind
        self._lock = threading.Lock()
        self._seen: object = None
        self._keys: Keyset | None = None
        self.problem: str | None = None
        """Why the file as it is now is not what is in force; None: it is."""

    def __call__(self) -> Keyset:
        """The keys.

        Raises:
            SealingKeysError: there are none that can be used, and never were.
        """
        with self._lock:
            seen = _look(self._path)
            if seen != self._seen or self._keys is None:
                self._read(seen)
            if self._keys is None:
                raise SealingKeysError(self.problem or "not read yet")
            return self._keys

    def _read(self, seen: object) -> None:
        try:
            self._keys, problem = read_keys(self._path, self._kind), None
        except SealingKeysError as error:
            problem = str(error)
        if problem is not None and problem != self.problem:
            log.error("%s", problem)
        self._seen, self.problem = seen, problem


def _look(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
