"""iPXE's binaries in a folder of this machine, as the package `ipxe` has them: read, and missed."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from netboot.dhcp.plan import BINARIES

LONGEST = 4 * 1024 * 1024
"""Bytes of one; ipxe.efi has a million."""
_WANTED = ("undionly.kpxe", "snponly.efi")
_ARM64 = "ipxe-arm64.efi"


def read(folder: Path) -> dict[str, bytes]:
    """Those that are there, by name; links are followed, for the package has some."""
    return {name: data for name in BINARIES if (data := _read(folder / name)) is not None}


def standing(folder: Path) -> tuple[Path, ...]:
    """The files that `read` reads, where links lead; none of a folder that cannot be looked into."""
    found = []
    for name in BINARIES:
        with suppress(OSError):
            if (folder / name).is_file():
                found.append((folder / name).resolve())
    return tuple(found)


def lacking(folder: Path, *, arm64: bool) -> str:
    """What machines will ask for in vain, and what to do; "" where nothing is missing. `arm64`: there are such."""
    wanted = (*_WANTED, _ARM64) if arm64 else _WANTED
    missing = [name for name in wanted if _read(folder / name) is None]
    if not missing:
        return ""
    newer = f"; those of Debian 12 and Ubuntu 24.04 put no {_ARM64} there" if _ARM64 in missing else ""
    return f"{', '.join(missing)} cannot be read in {folder}: install the package ipxe, or set provisioning.ipxe{newer}"


def _read(path: Path) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(LONGEST + 1)
    except OSError:
        return None
    finally:
        os.close(handle)
    return data if 0 < len(data) <= LONGEST else None
