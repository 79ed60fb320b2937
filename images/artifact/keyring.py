"""The keys of a site: a folder of `<id>.pub` (signify) and, where images are signed, `<id>.key` (PKCS#8, 0600).

Every public key in the folder is trusted. The file `active` names the key that signs; rotating makes a new one active
and leaves the old one trusted, so that images signed by it boot until `retire` takes its public half away.
"""

import errno
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from images.artifact.signing import MOST, PublicKey, SigningKey, read_public_key
from images.errors import InUseError, NotFoundError, SignatureError, StoreError
from images.values import files

_ID = re.compile(r"[0-9a-f]{16}")
_SUFFIXES = (".pub", ".key", ".retired")


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """One key: can it sign here, does it sign now, is it trusted; `created` in seconds since 1970 (of the file)."""

    id: str
    active: bool
    private: bool
    trusted: bool
    created: int


class KeyRing:
    """The keys in one folder. `read`: how a public key's file is read."""

    def __init__(self, folder: Path, read: Callable[[Path], bytes] = files.small) -> None:
        self.folder, self._read = folder, read

    def __repr__(self) -> str:
        return f"KeyRing({str(self.folder)!r})"

    def infos(self) -> tuple[KeyInfo, ...]:
        """All keys, oldest first.

        Raises:
            StoreError: the folder cannot be read.
        """
        active = self._active()
        by_id: dict[str, list[Path]] = {}
        for path in map(self.folder.joinpath, files.names(self.folder)):
            if path.suffix in _SUFFIXES and _ID.fullmatch(path.stem):
                by_id.setdefault(path.stem, []).append(path)
        infos = [
            KeyInfo(
                id=name,
                active=name == active,
                private=any(path.suffix == ".key" for path in paths),
                trusted=any(path.suffix == ".pub" for path in paths),
                created=int(min(path.stat().st_mtime for path in paths)),
            )
            for name, paths in by_id.items()
        ]
        return tuple(sorted(infos, key=lambda info: (info.created, info.id)))

    def trusted(self) -> tuple[PublicKey, ...]:
        """Every trusted public key.

        Raises:
            SignatureError: a `.pub` file is not a key, or is under another key's name (retiring goes by names), or the
            folder cannot be read.
        """
        return tuple(self._public(path) for path in self._public_paths())

    def public_files(self) -> tuple[Path, ...]:
        """The files of the trusted public keys, for baking into an initrd.

        Raises:
            As `trusted`.
        """
        self.trusted()
        return self._public_paths()

    def signing_key(self) -> SigningKey:
        """The active private key.

        Raises:
            NotFoundError: there is none here. SignatureError: others can read it, or it is not that key.
        """
        return self._private(self._active())

    def signing_keys(self) -> tuple[SigningKey, ...]:
        """The private halves of trusted keys that are here, oldest first, the active one last; as many as may sign.

        Raises:
            As `signing_key`.
        """
        active = self.signing_key()
        others = [info.id for info in self.infos() if info.trusted and info.private and not info.active]
        return (*map(self._private, others[-(MOST - 1) :]), active)

    def _private(self, name: str | None) -> SigningKey:
        path = self.folder / f"{name}.key"
        try:
            with files.opened(path) as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                data = file.read(1 << 16)
        except FileNotFoundError:
            raise NotFoundError(
                f"no private key to sign with in {self.folder}: run `netboot key create` here, "
                "or sign where the private key is kept"
            ) from None
        except OSError as error:
            raise SignatureError(f"{path}: cannot be read: {error.strerror}") from None
        if mode & 0o077:
            raise SignatureError(f"{path} can be read by others (mode {mode:04o}): run `chmod 600 {path}`")
        try:
            key = SigningKey.from_pem(data)
        except SignatureError as error:
            raise SignatureError(f"{path}: {error}") from None
        if key.public.id != name:
            raise SignatureError(f"{path}: holds key {key.public.id}, not the one of its name: give it its own name")
        return key

    def create(self) -> KeyInfo:
        """The first key of a site.

        Raises:
            InUseError: there is an active key already; `rotate` makes another. StoreError: the file system refuses.
        """
        if self._active() is not None:
            raise InUseError(f"{self.folder} has an active key already; `netboot key rotate` makes a new one")
        return self.rotate()

    def rotate(self) -> KeyInfo:
        """A new key, active from now on; the old one stays trusted.

        Raises:
            StoreError: the file system refuses; the old key is the active one still. NotDurableError: the new one is.
        """
        key = SigningKey.generate()
        try:
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise files.refused(f"cannot make {self.folder}", error) from error
        files.write_all(
            {
                self.folder / f"{key.public.id}.key": (key.to_pem(), 0o600),
                self.folder / f"{key.public.id}.pub": (key.public.to_bytes(), 0o644),
                self.folder / "active": (key.public.id.encode() + b"\n", 0o644),
            }
        )
        return next(info for info in self.infos() if info.id == key.public.id)

    def require_writable(self) -> None:
        """See that a key could be made or retired: for a dry run.

        Raises:
            StoreError: this account may not write to the folder, or to where it would be made.
        """
        there = next(path for path in (self.folder, *self.folder.absolute().parents) if files.look(path) is not None)
        if not os.access(there, os.W_OK | os.X_OK, effective_ids=True):
            raise files.refused(f"cannot write to {there}", PermissionError(errno.EACCES, os.strerror(errno.EACCES)))

    def retire(self, name: str) -> None:
        """Trust a key no longer; its files are kept under another name, for the record.

        Raises:
            NotFoundError: no such key. InUseError: it is the active one. StoreError: the file system refuses.
            NotDurableError: it is retired.
        """
        self.require_retirable(name)
        path = self.folder / f"{name}.pub"
        try:
            path.rename(path.with_suffix(".retired"))
            files.sync_name(path)
        except OSError as error:
            raise files.refused(f"cannot retire {path}", error) from error

    def require_retirable(self, name: str) -> None:
        """See that it can be retired.

        Raises:
            NotFoundError: no such key. InUseError: it is the active one.
        """
        if not _ID.fullmatch(name) or files.look(self.folder / f"{name}.pub") is None:
            raise NotFoundError(f"no trusted key {name[:80]} in {self.folder} (see `netboot key list`)")
        if name == self._active():
            raise InUseError(f"key {name} signs; run `netboot key rotate` before you retire it")

    def restore(self, name: str, *, dry_run: bool = False) -> None:
        """Trust a retired key again. `dry_run`: see only that it is there.

        Raises:
            NotFoundError: no retired key of that name. StoreError: the file system refuses. NotDurableError: it is
            trusted.
        """
        path = self.folder / f"{name}.retired"
        if not _ID.fullmatch(name) or files.look(path) is None:
            raise NotFoundError(f"no retired key {name[:80]} in {self.folder} (see `netboot key list`)")
        if dry_run:
            return
        try:
            path.rename(path.with_suffix(".pub"))
            files.sync_name(path)
        except OSError as error:
            raise files.refused(f"cannot restore {path}", error) from error

    def public_bytes(self, name: str) -> bytes:
        """signify's public key file of a key, retired ones too.

        Raises:
            NotFoundError: no such key. SignatureError: it cannot be read, or is not that key.
        """
        for suffix in (".pub", ".retired"):
            path = self.folder / f"{name}{suffix}"
            if _ID.fullmatch(name) and files.look(path) is not None:
                return self._public(path).to_bytes()
        raise NotFoundError(f"no key {name[:80]} in {self.folder} (see `netboot key list`)")

    def _public_paths(self) -> tuple[Path, ...]:
        try:
            return tuple(self.folder / name for name in files.names(self.folder) if name.endswith(".pub"))
        except StoreError as error:
            raise SignatureError(str(error)) from None

    def _public(self, path: Path) -> PublicKey:
        try:
            key = read_public_key(self._read(path))
        except SignatureError as error:
            raise SignatureError(f"{path}: {error}") from None
        except OSError as error:
            raise SignatureError(f"{path}: cannot be read: {error.strerror}") from None
        if path.stem != key.id:
            raise SignatureError(f"{path}: holds key {key.id}, not the one of its name: call it {key.id}.pub")
        return key

    def _active(self) -> str | None:
        try:
            name = files.small(self.folder / "active").decode(errors="replace").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:  # there is one: whoever were told to make the first would replace it
            raise files.refused(f"cannot read {self.folder / 'active'}", error) from error
        return name if _ID.fullmatch(name) else None
