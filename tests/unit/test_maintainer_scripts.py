"""What the scripts of the Debian package do with a host, whose programs say here how they were called."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "deploy/debian"
ABSOLUTE = ("/etc/", "/run/", "/usr/bin/", "/var/lib/")
SAYS = """#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
"""
ANSWERS = {"rm": "exit 1\n", "stat": "echo netboot:netboot\n"}
PROGRAMS = (
    "adduser",
    "chown",
    "deb-systemd-helper",
    "deb-systemd-invoke",
    "deluser",
    "getent",
    "rm",
    "stat",
    "systemctl",
)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A host with a site and a service manager."""
    for folder in ("bin", "etc/netboot", "etc/systemd/system", "run/systemd/system", "var/lib/netboot"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "etc/netboot/netboot.yaml").touch()
    for name in PROGRAMS:
        (tmp_path / "bin" / name).write_text(SAYS + ANSWERS.get(name, ""))
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def script(host: Path, name: str, *arguments: str) -> tuple[str, list[str]]:
    """What it said, and the calls that it made. Its absolute paths are those of the host here."""
    text = (SCRIPTS / name).read_text()
    for path in ABSOLUTE:
        text = text.replace(path, f"{host}{path}")
    env = {"PATH": f"{host}/bin:{os.environ['PATH']}", "CALLS": f"{host}/calls"}
    argv = ["sh", "-c", text, name, *arguments]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=180)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout, (host / "calls").read_text().splitlines()


def test_a_purge_leaves_what_is_mounted_and_goes_on(host: Path) -> None:
    said, calls = script(host, "postrm", "purge")
    assert f"netboot: something of {host}/var/lib/netboot is left\n" in said
    assert f"rm -rf --one-file-system --preserve-root=all {host}/var/lib/netboot" in calls
    assert calls[-1] == "deluser --quiet --system netboot"


@pytest.mark.parametrize(
    ("before", "removed", "act"),
    [("", False, "start"), ("0.1.0", False, "try-restart"), ("0.1.0", True, "start")],
    ids=["installed", "upgraded", "installed again"],
)
def test_a_site_that_is_there_is_served(host: Path, before: str, removed: bool, act: str) -> None:
    if removed:
        (host / "etc/systemd/system/netboot.service").symlink_to("/dev/null")
    assert f"deb-systemd-invoke {act} netboot.service" in script(host, "postinst", "configure", before)[1]


def test_without_a_site_nothing_is_started_and_what_to_do_is_said(host: Path) -> None:
    (host / "etc/netboot/netboot.yaml").unlink()
    said, calls = script(host, "postinst", "configure", "")
    assert f"netboot init {host}/etc/netboot --force --state {host}/var/lib/netboot --owner netboot" in said
    assert not [call for call in calls if call.startswith("deb-systemd-invoke")]
