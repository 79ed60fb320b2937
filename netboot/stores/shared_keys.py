"""The files that are made of the Secret with the keys that replicas share: a folder of its own, mode 0700, files 0600.

What was read last stays, over restarts, until a Secret that goes on from it is there: `netboot.lifecycle.shared_keys`.
"""

import base64
import binascii
import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from images.values import files
from images.values.strict import Strict
from netboot import credentials
from netboot.config_outside import BOOT_IDS, NONCES, SEALING
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.shared_keys import Ids
from netboot.reread import Look, look
from netboot.status import BOOT_ID, BOOT_ID_VARIABLE, up_ms
from netboot.stores import bootkey
from netboot.stores import sealing as keysets

MOST_BYTES = 65_536
RECORD = "secret.json"
"""Beside the keys: of which Secret they are."""
_BOOT = re.compile("[0-9a-f]{32}")
_KINDS = {SEALING: keysets.SEALING, NONCES: keysets.NONCES}
_REMEDY = "delete the Secret, and `netboot cluster keys push` makes it of a site's files, or --in-use of a replica's"


class SharedKeysError(StateUnavailableError):
    """Keys that cannot be used; the words say why, and nothing of what they are."""


class Since(Strict):
    """Which key has sealed since when, by `up_ms()` of the kernel's `boot`: after another start it is counted anew."""

    key: str
    up_ms: int
    boot: str = ""


class Record(Strict):
    """`uid`: of the Secret; `seen_ms`: when the API server last said that it has these keys, ms since 1970; `retired`:
    ids of all keys that it was seen to retire."""

    uid: str
    seen_ms: int
    since: Mapping[str, Since] = {}
    retired: tuple[str, ...] = ()


def contents(data: Mapping[str, str], wanted: tuple[str, ...], where: str) -> dict[str, bytes]:
    """What the files have that are made of a Secret's `data`: `wanted`, and what else it has of ours; all of it can be
    used. `where`: for words.

    Raises:
        SharedKeysError: one of them is not there, or cannot be used.
    """
    made: dict[str, bytes] = {}
    for name in (SEALING, NONCES, BOOT_IDS):
        if name in data:
            made[name] = _decoded(data[name], f"{name} of {where}")
        elif name in wanted:
            raise SharedKeysError(f"{where} has no {name}: {_REMEDY}")
    ids_of(made, where)
    return made


def ids_of(made: Mapping[str, bytes], where: str, remedy: str = _REMEDY) -> Ids:
    """Of the content of files, by their names. `where`, `remedy`: for words.

    Raises:
        SharedKeysError: one of them cannot be used.
    """
    return Ids({name: _ids(name, content, f"{name} of {where}", remedy) for name, content in made.items()})


def _decoded(text: str, what: str) -> bytes:
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise SharedKeysError(f"{what} is no base64: {_REMEDY}") from None
    if len(content) > MOST_BYTES:
        raise SharedKeysError(f"{what} has more than {MOST_BYTES} bytes: {_REMEDY}")
    return content


def _ids(name: str, content: bytes, what: str, remedy: str) -> tuple[str, ...]:
    if name == BOOT_IDS:
        if len(content) != bootkey.LENGTH:
            raise SharedKeysError(f"{what} is not a boot-id key ({bootkey.LENGTH} bytes): {remedy}")
        return (bootkey.mark_of(content),)
    try:
        keys = keysets.parsed(content, _KINDS[name], what, remedy)
    except keysets.SealingKeysError as error:
        raise SharedKeysError(str(error)) from None
    return tuple(key.id.hex() for key in keys.keys)


def boot() -> str:
    """Which start of the kernel this is, 32 hexadecimal digits: by the kernel or, where its file cannot be read, by the
    service manager (`BOOT_ID_VARIABLE`). Where neither says it, it is like no other one."""
    try:
        said = files.bytes_of(BOOT_ID, 64).decode("ascii")
    except (OSError, ValueError):
        said = os.environ.get(BOOT_ID_VARIABLE, "")
    digits = said.strip().replace("-", "")  # the kernel writes a UUID, systemd its digits alone
    return digits if _BOOT.fullmatch(digits) else secrets.token_hex(16)


class KeptKeys:
    """The folder, for the one process that writes there."""

    def __init__(self, folder: Path, up: Callable[[], int] = up_ms, boot: Callable[[], str] = boot) -> None:
        self._folder, self._up, self._boot = folder, up, boot()
        self._looks: dict[str, Look] = {}
        """Of the files that were read or written last."""

    def read(self) -> dict[str, bytes]:
        """What there is, by its names.

        Raises:
            SharedKeysError: a file is there and cannot be used: nobody knows what it was.
        """
        made: dict[str, bytes] = {}
        for name in (SEALING, NONCES, BOOT_IDS):
            path = self._folder / name
            self._looks[name] = look(path)
            try:
                made[name] = credentials.read(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise SharedKeysError(f"{path} cannot be read: {error.strerror}: {self.anew}") from None
        ids_of(made, str(self._folder), self.anew)
        return made

    @property
    def anew(self) -> str:
        """What a person does who wants this replica to take what the Secret has, whatever it had before."""
        return f"stop the service, remove what is in {self._folder} and start it, and it takes what the Secret has"

    def write(self, made: Mapping[str, bytes]) -> None:
        """On the disk, each file whole, when this returns.

        Raises:
            StoreError: one cannot be written; those before it are. What there is then only `read` can tell.
        """
        self._looks = {}
        for name, content in made.items():
            path = self._folder / name
            files.write(path, content, mode=keysets.MODE)
            self._looks[name] = look(path)

    def stands(self, made: Mapping[str, bytes]) -> bool:
        """Whether the files are those that were read or written last."""
        return all(self._looks.get(name) is not None for name in made) and all(
            look(self._folder / name) == known for name, known in self._looks.items()
        )

    def record(self) -> Record | None:
        """What was kept of it; None: nothing that can be read, so it is of no Secret that is known."""
        with suppress(OSError, ValidationError):
            return Record.model_validate_json(files.small(self._folder / RECORD))
        return None

    def keep(self, record: Record) -> None:
        """Raises StoreError: it cannot be written."""
        files.write(self._folder / RECORD, record.model_dump_json().encode(), mode=keysets.MODE)

    def since(self, ids: Ids, before: Mapping[str, Since]) -> dict[str, Since]:
        """Since when the first of each keyset seals."""
        now, boot = self._up(), self._boot
        firsts = {name: keys[0] for name, keys in ids.of.items() if name != BOOT_IDS}
        known = {name: kept for name, kept in before.items() if (firsts.get(name), boot) == (kept.key, kept.boot)}
        return {name: known.get(name) or Since(key=key, up_ms=now, boot=boot) for name, key in firsts.items()}

    def seconds(self, since: Since | None) -> int:
        """For how long, at least: `since()` gave it, so it is of this start of the kernel."""
        return 0 if since is None else max(0, self._up() - since.up_ms) // 1000
