"""The container image: how its base is made."""

import platform
from collections.abc import Sequence
from pathlib import Path

import pytest

from images.build import architecture
from lab import container


def test_what_makes_the_base_mounts_in_a_namespace_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Else its mounts stand beside those of whoever looks at this machine's, and outlive it where it is killed."""
    commands: list[list[str]] = []

    def said(argv: Sequence[str]) -> str:
        commands.append(list(argv))
        return ""

    monkeypatch.setattr(container, "said", said)
    monkeypatch.setattr(architecture, "native", lambda: "arm64")
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "bookworm"})
    assert container.base(tmp_path / "base.tar", "arm64") == tmp_path / "base.tar"
    assert commands == [
        [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "--",
            "mmdebstrap",
            "--mode=root",
            "--architectures=arm64",
            "--variant=minbase",
            "--include=python3,ca-certificates,ipxe,tzdata",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-include=/usr/share/doc/*/copyright",
            "bookworm",
            str(tmp_path / "base.tar"),
        ]
    ]
