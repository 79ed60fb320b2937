"""Tests over real sockets of loopback."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.boot import server
from tests.commands import Run
from tests.sockets.api import Api, of_alice
from tests.sockets.served import runner, served


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at readiness while a test's boot server stops."""
    monkeypatch.setattr(server, "UNREADY_SECONDS", 0.0)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """The management API of an example site, to which alice speaks."""
    return of_alice(Api(tmp_path))


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """`netboot …` against the test's `api`, in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    with served(api) as address:
        yield runner(address, api, capsys, monkeypatch)
