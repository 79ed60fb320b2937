"""Tests over real sockets of loopback."""

import pytest

from netboot.boot import worker


@pytest.fixture(autouse=True)
def _no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at readiness while a test's plane stops."""
    monkeypatch.setattr(worker, "UNREADY_SECONDS", 0.0)
