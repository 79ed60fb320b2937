"""Files to sockets without passing through Python: sliced `sendfile`, each slice with a deadline.

The event loop's own loop (asyncio's) has sendfile; uvloop's has not.
"""

import asyncio
import os
import stat
from dataclasses import dataclass
from typing import IO, Self, cast

from aiohttp import web

from images.errors import NotFoundError, StoreError

SLICE = 4 * 1024 * 1024
"""Bytes."""
SLICE_SECONDS = 600.0
"""A reader that takes longer for a slice (under 7 kB/s) is ended; one that stands still, sooner (`limits`)."""


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
    """A regular file opened for reading; as little as `loop.sendfile` needs, for there is one in every request."""

    __slots__ = ("_handle", "status")

    def __init__(self, handle: int, status: os.stat_result) -> None:
        self._handle, self.status = handle, status

    @property
    def size(self) -> int:
        """Bytes, when it was opened."""
        return self.status.st_size

    def fileno(self) -> int:
        """Its descriptor."""
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


async def send(request: web.BaseRequest, response: web.StreamResponse, file: OpenFile, transfer: Transfer) -> None:
    """Send `response`'s head (it announces `transfer.length` bytes), then those bytes of `file`.

    A reader that goes away, is too slow, or a file that has become shorter ends the connection, never the service:
    `transfer.whole` tells.
    """
    await response.prepare(request)
    try:
        await _slices(request, file, transfer)
    except (ConnectionError, OSError, TimeoutError, RuntimeError, asyncio.SendfileNotAvailableError):
        # asyncio's words: RuntimeError, the transport is closing; SendfileNotAvailableError, the peer had gone before
        _cut(request, response)
        return
    except BaseException:
        _cut(request, response)
        raise
    if transfer.sent < transfer.length:  # the file is shorter than it was: the client must not take it for whole
        _cut(request, response)
        return
    transfer.whole = True


async def _slices(request: web.BaseRequest, file: OpenFile, transfer: Transfer) -> None:
    loop = asyncio.get_running_loop()
    opened = cast(IO[bytes], file)  # of which asyncio wants `fileno` only
    while transfer.sent < transfer.length:
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the reader has gone")
        count = min(SLICE, transfer.length - transfer.sent)
        async with asyncio.timeout(SLICE_SECONDS):
            sent = await loop.sendfile(transport, opened, transfer.offset + transfer.sent, count, fallback=False)
        transfer.sent += sent
        if sent < count:
            return


def _cut(request: web.BaseRequest, response: web.StreamResponse) -> None:
    """End the connection in the middle: by its Content-Length the client sees that something is missing."""
    response.force_close()
    if request.transport is not None:
        request.transport.abort()
