"""A file system that is mounted read-only is told as permissions are: by 4, with what to do, and not by another try."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from netboot.cli.main import main

FULL = 'mkdir -p "$1" && mount -t tmpfs -o size=64k tmpfs "$1" && cd "$1" && shift && exec "$@"'
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


def test_a_full_disk_says_nothing_of_the_backup(site: Path, tmp_path: Path) -> None:
    with (site / "inventory/site.yaml").open("a") as inventory:
        inventory.write(f"# {os.urandom(200_000).hex()}\n")
    made = ["backup", str(tmp_path / "whole.tar.gz"), "--config", str(site / "netboot.yaml")]
    main(made)
    command = [sys.executable, "-m", "netboot.cli.main", "restore", made[1]]
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c", FULL, "sh", str(tmp_path / "full"), *command]
    ran = subprocess.run(alone, capture_output=True, text=True, timeout=60, check=False)
    said = re.sub(r"\.netboot-restore-\w{8}", "HERE", ran.stderr)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert said == (
        f"Error: {tmp_path}/full/HERE cannot be used: No space left on device\n"
        "Remedy: free some space there, or name another place\n"
    )


def test_half_a_site_is_taken_back_where_the_disk_is_full(tmp_path: Path) -> None:
    words = ["init", "site", "--url", "http://192.0.2.1:8080", "--join-url", "https://192.0.2.1:8443"]
    command = f"{sys.executable} -m netboot.cli.main {' '.join(words)}; echo ended by $? >&2; ls -A >&2"
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c", FULL, "sh", str(tmp_path / "full")]
    ran = subprocess.run([*alone, "sh", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert "wrote site/secrets/operator.token\n" in ran.stdout
    assert ran.stderr.splitlines() == [
        "nothing stays of what this run wrote: it is removed again",
        "Error: cannot write site: No space left on device",
        "Remedy: free some space there, or name another place",
        "ended by 1",
    ]
