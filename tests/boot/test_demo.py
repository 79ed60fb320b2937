"""`make demo KEEP=1`: a boot, a page whose commands all work, and a clean end by Ctrl-C."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.processes import finish, start
from lab.work import ROOT
from tests.boot.centre import BOOT_SECONDS, BuiltImage

pytestmark = pytest.mark.boot


def test_the_demo_boots_a_machine_and_every_command_that_it_prints_works(built: BuiltImage, folder: Path) -> None:
    """After the shared image, so that the build comes from its cache."""
    assert built.digest
    running = start("demo", [sys.executable, "-m", "lab.demo", "--keep"], folder / "demo.log", cwd=ROOT)
    try:
        running.said.wait_for("everything is running; Ctrl-C stops it", 2 * BOOT_SECONDS)
        page = running.said.text
        assert re.search(r"Booted +reported +\d+\.\d s +\d+\.\d s .*multi-user\.target", page)
        commands = re.findall(r"(?m)^  # (.+)\n  (.+)$", page)
        assert [what for what, _ in commands] == [
            "this boot's trace",
            "why this machine gets this script",
            "machines, and what is known of them",
            "the script that it was served",
            "the machine's console",
            "what the image consists of, and the memory it needs",
            "read every byte and compare it with what was signed",
        ]
        said = {what: _run(command) for what, command in commands}
        assert "Booted" in said["this boot's trace"]
        assert "node-1 boots" in said["why this machine gets this script"]
        assert said["the script that it was served"].startswith("#!ipxe\n")
        assert "netboot: stage started" in said["the machine's console"]
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 0
        running.said.wait_for("^stopping$", 10)
    finally:
        finish(running)


def _run(command: str) -> str:
    """Run a command of the page as it stands, but not for ever."""
    argv = shlex.split(command.replace("tail -f", "tail -n 500"))
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
