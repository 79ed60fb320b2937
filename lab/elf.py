"""Which machines the programs and libraries of a tree are for, by the heads of their ELF files (elf(5))."""

import struct
from pathlib import Path

X86_64, AARCH64 = 62, 183
"""`e_machine`, as elf.h numbers them."""
OF = {"amd64": X86_64, "arm64": AARCH64}
"""By the names that Debian has for architectures."""


def machines(tree: Path) -> dict[int, list[str]]:
    """Files of a tree by the machine that they are for: ELF files, among them kernel modules that are not packed."""
    found: dict[int, list[str]] = {}
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(20)
            if head.startswith(b"\x7fELF"):
                (machine,) = struct.unpack_from("<H", head, 18)
                found.setdefault(machine, []).append(path.relative_to(tree).as_posix())
    return found
