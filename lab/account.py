"""Whom the service runs as: never root. A mount namespace opens for it just those closed folders that it needs."""

import os
import pwd
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.processes import Account

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


def own(folder: Path, account: Account) -> None:
    """Give a folder and all in it to the account."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.uid, account.gid, follow_symlinks=False)


def reachable(argv: Sequence[str], account: Account, needs: Sequence[Path]) -> list[str]:
    """The command, in a mount namespace where needed, so that `account` may get to the folders `needs`.

    A checkout and a Python below /root cannot be reached by anybody else. There, a closed folder is covered by an empty
    one that shows only what is needed; outside the namespace nothing changes.
    """
    wanted = [path.resolve() for path in (*needs, Path(sys.prefix), Path(sys.base_prefix))]
    closed = sorted({folder for path in wanted for folder in _closed(path, account)})
    outermost = [one for one in closed if not any(one.is_relative_to(other) for other in closed if other != one)]
    if not outermost:
        return list(argv)
    return ["unshare", "--mount", "sh", "-euc", "\n".join(_uncover(outermost, wanted)), "sh", *argv]


def _closed(path: Path, account: Account) -> Iterator[Path]:
    for folder in path.parents:
        status = folder.stat()
        mine = status.st_uid == account.uid, status.st_gid == account.gid
        needed = stat.S_IXUSR if mine[0] else stat.S_IXGRP if mine[1] else stat.S_IXOTH
        if not status.st_mode & needed:
            yield folder


def _uncover(closed: Sequence[Path], wanted: Sequence[Path]) -> Iterator[str]:
    """A shell script: build each cover on a place of its own, then move it over the closed folder."""
    place = shlex.quote("/mnt")
    for folder in closed:
        yield f"mount -t tmpfs -o mode=755,size=1m netboot-lab {place}"
        for path in sorted({path for path in wanted if path.is_relative_to(folder)}):
            if any(path != other and path.is_relative_to(other) for other in wanted):
                continue
            target = shlex.quote(f"/mnt/{path.relative_to(folder)}")
            yield f"mkdir -p {target}; mount --bind {shlex.quote(str(path))} {target}"
        yield f"mount --move {place} {shlex.quote(str(folder))}"
    yield 'exec "$@"'
