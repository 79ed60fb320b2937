"""What two builds of one recipe differ in."""

import os
from pathlib import Path

import pytest

from images.artifact.manifest import Artifacts, Manifest
from images.artifact.measure import measure
from images.build.compare import differences, tree_differences
from images.build.pipeline import Built
from images.build.step import Product

pytestmark = pytest.mark.tools
TREES = ("bootstrap", "configure", "kernel")


def built(folder: Path, seed: str, *, created: int = 1000) -> Built:
    """A build whose every file is there; `seed` is the content of /etc/seed in its trees and of its root image."""
    for step in TREES:
        etc = folder / step / "root/etc"
        etc.mkdir(parents=True)
        (etc / "seed").write_text(seed if step != "bootstrap" else "same")
        (etc / "same").write_text("same")
        os.utime(etc / "seed", (1000, 1000))
        os.utime(etc / "same", (1000, 1000))
        os.utime(etc, (1000, 1000))
    for step, name, content in (
        ("kernel", "vmlinuz", "k"),
        ("root", "root.img", seed),
        ("initrd", "initrd.img", "i"),
        ("manifest", "packages.json", "[]"),
    ):
        (folder / step).mkdir(exist_ok=True)
        (folder / step / name).write_text(content)
    artifacts = Artifacts(
        kernel=measure(folder / "kernel/vmlinuz"),
        initrd=measure(folder / "initrd/initrd.img"),
        root=measure(folder / "root/root.img", chunks=True),
        packages=measure(folder / "manifest/packages.json"),
    )
    manifest = Manifest(
        name="mine", distribution="debian", suite="bookworm", architecture="amd64", recipe="5" * 64, epoch=0,
        created=created, kernel_version="6.1", ram_mib=300, artifacts=artifacts,
    )  # fmt: skip
    names = (*TREES, "root", "initrd", "manifest")
    return Built(manifest, {}, {name: Product(name, folder / name) for name in names})


def test_two_builds_alike(tmp_path: Path) -> None:
    assert differences(built(tmp_path / "1", "a"), built(tmp_path / "2", "a")) == []


def test_the_artifact_the_step_and_the_file_are_named(tmp_path: Path) -> None:
    assert differences(built(tmp_path / "1", "a"), built(tmp_path / "2", "bb", created=1001)) == [
        "root: ca978112ca1b, 1 bytes; then 3b64db95cb55, 2 bytes",
        "manifest.created: 1000; then 1001",
        "first in step configure:",
        "  /etc/seed: content",
    ]


def test_many_files_are_counted(tmp_path: Path) -> None:
    first, second = built(tmp_path / "1", "a"), built(tmp_path / "2", "b")
    for number in range(12):
        (tmp_path / f"2/configure/root/new{number:02}").write_text("")
    os.utime(tmp_path / "2/configure/root/etc", (1000, 1000))
    found = differences(first, second)
    assert found[2] == "  /etc/seed: content"
    assert found[3] == "  /new00: only the second time"
    assert found[-1] == "  … and 3 more"


def test_everything_that_an_image_keeps_counts(tmp_path: Path) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        for file in ("mode", "owner", "time", "link", "kind", "gone"):
            (tmp_path / name / file).write_text("x")
            os.utime(tmp_path / name / file, (1000, 1000))
    second = tmp_path / "2"
    (second / "mode").chmod(0o4755)
    os.chown(second / "owner", 5, 5)
    os.utime(second / "time", (2000, 2000))
    (second / "link").unlink()
    (second / "link").symlink_to("x")
    os.utime(second / "link", (1000, 1000), follow_symlinks=False)
    (second / "gone").unlink()
    assert list(tree_differences(tmp_path / "1", second)) == [
        "/gone: only the first time",
        "/link: mode, content",
        "/mode: mode",
        "/owner: owner",
        "/time: time",
    ]
    assert "/time: time" not in list(tree_differences(tmp_path / "1", second, times=False))
