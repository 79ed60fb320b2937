"""The initrd: busybox, signify, the modules that fetch and mount a root image, our stage, the keys that it trusts.

Everything comes from the image's own root and from `images/node/initrd`, in a fixed order with fixed times: the same
inputs give the same bytes (with the same zstd).
"""

import posixpath
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from images.artifact.signing import read_public_key
from images.build.dracut import framed, hooks
from images.errors import RecipeError, SignatureError
from images.formats import cpio, elf, tree
from images.formats.modules import Module, Tree
from images.run import run
from images.values.types import RootFormat

STAGE = Path(str(files("images") / "node" / "initrd"))
"""The files that run between the kernel and systemd."""

ALWAYS = ("loop", "overlay", "af_packet")
"""Modules that every machine needs besides its root's file system: the root image, and udhcpc's raw socket."""

LEVEL = 19
"""zstd's level. Its window (8 MiB) is far below what the kernel unpacks (128 MiB)."""

_BUSYBOX = ("usr/bin/busybox", "bin/busybox")
_SIGNIFY = ("usr/bin/signify-openbsd", "bin/signify-openbsd")
_FIRMWARE = ("usr/lib/firmware", "lib/firmware")


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was gathered: bytes, modules in load order, firmware that is in it and that the root does not have."""

    size: int
    modules: tuple[str, ...]
    firmware: tuple[str, ...]
    missing_firmware: tuple[str, ...]


def gather(
    root: Path,
    kernel_version: str,
    modules: Sequence[str],
    keys: Sequence[Path],
    out: Path,
    *,
    root_format: RootFormat = "squashfs",
    debug: bool = False,
    dracut: Path | None = None,
) -> Gathered:
    """Write what the initrd for `root` (an unpacked image) is, not compressed, to `out`: a cpio archive.

    Args:
        modules: names wanted besides `ALWAYS`: drivers of network cards and of their buses.
        keys: signify public keys (`<id>.pub`) whose signatures the machine believes; any one of them suffices.
        debug: whether `netboot.debug=shell` on the kernel's command line gets a shell when something fails.
        dracut: an archive of dracut's, with programs and without kernel modules, which is to do what `init` does.

    Raises:
        RecipeError: the root lacks a tool, library, kernel or module that the initrd needs, or there is no usable key.
    """
    known = _modules(root, kernel_version, root_format)
    loaded = [known.read(name) for name in known.order([root_format, *ALWAYS, *modules])]
    firmware, missing = _firmware(root, loaded)
    base = [*_base(), *_programs(root)] if dracut is None else []
    common = [
        *_parts(debug=debug),
        *_keys(keys),
        *(cpio.file(f"lib/netboot/modules/{_file_name(module)}", module.data) for module in loaded),
        cpio.file("lib/netboot/modules.order", "".join(f"{_file_name(m)}\n" for m in loaded).encode()),
        *firmware,
    ]
    if dracut is None:
        plain = cpio.archive([*base, *common])
    else:
        plain = cpio.archive(framed(dracut.read_bytes(), [*common, *hooks()]))
    out.write_bytes(plain)
    names = tuple(entry.path.removeprefix("lib/firmware/") for entry in firmware)
    return Gathered(len(plain), tuple(module.name for module in loaded), names, missing)


def stage_files(*, debug: bool, dracut: bool = False) -> tuple[tuple[str, str], ...]:
    """What of an initrd is ours: path in it and SHA-256; `debug`: as `gather`; `dracut`: whether dracut makes it."""
    entries = [*_parts(debug=debug), *(hooks() if dracut else _base())]
    return tuple((f"/{entry.path}", sha256(entry.data).hexdigest()) for entry in entries if stat.S_ISREG(entry.mode))


def compress(gathered: Path, out: Path) -> None:
    """Write the initrd that a kernel unpacks.

    Raises:
        CommandError: zstd failed.
    """
    # One thread: with several, zstd's bytes depend on how many there are.
    run(["zstd", "-q", f"-{LEVEL}", "--single-thread", "--no-check", "-f", gathered, "-o", out])


def _modules(root: Path, kernel_version: str, root_format: RootFormat) -> Tree:
    """The kernel's modules, which can mount the root."""
    known = Tree(tree.inside(root, f"/lib/modules/{kernel_version}/x").parent)
    if root_format not in known.paths and root_format not in known.builtin:
        raise RecipeError(
            f"kernel {kernel_version} cannot mount root_format: {root_format}: it has no such module; "
            "take another root_format, or the package of a kernel that has it"
        )
    return known


