"""The agent as an image has it: a process of the files that ship, killed, ended and started again."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from images.build.node_files import node_files
from images.formats import tree
from images.node.agent.request import PATH
from tests.agents import Handler, Site, machine, serving
from tests.tools.tokens.swtpm import Tpm, swtpm

pytestmark = pytest.mark.tools


@pytest.fixture
def tpm() -> Iterator[Tpm]:
    with swtpm() as running:
        running.tool("pcrextend", f"0:sha256={'11' * 32}")
        yield running


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as running:
        yield running


@pytest.fixture
def root(tmp_path: Path, site: Site, tpm: Tpm) -> Path:
    for entry in node_files():
        tree.write(tmp_path, entry)
    os.utime(tmp_path / "usr", (0, 0))
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/tpmrm0").symlink_to(tpm.folder / "server.sock")
    return machine(tmp_path, site)


def start(root: Path) -> subprocess.Popen[str]:
    """As the unit does."""
    argv = [sys.executable, "-Bs", "-m", "node.agent", str(root)]
    home = root / "usr/lib/netboot"
    return subprocess.Popen(argv, cwd=home, env={}, stderr=subprocess.PIPE, text=True)


class Held:
    """An answer that does not come before it is let go."""

    def __init__(self) -> None:
        self.asked, self.go = threading.Event(), threading.Event()

    def __call__(self, handler: Handler) -> None:
        self.asked.set()
        assert self.go.wait(180)


def test_a_killed_agent_carries_on_and_its_token_was_nowhere(site: Site, root: Path, tpm: Tpm) -> None:
    held = Held()
    site.faults[PATH] = [held]
    with start(root) as first:
        assert held.asked.wait(180)
        secret = site.issued[0].secret.encode()
        process = Path(f"/proc/{first.pid}")
        assert b"node.agent" in (process / "cmdline").read_bytes()
        assert secret not in (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        assert not any(secret in path.read_bytes() for path in root.rglob("*") if path.is_file())
        first.kill()
        words = first.stderr.read() if first.stderr else ""
        held.go.set()
    with start(root) as second:
        words += second.stderr.read() if second.stderr else ""
        assert second.wait(180) == 0, words
    assert words.splitlines()[-1] == "netboot-join: joined as n1; the kubelet may start"
    assert site.spkis[0] == site.spkis[1]
    for token in site.issued:
        assert token.secret not in words
        assert not any(token.secret.encode() in path.read_bytes() for path in root.rglob("*") if path.is_file())
    with start(root) as third:
        assert third.wait(180) == 0
    assert len(site.issued) == 2

    modes = {path.name: path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_file()}
    expected = {
        "join.key": 0o600,
        "kubelet-client-current.pem": 0o600,
        "kubelet.kubeconfig": 0o600,
        "ca.crt": 0o644,
        "kubelet.env": 0o644,
        "20-netboot.conf": 0o644,
    }
    assert {name: modes[name] for name in expected} == expected


def test_sigterm_ends_it_at_once_wherever_it_is(site: Site, root: Path, tpm: Tpm) -> None:
    held = Held()
    site.faults["/v1/join/hello"] = [held]
    with start(root) as agent:
        assert held.asked.wait(180)
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(180) == 128 + signal.SIGTERM
    held.go.set()
    assert tpm.peek("getcap", "handles-transient") == "", "the TPM holds nothing of an agent that was told to end"
