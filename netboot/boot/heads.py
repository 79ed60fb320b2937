"""What came first on a new connection: one whole request for a script and nothing else, or something for aiohttp.

Heads are read by aiohttp's own parser with the limits that it has there (docs/decisions/037). Of the usual request line
nothing but the query differs from machine to machine, and what follows it is the same for all that have one firmware:
so what the parser made of the rest is remembered, and the query is taken out of the line (docs/decisions/089).
"""

import asyncio
import re
from typing import NamedTuple

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import HttpRequestParser, HttpVersion, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD

from netboot.boot.app import SCRIPT
from netboot.connections import LONGEST_HEADER, LONGEST_LINE, MOST_HEADERS, READ_BUFFER

_BEGINS, _ENDS = f"GET {SCRIPT}".encode(), b"\r\n\r\n"
_USUAL = re.compile(_BEGINS + rb"(?:\?([A-Za-z0-9._~!$&'()*+,;=:@/?%-]{0,1000}))? (HTTP/1\.[01]\r\n)")
"""A request line with a query of RFC 3986, 3.4, far shorter than the parser's limit."""
LONGEST_REMEMBERED = 1024
"""Bytes of what follows the query; honest ones have fewer than 200."""
MOST_REMEMBERED = 256


class Head(NamedTuple):
    """A request for a script. `query`: as it came; `should_close`: the connection ends with the answer."""

    query: str
    version: HttpVersion
    should_close: bool


class Heads:
    """Reads what came first on connections of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._protocol = loop, BaseProtocol(loop)
        self._remembered: dict[bytes, Head | None] = {}

    def __len__(self) -> int:
        """How much is remembered."""
        return len(self._remembered)

    def read(self, received: bytes) -> Head | None:
        """The request, where it is whole, is all that was received, and is no more than a line and headers."""
        if not received.startswith(_BEGINS) or not received.endswith(_ENDS):
            return None
        usual = _USUAL.match(received)
        if usual is None or len(rest := received[usual.start(2) :]) > LONGEST_REMEMBERED:
            return self._parsed(received)
        if rest not in self._remembered:
            if len(self._remembered) >= MOST_REMEMBERED:  # somebody makes headers up: forget, and start again
                self._remembered.clear()
            self._remembered[rest] = self._parsed(_BEGINS + b" " + rest)
        head = self._remembered[rest]
        return Head((usual[1] or b"").decode(), head.version, head.should_close) if head is not None else None

    def _parsed(self, received: bytes) -> Head | None:
        parser = HttpRequestParser(
            self._protocol,
            self._loop,
            READ_BUFFER,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_HEADER,
            max_headers=MOST_HEADERS,
            auto_decompress=False,
        )
        try:
            requests, upgraded, rest = parser.feed_data(received)
        except HttpProcessingError:
            return None
        if len(requests) != 1 or upgraded or rest:
            return None
        message, payload = requests[0]
        return _head(message) if payload is EMPTY_PAYLOAD else None


def _head(message: RawRequestMessage) -> Head | None:
    path, _, query = message.path.partition("?")
    if message.upgrade or message.chunked or path != SCRIPT:
        return None
    return Head(query, message.version, message.should_close)