def _base() -> Iterator[cpio.Entry]:
    for name in ("dev", "proc", "sys", "run", "new", "etc", "tmp"):
        yield cpio.directory(name)
    yield cpio.character_device("dev/console", 5, 1)  # the kernel opens it for /init, before devtmpfs is there
    yield cpio.symlink("bin/sh", "busybox")
    yield cpio.file("init", (STAGE / "init").read_bytes(), 0o755)


def _parts(*, debug: bool) -> Iterator[cpio.Entry]:
    for path in sorted((*STAGE.glob("*.awk"), *STAGE.glob("*.sh"))):
        yield cpio.file(f"lib/netboot/{path.name}", path.read_bytes(), 0o755)
    if debug:
        yield cpio.file("etc/netboot/debug", b"")


def _programs(root: Path) -> Iterator[cpio.Entry]:
    busybox = _tool(root, _BUSYBOX, "busybox-static")
    if elf.linkage(busybox).interpreter:
        raise RecipeError("the root's busybox needs shared libraries; put busybox-static, not busybox, into the recipe")
    yield cpio.file("bin/busybox", busybox, 0o755)
    signify = _tool(root, _SIGNIFY, "signify-openbsd")
    yield cpio.file("bin/signify-openbsd", signify, 0o755)
    yield from _libraries(root, signify)


def _libraries(root: Path, program: bytes) -> list[cpio.Entry]:
    """The shared libraries of `program` and theirs, in /lib, and the dynamic linker where the program looks for it."""
    linkage = elf.linkage(program)
    linker = (linkage.interpreter or "").strip("/")
    libraries: dict[str, bytes] = {}
    pending = list(linkage.needed)
    while pending:
        name = pending.pop()
        if name not in libraries and name != posixpath.basename(linker):  # libc needs it too, and it is there by then
            libraries[name] = _library(root, name)
            pending += elf.linkage(libraries[name]).needed
    entries = [cpio.file(f"lib/{name}", data, 0o755) for name, data in libraries.items()]
    if linker:
        entries.append(cpio.file(linker, _tool(root, (linker,), "libc6"), 0o755))
    return entries


def _library(root: Path, name: str) -> bytes:
    for folder in _library_folders(root):
        path = _locate(root, f"{folder}/{name}")
        if path is not None:
            return path.read_bytes()
    raise RecipeError(f"the root lacks the library {name}, which signify-openbsd needs")


def _library_folders(root: Path) -> list[str]:
    """Where the root's dynamic linker looks: ld.so.conf(5) of Debian and Ubuntu, then its built-in folders."""
    lines = [
        line.strip().strip("/")
        for path in sorted((root / "etc/ld.so.conf.d").glob("*.conf"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("/")
    ]
    return [*lines, "lib", "usr/lib", "lib64", "usr/lib64"]


def _tool(root: Path, places: Sequence[str], package: str) -> bytes:
    for place in places:
        path = _locate(root, place)
        if path is not None:
            return path.read_bytes()
    raise RecipeError(f"the root has no /{places[0]}; put the package {package} into the recipe")


def _keys(keys: Sequence[Path]) -> Iterator[cpio.Entry]:
    if not keys:
        raise RecipeError("an initrd without a trusted key boots nothing; name at least one public key")
    for path in keys:
        text = path.read_bytes()
        try:
            read_public_key(text)
        except SignatureError as error:
            raise RecipeError(f"{path} cannot be trusted by an initrd: {error}") from None
        yield cpio.file(f"etc/netboot/keys/{path.stem}.pub", text)


def _firmware(root: Path, modules: Iterable[Module]) -> tuple[list[cpio.Entry], tuple[str, ...]]:
    """What the modules name and the root has, packed as it is there (the kernel unpacks .xz and .zst itself)."""
    entries: dict[str, cpio.Entry] = {}
    missing = []
    for name in sorted({name for module in modules for name in module.firmware}):
        packed = next(_firmware_files(root, name), None)
        if packed is None:
            missing.append(name)
            continue
        path, suffix = packed
        target = f"lib/firmware/{name}{suffix}"
        entries[target] = cpio.file(target, path.read_bytes())
    return list(entries.values()), tuple(missing)


def _firmware_files(root: Path, name: str) -> Iterator[tuple[Path, str]]:
    for folder in _FIRMWARE:
        for suffix in ("", ".zst", ".xz"):
            path = _locate(root, f"{folder}/{name}{suffix}")
            if path is not None:
                yield path, suffix


def _locate(root: Path, path: str) -> Path | None:
    """Where a file of the root lies on this machine, links followed as the root itself would; None: it has none."""
    file = tree.inside(root, f"/{path}/x").parent
    return file if file.is_file() else None


def _file_name(module: Module) -> str:
    return f"{module.name}.ko"
