"""A way to a server of loopback that can be cut: nothing passes then, no end of a connection either, as where a network
loses every packet; healed, what was under way goes on."""

import asyncio
import threading
from contextlib import suppress

from tests.processes import wait_for


class Relay:
    """Of TCP, from a port of its own to `target`, another one of loopback; open until it is cut."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self._thread = threading.Thread(target=self._run, name="relay")
        self._thread.start()
        wait_for(lambda: self.port)

    def cut(self) -> None:
        """Have nothing pass, in either direction."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def heal(self) -> None:
        """Have all pass again, what waits too."""
        self._loop.call_soon_threadsafe(self._open.set)

    def close(self) -> None:
        """End all connections."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        server = self._loop.run_until_complete(asyncio.start_server(self._taken, "127.0.0.1", 0, backlog=512))
        self.port = server.sockets[0].getsockname()[1]
        self._loop.run_forever()
        for task in (*self._tasks, *asyncio.all_tasks(self._loop)):
            task.cancel()
        server.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            there, to_it = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        for source, sink in ((reader, to_it), (there, writer)):
            task = self._loop.create_task(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                await self._open.wait()
                sink.write(data)
                await sink.drain()
        await self._open.wait()
        sink.close()
