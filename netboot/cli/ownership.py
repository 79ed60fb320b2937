"""Whose the files of a site are, where a service with an account of its own runs it (docs/install.md).

The service's account has what it writes, data and store, and what it alone reads: secrets and the key of join's
listener. All else it reads as others do. Private keys that sign images, and the authority's, stay root's: who breaks
into the service signs nothing.
"""

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from netboot.config import Config
from netboot.stores import proofkey


def make_state(config: Config, owner: pwd.struct_passwd) -> None:
    """Data and store, before anything is written there: what root writes into a store becomes its owner's.

    Raises:
        OSError.
    """
    for path in (config.data, config.store):
        path.mkdir(parents=True, exist_ok=True)
        os.chown(path, owner.pw_uid, owner.pw_gid)
    config.data.chmod(0o750)


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


def _let_in(folder: Path, owner: pwd.struct_passwd) -> None:
    """Whatever the umask was: by the group of the service's account, where not everybody may look into it."""
    status = folder.stat()
    if stat.S_IMODE(status.st_mode) & 0o005 != 0o005 and status.st_uid != owner.pw_uid:
        os.chown(folder, status.st_uid, owner.pw_gid)
        folder.chmod(stat.S_IMODE(status.st_mode) | 0o050)


def _secret(config: Config) -> Iterator[Path]:
    """The folder of secrets with all in it, and what the configuration names elsewhere."""
    paths = [config.management.token_file, config.management.tokens, config.proof_key]
    if config.join is not None:
        paths += [config.join.key, config.join.sealing_keys, config.join.nonce_keys]
    yield from paths
    yield from {path.parent for path in paths if path.parent.name == "secrets"}
