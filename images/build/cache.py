"""The cache of build products: content-addressed folders, safe against a kill at any instant, bounded in size.

    <cache>/products/<step>-<key>/     what a step made; complete or not there (written elsewhere, synced, renamed)
    <cache>/tmp/<random>/              what is being made; swept by whoever comes next, once its maker is gone
    <cache>/locks/<step>-<key>         flock: exclusive while it is made or thrown away, shared while it is used
    <cache>/packages/                  .deb files (`images.build.packages`): used by hard links, so never locked

Locks are the kernel's, so they end with the process that held them, however it ended.
"""

import fcntl
import os
import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from images import cancel
from images.build.step import NO_TOOLS, I, Product, Say, Step
from images.errors import ImageError
from images.run import run

DEFAULT_LIMIT = 16 * 1024**3
"""Bytes that products and packages may take; the least recently used go first, those that a build is using never."""

_SIZE = ".size"
_POLL_SECONDS = 0.1
"""How often a lock of another build is asked for: a thread that waits in the kernel could not be ended."""


class Cache:
    """An open cache: a context manager that keeps every product it handed out until it is closed.

    Threads may use one together: of those that ask for the same product one makes it.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        folder = folder.absolute()  # apt takes a key by its path only where that is absolute
        self._folder, self._limit = folder, limit
        self._products, self._tmp, self._locks = (folder / name for name in ("products", "tmp", "locks"))
        self.packages = folder / "packages"
        self._held = ExitStack()
        self._mine: set[str] = set()
        self._guard = threading.Lock()  # of the three around it
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def __enter__(self) -> Self:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for part in (self._products, self._tmp, self._locks, self.packages):
                part.mkdir(mode=0o700, exist_ok=True)  # trees of root images hold files that only root may read
        except OSError as error:
            raise ImageError(
                f"cannot use {self._folder} as the build cache: {error.strerror}; name another with --cache"
            ) from None
        self.sweep()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()
        if kind is None:
            self.prune()

    def obtain(self, step: Step[I], inputs: I, say: Say, tools: Mapping[str, str] = NO_TOOLS) -> tuple[Product, bool]:
        """The product of a step, made if it is not there; and whether it was. `tools`: versions of those that it uses.

        Another build that makes the same product is waited for. The product stays until this cache is closed.
        """
        key = step.key(inputs, tools)
        name = f"{step.name}-{key[:32]}"
        path = self._products / name
        with self._guard:
            turn = self._turns[name]
        with turn:
            if name in self._mine:
                return Product(key, path), True
            return Product(key, path), self._obtain(path, step, inputs, say)

    def _obtain(self, path: Path, step: Step[I], inputs: I, say: Say) -> bool:
        """Make what is not there; whether it was. From then on it is ours to use."""
        name = path.name
        with ExitStack() as stack:  # a step that fails gives its lock back
            lock = self._exclusive(name, say, stack)
            cached = path.is_dir()
            while not path.is_dir():
                self._make(path, step, lambda out: step.run(inputs, out, say))
                _wait(lock, fcntl.LOCK_SH)
                if not path.is_dir():  # an exclusive lock that becomes a shared one may let somebody in between
                    _wait(lock, fcntl.LOCK_EX)
            _wait(lock, fcntl.LOCK_SH)
            os.utime(path)
            with self._guard:
                self._held.enter_context(stack.pop_all())
                self._mine.add(name)
        return cached

    def _exclusive(self, name: str, say: Say, stack: ExitStack) -> int:
        """The exclusive lock of a product, held until `stack` ends."""
        while True:
            lock = stack.enter_context(_open(self._locks / name))
            if not _try(lock, fcntl.LOCK_EX):
                say("another build is making this; waiting for it")
                _wait(lock, fcntl.LOCK_EX)
            if _current(lock, self._locks / name):  # or the file was pruned while we waited
                return lock

    def _make(self, path: Path, step: Step[I], write: Callable[[Path], None]) -> None:
        with self.scratch() as scratch:
            out = scratch / "out"
            out.mkdir()
            write(out)
            missing = [name for name in step.outputs if not os.path.lexists(out / name)]
            if missing:
                raise ImageError(f"step {step.name} ended without its output: {', '.join(missing)}")
            (out / _SIZE).write_text(str(_size(out)), encoding="ascii")
            run(["sync", "--file-system", out])
            out.rename(path)
            _sync(self._products)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """An empty folder on the cache's file system, gone afterwards; swept by the next build if we are killed."""
        with ExitStack() as stack:
            with self._alone():
                folder = Path(tempfile.mkdtemp(dir=self._tmp))
                stack.callback(_remove, folder)
                fcntl.flock(stack.enter_context(_open(folder)), fcntl.LOCK_SH)
            yield folder

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While a scratch folder is made and not yet locked, nobody sweeps."""
        with _open(self._tmp) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def sweep(self) -> None:
        """Remove what builds that were killed left behind."""
        with self._alone():
            for folder in self._tmp.iterdir():
                try:
                    with _open(folder) as lock:
                        if _try(lock, fcntl.LOCK_EX):
                            _remove(folder)
                except FileNotFoundError:
                    continue  # its maker was quicker

    def prune(self) -> None:
        """Remove the least recently used products and packages until the rest fits; those in use are left."""
        entries = [self._age(path) for folder in (self._products, self.packages) for path in folder.iterdir()]
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self._limit:
                return
            if self._discard(path):
                total -= size

    def _age(self, path: Path) -> tuple[int, int, Path]:
        """When it was used last (nanoseconds since 1970), its bytes, and where it is; what is damaged is old."""
        try:
            status = path.stat()
            size = status.st_size if path.parent == self.packages else int((path / _SIZE).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0, 0, path
        return status.st_mtime_ns, size, path

    def _discard(self, path: Path) -> bool:
        if path.parent == self.packages:
            path.unlink(missing_ok=True)  # whoever uses it has a link of its own
            return True
        lock_file = self._locks / path.name
        with _open(lock_file) as lock:
            if not _try(lock, fcntl.LOCK_EX) or not _current(lock, lock_file):
                return False
            with self.scratch() as scratch, suppress(FileNotFoundError):  # another build pruned it meanwhile
                path.rename(scratch / "pruned")
            lock_file.unlink()
            return True


@contextmanager
def _open(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDONLY | os.O_CREAT, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(descriptor: int, kind: int) -> None:
    while not _try(descriptor, kind):
        cancel.pause(_POLL_SECONDS)


def _current(descriptor: int, path: Path) -> bool:
    """Whether `path` still names the file that was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _remove(folder: Path) -> None:
    """Remove a tree, unless something is mounted in it: what lies behind a mount is not ours."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    if not any(line.split()[1].startswith(f"{folder}/") for line in mounts.splitlines()):
        shutil.rmtree(folder, ignore_errors=True)


def _size(folder: Path) -> int:
    """Bytes below a folder, each file in full: of two products that share one by a hard link either may be the last."""
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
