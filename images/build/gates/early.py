"""Facts of an initrd as it was packed: its modules, its firmware, and what should not be in it."""

import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from images.build.gates import keys, secret_rules
from images.build.gates.facts import Module
from images.build.gates.kmod import describe
from images.errors import ImageError
from images.formats import cpio
from images.formats.modules import SUFFIXES, module_name
from images.run import run

_FIRMWARE = "lib/firmware/"
_DAMAGED = "the initrd is not a whole cpio archive; build again, with another --cache if it stays so"


@dataclass(frozen=True, slots=True)
class Early:
    """Modules by name, firmware by its path without compression's suffix, kinds of private keys and logins by file."""

    modules: dict[str, Module]
    firmware: frozenset[str]
    keys: dict[str, str]
    logins: dict[str, tuple[str, ...]]
    paths: tuple[str, ...]
    """Of all regular files that are not empty."""


def read(initrd: Path) -> Early:
    """What is in an initrd (zstd, newc).

    Raises:
        ImageError: it is not what `images.formats.cpio` writes. CommandError: it is not zstd's.
    """
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch, "cpio")
        run(["zstd", "-q", "-d", initrd, "-o", plain])
        files = dict(members(plain.read_bytes()))
    modules = {
        module_name(path): describe(f"initrd:/{path}", data) for path, data in files.items() if path.endswith(SUFFIXES)
    }
    merged = [path.removeprefix("usr/") for path in files]  # dracut's lib is a link
    return Early(
        modules={name: module for name, module in modules.items() if module.path.endswith(".ko")},
        firmware=frozenset(bare(path.removeprefix(_FIRMWARE)) for path in merged if path.startswith(_FIRMWARE)),
        keys={f"/{path}": kind for path, data in files.items() if (kind := keys.private_key(data))},
        paths=tuple(f"/{path}" for path, data in files.items() if data),
        logins={f"/{path}": found for path, data in files.items() if (found := secret_rules.secrets(f"/{path}", data))},
    )


def bare(path: str) -> str:
    """A firmware file's name as modules ask for it: the kernel tries the compressed ones itself."""
    return path.removesuffix(".zst").removesuffix(".xz")


def members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """Regular files of a newc archive: (path, contents).

    Raises:
        ImageError: not a whole archive.
    """
    try:
        yield from ((entry.path, entry.data) for entry in cpio.read(archive) if stat.S_ISREG(entry.mode))
    except ValueError:
        raise ImageError(_DAMAGED) from None
