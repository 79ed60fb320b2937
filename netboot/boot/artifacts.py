"""Files of the store: blobs, manifests, the site bundle. Named by digest, never by a path that a client wrote."""

import logging
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO

from aiohttp import web

from netboot.boot import answers
from netboot.boot.limits import connection_of
from netboot.boot.metrics import Tally
from netboot.boot.ranges import none_match, still_same, wanted_span
from netboot.boot.transfers import Transfer, open_file, send

log = logging.getLogger(__name__)

_DIGEST = re.compile(r"[0-9a-f]{64}")
_IMAGE = re.compile(r"([0-9a-f]{64})/manifest\.(json|sig)")
_IMMUTABLE = "public, max-age=31536000, immutable"
_CHECK = "no-cache"

Whole = Callable[[str, str, str, str], Awaitable[None]]
"""Called when a blob went out whole for a boot: digest, boot id, machine, peer."""


class Artifacts:
    """Answers `/v1/blobs/…`, `/v1/images/…`, `/v1/site/…` from the folder of a store."""

    def __init__(self, store: Path, tally: Tally, whole: Whole) -> None:
        self._store, self._tally, self._whole = store, tally, whole
        self.transfers: set[Transfer] = set()
        """Those under way."""

    async def blob(self, request: web.BaseRequest, digest: str, query: str) -> web.StreamResponse:
        """`/v1/blobs/<sha256>`; with `boot` and `machine` in the query a whole transfer is a phase of that boot."""
        if not _DIGEST.fullmatch(digest):
            return answers.text(404, "no such blob: a name is 64 hexadecimal digits in lower case")
        file, status = open_file(self._store / "blobs" / digest, f"blob {digest}")
        with file:
            headers = _headers(f'"{digest}"', _IMMUTABLE, "application/octet-stream")
            response, transfer = await self._send(request, file, status.st_size, headers, digest)
        if query and transfer is not None and transfer.whole and transfer.length == status.st_size:
            boot_id, machine = _boot_of(query)
            if boot_id and machine:
                await self._whole(digest, boot_id, machine, transfer.peer)
        return response

    async def image(self, request: web.BaseRequest, rest: str, _query: str = "") -> web.StreamResponse:
        """`/v1/images/<digest>/manifest.json|.sig`."""
        match = _IMAGE.fullmatch(rest)
        if match is None:
            return answers.text(404, "no such file of an image: it has manifest.json and manifest.sig")
        digest, kind = match.groups()
        path = self._store / "images" / digest / f"manifest.{kind}"
        file, status = open_file(path, f"manifest.{kind} of image {digest}")
        with file:
            if kind == "json":
                headers = _headers(f'"{digest}"', _IMMUTABLE, "application/json")
            else:  # may be signed again with another key
                headers = _headers(_tag_of(status), _CHECK, "text/plain; charset=utf-8")
            return (await self._send(request, file, status.st_size, headers, path.name))[0]

    async def site(self, request: web.BaseRequest, name: str, _query: str = "") -> web.StreamResponse:
        """`/v1/site/bundle.json|.sig`."""
        if name not in ("bundle.json", "bundle.sig"):
            return answers.text(404, "no such file of the site: it has bundle.json and bundle.sig")
        file, status = open_file(self._store / "site" / name, f"{name} of the site")
        with file:
            kind = "application/json" if name.endswith(".json") else "text/plain; charset=utf-8"
            headers = _headers(_tag_of(status), _CHECK, kind)
            return (await self._send(request, file, status.st_size, headers, name))[0]

    async def _send(
        self, request: web.BaseRequest, file: BinaryIO, size: int, headers: dict[str, str], name: str
    ) -> tuple[web.StreamResponse, Transfer | None]:
        tag = headers["ETag"]
        asked = request.headers
        if "If-None-Match" in asked and none_match(asked["If-None-Match"], tag):
            kept = {name: headers[name] for name in ("ETag", "Cache-Control")}
            return answers.empty(304, **kept), None
        if request.method == "HEAD":
            return web.Response(headers={**headers, "Content-Length": str(size)}), None
        wanted = asked.get("Range")
        if "If-Range" in asked and not still_same(asked["If-Range"], tag):
            wanted = None
        span = wanted_span(wanted, size)
        if span == "unsatisfiable":
            return answers.text(416, f"the file has {size} bytes", **{"Content-Range": f"bytes */{size}"}), None
        if span == "whole":
            response, transfer = web.StreamResponse(headers=headers), self._start(request, name, 0, size)
        else:
            offset, length = span
            where = f"bytes {offset}-{offset + length - 1}/{size}"
            response = web.StreamResponse(status=206, headers={**headers, "Content-Range": where})
            transfer = self._start(request, name, offset, length)
        try:
            await send(request, response, file, transfer)
        finally:
            self.transfers.discard(transfer)
            self._tally.ended(transfer)
        return response, transfer

    def _start(self, request: web.BaseRequest, name: str, offset: int, length: int) -> Transfer:
        transfer = Transfer(connection_of(request).peer, name, offset, length)
        self.transfers.add(transfer)
        return transfer


def _boot_of(query: str) -> tuple[str, str]:
    """`boot` and `machine` of a query; empty where it has none."""
    said = dict(field.partition("=")[::2] for field in query.split("&", 8)[:8])
    return said.get("boot", ""), said.get("machine", "")


def _headers(tag: str, caching: str, kind: str) -> dict[str, str]:
    return {
        "Content-Type": kind,
        "ETag": tag,
        "Cache-Control": caching,
        "Accept-Ranges": "bytes",
        "Server": answers.SERVER,
    }


def _tag_of(status: os.stat_result) -> str:
    """The store replaces files whole (rename), so that these three differ whenever the bytes do."""
    return f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'
