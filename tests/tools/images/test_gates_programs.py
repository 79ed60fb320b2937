"""Programs of an image that are asked for their versions: really run, in the image's root, and harmless."""

import shutil
from pathlib import Path

import pytest

from images.build.gates.programs import versions
from tests.tools.images.mounts import mounts

pytestmark = pytest.mark.tools

PACKAGES = (("containerd", "1.6.20~ds1-1+deb12u1", "amd64"), ("kubelet", "1.34.4-1.1", "amd64"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tree = tmp_path / "root"
    for folder in ("bin", "etc", "usr/bin", "usr/local/bin"):
        (tree / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "", tree / "bin/busybox")
    return tree


def program(path: Path, *lines: str) -> None:
    path.write_text("\n".join(["#!/bin/busybox sh", *lines]) + "\n")
    path.chmod(0o755)


def test_a_program_says_its_version_and_cannot_change_the_image(root: Path) -> None:
    program(
        root / "usr/bin/kubelet",
        '[ "$1" = --version ] || exit 1',
        "{ echo x >/etc/changed; } 2>/dev/null && exit 1",
        "echo Kubernetes v1.33.7",
    )
    before = mounts()
    assert versions(root, PACKAGES) == {"kubelet": "1.33.7", "containerd": "1.6.20~ds1-1+deb12u1"}
    assert list((root / "etc").iterdir()) == []
    assert mounts() == before


def test_the_one_that_systemd_would_start_is_asked(root: Path) -> None:
    program(root / "usr/bin/kubelet", "echo Kubernetes v1.33.7")
    program(root / "usr/local/bin/kubelet", "echo Kubernetes v1.34.9")
    assert versions(root, ()) == {"kubelet": "1.34.9"}


@pytest.mark.parametrize("lines", [("exit 1",), ("echo no number",)])
def test_where_it_does_not_say_its_package_does(root: Path, lines: tuple[str, ...]) -> None:
    program(root / "usr/bin/kubelet", *lines)
    assert versions(root, PACKAGES)["kubelet"] == "1.34.4-1.1"
    assert versions(root, ()) == {}


def test_of_another_architecture_its_package_says_it(root: Path) -> None:
    foreign = bytearray((root / "bin/busybox").read_bytes())
    foreign[18:20] = b"\x08\x01"  # e_machine of no machine that anybody here emulates
    (root / "usr/bin/containerd").write_bytes(foreign)
    (root / "usr/bin/containerd").chmod(0o755)
    assert versions(root, PACKAGES)["containerd"] == "1.6.20~ds1-1+deb12u1"


def test_without_them_there_is_nothing_to_ask(root: Path) -> None:
    assert versions(root, ()) == {}
