"""Which kernel modules must go into an initrd, in which order they load, and which firmware they ask for.

Reads what depmod wrote (modules.dep(5), modprobe.d(5) for softdep) in a root that was built for any architecture.
Modules are unpacked: busybox's insmod reads no zstd, and one zstd stream over all of them is smaller than many.
"""

import difflib
import fnmatch
import gzip
import lzma
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from images.errors import RecipeError
from images.formats import elf
from images.run import run

SUFFIXES = (".ko", ".ko.xz", ".ko.zst", ".ko.gz")
"""By how a file of one module ends."""


@dataclass(frozen=True, slots=True)
class Module:
    """One module: its name with `_`, its path below `/lib/modules/<version>`, its bytes unpacked, firmware it names."""

    name: str
    path: str
    data: bytes
    firmware: tuple[str, ...]


class Tree:
    """The modules of one kernel: `folder` is `<root>/lib/modules/<version>`."""

    def __init__(self, folder: Path) -> None:
        """Read depmod's tables.

        Raises:
            RecipeError: there is no such kernel in the root, or depmod never ran.
        """
        self.folder = folder
        if not (folder / "modules.dep").is_file():
            there = sorted(path.name for path in folder.parent.glob("*/")) if folder.parent.is_dir() else []
            raise RecipeError(
                f"the root has no modules of kernel {folder.name} (it has: {', '.join(there) or 'none'}); "
                "add a kernel package to the recipe"
            )
        self.paths: dict[str, str] = {}
        self.needs: dict[str, tuple[str, ...]] = {}
        for line in self._lines("modules.dep"):
            path, _, needs = line.partition(":")
            self.paths[module_name(path)] = path
            self.needs[module_name(path)] = tuple(map(module_name, needs.split()))
        self.builtin = frozenset(module_name(line) for line in self._lines("modules.builtin"))
        self.before: dict[str, list[str]] = {}
        self.after: dict[str, list[str]] = {}
        for line in self._lines("modules.softdep"):
            self._softdep(line.split())
        rows = (line.split() for line in self._lines("modules.alias"))
        self.aliases = [(w[1].replace("-", "_"), module_name(w[2])) for w in rows if len(w) == 3 and w[0] == "alias"]

    def order(self, names: Sequence[str]) -> list[str]:
        """Names of all modules that `names` need, in load order; what is built into the kernel needs nothing.

        Raises:
            RecipeError: the kernel does not have a module of that name.
        """
        done: dict[str, None] = {}
        for name in map(module_name, names):
            if name not in self.paths and name not in self.builtin:
                raise RecipeError(self._missing(name))
            self._visit(name, done, set())
        return list(done)

    def read(self, name: str) -> Module:
        """One module, unpacked.

        Raises:
            RecipeError: the file is missing or damaged.
        """
        path = self.paths[name]
        try:
            data = unpack(self.folder / path)
            firmware = elf.modinfo(data).get("firmware", [])
        except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
            raise RecipeError(f"kernel {self.folder.name}: module {path} cannot be read: {error}") from None
        return Module(name, path, data, tuple(firmware))

    def _visit(self, name: str, done: dict[str, None], open_: set[str]) -> None:
        if name in done or name in open_ or name not in self.paths:
            return
        open_.add(name)  # softdeps may go in circles; depmod refuses circles of hard ones
        for soft in self.before.get(name, ()):
            for module in self.resolve(soft):
                self._visit(module, done, open_)
        for hard in reversed(self.needs[name]):
            self._visit(hard, done, open_)
        done[name] = None
        for soft in self.after.get(name, ()):
            for module in self.resolve(soft):
                self._visit(module, done, open_)

    def resolve(self, name: str) -> list[str]:
        """Modules that a softdep means: a name, or an alias of several; none is no fault, as for modprobe."""
        name = module_name(name)
        if name in self.paths or name in self.builtin:
            return [name]
        return sorted({target for pattern, target in self.aliases if fnmatch.fnmatchcase(name, pattern)})

    def _softdep(self, words: list[str]) -> None:
        if len(words) < 3 or words[0] != "softdep":
            return
        into: list[str] | None = None  # words before `pre:` and `post:` mean nothing, as for modprobe
        for word in words[2:]:
            if word in ("pre:", "post:"):
                table = self.before if word == "pre:" else self.after
                into = table.setdefault(module_name(words[1]), [])
            elif into is not None:
                into.append(word)

    def _missing(self, name: str) -> str:
        near = difflib.get_close_matches(name, sorted(self.builtin | set(self.paths)), n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(near)}?" if near else "is the package that brings it in the recipe?"
        return f"kernel {self.folder.name} has no module {name}; {hint}"

    def _lines(self, name: str) -> Iterator[str]:
        path = self.folder / name
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        return (line for line in text.splitlines() if line and not line.startswith("#"))


def module_name(path: str) -> str:
    """`kernel/drivers/char/hw_random/virtio-rng.ko.zst` → `virtio_rng`: for the kernel, `-` and `_` are the same."""
    name = path.rpartition("/")[2]
    suffix = next((suffix for suffix in SUFFIXES if name.endswith(suffix)), "")
    return name.removesuffix(suffix).replace("-", "_")


def unpack(path: Path) -> bytes:
    """A module's bytes, whichever way the distribution packed it (Debian: plain or xz; Ubuntu: zstd)."""
    if path.suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix != ".zst":
        return path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "module.ko")
        run(["zstd", "-q", "-d", path, "-o", plain])
        return plain.read_bytes()
