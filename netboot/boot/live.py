"""The snapshot in force: watched, swapped whole. One that cannot be used leaves the old one in force and says so."""

import asyncio
import gc
import logging
from contextlib import suppress
from pathlib import Path

from netboot.boot.catalogue import Catalogue
from netboot.lifecycle.errors import NotReadyError
from netboot.reread import Reread
from netboot.stores.snapshot import read_snapshot

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5


class Live:
    """Holds the catalogue in force; None until there is one."""

    def __init__(self, path: Path, retry: tuple[int, int]) -> None:
        def read() -> Catalogue:
            return Catalogue(read_snapshot(path), retry)

        self._file = Reread("snapshot", lambda: (path,), read, NotReadyError, replaced_whole=True)
        self._wake = asyncio.Event()
        self.catalogue: Catalogue | None = None

    @property
    def problem(self) -> str | None:
        """Why the file as it is now is not what is in force, in words; None: it is."""
        return self._file.problem

    async def refresh(self, *, force: bool = False) -> None:
        """Look at the file; where it changed (or `force`), read it and swap."""
        if not force and not self._file.due():
            return
        # In a thread: ten thousand machines take a good part of a second, and scripts go on meanwhile.
        if not await asyncio.to_thread(self._file.refresh):
            return
        self.catalogue = self._file.value
        assert self.catalogue is not None
        gc.freeze()  # it lives long: the collector need not walk ten thousand machines again and again
        log.info("snapshot of %d machines in force", len(self.catalogue.view.index))

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
