"""Tests over real sockets of loopback."""

import pytest

from netboot.boot import server


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at readiness while a test's boot server stops."""
    monkeypatch.setattr(server, "UNREADY_SECONDS", 0.0)
