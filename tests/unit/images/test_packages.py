"""Packages of earlier builds: offered where this build's package lists know them, and only if they are whole."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from images.build import packages
from images.build.cache import Cache


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose lists have been fetched."""
    tree = tmp_path / "tree"
    (tree / packages.LISTS).mkdir(parents=True)
    (tree / packages.ARCHIVES).mkdir(parents=True)
    return tree


def listed(tree: Path, *contents: bytes, name: str = "m_dists_a") -> None:
    text = "".join(f"Package: x\nVersion: 1\nSHA256: {sha256(content)}\n\n" for content in contents)
    (tree / packages.LISTS / f"{name}_Packages").write_text(text)


def fetched(tree: Path, **contents: bytes) -> None:
    for name, content in contents.items():
        (tree / packages.ARCHIVES / f"{name}_1%3a2_all.deb").write_bytes(content)


def offered(folder: Path, tree: Path) -> dict[str, bytes]:
    """What is in apt's archives after the offer."""
    names = packages.offer(folder, tree)
    there = {path.name: path.read_bytes() for path in (tree / packages.ARCHIVES).iterdir()}
    assert sorted(there) == names
    return there


@pytest.fixture
def folder(tmp_path: Path, tree: Path) -> Path:
    """A cache with the packages a and b, from a build of before."""
    fetched(tree, a=b"content of a", b=b"content of b")
    packages.keep(tmp_path / "kept", tree)
    assert list((tree / packages.ARCHIVES).iterdir()) == [], "the product does not have them too"
    return tmp_path / "kept"


def test_files_are_kept_by_their_content(folder: Path) -> None:
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        f"{sha256(b'content of a')}-a_1%3a2_all.deb": b"content of a",
        f"{sha256(b'content of b')}-b_1%3a2_all.deb": b"content of b",
    }


def test_what_the_lists_know_is_offered(folder: Path, tree: Path) -> None:
    listed(tree, b"content of b", b"content of c")
    listed(tree, name="other")
    assert offered(folder, tree) == {"b_1%3a2_all.deb": b"content of b"}


def test_another_content_of_the_same_version_is_not_offered(folder: Path, tree: Path) -> None:
    """apt would take it: its name and its size are right."""
    listed(tree, b"CONTENT OF A")
    assert offered(folder, tree) == {}


def test_a_damaged_file_is_thrown_away(folder: Path, tree: Path) -> None:
    damaged = folder / f"{sha256(b'content of a')}-a_1%3a2_all.deb"
    damaged.write_bytes(b"content of ~")
    listed(tree, b"content of a", b"content of b")
    assert offered(folder, tree) == {"b_1%3a2_all.deb": b"content of b"}
    assert not damaged.exists()


def test_of_two_contents_of_one_version_apt_has_the_choice(folder: Path, tree: Path) -> None:
    fetched(tree, a=b"another source's a")
    packages.keep(folder, tree)
    listed(tree, b"content of a", b"another source's a")
    assert offered(folder, tree) == {}


def test_what_was_used_is_young_and_the_old_go_first(tmp_path: Path, tree: Path, folder: Path) -> None:
    with Cache(tmp_path / "cache") as cache:
        for path in folder.iterdir():
            path.rename(cache.packages / path.name)
        for path in cache.packages.iterdir():
            os.utime(path, (1000, 1000))
        listed(tree, b"content of a")
        packages.offer(cache.packages, tree)
        packages.keep(cache.packages, tree)
        assert len(list(cache.packages.iterdir())) == 2
    with Cache(tmp_path / "cache", limit=15):
        pass
    assert [path.read_bytes() for path in (tmp_path / "cache/packages").iterdir()] == [b"content of a"]


def test_removed_by_another_build_while_in_use_it_stays_usable(folder: Path, tree: Path) -> None:
    listed(tree, b"content of a")
    packages.offer(folder, tree)
    for path in folder.iterdir():
        path.unlink()
    assert (tree / packages.ARCHIVES / "a_1%3a2_all.deb").read_bytes() == b"content of a"
    packages.keep(folder, tree)
    assert [path.read_bytes() for path in folder.iterdir()] == [b"content of a"]


def test_mmdebstraps_options(tmp_path: Path, folder: Path) -> None:
    skipped = ["--skip=essential/unlink", "--skip=cleanup/apt/cache"]
    assert packages.arguments(tmp_path / "nothing") == skipped
    assert packages.arguments(folder) == [
        (
            '--setup-hook=if APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -qq update 2>/dev/null; then '
            f'{sys.executable} -I {packages.__file__} {folder} "$1"; fi'
        ),
        *skipped,
    ]


def test_as_a_hook_it_offers(folder: Path, tree: Path) -> None:
    listed(tree, b"content of a", b"content of b")
    argv = [sys.executable, "-I", packages.__file__, str(folder), str(tree)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, env={})
    assert done.stderr == "I: 2 packages are there already\n"
    assert len(list((tree / packages.ARCHIVES).iterdir())) == 2
