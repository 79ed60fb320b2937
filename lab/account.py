"""Whom the service runs as: never root. A mount namespace opens for it just those closed folders that it needs."""

import os
import pwd
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.processes import Account, wrapped

NOBODY = "nobody"


def service_account() -> Account | None:
    """Of `sudo` its caller, otherwise nobody; None: we are not root, and the service runs as we do."""
    if os.geteuid() != 0:
        return None
    uid, gid = os.environ.get("SUDO_UID", "0"), os.environ.get("SUDO_GID", "0")
    if uid.isdigit() and gid.isdigit() and int(uid) and int(gid):
        return Account(int(uid), int(gid))
    entry = pwd.getpwnam(NOBODY)
    return Account(entry.pw_uid, entry.pw_gid)


def as_the_service(argv: Sequence[str], own: Sequence[Path], needs: Sequence[Path]) -> list[str]:
    """The command by `service_account`, to whom the folders and files `own`, with what is in them now, are given; where
    that is us, as it is. He may enter these and `needs`; in a mount namespace, where that takes one, it starts in the
    first of `needs`.
    """
    account = service_account()
    if account is None:
        return list(argv)
    for folder in own:
        chown_tree(folder, account)
    return reachable(wrapped(argv, account=account), account, [*needs, *own])


def chown_tree(folder: Path, account: Account) -> None:
    """Give a folder and all in it to the account."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def reachable(argv: Sequence[str], account: Account, needs: Sequence[Path]) -> list[str]:
    """The command, in a mount namespace where needed, so that `account` may enter `needs`; it starts in the first.

    A checkout or a Python below /root, or a checkout in a folder by `mktemp -d`, cannot be entered by anybody else.
    There a closed folder is covered by one that shows only what is needed; outside the namespace nothing changes.
    """
    needed = [path.resolve() for path in (*needs, Path(sys.prefix), Path(sys.base_prefix))]
    closed = sorted({folder for path in needed for folder in (path, *path.parents) if _is_closed(folder, account)})
    outermost = [
        folder for folder in closed if not any(folder.is_relative_to(other) for other in closed if other != folder)
    ]
    if not outermost:
        return list(argv)
    shown = {part for path in needed for part in (path.iterdir() if path in closed else (path,))}
    shown = {path for path in shown if not any(path != other and path.is_relative_to(other) for other in shown)}
    script = [*_uncover(outermost, sorted(shown)), f"cd {shlex.quote(str(needed[0]))}", 'exec "$@"']
    return ["unshare", "--mount", "sh", "-euc", "\n".join(script), "sh", *argv]


def _is_closed(path: Path, account: Account) -> bool:
    """Whether it is a folder that the account cannot enter."""
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    if status.st_uid == account.uid:
        return not status.st_mode & stat.S_IXUSR
    return not status.st_mode & (stat.S_IXGRP if status.st_gid == account.gid else stat.S_IXOTH)


def _uncover(closed: Sequence[Path], shown: Sequence[Path]) -> Iterator[str]:
    """A shell script: build each cover on a place of its own, then move it over the closed folder."""
    place = "/dev/shm"  # is there everywhere, and in its own place again at the end
    for folder in closed:
        yield f"mount -t tmpfs -o mode=755,size=1m netboot-lab {place}"
        for path in shown:
            if path.is_relative_to(folder):
                target, source = shlex.quote(f"{place}/{path.relative_to(folder)}"), shlex.quote(str(path))
                make = f"mkdir -p {target}" if path.is_dir() else f'mkdir -p "$(dirname {target})"; touch {target}'
                yield f"{make}; mount --rbind {source} {target}"
        yield f"mount --move {place} {shlex.quote(str(folder))}"
