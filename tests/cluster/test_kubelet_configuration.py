"""The kubelet itself reads the configuration that images bring: strictly, so that a wrong word would be named."""

import subprocess
from pathlib import Path

import pytest

from images.node.agent import kubelet as agent
from images.node.agent.answers import Admission, Taint
from images.recipe import inherit
from lab.kube.binaries import find

CACHE = Path(__file__).parents[2] / ".cache"
CONFIGURATION = "/etc/kubernetes/kubelet.yaml"


def started(folder: Path, *arguments: str) -> str:
    """What the kubelet says when its CA file is not there: it reads its configuration first, and ends at the CA."""
    argv = [str(find(CACHE) / "kubelet"), f"--config={folder}/kubelet.yaml", f"--config-dir={folder}/kubelet.d"]
    done = subprocess.run(
        [*argv, f"--root-dir={folder}/root", f"--cert-dir={folder}/pki", f"--kubeconfig={folder}/none", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    return done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    recipe = inherit.load(inherit.find("debian-12-node"))
    text = next(entry for entry in recipe.entries() if entry.path == CONFIGURATION).content.decode()
    (tmp_path / "kubelet.yaml").write_text(text.replace(agent.CA, f"{tmp_path}/no-such-ca.crt"))
    (tmp_path / "kubelet.d").mkdir()
    return tmp_path


def test_the_kubelet_accepts_it_with_the_agents_drop_in(folder: Path) -> None:
    taint = Taint("netboot.dev/unchecked", "", "NoExecute")
    admission = Admission("", 0, "node-1", "default", (), "", {}, (taint,), 0)
    (folder / "kubelet.d/20-netboot.conf").write_text(agent.drop_in(admission))
    said = started(folder, "--hostname-override=node-1", "--node-labels=")
    assert f"unable to load client CA file {folder}/no-such-ca.crt" in said
    assert "strict decoding" not in said


def test_a_wrong_word_would_be_named(folder: Path) -> None:
    (folder / "kubelet.yaml").write_text((folder / "kubelet.yaml").read_text() + "evictionHrad: {}\n")
    said = started(folder)
    assert "strict decoding failed" in said
    assert "evictionHrad" in said
