"""Where helm and kubeconform come from: nothing but what is pinned."""

import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.kube import programs
from lab.kube.programs import NoProgramError, Program, find

DIGEST = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
"""Of `hello`, and a newline."""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pinned = Program("example.org/helm", "v1", "h1:", "./helm", DIGEST)
    monkeypatch.setattr(programs, "PROGRAMS", {"helm": pinned})
    monkeypatch.setenv("NETBOOT_TOOLS", str(tmp_path))
    return tmp_path


def test_a_program_of_the_pinned_digest_is_unpacked_once(tools: Path) -> None:
    archive = tools / "helm-v1-linux-amd64.xz"
    archive.write_bytes(lzma.compress(b"hello\n"))
    found = find("helm", tools / "cache")
    assert (found.read_bytes(), found.stat().st_mode & 0o777) == (b"hello\n", 0o755)
    archive.unlink()
    assert find("helm", tools / "cache") == found


def test_another_one_is_not_used(tools: Path) -> None:
    archive = tools / "helm-v1-linux-amd64.xz"
    with pytest.raises(NoProgramError) as absent:
        find("helm", tools / "cache")
    assert str(absent.value) == f"NETBOOT_TOOLS: {archive}: No such file or directory; unset it to build"
    archive.write_bytes(lzma.compress(b"other\n"))
    with pytest.raises(NoProgramError) as other:
        find("helm", tools / "cache")
    assert str(other.value).startswith(f"NETBOOT_TOOLS: {archive} has the digest ")
    assert str(other.value).endswith(f", pinned is {DIGEST}: not used")
    assert list((tools / "cache").iterdir()) == [tools / "cache/helm.lock"]


@pytest.mark.parametrize("damage", [lambda whole: whole[:-9], lambda whole: b"no archive", lambda whole: b""])
def test_half_an_archive_is_named(tools: Path, damage: Callable[[bytes], bytes]) -> None:
    archive = tools / "helm-v1-linux-amd64.xz"
    archive.write_bytes(damage(lzma.compress(b"hello\n")))
    with pytest.raises(NoProgramError) as caught:
        find("helm", tools / "cache")
    assert str(caught.value) == f"NETBOOT_TOOLS: {archive} is no whole archive: fetch it anew, or unset it"


def test_a_module_of_another_sum_is_not_built(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NETBOOT_TOOLS")
    go = tools / "go"
    go.write_text('#!/bin/sh\n[ "$1 $2" = "mod download" ] && echo \'{"Sum": "h1:other", "Dir": "/"}\'\n')
    go.chmod(0o755)
    monkeypatch.setattr(programs, "find_go", lambda cache: go)
    with pytest.raises(NoProgramError) as caught:
        find("helm", tools / "cache")
    assert str(caught.value) == "example.org/helm v1 has the sum h1:other, pinned is h1:"
    assert not (tools / "cache/helm-v1").exists()
