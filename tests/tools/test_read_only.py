"""A file system that is mounted read-only is told as permissions are: by 4, with what to do, and not by another try."""

import subprocess
import sys
from pathlib import Path

import pytest

from netboot.cli.main import main

MOUNTED = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && cd "$1" && shift && exec "$@"'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("read-only") / "site"
    main(["init", str(folder), "--join-url", "https://192.0.2.1:8443"])
    (folder / "data").mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("backup", "new.tar.gz"),
        ("key", "rotate"),
        ("key", "sealing", "rotate"),
        ("access", "token", "create", "one", "--role", "viewer", "--ttl", "1d"),
        ("config", "join-certificate"),
        ("image", "gc"),
        ("init", "another"),
        ("init", ".", "--force", "--state", "state"),
    ],
)
def test_what_cannot_be_written_there_ends_by_4(site: Path, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "netboot.cli.main", *words]
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c", MOUNTED, "sh", str(site), *command]
    ran = subprocess.run(alone, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (4, ""), ran.stderr
    assert "ead-only" in ran.stderr
    assert "mount " in ran.stderr
