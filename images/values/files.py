"""Writing files so that a crash at any instant leaves the old or the new one, never half of one."""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO, BinaryIO

from images.errors import NotDurableError, NotPermittedError, StoreError

SMALL = 4 << 20
"""Most bytes of a file of keys, tokens or certificates."""
LARGE = 64 << 20
"""Most bytes of a list or a document."""

_REMEDIES = {
    errno.ENOSPC: "free some space, for example with `netboot image gc`",
    errno.EDQUOT: "free some space, for example with `netboot image gc`",
    errno.EACCES: "use the account that owns it",
    errno.EPERM: "use the account that owns it",
    errno.EROFS: "mount it writable",
    errno.EIO: "the disk fails: see the kernel's log",
}


def is_refusal(error: BaseException) -> bool:
    """Whether a file system does not let this account do something: by permissions, or for it is mounted read-only."""
    return isinstance(error, PermissionError) or (isinstance(error, OSError) and error.errno == errno.EROFS)


def is_full(error: OSError) -> bool:
    """Whether a disk takes no more, or takes no more of this account."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def refused(what: str, error: OSError) -> StoreError:
    """A file system's refusal in words, with the remedy where there is one."""
    remedy = _REMEDIES.get(error.errno or 0)
    kind = NotPermittedError if is_refusal(error) else StoreError
    return kind(f"{what}: {error.strerror or error}{'; ' + remedy if remedy else ''}")


@contextmanager
def replacing(path: Path, *, mode: int = 0o644, staging: Path | None = None) -> Iterator[BinaryIO]:
    """Write to a temporary file of the same file system; when the block ends well it is `path`, whole and durable.

    `staging` is the folder of the temporary file, for where the folder of `path` is read by others. What root writes
    is of the account that the folder of `path` is of: that one's service could not read root's secrets.

    Raises:
        StoreError: the file system refuses; nothing was changed. NotDurableError: it is in place all the same.
    """
    temporary = (staging or path.parent) / f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}"
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), "wb") as file:
            yield file
            file.flush()
            give(file.fileno(), path.parent)
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        temporary.rename(path)
        sync_name(path)
    except OSError as error:
        raise refused(f"cannot write {path}", error) from error
    finally:
        with suppress(OSError):  # what stays in a staging folder is swept later; the first error is the one to tell
            temporary.unlink(missing_ok=True)


def give(descriptor: int, folder: Path) -> None:
    """A file of root's to the owner of a folder, who could put another one in its place anyway. Where root may not give
    it, in a container without that capability, it stays root's."""
    owner = folder.stat()
    if os.geteuid() == 0 == os.fstat(descriptor).st_uid != owner.st_uid:
        with suppress(PermissionError):
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def write(path: Path, data: bytes, *, mode: int = 0o644, staging: Path | None = None) -> None:
    """Replace a file by `data`, whole and durable.

    Raises:
        StoreError: the file system refuses; nothing was changed. NotDurableError: it is in place all the same.
    """
    with replacing(path, mode=mode, staging=staging) as file:
        file.write(data)


def write_all(contents: Mapping[Path, tuple[bytes, int]]) -> None:
    """Replace files by bytes, with modes, one after the other.

    Raises:
        StoreError: the file system refuses one; those before it are in place. NotDurableError: all of them are.
    """
    not_durable: NotDurableError | None = None
    for path, (data, mode) in contents.items():
        try:
            write(path, data, mode=mode)
        except NotDurableError as error:
            not_durable = error
    if not_durable is not None:
        raise not_durable


def sync_name(path: Path) -> None:
    """Make durable that a path was put in place, or taken away.

    Raises:
        NotDurableError: it was, and the file system refuses the rest.
    """
    try:
        sync_folder(path.parent)
    except OSError as error:
        raise NotDurableError(str(refused(f"{path} was changed, and a power cut may undo that", error))) from error


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    Raises:
        OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def look(path: Path) -> os.stat_result | None:
    """What is at a path, links followed; None: nothing is.

    Not `Path.exists`, which ends with a traceback where a folder above may not be entered.

    Raises:
        StoreError: nobody can tell, with the cause and the remedy.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        closed = [
            str(folder) for folder in path.absolute().parents if not os.access(folder, os.X_OK, effective_ids=True)
        ]
        where = f" ({closed[-1]} may not be entered)" if closed and error.errno == errno.EACCES else ""
        raise refused(f"cannot tell whether there is {path}{where}", error) from error


def is_file(path: Path) -> bool:
    """Whether a plain file is there. Raises as `look` does."""
    found = look(path)
    return found is not None and stat.S_ISREG(found.st_mode)


def is_folder(path: Path) -> bool:
    """Whether a folder is there. Raises as `look` does."""
    found = look(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def names(folder: Path) -> tuple[str, ...]:
    """What is in a folder, sorted; nothing where there is no such folder.

    Not `Path.glob`, which takes a folder that cannot be read for an empty one.

    Raises:
        StoreError: it cannot be read, so nobody can tell what is in it.
    """
    try:
        return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - names are what is wanted
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise refused(f"cannot read {folder}", error) from error


def opened(path: Path) -> BufferedReader:
    """A regular file, for reading: a pipe would be waited for, and a device has no end.

    Raises:
        OSError: it cannot be read; that it is no regular file is said in `strerror`.
    """
    return regular(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), path)


def regular(descriptor: int, path: Path) -> BufferedReader:
    """What was opened at `path`, which is closed with what is returned, or here.

    Raises:
        OSError: as `opened`.
    """
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is a pipe or a device: put a regular file in its place", str(path))


def small(path: Path) -> bytes:
    """What is in a file of keys, tokens or certificates.

    Raises:
        OSError: as `bytes_of`.
    """
    return bytes_of(path, SMALL)


def bytes_of(path: Path, most: int) -> bytes:
    """What is in a regular file, `most` bytes at most.

    Raises:
        OSError: it cannot be read; that it is no regular file, or too large, is said in `strerror`.
    """
    with opened(path) as file:
        return whole(file, most, path)


def whole(file: IO[bytes], most: int, path: Path) -> bytes:
    """All of a file that is open at `path`, `most` bytes at most.

    Raises:
        OSError: it cannot be read, or it is too large, which is said in `strerror`.
    """
    data = file.read(most + 1)
    if len(data) > most:
        limit = f"{most >> 20} MiB" if most >> 20 else f"{most >> 10} KiB"
        raise OSError(errno.EFBIG, f"it has more than {limit}: divide it, or put right what writes it", str(path))
    return data
