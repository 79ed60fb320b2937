"""Facts of what is in a root's files: one walk, each file read once."""

import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from images.build.gates import keys, secret_rules
from images.build.gates.facts import Content
from images.build.steps.configure import ARCHIVES

ACCOUNTS = ("/etc/shadow", "/etc/gshadow", "/etc/passwd")
"""Read field by field by `images.build.gates.accounts`."""
_ELF = b"\x7fELF"
_NQN = b"nqn.2014-08.org.nvmexpress:uuid:"
_FIRMWARE, _MODULES = "/usr/lib/firmware/", "/usr/lib/modules/"
_PROGRAM_TYPES = (2, 3)  # ET_EXEC, ET_DYN (elf(5))


def read(root: Path) -> Content:
    """Look into every regular file of a root; not into archives of container images, which are others' products."""
    private_keys: dict[str, str] = {}
    logins: dict[str, tuple[str, ...]] = {}
    hashes, names, machines, digests = [], [], dict[str, int](), dict[str, str]()
    files = size = 0
    for path, file in _files(root):
        files += 1
        data = file.read_bytes()
        size += len(data)
        if kind := keys.private_key(data):
            private_keys[path] = kind
        elif found := secret_rules.secrets(path, data):
            logins[path] = found
        if not data.startswith(_ELF) and path not in ACCOUNTS and keys.password_hash(data):
            hashes.append(path)
        if kind or path in logins or path in hashes[-1:]:
            digests[path] = hashlib.sha256(data).hexdigest()
        if path.startswith("/etc/") and _NQN in data:
            names.append(path)
        if (machine := _machine(data)) and not path.startswith((_FIRMWARE, _MODULES)):
            machines[path] = machine
    return Content(files, size, private_keys, tuple(hashes), logins, tuple(names), machines, digests)


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            file = Path(folder, name)
            path = f"/{file.relative_to(root).as_posix()}"
            if file.is_file() and not file.is_symlink() and not path.startswith(f"{ARCHIVES}/"):
                yield path, file


def _machine(data: bytes) -> int:
    """The machine of a program or library, 0 for anything else."""
    if len(data) < 20 or not data.startswith(_ELF):
        return 0
    kind, machine = struct.unpack_from("<HH" if data[5] == 1 else ">HH", data, 16)
    return int(machine) if kind in _PROGRAM_TYPES else 0
