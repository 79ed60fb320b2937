"""What a boot request goes through is what docs/contributing/boot-request.md says, file by file."""

import re
from pathlib import Path

import pytest

from netboot.stores import journal
from tests.journeys import ROOT, Journey
from tests.sockets.boot_server import MAC1, MAC2, RunningBootServer, serve

PAGE = ROOT / "docs" / "contributing" / "boot-request.md"
MOST = 15


def test_a_boot_request_goes_through_the_files_that_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "QUICK_SECONDS", float("inf"))  # in the thread that is recorded, however slow the disk
    journey, files = Journey(), list[str]()

    async def use(server: RunningBootServer) -> None:
        await server.ask(f"/v1/boot?mac={MAC2}")
        journey.files.clear()
        answer = await server.ask(f"/v1/boot?mac={MAC1}")
        files.extend(journey.files)
        assert answer.headers["netboot-outcome"] == "boot"

    journey.record(lambda: serve(tmp_path, use))
    assert files == re.findall(r"^\d+\. `([\w/.]+)`: \S", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(files) <= MOST
