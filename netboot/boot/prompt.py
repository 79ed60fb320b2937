"""A script on its way out: head and body in one write, without a table of headers. There are many of these."""

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion11


class Prompt(web.StreamResponse):
    """Status 200 with `head` (lines that all answers of a kind share, each ended by CRLF) and `content`.

    Date, Content-Length and Connection are added here. Never compressed, never chunked.
    """

    def __init__(self, head: str, content: bytes) -> None:
        super().__init__()
        self._head, self._content = head, content
        self._keep = True
        self._begun = False

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open afterwards."""
        return self._keep

    @property
    def prepared(self) -> bool:
        """Whether it has been sent."""
        return self._begun

    def force_close(self) -> None:
        """Close the connection afterwards."""
        self._keep = False

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send all of it; called by aiohttp."""
        if self._begun:
            return None
        self._begun = True
        self._keep = self._keep and request.keep_alive
        if request.version == HttpVersion11:
            connection = "" if self._keep else "Connection: close\r\n"
        else:
            connection = "Connection: keep-alive\r\n" if self._keep else ""
        content = self._content
        head = (
            f"HTTP/1.1 200 OK\r\n{self._head}Date: {rfc822_formatted_time()}\r\n"
            f"Content-Length: {len(content)}\r\n{connection}\r\n"
        )
        await request.writer.write(head.encode("ascii") + (b"" if request.method == "HEAD" else content))
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send; called by aiohttp."""
