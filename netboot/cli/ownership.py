"""Whose the files of a site are, where a service with an account of its own runs it (docs/install.md).

The service's account has what it writes, data and store, and what it alone reads: secrets and the key of join's
listener. All else it reads as others do. Private keys that sign images, and the authority's, stay root's: who breaks
into the service signs nothing.
"""

import os
import pwd
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from netboot.config import Config
from netboot.stores import proofkey


def make_state(config: Config, owner: pwd.struct_passwd) -> None:
    """Data and store, before anything is written there: what root writes into a store becomes its owner's.

    Raises:
        OSError.
    """
    for path, mode in ((config.data, 0o750), (config.store, None)):
        path.mkdir(parents=True, exist_ok=True)
        with _folder(path) as descriptor:
            os.fchown(descriptor, owner.pw_uid, owner.pw_gid)
            if mode is not None:
                os.fchmod(descriptor, mode)


def give(folder: Path, config: Config, owner: pwd.struct_passwd) -> None:
    """Give what the service alone reads to its account, and let it into the site's folder.

    Raises:
        OSError.
    """
    for path in _secret(config):
        if path.exists():
            os.chown(path, owner.pw_uid, owner.pw_gid, follow_symlinks=False)
    shown = [folder, config.inventory, config.keys, proofkey.folder_of(config)]
    if config.join is not None:
        shown.append(config.join.certificate.parent)
    for path in filter(Path.is_dir, shown):
        _let_in(path, owner)


def give_restored(written: Iterable[Path], folder: Path, config: Config, owner: pwd.struct_passwd) -> None:
    """What a backup put in place: data and store with all in them, every secret, and what `give` gives.

    Raises:
        OSError.
    """
    make_state(config, owner)
    for state in (config.data, config.store):
        with _folder(state) as descriptor:
            for _, below, names, inside in os.fwalk(".", dir_fd=descriptor):
                for name in (*below, *names):
                    os.chown(name, owner.pw_uid, owner.pw_gid, dir_fd=inside, follow_symlinks=False)
    for path in written:
        if path.parent.name == "secrets":
            with _folder(path.parent) as descriptor:
                os.chown(path.name, owner.pw_uid, owner.pw_gid, dir_fd=descriptor, follow_symlinks=False)
    give(folder, config, owner)


def _let_in(folder: Path, owner: pwd.struct_passwd) -> None:
    """Whatever the umask was: by the group of the service's account, where not everybody may look into it."""
    with _folder(folder) as descriptor:
        status = os.fstat(descriptor)
        if stat.S_IMODE(status.st_mode) & 0o005 != 0o005 and status.st_uid != owner.pw_uid:
            os.fchown(descriptor, status.st_uid, owner.pw_gid)
            os.fchmod(descriptor, stat.S_IMODE(status.st_mode) | 0o050)


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    """It, opened. Links are followed in folders that root alone writes: the service's account could have root give it
    what they lead to.

    Raises:
        OSError: ELOOP or ENOTDIR for such a link.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    descriptor = os.open("/", flags)
    try:
        for part in path.absolute().parts[1:]:
            status = os.fstat(descriptor)
            trusted = status.st_uid == 0 and not status.st_mode & 0o022
            try:
                below = os.open(part, flags if trusted else flags | os.O_NOFOLLOW, dir_fd=descriptor)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(path)) from None
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def _secret(config: Config) -> Iterator[Path]:
    """The folder of secrets with all in it, and what the configuration names elsewhere."""
    paths = [config.management.token_file, config.management.tokens, config.proof_key]
    if config.join is not None:
        paths += [config.join.key, config.join.sealing_keys, config.join.nonce_keys]
    if config.keys_kubernetes is not None and config.boot_id_key is not None:
        paths.append(config.boot_id_key)
        yield config.keys_kubernetes.place(config.data)
    yield from paths
    yield from {path.parent for path in paths if path.parent.name == "secrets"}
