"""What is installed is what is in the tree: every module, and every file that an image or a cluster gets."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("netboot", "images", "ipxe", "tokens")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel of a copy of the tree, made with nothing but setuptools."""
    tree = tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tree)
    build = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=tree, check=True, capture_output=True, timeout=120)
    (built,) = (tree / "dist").iterdir()
    return zipfile.ZipFile(built)


def test_a_wheel_has_every_file_of_the_packages(wheel: zipfile.ZipFile) -> None:
    tree = {
        file.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == tree


def test_what_machines_execute_is_executable_in_a_wheel(wheel: zipfile.ZipFile) -> None:
    for entry in wheel.infolist():
        if entry.filename.startswith("images/"):
            in_tree = (ROOT / entry.filename).stat().st_mode & 0o111 != 0
            assert (entry.external_attr >> 16 & 0o111 != 0) == in_tree, entry.filename


def test_a_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    assert wheel.read(name).decode() == "[console_scripts]\nnetboot = netboot.cli.main:main\n"
