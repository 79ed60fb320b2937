"""`make demo KEEP=1`: a Ready node, a page whose commands all work, and a clean end by Ctrl-C."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.processes import finish, start
from lab.work import ROOT
from tests.boot.data_centre import BuiltImage
from tests.boot.node_data_centre import READY_SECONDS

pytestmark = pytest.mark.boot


def test_the_demo_ends_with_a_node_that_works_and_every_command_that_it_prints_works(
    built_node: BuiltImage, folder: Path
) -> None:
    """After the shared image, so that the build comes from its cache."""
    assert built_node.digest
    running = start("demo", [sys.executable, "-m", "lab.demo", "--keep"], folder / "demo.log", cwd=ROOT)
    try:
        running.output.wait_for("everything is running; Ctrl-C stops it", 2 * READY_SECONDS)
        page = running.output.text
        assert re.search(r"the operator runs: netboot machine approve node-1 --ek [0-9a-f]{16}\n", page)
        assert re.search(r"Ready +observed +\d+\.\d s +\d+\.\d s .*the cluster may use it", page)
        assert re.search(r"Ready +\d+\.\d s after the kernel started, by the service's clock", page)
        assert re.search(r"it registered with netboot\.dev/unchecked:NoExecute: nothing runs on it before", page)
        assert re.search(r"gate +opened by itself; Checks(Passed|Warn): ", page)
        assert re.search(r"Pod +says from inside: hello from inside Pod hello on node-1: Linux 6\.1\.", page)
        commands = re.findall(r"(?m)^  # (.+)\n  (.+)$", page)
        assert [what for what, _ in commands] == [
            "the node",
            "the Pod's words",
            "a command inside of it",
            "whose TPM it is",
            "this boot's trace",
            "why this machine gets this script",
            "machines, and what is known of them",
            "the script that it was served",
            "the machine's console",
            "what the image consists of, and the memory it needs",
            "read every byte and compare it with what was signed",
        ]
        said = {what: _run(command) for what, command in commands}
        assert "Kubelet Version: " in said["the node"]
        assert said["the Pod's words"].startswith("hello from inside Pod hello on node-1")
        assert "httpd" in said["a command inside of it"]
        assert "approved" in said["whose TPM it is"]
        assert "Ready" in said["this boot's trace"]
        assert "node-1 boots" in said["why this machine gets this script"]
        assert said["the script that it was served"].startswith("#!ipxe\n")
        assert "netboot: stage started" in said["the machine's console"]
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(60) == 0
        running.output.wait_for("^stopping$", 60)
    finally:
        finish(running)


def _run(command: str) -> str:
    """Run a command of the page as it stands, but not for ever."""
    argv = shlex.split(command.replace("tail -f", "tail -n 500"))
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout
