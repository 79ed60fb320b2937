"""What is in the way of `netboot init`, looked for before it writes anything: all of it at once, with what to do."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from images.artifact.keyring import KeyRing
from images.errors import ImageError, StoreError
from images.values import files
from netboot.cli.bundles import faults_of_bundle
from netboot.cli.outcomes import NOT_ALLOWED, ApiError
from netboot.config import Config, Join
from netboot.stores import proofkey

_ACCOUNT = "use an account that may"
TOKEN = "operator.token"  # noqa: S105 - a file's name


def require(config: Config, wanted: Iterable[Path]) -> None:
    """See that every file that is not there can be written, and that what they are made of can be read. `config`: that
    of the site, or as it will be; `wanted`: files that every site has.

    Raises:
        ApiError: with all that is in the way; nothing was written.
    """
    missing, read = list(wanted), []
    if config.join is not None:
        missing += [*_of_join(config.join), config.proof_key, proofkey.folder_of(config) / "one.pub"]
        if not there(config.join.certificate) and not there(config.join.key):
            read += [config.join.authorities, config.join.authorities.with_suffix(".key")]
    read += [path for path in missing if path.name == TOKEN and there(path)]
    found = [each for path in missing for each in _not_written(path)]
    found += [*(each for path in read for each in _unread(path)), *_signing(config)]
    if found:
        status = NOT_ALLOWED if any(refused for _, refused in found) else 1
        lines = dict.fromkeys(words for words, _ in found)
        raise ApiError("nothing was written, for this is in the way:\n" + "\n".join(lines), "", status)


def there(path: Path) -> bool:
    """Whether a file is there, or cannot be looked at."""
    try:
        return files.look(path) is not None
    except StoreError:  # which is among what is in the way
        return True


def _of_join(join: Join) -> Iterator[Path]:
    yield from (join.certificate, join.key, join.sealing_keys, join.nonce_keys)


def _signing(config: Config) -> Iterator[tuple[str, bool]]:
    """The key that signs, and the store that has what it signed."""
    ring = KeyRing(config.keys)
    try:
        infos = ring.infos()
        signs = any(info.active and info.private for info in infos)
        if infos and (not signs or not faults_of_bundle(config)):
            return
        if signs:
            ring.signing_key()
    except StoreError:  # the folder, which is told below
        infos = ()
    except ImageError as error:
        refused = isinstance(error.__context__, PermissionError)
        yield f"{error}: {_ACCOUNT}" if refused else str(error), refused
    if not infos:
        yield from _not_written(config.keys / "one.key")
    yield from _not_written(config.store / "tmp" / "bundle")
    yield from _not_written(config.store / "bundles" / "new")


def _not_written(path: Path) -> Iterator[tuple[str, bool]]:
    """What is in the way of a file that is to be written where there is none: words, and whether it is not allowed."""
    try:
        if files.look(path) is not None:
            return
        for folder in path.absolute().parents:
            if (found := files.look(folder)) is not None:
                yield from _of_folder(folder, found)
                return
            if folder.is_symlink():
                yield f"{folder} is a link to nothing: remove it", False
                return
    except StoreError:
        shut = [each for each in path.absolute().parents if not os.access(each, os.X_OK, effective_ids=True)]
        folder = shut[-1] if shut else path.parent
        yield f"{folder} may not be entered by this account: {_ACCOUNT}, or name another folder", True


def _of_folder(folder: Path, found: os.stat_result) -> Iterator[tuple[str, bool]]:
    if not stat.S_ISDIR(found.st_mode):
        yield f"{folder} is no folder: move it away", False
    elif os.statvfs(folder).f_flag & os.ST_RDONLY:
        yield f"{folder} is on a file system that is read-only: mount it writable, or name another folder", True
    elif not os.access(folder, os.W_OK | os.X_OK, effective_ids=True):
        yield f"{folder} may not be written by this account: {_ACCOUNT}, or name another folder", True


def _unread(path: Path) -> Iterator[tuple[str, bool]]:
    try:
        files.opened(path).close()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        words = f"{path} cannot be read: {error.strerror}: {_ACCOUNT}, or move it away"
        yield words, isinstance(error, PermissionError)
