"""The snapshot in force: watched, swapped whole. One that cannot be used leaves the old one in force and says so."""

import asyncio
import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.snapshot import Snapshot
from netboot.stores.snapshot import Signature, read_snapshot, signature

C = TypeVar("C")

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5
AGAIN_SECONDS = 10.0
"""A file that could not be used is tried again so often though it looks the same: it may have been the disk."""


class Live(Generic[C]):
    """Holds what `make` made of the snapshot in force, which is `catalogue`; None until there is one."""

    def __init__(self, path: Path, make: Callable[[Snapshot], C]) -> None:
        self._path, self._make = path, make
        self._seen: Signature | None = None
        self._again = float("-inf")
        self._wake = asyncio.Event()
        self.snapshot: Snapshot | None = None
        self.catalogue: C | None = None
        self.problem: str | None = None
        """Why the file as it is now is not what is in force, in words; None: it is."""

    async def refresh(self, *, force: bool = False) -> None:
        """Look at the file; where it changed (or `force`), read it and swap."""
        now, time = signature(self._path), asyncio.get_running_loop().time()
        if now == self._seen and not force and time < self._again:
            return
        self._seen, self._again = now, float("inf")
        try:
            # In a thread: ten thousand machines take a good part of a second, and scripts go on meanwhile.
            snapshot, catalogue = await asyncio.to_thread(self._load)
        except CannotTellError as error:
            self._again = time + AGAIN_SECONDS
            self._trouble(str(error))
            return
        self.snapshot, self.catalogue = snapshot, catalogue
        gc.freeze()  # it lives long: the collector need not walk ten thousand machines again and again
        if self.problem is not None:
            log.warning("snapshot: in order again")
        self.problem = None
        log.info("snapshot of %d machines in force", len(snapshot.inventory.machines))

    async def watch(self) -> None:
        """Refresh for ever: about twice a second, and at once after `hurry`."""
        while True:
            force = self._wake.is_set()
            self._wake.clear()
            await self.refresh(force=force)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wake.wait()

    def hurry(self) -> None:
        """Read the file again now, changed or not (SIGHUP)."""
        self._wake.set()

    def _load(self) -> tuple[Snapshot, C]:
        snapshot = read_snapshot(self._path)
        return snapshot, self._make(snapshot)

    def _trouble(self, words: str) -> None:
        kept = "; the one before stays in force" if self.catalogue is not None else ""
        if self.problem != words + kept:
            log.error("snapshot: %s%s", words, kept)
        self.problem = words + kept
