"""The sealing keys that replicas share: a file of mode 0600, one base64 key of 32 bytes a line, `#` begins a comment.

The first key seals, all open. So a key is rotated in three steps, each carried to every replica before the next one:
`added` (it opens everywhere), `promoted` (it seals), `retired` (the others go, not before the longest state is over).
"""

import base64
import binascii
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from images.values import files
from netboot import credentials
from netboot.lifecycle.errors import StateUnavailableError
from netboot.reread import Reread
from tokens.sealed import Keyset, SealingKey

MODE = 0o600


class Kind(NamedTuple):
    """Which keys, for words. `group`: of the commands that make them."""

    name: str
    group: str


SEALING = Kind("sealing keys", "sealing")
"""Of join's state."""
NONCES = Kind("nonce keys", "nonces")
"""Of the nonces of boot windows: a keyset of its own, for boot servers have it too."""


_DAMAGED = "remove that line, or put the file of another replica or of a backup in its place"


class SealingKeysError(StateUnavailableError):
    """The file cannot be used; the words say why and what to do, and nothing of what is in it."""


def read_keys(path: Path, kind: Kind = SEALING) -> Keyset:
    """The keys of a file.

    Raises:
        SealingKeysError: not there, for others to read, or not keys.
    """
    remedy = f"`netboot key {kind.group} rotate` makes the first one; replicas must share the file"
    try:
        with credentials.opened(path) as file:
            status = os.fstat(file.fileno())
            data = file.read(65536)
    except OSError as error:
        cure = credentials.remedy(error, remedy)
        raise SealingKeysError(f"the {kind.name} {path} cannot be read: {error.strerror}; {cure}") from None
    if credentials.told_to_others(status):
        mode = stat.S_IMODE(status.st_mode)
        raise SealingKeysError(f"others can read the {kind.name} {path} (mode {mode:04o}): `chmod 600 {path}`")
    return parsed(data, kind, str(path), remedy)


def parsed(data: bytes, kind: Kind, where: str, remedy: str) -> Keyset:
    """The keys of a file's content. `where`: for words; `remedy`: where there is none in it.

    Raises:
        SealingKeysError: they are none.
    """
    keys = []
    for number, line in enumerate(data.decode("ascii", "replace").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            keys.append(SealingKey(base64.b64decode(text, validate=True)))
        except (binascii.Error, ValueError):
            raise SealingKeysError(f"{where}:{number}: not a sealing key (32 bytes in base64): {_DAMAGED}") from None
    if not keys:
        raise SealingKeysError(f"the {kind.name} {where} hold no key: {remedy}")
    if len({key.id for key in keys}) != len(keys):
        raise SealingKeysError(f"the {kind.name} {where} hold a key twice: remove one of the lines")
    return Keyset(tuple(keys))


def write_keys(path: Path, keys: Keyset, kind: Kind = SEALING) -> None:
    """Replace the file, mode 0600 from its first byte.

    Raises:
        OSError: it cannot be written.
    """
    files.write(path, text_of(keys, kind), mode=MODE)


def text_of(keys: Keyset, kind: Kind = SEALING) -> bytes:
    """The content of such a file: a secret."""
    lines = [f"{base64.b64encode(key.material).decode()}  # {key.id.hex()}\n" for key in keys.keys]
    header = f"# The {kind.name} of join: the first seals, all open. `netboot key {kind.group} list`\n"
    return (header + "".join(lines)).encode()


def new_key(random: Callable[[int], bytes] = os.urandom) -> SealingKey:
    """A new key of 32 bytes. `random`: so many bytes that nobody can foresee."""
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


def sealing_keys(path: Path, kind: Kind = SEALING) -> Reread[Keyset]:
    """The keys in force: those of the file as it is now, or as it was when it could last be used."""
    return Reread(f"the {kind.name}", lambda: (path,), partial(read_keys, path, kind), SealingKeysError)
