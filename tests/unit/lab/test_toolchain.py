"""Which Go builds what is built here."""

from pathlib import Path

import pytest

from lab.toolchain import VERSION, find_go


def program(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {version}\n")
    path.chmod(0o755)
    return path


def test_the_machine_s_own_go_is_used_where_it_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = program(tmp_path / "bin" / "go", "go1.24.0")
    monkeypatch.setenv("PATH", str(own.parent), prepend=":")
    assert find_go(tmp_path / "cache") == own


@pytest.mark.parametrize("version", ["go1.19.8", "go1.9", "devel"])
def test_an_old_one_gives_way_to_the_pinned_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    own = program(tmp_path / "bin" / "go", version)
    pinned = program(tmp_path / "cache" / f"go-{VERSION}" / "go" / "bin" / "go", f"go{VERSION}")
    monkeypatch.setenv("PATH", str(own.parent), prepend=":")
    assert find_go(tmp_path / "cache") == pinned
