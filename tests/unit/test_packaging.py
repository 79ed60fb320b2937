"""What is installed is what is in the tree: every module, and every file that an image or a cluster gets."""

import re
import zipfile
from pathlib import Path

import pytest

from lab import packages
from lab.lock import locked

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(packages.wheel(tmp_path_factory.mktemp("wheel")))


def test_a_wheel_has_every_file_of_the_packages(wheel: zipfile.ZipFile) -> None:
    tree = {
        file.relative_to(ROOT).as_posix()
        for package in packages.OURS
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    pages = {f"netboot/docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == tree | pages


def test_what_machines_execute_is_executable_in_a_wheel(wheel: zipfile.ZipFile) -> None:
    for entry in wheel.infolist():
        if entry.filename.startswith("images/"):
            in_tree = (ROOT / entry.filename).stat().st_mode & 0o111 != 0
            assert (entry.external_attr >> 16 & 0o111 != 0) == in_tree, entry.filename


def test_a_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    assert wheel.read(name).decode() == "[console_scripts]\nnetboot = netboot.cli.main:main\n"


def test_what_is_locked_for_a_package_is_what_netboot_itself_needs() -> None:
    names = re.findall(r"(?m)^([\w.-]+)==\S+", locked())
    assert {"aiohttp", "click", "cryptography", "kubernetes", "pyyaml", "www-authenticate"} <= set(names)
    assert {"pytest", "mypy", "hypothesis", "setuptools", "netboot"}.isdisjoint(names)
    assert locked().count("--hash=sha256:") > len(names)
