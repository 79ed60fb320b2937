"""iPXE for firmware that boots by HTTP: `/ipxe/<name>`, from memory, by a fixed table of names."""

import hashlib
import os
import weakref
from pathlib import Path

from aiohttp import web

from netboot.boot import answers
from netboot.boot.artifacts import Artifacts
from netboot.boot.transfers import OpenFile
from netboot.dhcp.binaries import read
from netboot.dhcp.plan import BINARIES


class Binaries:
    """Answers `/ipxe/…` with what the folder had when this process began. Nothing that a client says is a path."""

    def __init__(self, folder: Path, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._held = {name: self._hold(name, data) for name, data in read(folder).items()}

    async def answer(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        """The binary of this name."""
        if name not in BINARIES:
            return answers.not_found()
        held = self._held.get(name)
        if held is None:
            return answers.text(404, f"this site has no {name}: install the package ipxe there, restart netboot")
        file, tag = held
        return await self._artifacts.binary(request, file, tag, name)

    def _hold(self, name: str, data: bytes) -> tuple[OpenFile, str]:
        """A file in memory, which goes out by sendfile as all files do, and its tag, which is its digest."""
        handle = os.memfd_create(f"netboot-{name}", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, handle)
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(data)
        return OpenFile(handle, os.fstat(handle)), f'"{hashlib.sha256(data).hexdigest()}"'
