"""What is in the way of `netboot init`, looked for before it writes anything: all of it at once, with what to do."""

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from images.artifact.keyring import KeyRing
from images.errors import ImageError, StoreError
from images.values import files
from images.values.strict import FaultsError
from netboot.authorities import read_authorities
from netboot.cli.bundles import faults_of_bundle
from netboot.cli.outcomes import NOT_ALLOWED, ApiError
from netboot.config import Config
from netboot.stores import proofkey

_ACCOUNT = "use an account that may"
TOKEN = "operator.token"  # noqa: S105 - a file's name


def require(config: Config, wanted: Iterable[Path], authority: Path) -> None:
    """See that every file that is not there can be written, and that what they are made of can be read. `config`: that
    of the site, or as it will be; `wanted`: files that every site has; `authority`: the certificate of its own.

    Raises:
        ApiError: with all that is in the way; nothing was written.
    """
    missing, read = [*wanted, *of_join(config)], []
    if (join := config.join) is not None and not there(join.certificate) and not there(join.key):
        read += [join.authorities, join.authorities.with_suffix(".key")]
    read += [path for path in missing if path.name == TOKEN and there(path)]
    found = [each for path in missing for each in _not_written(path)]
    found += [*(each for path in read for each in _unread(path))]
    found += [*_no_certificate(authority), *_signing(config)]
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


def of_join(config: Config) -> Iterator[Path]:
    """Files of a site whose machines join."""
    if config.join is not None:
        join = config.join
        yield from (join.certificate, join.key, join.sealing_keys, join.nonce_keys)
        yield from (config.proof_key, proofkey.folder_of(config) / "one.pub")


def _no_certificate(authority: Path) -> Iterator[tuple[str, bool]]:
    """A file that is there is kept, and no authority is made."""
    try:
        if there(authority):
            read_authorities(authority, "it")
    except FaultsError:
        yield from (
            unread
            if (unread := [*_unread(authority)])
            else [(f"{authority} holds no certificate: move it and its key away, and an authority is made", False)]
        )


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
                if ".." in (new := path.absolute().relative_to(folder)).parts:
                    yield f"{folder / new.parts[0]} is not there, and `..` leads out of it: leave out both", False
                else:
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
    elif (error := _not_made(folder)) is not None:
        cure = "free some space there, or name" if files.is_full(error) else "name"
        yield f"nothing can be made in {folder}: {error.strerror}: {cure} another folder", files.is_refusal(error)


def _not_made(folder: Path) -> OSError | None:
    """What is in the way of a new folder: as /proc shows that it may be written, and takes none, it is tried."""
    try:
        Path(tempfile.mkdtemp(prefix=".netboot-", dir=folder)).rmdir()
    except OSError as error:
        return error
    return None


def _unread(path: Path) -> Iterator[tuple[str, bool]]:
    try:
        files.opened(path).close()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        words = f"{path} cannot be read: {error.strerror}: {_ACCOUNT}, or move it away"
        yield words, isinstance(error, PermissionError)
