"""Facts of an initrd as it was packed: its modules, its firmware, and what should not be in it."""

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from images.build.gates import keys, secret_rules
from images.build.gates.facts import Module
from images.build.gates.kmod import describe
from images.errors import ImageError
from images.formats.modules import module_name
from images.run import run

_HEADER = re.compile(rb"070701([0-9A-Fa-f]{104})")
"""Magic and 13 fields of eight hexadecimal digits (docs.kernel.org/driver-api/early-userspace/buffer-format.html)."""
_DAMAGED = "the initrd is not a whole cpio archive; build again, with another --cache if it stays so"


@dataclass(frozen=True, slots=True)
class Early:
    """Modules by name, firmware by its path without compression's suffix, kinds of private keys and logins by file."""

    modules: dict[str, Module]
    firmware: frozenset[str]
    keys: dict[str, str]
    logins: dict[str, tuple[str, ...]]


def read(initrd: Path) -> Early:
    """What is in an initrd (zstd, newc).

    Raises:
        ImageError: it is not what `images.formats.cpio` writes. CommandError: it is not zstd's.
    """
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch, "cpio")
        run(["zstd", "-q", "-d", initrd, "-o", plain])
        files = dict(members(plain.read_bytes()))
    modules = {module_name(path): describe(f"initrd:/{path}", data) for path, data in files.items() if ".ko" in path}
    prefix = "lib/firmware/"
    return Early(
        modules={name: module for name, module in modules.items() if module.path.endswith(".ko")},
        firmware=frozenset(bare(path.removeprefix(prefix)) for path in files if path.startswith(prefix)),
        keys={f"/{path}": kind for path, data in files.items() if (kind := keys.private_key(data))},
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
    at = 0
    while True:
        if (header := _HEADER.match(archive, at)) is None:
            raise ImageError(_DAMAGED)
        fields = [int(header[1][8 * i : 8 * i + 8], 16) for i in range(13)]
        mode, size, length = fields[1], fields[6], fields[11]
        name = archive[header.end() : header.end() + length - 1].decode("utf-8", "surrogateescape")
        if name == "TRAILER!!!":
            return
        start = header.end() + length
        start += -start % 4
        if start + size > len(archive):
            raise ImageError(_DAMAGED)
        if mode & 0o170000 == 0o100000:
            yield name, archive[start : start + size]
        at = start + size
        at += -at % 4
