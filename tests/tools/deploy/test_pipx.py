"""The wheel is installed by pipx, upgraded and removed, as the page of installation tells it."""

import shutil
import zipfile
from pathlib import Path

import pytest

from lab.lock import LOCK, locked
from lab.packages import wheel
from lab.work import ROOT
from tests.pages_run import of_a_new_account, run_page

pytestmark = pytest.mark.tools


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With what the page begins with: the wheel, its lock, and the next version's wheel."""
    built = wheel(tmp_path / "wheel")
    folder = tmp_path / "netboot"
    folder.mkdir()
    shutil.move(built, folder)
    newer(folder / built.name, "0.1.0", "0.2.0")
    (folder / LOCK).write_text(locked())
    return folder


def newer(built: Path, version: str, other: str) -> None:
    """Beside a wheel, the same under another version: https://packaging.python.org/specifications/binary-distribution-format."""
    info, its = (f"netboot-{each}.dist-info/" for each in (version, other))
    target = built.with_name(built.name.replace(version, other, 1))
    with zipfile.ZipFile(built) as read, zipfile.ZipFile(target, "w") as written:
        for entry in read.infolist():
            content = read.read(entry)
            if entry.filename.startswith(info):
                content = content.replace(f"\nVersion: {version}\n".encode(), f"\nVersion: {other}\n".encode())
                content = content.replace(info.encode(), its.encode())
            written.writestr(entry.filename.replace(info, its), content)


def test_the_page_of_installation_with_pipx(folder: Path) -> None:
    environment = of_a_new_account(folder.parent)
    run_page(ROOT / "docs/install.md", folder, environment)
    left = [file for file in folder.parent.glob(".local/**/*") if "netboot" in file.name and "logs" not in file.parts]
    assert left == []
