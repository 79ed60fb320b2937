"""Facts of kernel modules: those of a root, unpacked all at once, and those of an initrd."""

import gzip
import lzma
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

from images.build.gates.facts import Module
from images.formats import elf, tree
from images.formats.modules import module_name
from images.run import run

SIGNED = b"~Module signature appended~\n"
"""The last bytes of a signed module's file (Linux Documentation/admin-guide/module-signing.rst)."""


def in_root(root: Path, kernel: str) -> dict[str, Module]:
    """All modules of one kernel in a root, by name."""
    folder = tree.inside(root, f"/lib/modules/{kernel}/x").parent
    files = sorted(path for path in folder.rglob("*.ko*") if path.is_file() and not path.is_symlink())
    modules = (describe(_shown(root, path), data) for path, data in _unpacked(files))
    return {module_name(module.path): module for module in modules}


def strange_kernels(root: Path, kernel: str) -> tuple[str, ...]:
    """Versions of other kernels that have modules in a root."""
    folder = tree.inside(root, "/lib/modules/x").parent
    if not folder.is_dir():
        return ()
    return tuple(sorted(path.name for path in folder.iterdir() if path.name != kernel and any(path.rglob("*.ko*"))))


def describe(path: str, data: bytes | str) -> Module:
    """What a module, unpacked, says of itself; text in place of the bytes: why there are none."""
    if isinstance(data, str):
        return Module(path, module_name(path), fault=data)
    try:
        modinfo = elf.modinfo(data)
    except ValueError as error:
        return Module(path, module_name(path), fault=str(error))
    first = {key: values[0] for key, values in modinfo.items()}
    return Module(
        path=path,
        name=module_name(first.get("name", path)),
        vermagic=first.get("vermagic", "").partition(" ")[0],
        version=first.get("version", ""),
        depends=tuple(name for name in first.get("depends", "").split(",") if name),
        softdeps=tuple(word for text in modinfo.get("softdep", ()) for word in _softdeps(text)),
        firmware=tuple(modinfo.get("firmware", ())),
        signed=data.endswith(SIGNED),
        machine=struct.unpack_from("<H", data, 18)[0],
    )


def _softdeps(text: str) -> list[str]:
    """Words after `pre:` or `post:`; those before mean nothing, as for modprobe (cifs has such)."""
    words = text.split()
    first = next((at for at, word in enumerate(words) if word in ("pre:", "post:")), len(words))
    return [word for word in words[first:] if word not in ("pre:", "post:")]


def _unpacked(files: list[Path]) -> Iterator[tuple[Path, bytes | str]]:
    """Each file and its bytes, or why it cannot be unpacked. One zstd for all: Ubuntu has thousands."""
    packed = [path for path in files if path.suffix == ".zst"]
    with tempfile.TemporaryDirectory() as scratch:
        if packed:
            listing = Path(scratch, "list")
            listing.write_text("".join(f"{path}\n" for path in packed), encoding="utf-8")
            out = Path(scratch, "out")
            run(["zstd", "-q", "-d", "--filelist", listing, "--output-dir-mirror", out])
        for path in files:
            if path.suffix == ".zst":
                plain = Path(scratch, "out", *path.parts[1:]).with_suffix("")
                yield path, plain.read_bytes() if plain.is_file() else "not in zstd's format"
                plain.unlink(missing_ok=True)
            else:
                yield path, _plain(path)


def _plain(path: Path) -> bytes | str:
    try:
        if path.suffix == ".xz":
            return lzma.decompress(path.read_bytes())
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        return path.read_bytes()
    except (OSError, EOFError, lzma.LZMAError) as error:
        return str(error)


def _shown(root: Path, path: Path) -> str:
    return f"/{path.relative_to(root).as_posix()}"
