"""A journal in memory, for tests: the fake of `netboot.lifecycle.ports.Journal`."""

import asyncio

from netboot.lifecycle.errors import JournalUnavailableError
from netboot.lifecycle.events import AnyRecord
from netboot.stores.journal_file import RESERVED


class MemoryJournal:
    """Keeps bodies in a list. With `failure` every append fails; at most `most_rows` wait for the projection."""

    def __init__(self, most_rows: int = 1_000_000) -> None:
        self.bodies: list[str] = []
        self.failure: str | None = None
        self.cursor = 0
        self.closed = False
        self._most_rows = most_rows

    async def append(self, record: AnyRecord) -> None:
        await self.append_json(record.at_ms, record.model_dump_json())

    def append_json(self, at_ms: int, body: str, *, reserved: bool = False) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        most = self._most_rows if reserved else self._most_rows - self._most_rows // RESERVED
        if self.closed or self.failure is not None or len(self.bodies) - self.cursor >= most:
            done.set_exception(JournalUnavailableError(self.failure or "closed, or full"))
        else:
            self.bodies.append(body)
            done.set_result(None)
        return done

    async def aclose(self) -> None:
        self.closed = True
