"""`make demo KEEP=1`: a Ready node, its rollout to a second image, for which it reboots by an order on its own
Node; a page whose commands all work, an end by Ctrl-C."""

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
        running.output.wait_for("everything is running; Ctrl-C stops it", 3 * READY_SECONDS)
        page = running.output.text
        _rolled(page)
        assert re.search(r"the operator runs: netboot machine approve node-1 --ek [0-9a-f]{16}\n", page)
        assert re.search(r"Ready +observed +\d+\.\d s +\d+\.\d s .*the cluster may use it", page)
        assert re.search(r"Ready +\d+\.\d s after the kernel started, by the service's clock", page)
        assert re.search(r"node-1 came with netboot\.dev/unchecked:NoExecute: nothing runs on it before", page)
        assert re.search(r"gate +opened by itself; Checks(Passed|Warn): ", page)
        assert re.search(r"Pod +says from inside: hello from inside Pod hello-\S+ on node-1: Linux 6\.1\.", page)
        commands = re.findall(r"(?m)^  # (.+)\n  (.+)$", page)
        assert [what for what, _ in commands] == [
            "the node",
            "the Pod's words",
            "a command inside of it",
            "whose TPM it is, and why it was rebooted",
            "the rollout, and what it waits for",
            "both boots, and their images",
            "the trace of boot 1",
            "the trace of boot 2",
            "why this machine gets this script",
            "machines, and what is known of them",
            "the script that it was served",
            "the machine's console",
            "what the image consists of, and the memory it needs",
            "read every byte and compare it with what was signed",
        ]
        said = {what: _run(command) for what, command in commands}
        assert "Kubelet Version: " in said["the node"]
        assert re.match(r"hello from inside Pod hello-\S+ on node-1: ", said["the Pod's words"])
        assert "httpd" in said["a command inside of it"]
        machine = said["whose TPM it is, and why it was rebooted"]
        assert "approved" in machine
        assert re.search(r"(?m)^reboot +done .*\(ordered since .* by rollout 1 of channel stable: ", machine)
        assert re.search(r"(?m)^state +complete: 1 done$", said["the rollout, and what it waits for"])
        boots = [line.split() for line in said["both boots, and their images"].splitlines()[1:]]
        first, second = re.findall(r"debian-12-node-demo(?:-second)? ([0-9a-f]{12})", page[page.index("was a heap") :])
        assert {first, second} == {word for words in boots for word in words if word in (first, second)}
        assert f"image {first} of channel stable" in said["the trace of boot 1"]
        assert f"image {second} of channel stable" in said["the trace of boot 2"]
        assert all("Ready" in said[f"the trace of boot {number}"] for number in (1, 2))
        assert "node-1 boots" in said["why this machine gets this script"]
        assert said["the script that it was served"].startswith("#!ipxe\n")
        assert "netboot: stage started" in said["the machine's console"]
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(180) == 0
        running.output.wait_for("^stopping$", 180)
    finally:
        finish(running)


def _rolled(page: str) -> None:
    """What it tells of the second image and the rollout to it, and that both boots are on its last page."""
    assert re.search(
        r"==> the operator runs: netboot rollout start stable debian-12-node-demo-second --bake 0s\n"
        r"    rollout 1 of 1 machine of channel stable from [0-9a-f]{12} to debian-12-node-demo-second [0-9a-f]{12}\n"
        r"    its machines are in fewer than two racks, so nothing proves the image: one machine at a time, and the "
        r"first failure stops it\n"
        r"    each machine is drained and rebooted when its turn comes: `netboot rollout status stable` says how far "
        r"they are\n",
        page,
    )
    _rebooted_by_an_order(page)
    assert page.count("    the gate opened by itself: Checks") == page.count("    the Pod says: hello from inside") == 2
    assert re.search(r"(?m)^    state +complete: 1 done$", page)
    heads = re.findall(r"node-1 (?:was|rebooted) .*; \d+ seconds later it is a Ready node(?: again)? ", page)
    assert [head.split(";")[0] for head in heads] == [
        "node-1 was a heap of firmware",
        "node-1 rebooted itself for its rollout",
    ]
    assert re.search(
        r"differs +by transparent_hugepage=madvise; built in \d+\.\d s \(\d+ of \d+ steps from the cache\)", page
    )
    assert re.search(r"rollout +complete: 1 done ", page)


def _rebooted_by_an_order(page: str) -> None:
    """A Pod is evicted; then the machine says that it reboots by the very order that stands on its Node."""
    assert re.search(
        r"==> node-1 is drained, and told to reboot\n"
        r"(?:    netboot machine drains: (?:waiting|draining): .*\n)*"
        r"    netboot machine drains: draining: default/hello-\S+ are left\n"
        r"(?:    netboot machine drains: draining: .*\n)*"
        r"    netboot machine drains: ordered: its Node is drained, and it is told to reboot\n"
        r'    on its own Node: netboot\.dev/order={"machine":"node-1","boot":"([0-9a-f-]{36})","slot":"([0-9a-f]{16})",'
        r'"what":"reboot","expires":\d+}\n'
        r"    netboot explain node-1: rollout 1 of channel stable assigned image debian-12-node-demo-second "
        r"[0-9a-f]{12}\n"
        r"    done in .*\n"
        r"==> node-1 takes the order, and reboots by itself\n"
        r"    its console: netboot-reboot: rebooting, by order \2\n"
        r"    its console: reboot: Restarting system\n"
        r"  +\d+\.\d s  ScriptServed (?:.*\n)+"
        r".* order +reboot \2, for boot \1 alone, on its own Node ",
        page,
    )


def _run(command: str) -> str:
    """Run a command of the page as it stands, but not for ever."""
    argv = shlex.split(command.replace("tail -f", "tail -n 500"))
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return done.stdout
