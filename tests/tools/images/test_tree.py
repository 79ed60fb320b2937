"""Reaching into a root file system without leaving it."""

from pathlib import Path

import pytest

from images.errors import RecipeError
from images.formats import tree
from images.formats.overlay import Entry

pytestmark = pytest.mark.tools


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "host"
    folder.mkdir()
    (folder / "precious").write_text("mine")
    return folder


@pytest.fixture
def root(tmp_path: Path, outside: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "etc").mkdir(parents=True)
    (folder / "run").mkdir()
    (folder / "usr/lib").mkdir(parents=True)
    (folder / "lib").symlink_to("usr/lib")
    (folder / "var").mkdir()
    (folder / "var/run").symlink_to("/run")
    (folder / "evil").symlink_to(outside)
    (folder / "up").symlink_to("../../host")
    (folder / "circle").symlink_to("circle")
    return folder


def test_links_of_parents_are_followed_as_in_a_chroot(root: Path) -> None:
    assert tree.inside(root, "/var/run/x") == root / "run/x"
    assert tree.inside(root, "/lib/x") == root / "usr/lib/x"
    assert tree.inside(root, "/lib") == root / "lib"
    assert tree.inside(root, "/../../etc/passwd") == root / "etc/passwd"


def test_writing_never_leaves_the_tree(root: Path, outside: Path) -> None:
    tree.write(root, Entry("/evil/precious", content=b"theirs"))
    tree.write(root, Entry("/up/precious", content=b"theirs"))
    assert (outside / "precious").read_text() == "mine"
    assert root.joinpath(*outside.parts[1:], "precious").read_text() == "theirs"
    assert (root / "host/precious").read_text() == "theirs"


def test_a_link_is_replaced_and_not_written_through(root: Path, outside: Path) -> None:
    (root / "etc/motd").symlink_to(outside / "precious")
    tree.write(root, Entry("/etc/motd", 0o640, b"hello"))
    assert (outside / "precious").read_text() == "mine"
    assert (root / "etc/motd").read_text() == "hello"
    assert (root / "etc/motd").stat().st_mode & 0o7777 == 0o640


def test_a_hard_link_is_replaced_and_its_other_name_keeps_its_content(root: Path, tmp_path: Path) -> None:
    (tmp_path / "cached").write_text("old")
    (root / "etc/motd").hardlink_to(tmp_path / "cached")
    tree.write(root, Entry("/etc/motd", content=b"new"))
    assert (tmp_path / "cached").read_text() == "old"


def test_folders_are_made_for_everybody_to_enter_whatever_the_umask(root: Path) -> None:
    import os

    old = os.umask(0o077)
    try:
        tree.write(root, Entry("/opt/a/b", content=b""))
    finally:
        os.umask(old)
    assert [(root / name).stat().st_mode & 0o777 for name in ("opt", "opt/a", "opt/a/b")] == [0o755, 0o755, 0o644]


def test_a_file_cannot_take_the_place_of_a_folder(root: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        tree.write(root, Entry("/etc", content=b""))
    assert str(caught.value) == "/etc cannot be put into the image: Is a directory"
    (root / "etc/file").write_text("")
    with pytest.raises(RecipeError) as caught:
        tree.write(root, Entry("/etc/file/x", content=b""))
    assert str(caught.value) == "/etc/file/x cannot be put into the image: Not a directory"


def test_links_in_a_circle(root: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        tree.write(root, Entry("/circle/x", content=b""))
    assert str(caught.value) == "/circle/x: its symbolic links go round in a circle in the image"


def test_removing_never_leaves_the_tree(root: Path, outside: Path) -> None:
    assert not tree.remove(root, "/evil/precious")
    assert tree.remove(root, "/evil")
    assert not tree.remove(root, "/")
    tree.empty(root, "/up")
    assert (outside / "precious").read_text() == "mine"
    assert root.is_dir()


def test_emptying_keeps_the_folder(root: Path) -> None:
    (root / "run/a/b").mkdir(parents=True)
    (root / "run/c").write_text("")
    tree.empty(root, "/var/run/../run")
    assert list((root / "run").iterdir()) == []


def test_patterns_match_within_one_name_and_through_merged_folders(root: Path) -> None:
    for name in ("a.so", "b.so", "c.txt"):
        (root / "usr/lib" / name).write_text("")
    (root / "usr/lib/deep").mkdir()
    (root / "usr/lib/deep/d.so").write_text("")
    assert tree.glob(root, "/lib/*.so") == ["/lib/a.so", "/lib/b.so"]
    assert tree.glob(root, "/usr/*/*.so") == ["/usr/lib/a.so", "/usr/lib/b.so"]
    assert tree.glob(root, "/usr/lib/[ab].so") == ["/usr/lib/a.so", "/usr/lib/b.so"]
    assert tree.glob(root, "/usr/lib/nothing") == []
    assert tree.glob(root, "/evil/*") == []
