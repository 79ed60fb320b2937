"""Files to sockets without passing through Python: sendfile(2) in slices, each transfer watched for standing still."""

import asyncio
import os
import stat
from dataclasses import dataclass
from typing import Self

from aiohttp import web

from images.errors import NotFoundError, StoreError

SLICE = 4 * 1024 * 1024
"""Bytes for one call into the kernel at most, so that others get their turn."""
LEAST = 64 * 1024
"""Bytes that a reader has to take in `send_stall_seconds`; one that takes less is ended."""


@dataclass(slots=True, eq=False)
class Transfer:
    """One file on its way to one peer: whose it is, how much has gone, whether it ended well."""

    peer: str
    name: str
    offset: int
    length: int
    sent: int = 0
    whole: bool = False
    """Every byte has been handed to the kernel; false for good when the reader went away or was ended."""


class OpenFile:
    """A regular file opened for reading; as little as it takes, for there is one in every request."""

    __slots__ = ("_handle", "status")

    def __init__(self, handle: int, status: os.stat_result) -> None:
        self._handle, self.status = handle, status

    @property
    def size(self) -> int:
        """Bytes that it had when it was opened."""
        return self.status.st_size

    def fileno(self) -> int:
        """The descriptor, for `sendfile`; open until the `with` ends."""
        return self._handle

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def open_file(path: str, what: str) -> OpenFile:
    """Open a regular file of the store; symbolic links are not followed.

    Raises:
        NotFoundError: there is none.
        StoreError: it is there and cannot be read right now.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"no such {what}") from None
    except OSError as error:
        raise StoreError(f"{what} cannot be opened: {error.strerror}") from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise StoreError(f"{what} is not a regular file")
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    return OpenFile(handle, status)


async def send(
    request: web.BaseRequest, response: web.StreamResponse, file: OpenFile, transfer: Transfer, stall_seconds: float
) -> None:
    """Send `response`'s head (it announces `transfer.length` bytes), then those bytes of `file`.

    A reader that goes away, is too slow, or a file that has become shorter ends the connection, never the service:
    `transfer.whole` tells.
    """
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the reader has gone")
    transport.set_write_buffer_limits(0)  # so that `drain` means: the head is with the kernel
    transport.pause_reading()
    try:
        await response.prepare(request)
        await request.writer.drain()
        await _push(transport, file, transfer, stall_seconds)
    except (OSError, TimeoutError):
        pass
    finally:
        transfer.whole = transfer.sent == transfer.length
        if not transfer.whole:  # by the Content-Length the client sees that something is missing
            response.force_close()
            transport.abort()
        elif not transport.is_closing():
            transport.resume_reading()


async def _push(transport: asyncio.Transport, file: OpenFile, transfer: Transfer, stall_seconds: float) -> None:
    """Send what is left of a transfer whenever the socket takes some, until nothing is.

    On a second descriptor of the socket, for asyncio lets nobody else wait for a descriptor that a transport has.
    (Its own `loop.sendfile` tells nobody how far it has got, and costs twice the time.)

    Raises:
        OSError: the reader has gone.
        TimeoutError: it took less than `LEAST` in `stall_seconds`.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    target = os.dup(transport.get_extra_info("socket").fileno())

    def more() -> None:
        left = transfer.length - transfer.sent
        try:
            sent = os.sendfile(target, file.fileno(), transfer.offset + transfer.sent, min(SLICE, left))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            loop.remove_writer(target)
            ended.set_exception(error)
            return
        transfer.sent += sent
        if sent == left or sent == 0:  # 0: the file is shorter than it was
            loop.remove_writer(target)
            ended.set_result(None)

    try:
        more()
        if not ended.done():
            loop.add_writer(target, more)
        await _watched(ended, transfer, stall_seconds)
    finally:
        loop.remove_writer(target)
        os.close(target)


async def _watched(ended: asyncio.Future[None], transfer: Transfer, stall_seconds: float) -> None:
    """Wait for the end of a transfer as long as its reader takes enough of it."""
    while not ended.done():
        before = transfer.sent
        await asyncio.wait((ended,), timeout=stall_seconds)
        if not ended.done() and transfer.sent - before < LEAST:
            raise TimeoutError
    ended.result()
