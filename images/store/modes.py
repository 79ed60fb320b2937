"""Whose a store's folders are, and who may read and write them: explicit, whatever the umask (docs/store.md)."""

import errno
import os
import pwd
import stat
from pathlib import Path

FOLDERS = ("blobs", "images", "channels", "refs", "bundles", "tmp")
LOCK = "lock"
_ALONE, _SHARED = 0o755, 0o2775


def folder(path: Path, root: Path) -> None:
    """Make a folder of the store at `root`, unless it is there; or that one itself, and the folders above.

    Raises:
        OSError: the file system refuses.
    """
    if path != root:
        path.mkdir(exist_ok=True)
        _settle(path, root, _SHARED if _shared(root) else _ALONE)
    elif not root.is_dir():  # what somebody else made stays as it is
        made = [path for path in (root, *root.parents) if not path.exists()]
        root.mkdir(parents=True, exist_ok=True)
        for path in made:
            path.chmod(_ALONE)


def lock(root: Path) -> Path:
    """The lock file, for all who may write.

    Raises:
        OSError: the file system refuses.
    """
    path = root / LOCK
    if not os.path.lexists(path):
        path.touch()
    _settle(path, root, 0o664 if _shared(root) else 0o644)
    return path


def _shared(root: Path) -> bool:
    """Whether its folder says that a group writes: setgid, and writable for the group."""
    return root.stat().st_mode & (stat.S_ISGID | stat.S_IWGRP) == stat.S_ISGID | stat.S_IWGRP


def _settle(path: Path, root: Path, mode: int) -> None:
    """What root makes is the store's owner's: images are built as root, and served by another account. That one may put
    a link in a file's place, so none is followed: root would give away what it points to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        owner, status, us = root.stat(), os.fstat(descriptor), os.geteuid()
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            raise OSError(errno.EMLINK, "it has another name too", str(path))
        if us == status.st_uid == 0 and (owner.st_uid, owner.st_gid) != (0, status.st_gid):
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        if us in (0, status.st_uid) and stat.S_IMODE(status.st_mode) != mode:
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def unwritable(root: Path, uid: int, gid: int) -> tuple[Path, ...]:
    """What of a store this account could not write to, and must.

    Raises:
        OSError: it cannot be looked at.
    """
    groups = _groups(uid, gid)
    paths = (root, *(root / name for name in (*FOLDERS, LOCK)), *sorted((root / "images").glob("*")))
    return tuple(path for path in paths if path.exists() and not _may_write(path.stat(), uid, groups))


def _groups(uid: int, gid: int) -> frozenset[int]:
    try:
        return frozenset(os.getgrouplist(pwd.getpwuid(uid).pw_name, gid))
    except KeyError:  # an account of a container
        return frozenset((gid,))


def _may_write(status: os.stat_result, uid: int, groups: frozenset[int]) -> bool:
    if uid in (0, status.st_uid):
        return uid == 0 or bool(status.st_mode & stat.S_IWUSR)
    return bool(status.st_mode & (stat.S_IWGRP if status.st_gid in groups else stat.S_IWOTH))


def unreadable(root: Path) -> tuple[Path, ...]:
    """The folders that a file server of another account could not look into.

    Raises:
        OSError: it cannot be looked at.
    """
    folders = (root, *(root / name for name in ("blobs", "images", "bundles")), *sorted((root / "images").glob("*")))
    return tuple(path for path in folders if path.is_dir() and path.stat().st_mode & 0o005 != 0o005)


def name_of(uid: int) -> str:
    """An account's name, or its number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
