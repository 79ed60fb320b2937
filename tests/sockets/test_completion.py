"""What a shell is offered: names of the service, soon or not at all."""

import socket
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest

from netboot.cli import complete
from netboot.cli.main import main
from tests.commands import Run

Offered = Callable[..., list[str]]


@pytest.fixture
def offered(run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Offered:
    """`offered("machine", "show", "gpu")`: as bash would be. Nothing else is said."""
    assert run("machine", "list").status == 0
    monkeypatch.setattr(complete, "SECONDS", 60.0)  # who answers is a thread of this process

    def completed(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(("netboot", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        monkeypatch.setenv("_NETBOOT_COMPLETE", "bash_complete")
        with pytest.raises(SystemExit):
            main([])
        said = capsys.readouterr()
        assert said.err == ""
        return [line.partition(",")[2] for line in said.out.splitlines() if line]

    return completed


def test_names_are_those_of_the_service(offered: Offered) -> None:
    assert offered("machine", "show", "gpu") == ["gpu-001", "gpu-002"]
    assert offered("machine", "hold", "off") == ["off-001"]
    assert offered("channel", "show", "st") == ["stable"]
    assert offered("inventory", "show", "pro") == ["profiles"]
    assert offered("inventory", "show", "profiles", "") == ["compute"]
    assert offered("boot", "list", "--machine", "gpu-002") == ["gpu-002"]
    assert offered("boot", "show", "x") == []
    assert offered("machine", "list", "-o", "j") == ["json", "jsonpath="]


def test_of_what_cannot_be_had_nothing_is_offered_and_nothing_said(
    offered: Offered, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert offered("machine", "show", "--token-file", str(tmp_path / "none"), "gpu") == []
    monkeypatch.setenv("NETBOOT_SERVER", "http://127.0.0.1:1")
    assert offered("machine", "show", "gpu") == []
    monkeypatch.chdir(tmp_path)
    assert offered("image", "show", "deb") == []


def test_who_presses_tab_does_not_wait(offered: Offered, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete, "SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("NETBOOT_SERVER", f"http://127.0.0.1:{silent.getsockname()[1]}")
        begun = monotonic()
        assert offered("machine", "show", "gpu") == []
        assert monotonic() - begun < 25, "an answer would be waited for 30 seconds"
