"""Whether files changed: by `stat` often, by content now and then, and not while somebody is still writing them."""

import hashlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from images.values.files import bytes_of
from images.values.strict import MOST_BYTES
from netboot.reread import AGAIN_SECONDS, Look, look

CONTENT_SECONDS = 10.0
"""Clocks of file systems are coarse, and times can be set: contents are compared at least this often."""

_Looks = tuple[tuple[str, Look], ...]


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
        self._looked: _Looks | None = None
        self._taken: _Looks | None = None
        self._contents: bytes | None = None
        self._compared = float("-inf")
        self._again = float("inf")

    def settled(self, *, now: bool) -> bool:
        """Whether they changed since this said so last. Unless `now`, a change counts when a second look finds nothing
        moving any more: an editor that writes in place must not be read half-way."""
        looks = _looks(self._paths())
        still, self._looked = looks == self._looked, looks
        if not self._by_content:
            changed = looks != self._taken or self._monotonic() >= self._again
            self._taken, self._again = looks, float("inf") if changed else self._again
            return changed
        first = self._taken is None
        due = self._monotonic() - self._compared >= CONTENT_SECONDS
        if looks == self._taken and not due and not now:
            return False
        if not (first or now or still):
            return False
        self._taken, self._compared = looks, self._monotonic()
        contents = _contents(self._paths())
        if contents == self._contents:
            return False
        self._contents = contents
        return True

    @property
    def unread(self) -> bool:
        """Whether the last look found files that differ from those of which `settled` spoke last."""
        return self._looked != self._taken

    def unusable(self) -> None:
        """What was read could not be used: what looks the same may be read all the same a little later."""
        self._again = self._monotonic() + AGAIN_SECONDS

    def moved(self) -> bool:
        """Whether they changed again since `settled` said so last, while they were read; it will say so once more, when
        they are still. What is only ever replaced whole was read whole."""
        if not self._by_content or _looks(self._paths()) == self._taken:
            return False
        self._contents = None
        return True


def _looks(paths: Iterable[Path]) -> _Looks:
    return tuple(sorted((str(path), look(path)) for path in paths))


def _contents(paths: Iterable[Path]) -> bytes:
    """A hash of names and bytes; of a folder only which names it holds."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path}\0".encode())
        try:
            data = (
                "\0".join(sorted(entry.name for entry in path.iterdir())).encode()
                if path.is_dir()
                else bytes_of(path, MOST_BYTES)
            )
        except OSError as error:
            data = f"cannot be read: {error.errno}".encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()
