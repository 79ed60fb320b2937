"""Files of the store: blobs, manifests, the site bundle. Named by digest, never by a path that a client wrote.

`Range` and conditional headers are as RFC 9110 sections 13 and 14 have them. What we choose where the RFC lets a server
choose: a request for several ranges, and a malformed one, is answered with the whole file (14.2: a server may ignore
`Range`). No client of ours asks for several, and a multipart answer would let one request order thousands of pieces.
"""

import os
import re
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Literal

from aiohttp import web

from images.values.types import SHA256
from netboot.boot import answers
from netboot.boot.answers import PreparedResponse
from netboot.boot.metrics import Counters
from netboot.boot.transfers import OpenFile, Transfer, open_file, send
from netboot.connections import connection_of
from netboot.lifecycle.errors import JournalUnavailableError

_ONE = re.compile(r"bytes=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_IMAGE = re.compile(rf"({SHA256.pattern})/manifest\.(json|sig)")

Span = tuple[int, int]
"""Offset and length, in bytes."""
Whole = Callable[[str, str, str, str], Awaitable[None]]
"""Called when a blob went out whole for a boot: digest, boot id, machine, peer."""


class Artifacts:
    """Answers `/v1/blobs/…`, `/v1/images/…`, `/v1/site/…` from the folder of a store."""

    def __init__(
        self,
        store: Path,
        counters: Counters,
        whole: Whole,
        stall_seconds: float,
        revoked: Callable[[], Collection[str]],
    ) -> None:
        """`revoked()`: images of which no manifest is sent."""
        self._store, self._counters, self._whole, self._revoked = f"{store}/", counters, whole, revoked
        self._stall_seconds = stall_seconds
        self.transfers: set[Transfer] = set()
        """Those under way."""

    async def blob(self, request: web.BaseRequest, digest: str, query: str) -> web.StreamResponse:
        """`/v1/blobs/<sha256>`; with `boot` and `machine` in the query a whole transfer is a phase of that boot."""
        if not SHA256.fits(digest):
            return answers.text(
                404, "no such blob: a name is 64 hexadecimal digits in lower case; see docs/http-provisioning.md"
            )
        with open_file(f"{self._store}blobs/{digest}", f"blob {digest}") as file:
            response, transfer = await self._answer(request, file, f'"{digest}"', _BLOB, digest)
        if query and transfer is not None and transfer.whole and transfer.length == file.size:
            boot_id, machine = _boot_of(query)
            if boot_id and machine:
                # The answer has gone out: whatever happens now, no other may follow it. The journal says so in the log.
                with suppress(JournalUnavailableError):
                    await self._whole(digest, boot_id, machine, transfer.peer)
        return response

    async def image(self, request: web.BaseRequest, rest: str) -> web.StreamResponse:
        """The manifest of an image, or its signature; `rest`: `<digest>/manifest.json` or `.sig`."""
        match = _IMAGE.fullmatch(rest)
        if match is None:
            return answers.text(
                404, "no such file of an image: it has manifest.json and manifest.sig; see docs/http-provisioning.md"
            )
        digest, kind = match.groups()
        if digest in self._revoked():  # an initrd of before there were revocations stops here
            return answers.text(404, "this image is revoked at this site: see `netboot image revocations`")
        name = f"manifest.{kind}"
        with open_file(f"{self._store}images/{digest}/{name}", f"{name} of image {digest}") as file:
            if kind == "json":
                return (await self._answer(request, file, f'"{digest}"', _MANIFEST, name))[0]
            return (await self._answer(request, file, _tag_of(file), _SIGNATURE, name))[0]

    async def site(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        """The site bundle, or its signature; asked about anew every time, for both are replaced."""
        if name not in ("bundle.json", "bundle.sig"):
            return answers.text(
                404, "no such file of the site: it has bundle.json and bundle.sig; see docs/http-provisioning.md"
            )
        with open_file(self._of_site(name), f"{name} of the site") as file:
            kind = _BUNDLE if name == "bundle.json" else _SIGNATURE
            return (await self._answer(request, file, _tag_of(file), kind, name))[0]

    def _of_site(self, name: str) -> str:
        """Where a file of the site is: a ConfigMap that is mounted there has links within itself. A link that leads out
        of the store is none of ours, and is not followed."""
        path = f"{self._store}site/{name}"
        real = os.path.realpath(path)  # of links in a circle it is the path, which cannot be opened
        return real if Path(real).is_relative_to(os.path.realpath(self._store)) else path

    async def binary(self, request: web.BaseRequest, file: OpenFile, tag: str, name: str) -> web.StreamResponse:
        """A file of nobody's store that is held open; `tag`: of its bytes."""
        return (await self._answer(request, file, tag, _BINARY, name))[0]

    async def _answer(
        self, request: web.BaseRequest, file: OpenFile, tag: str, kind: str, name: str
    ) -> tuple[web.StreamResponse, Transfer | None]:
        """`kind`: the header lines that files of this kind share. None: no byte of the file was to be sent."""
        headers, size, head = request.headers, file.size, f"{kind}ETag: {tag}\r\n"
        if "If-None-Match" in headers and none_match(headers["If-None-Match"], tag):
            return answers.empty(304, ETag=tag, **{"Cache-Control": _caching(kind)}), None
        if request.method == "HEAD":
            return PreparedResponse(head, length=size), None
        range_header = headers.get("Range")
        if "If-Range" in headers and not still_same(headers["If-Range"], tag):
            range_header = None
        span = wanted_span(range_header, size)
        if span == "unsatisfiable":
            extent = {"Content-Range": f"bytes */{size}"}
            return answers.text(416, f"the file has {size} bytes: ask for some of these", **extent), None
        if span == "whole":
            response, (offset, length) = PreparedResponse(head, length=size), (0, size)
        else:
            offset, length = span
            where = f"Content-Range: bytes {offset}-{offset + length - 1}/{size}\r\n"
            response = PreparedResponse(head + where, status=206, length=length)
        transfer = Transfer(connection_of(request).peer, name, offset, length)
        self.transfers.add(transfer)
        try:
            await send(request, response, file, transfer, self._stall_seconds)
        finally:
            self.transfers.discard(transfer)
            self._counters.ended(transfer)
        return response, transfer


def _boot_of(query: str) -> tuple[str, str]:
    """`boot` and `machine` of a query; empty where it has none."""
    fields = dict(field.partition("=")[::2] for field in query.split("&", 8)[:8])
    return fields.get("boot", ""), fields.get("machine", "")


def _kind(content: str, caching: str) -> str:
    return f"Content-Type: {content}\r\nCache-Control: {caching}\r\nAccept-Ranges: bytes\r\n"


def _caching(kind: str) -> str:
    return _IMMUTABLE if _IMMUTABLE in kind else _CHECK


_IMMUTABLE, _CHECK = "public, max-age=31536000, immutable", "no-cache"
_BLOB = _kind("application/octet-stream", _IMMUTABLE)
_BINARY = _kind("application/efi", _CHECK)
"""Whatever it is: UEFI 2.10, 24.7.2.4, takes an NBP of this type, or of none that it knows with the suffix .efi."""
_MANIFEST = _kind("application/json", _IMMUTABLE)
_BUNDLE = _kind("application/json", _CHECK)
_SIGNATURE = _kind("text/plain; charset=utf-8", _CHECK)
"""Checked every time: a manifest may be signed again with another key."""


def _tag_of(file: OpenFile) -> str:
    """The store replaces files whole (rename), so that these three differ whenever the bytes do."""
    status = file.status
    return f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'


def wanted_span(header: str | None, size: int) -> Span | Literal["whole", "unsatisfiable"]:
    """Which bytes of a file of `size` bytes a `Range` header asks for."""
    match = _ONE.fullmatch(header) if header is not None and len(header) <= 64 else None
    if match is None or match[1] == match[2] == "":
        return "whole"
    if match[1] == "":
        length = min(int(match[2]), size)
        return (size - length, length) if length else "unsatisfiable"
    first = int(match[1])
    last = int(match[2]) if match[2] else size - 1
    if match[2] and last < first:
        return "whole"  # malformed: to be ignored
    if first >= size:
        return "unsatisfiable"
    return first, min(last, size - 1) - first + 1


def none_match(header: str, tag: str) -> bool:
    """Whether `If-None-Match` has our tag (weak comparison), so that 304 is the answer."""
    return header.strip() == "*" or tag in (listed.removeprefix("W/") for listed in _TAG.findall(header))


def still_same(header: str, tag: str) -> bool:
    """Whether `If-Range` has our tag (strong comparison). A date never matches, for we send none."""
    return header.strip() == tag
