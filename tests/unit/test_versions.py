"""Wheels of before are made of commits, which a clone may lack."""

import subprocess
from pathlib import Path

import pytest

from tests.versions import BEFORE, packages_of


def test_a_clone_that_lacks_the_commit_says_what_to_do(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "clone")], check=True)
    with pytest.raises(AssertionError) as refused:
        packages_of(BEFORE, tmp_path, tmp_path / "clone")
    assert str(refused.value).partition(";")[0] == (
        f"no netboot of before can be made: this clone lacks commit {BEFORE}: `git fetch --unshallow`, or `git fetch "
        f"origin {BEFORE}`, in a clone of the project"
    )
