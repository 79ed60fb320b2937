"""The key that signs proofs of boots: one private file (`proof_key`, PKCS#8, mode 0600), and a folder of public halves.

It is none of the keys that sign images: nobody trusts an image by it. Rotating puts a new key in the file and leaves
the public half of the one before, by which what it signed is verified for ever.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from images.artifact.keyring import KeyRing
from images.artifact.signing import PublicKey, SigningKey
from images.errors import SignatureError
from images.values import files
from netboot import credentials
from netboot.config import Config
from netboot.lifecycle.errors import StateUnavailableError

MODE = 0o600
_LARGEST = 1 << 16


def folder_of(config: Config) -> Path:
    """Where the public halves are."""
    return config.keys / "proofs"


def public_keys(folder: Path) -> tuple[PublicKey, ...]:
    """All of a folder.

    Raises:
        SignatureError: it cannot be read, or a `.pub` in it is no key.
    """
    return KeyRing(folder).trusted()


def read_key(path: Path) -> SigningKey | None:
    """The private key; None: there is none, so that no proofs are made.

    Raises:
        StateUnavailableError: it cannot be read, others can, or it is no key. The message does not repeat it.
    """
    try:
        with credentials.opened(path) as file:
            status = os.fstat(file.fileno())
            data = file.read(_LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateUnavailableError(credentials.unread(f"the key of proofs {path}", error)) from None
    if credentials.told_to_others(status):
        mode = stat.S_IMODE(status.st_mode)
        raise StateUnavailableError(f"others can read the key of proofs {path} (mode {mode:04o}): `chmod 600 {path}`")
    try:
        return SigningKey.from_pem(data)
    except SignatureError as error:
        raise StateUnavailableError(f"the key of proofs {path}: {error}") from None


def signing_key(path: Path, was_there: Callable[[], bool]) -> SigningKey | None:
    """The key for who signs; None: this site never had one. `was_there()`: whether anything shows that it had.

    Raises:
        StateUnavailableError: as `read_key`; or the key is gone.
    """
    key = read_key(path)
    if key is None and was_there():
        raise StateUnavailableError(
            f"the key of proofs {path} is gone: put it back, or make another by `netboot key proofs rotate`"
        )
    return key


def rotate(path: Path, folder: Path) -> PublicKey:
    """A new key, which signs from now on. Its public half is there before it signs anything.

    Raises:
        OSError, images.errors.StoreError: the file system refuses; the key before is in force still, but for
            NotDurableError: the new one is.
    """
    key = SigningKey.generate()
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    public = folder / f"{key.public.id}.pub"
    files.write_all({public: (key.public.to_bytes(), 0o644), path: (key.to_pem(), MODE)})
    return key.public
