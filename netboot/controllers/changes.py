"""Whether files changed: by `stat` often, by content now and then, and not while somebody is still writing them."""

import hashlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

CONTENT_SECONDS = 10.0
"""Clocks of file systems are coarse, and times can be set: contents are compared at least this often."""

_Look = tuple[tuple[str, tuple[int, int, int, int] | None], ...]


class Changes:
    """Of the files that `paths` names at the moment; the first look always finds a change.

    `by_content=False`: for what is only ever replaced whole, and may be large.
    """

    def __init__(
        self,
        paths: Callable[[], Iterable[Path]],
        *,
        by_content: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._paths, self._by_content, self._monotonic = paths, by_content, monotonic
        self._looked: _Look | None = None
        self._taken: _Look | None = None
        self._contents: bytes | None = None
        self._compared = float("-inf")

    def settled(self, *, now: bool) -> bool:
        """Whether they changed since this said so last. Unless `now`, a change counts when a second look finds nothing
        moving any more: an editor that writes in place must not be read half-way."""
        look = _look(self._paths())
        still, self._looked = look == self._looked, look
        if not self._by_content:
            changed, self._taken = look != self._taken, look
            return changed
        first = self._taken is None
        due = self._monotonic() - self._compared >= CONTENT_SECONDS
        if look == self._taken and not due and not now:
            return False
        if not (first or now or still):
            return False
        self._taken, self._compared = look, self._monotonic()
        contents = _contents(self._paths())
        if contents == self._contents:
            return False
        self._contents = contents
        return True


def _look(paths: Iterable[Path]) -> _Look:
    return tuple(sorted((str(path), _stat(path)) for path in paths))


def _stat(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _contents(paths: Iterable[Path]) -> bytes:
    """A hash of names and bytes; of a folder only which names it holds."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path}\0".encode())
        try:
            data = (
                "\0".join(sorted(one.name for one in path.iterdir())).encode() if path.is_dir() else path.read_bytes()
            )
        except OSError as error:
            data = f"cannot be read: {error.errno}".encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
