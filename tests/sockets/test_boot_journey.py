"""What a boot request goes through is what docs/contributing/boot-request.md says, file by file."""

import asyncio
import re
from pathlib import Path

import pytest

from netboot.boot import acceptor
from netboot.stores import bootkey, journal
from tests.journeys import ROOT, Journey
from tests.sockets.boot_server import MAC1, MAC2, Answer, RunningBootServer, close, parse, serve

PAGE = ROOT / "docs" / "contributing" / "boot-request.md"
MOST = 21


async def boot(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mac: str) -> Answer:
    """One request of a connection that stays open: only the request is recorded, not how connections come and go."""
    writer.write(f"GET /v1/boot?mac={mac} HTTP/1.1\r\nHost: netboot\r\n\r\n".encode())
    answer = parse(await reader.readuntil(b"\r\n\r\n"))
    answer.body = await reader.readexactly(int(answer.headers["content-length"]))
    return answer


def test_a_boot_request_goes_through_the_files_that_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journey, files = Journey(), list[str]()
    for looks, seconds in ((journal, "LOOK_SECONDS"), (bootkey, "LOOK_SECONDS"), (acceptor, "SILENT_SECONDS")):
        monkeypatch.setattr(looks, seconds, 3600.0)  # what is done now and then is not done in the middle of it

    async def use(server: RunningBootServer) -> None:
        tasks = len(asyncio.all_tasks())
        reader, writer = await server.connect()
        await boot(reader, writer, MAC2)
        while len(asyncio.all_tasks()) > tasks + 1 or not server.internals.server.connections:
            await asyncio.sleep(0.01)  # until the connection is aiohttp's, with the task that it has there
        journey.files.clear()
        answer = await boot(reader, writer, MAC1)
        files.extend(journey.files)
        assert answer.headers["netboot-outcome"] == "boot"
        assert [record.machine for record in server.records()] == ["gpu-002", "gpu-001"]
        await close(writer)

    journey.record(lambda: serve(tmp_path, use))
    assert files == re.findall(r"^\d+\. `([\w/.]+)`: \S", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(files) <= MOST
