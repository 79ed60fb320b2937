"""The keys of a site: a folder of `<id>.pub` (signify) and, where images are signed, `<id>.key` (PKCS#8, 0600).

Every public key in the folder is trusted. The file `active` names the key that signs; rotating makes a new one active
and leaves the old one trusted, so that images signed by it boot until `retire` takes its public half away.
"""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from images import files
from images.errors import InUseError, NotFoundError, SignatureError
from images.signing import PublicKey, SigningKey, read_public_key


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """One key: can it sign here, does it sign now, is it trusted; `created` in seconds since 1970 (of the file)."""

    id: str
    active: bool
    private: bool
    trusted: bool
    created: int


class KeyRing:
    """The keys in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def infos(self) -> tuple[KeyInfo, ...]:
        """All keys, oldest first.

        Raises:
            SignatureError: a file is not a key.
        """
        active = self._active()
        found: dict[str, list[Path]] = {}
        for path in (*self.folder.glob("*.pub"), *self.folder.glob("*.key"), *self.folder.glob("*.retired")):
            found.setdefault(path.stem, []).append(path)
        infos = [
            KeyInfo(
                id=name,
                active=name == active,
                private=any(path.suffix == ".key" for path in paths),
                trusted=any(path.suffix == ".pub" for path in paths),
                created=int(min(path.stat().st_mtime for path in paths)),
            )
            for name, paths in found.items()
        ]
        return tuple(sorted(infos, key=lambda info: (info.created, info.id)))

    def trusted(self) -> tuple[PublicKey, ...]:
        """Every trusted public key.

        Raises:
            SignatureError: a `.pub` file is not a key, or is under another key's name.
        """
        keys = []
        for path in sorted(self.folder.glob("*.pub")):
            try:
                key = read_public_key(path.read_bytes())
            except SignatureError as error:
                raise SignatureError(f"{path}: {error}") from None
            except OSError as error:
                raise SignatureError(f"{path}: cannot be read: {error.strerror}") from None
            keys.append(key)
        return tuple(keys)

    def public_files(self) -> tuple[Path, ...]:
        """The files of the trusted public keys, for baking into an initrd."""
        return tuple(sorted(self.folder.glob("*.pub")))

    def signing_key(self) -> SigningKey:
        """The active private key.

        Raises:
            NotFoundError: there is none here. SignatureError: others can read it, or it is not a key.
        """
        active = self._active()
        path = self.folder / f"{active}.key"
        if active is None or not path.exists():
            raise NotFoundError(
                f"no private key to sign with in {self.folder}: run `netboot key create` here, "
                "or sign where the private key is kept"
            )
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o077:
            raise SignatureError(f"{path} can be read by others (mode {mode:04o}): run `chmod 600 {path}`")
        try:
            return SigningKey.from_pem(path.read_bytes())
        except OSError as error:
            raise SignatureError(f"{path}: cannot be read: {error.strerror}") from None
        except SignatureError as error:
            raise SignatureError(f"{path}: {error}") from None

    def create(self) -> KeyInfo:
        """The first key of a site.

        Raises:
            InUseError: there is an active key already; `rotate` makes another.
        """
        if self._active() is not None:
            raise InUseError(f"{self.folder} has an active key already; `netboot key rotate` makes a new one")
        return self.rotate()

    def rotate(self) -> KeyInfo:
        """A new key, active from now on; the old one stays trusted."""
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        key = SigningKey.generate()
        files.write(self.folder / f"{key.public.id}.key", key.to_pem(), mode=0o600)
        files.write(self.folder / f"{key.public.id}.pub", key.public.to_bytes())
        files.write(self.folder / "active", key.public.id.encode() + b"\n")
        return next(info for info in self.infos() if info.id == key.public.id)

    def retire(self, name: str) -> None:
        """Trust a key no longer; its files are kept under another name, for the record.

        Raises:
            NotFoundError: no such key. InUseError: it is the active one.
        """
        path = self.folder / f"{name}.pub"
        if name not in {info.id for info in self.infos()} or not path.exists():
            raise NotFoundError(f"no trusted key {name} in {self.folder} (see `netboot key list`)")
        if name == self._active():
            raise InUseError(f"key {name} signs; run `netboot key rotate` before you retire it")
        path.rename(path.with_suffix(".retired"))
        files.sync_folder(self.folder)

    def public_bytes(self, name: str) -> bytes:
        """signify's public key file of a key.

        Raises:
            NotFoundError: no such key.
        """
        for suffix in (".pub", ".retired"):
            with contextlib.suppress(OSError):
                return (self.folder / f"{os.path.basename(name)}{suffix}").read_bytes()  # noqa: PTH119 - a name, no path
        raise NotFoundError(f"no key {name} in {self.folder} (see `netboot key list`)")

    def _active(self) -> str | None:
        try:
            name = (self.folder / "active").read_text().strip()
        except OSError:
            return None
        return name if len(name) == 16 and not set(name) - set("0123456789abcdef") else None
