"""Answers: words with a status, the row of `netboot.failures` for an exception, and prepared ones for what is much."""

import json
from http import HTTPStatus

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import HttpVersion, HttpVersion11

from netboot.failures import Answer, answer_to

SERVER = "netboot"
_TEXT = "text/plain; charset=utf-8"


def text(status: int, line: str, **headers: str) -> web.Response:
    """One line for people. Never cached."""
    return web.Response(
        status=status,
        body=f"{line}\n".encode("ascii", "replace"),
        headers={"Content-Type": _TEXT, "Cache-Control": "no-store", "Server": SERVER, **headers},
    )


def document(status: int, value: object) -> web.Response:
    """A small JSON answer. Never cached."""
    return web.Response(
        status=status,
        body=json.dumps(value, sort_keys=True).encode() + b"\n",
        headers={"Content-Type": "application/json", "Cache-Control": "no-store", "Server": SERVER},
    )


def empty(status: int, **headers: str) -> web.Response:
    """An answer of a status and headers, without a body."""
    return web.Response(status=status, headers={"Server": SERVER, **headers})


def failure(error: BaseException) -> tuple[web.Response, Answer]:
    """What an exception becomes on the wire, and its row of the table of failures."""
    row = answer_to(error)
    line = row.text(error) + (f"; {row.remedy}" if row.remedy else "")
    again = {"Retry-After": str(row.retry_after)} if row.retry_after is not None else {}
    return text(row.status, line, **again), row


def not_found() -> web.Response:
    """A path that is not ours. The path is not repeated: it is a stranger's text."""
    return text(404, "there is nothing at this path; see docs/http-provisioning.md")


def wrong_method(*allowed: str) -> web.Response:
    """The path is ours and the method is not."""
    methods = ", ".join(allowed)
    return text(405, f"this path answers {methods} only: use that", Allow=methods)


class PreparedResponse(web.StreamResponse):
    """Its head is put together from prepared lines: one write, no table of headers.

    `head`: header lines, each ended by CRLF; Date, Content-Length and Connection are added here. Never compressed.
    `length`: bytes of the body where that is more than `content`; whoever says so sends the rest once it is `prepared`.
    """

    def __init__(self, head: str, content: bytes = b"", *, status: int = 200, length: int | None = None) -> None:
        super().__init__(status=status)
        self._head, self._content = head, content
        self._length = len(content) if length is None else length
        self._keep = True
        self._begun = False

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open afterwards."""
        return self._keep

    @property
    def prepared(self) -> bool:
        """Whether the head has been sent, and `content` with it."""
        return self._begun

    def force_close(self) -> None:
        """Close the connection afterwards."""
        self._keep = False

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send; called by aiohttp where nobody has before."""
        if self._begun:
            return None
        self._begun = True
        self._keep = self._keep and request.keep_alive
        await request.writer.write(self.as_sent(request.version, with_content=request.method != "HEAD"))
        return None

    def as_sent(self, version: HttpVersion, *, with_content: bool = True) -> bytes:
        """The head, and `content` with it, as the answer to a request of that version of HTTP."""
        if version == HttpVersion11:
            connection = "" if self._keep else "Connection: close\r\n"
        else:
            connection = "Connection: keep-alive\r\n" if self._keep else ""
        head = (
            f"HTTP/1.1 {self.status} {_PHRASES[self.status]}\r\n{self._head}Server: {SERVER}\r\n"
            f"Date: {rfc822_formatted_time()}\r\nContent-Length: {self._length}\r\n{connection}\r\n"
        )
        return head.encode("ascii") + (self._content if with_content else b"")

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to send; called by aiohttp."""


_PHRASES = {status.value: status.phrase for status in HTTPStatus}
