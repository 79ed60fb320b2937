"""How a person gets Nodes back where there is no service, by the very commands of docs/gate.md (Break glass): nothing
of netboot's runs here, and its policies are in force."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.kube.accounts import Admin, apply_manifests
from lab.kube.binaries import find
from lab.kube.cluster import Cluster
from tests.cluster.conftest import CACHE
from tests.cluster.joining import CSRS
from tests.kube_world import NODES
from tests.kubelets import client, csr_object
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
UNCHECKED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
HELD = {"key": "netboot.dev/held", "value": "Held", "effect": "NoSchedule"}
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/netboot-gate"
SECONDS = 180
"""Against hanging alone."""


def blocks() -> list[list[str]]:
    """The commands of each block of the procedure, without their remarks."""
    section = (ROOT / "docs/gate.md").read_text().split("## Break glass\n")[1].split("\n## ")[0]
    found = re.findall(r"(?ms)^```\n(.*?)^```$", section)
    return [[line.partition("  #")[0].strip() for line in block.splitlines()] for block in found]


class Shell:
    """A shell of the administrator's."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        programs = f"{find(CACHE)}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {"PATH": programs, "HOME": str(folder), "KUBECONFIG": str(cluster.admin)}
        self.before = ""
        """What each command comes after: the shell's variables."""

    def __call__(self, command: str) -> subprocess.CompletedProcess[str]:
        argv = ["bash", "-o", "pipefail", "-c", f"{self.before}\n{command}"]
        return subprocess.run(argv, env=self._environment, capture_output=True, text=True, timeout=SECONDS, check=False)

    def does(self, command: str) -> str:
        """What it printed; it has to succeed."""
        done = self(command)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def shell(control_plane: Cluster, accounts: dict[str, Path], as_admin: Admin, tmp_path: Path) -> Iterator[Shell]:
    """And three Nodes of netboot's, as they are when the service ends: shut, held, lost. The policies are as they were
    afterwards."""
    assert accounts
    for name, taints in (("gpu-001", [UNCHECKED]), ("gpu-002", [UNCHECKED, HELD]), ("gpu-003", [UNCHECKED])):
        metadata = {"name": name, "labels": {"netboot.dev/managed-by": "netboot"}}
        made = as_admin(
            "POST", NODES, {"kind": "Node", "apiVersion": "v1", "metadata": metadata, "spec": {"taints": taints}}
        )
        assert made.status_code == 201, made.text
    opened = made.json()
    del opened["spec"]["taints"], opened["metadata"]["resourceVersion"]  # whatever the controllers wrote meanwhile
    put = Admin(control_plane, pair="break-glass")("PUT", f"{NODES}/gpu-003", opened)
    assert put.status_code == 200, put.text
    yield Shell(control_plane, tmp_path)
    apply_manifests(control_plane)
    for path in (*(f"{NODES}/gpu-00{number}" for number in (1, 2, 3)), f"{CSRS}/csr-8vq2m"):
        as_admin("DELETE", path)


def test_a_person_gets_nodes_back_without_a_service_by_what_the_page_says(shell: Shell, as_admin: Admin) -> None:
    by_hand, denied, gone = blocks()
    without = "kubectl taint nodes gpu-001 netboot.dev/unchecked-"
    assert "taints under netboot.dev/ are for netboot's nodes account, or the group" in shell(without).stderr

    shell.before, *commands = by_hand
    for command in commands:
        shell.does(command)
    assert ours(node(as_admin, "gpu-001")) == []

    def damaged() -> bool:
        """False where a controller wrote to its status meanwhile."""
        policy = as_admin("GET", POLICY).json()
        policy["spec"]["validations"] = [{"expression": "false", "message": "damaged"}]
        return as_admin("PUT", POLICY, policy).status_code == 200

    wait_for(damaged, SECONDS)
    opens = next(command for command in gone if "netboot.dev/unchecked-" in command)
    words = "ValidatingAdmissionPolicy 'netboot-gate' with binding 'netboot-gate' denied request: damaged"
    wait_for(lambda: words in shell(f"{opens} --dry-run=server").stderr, SECONDS)
    takes_away, puts_back = denied
    shell.does(takes_away)
    wait_for(lambda: shell(f"{opens} --dry-run=server").returncode == 0, SECONDS)
    shell.does(puts_back)
    withheld = opens.replace("$glass", "")
    wait_for(lambda: "taints under netboot.dev/ are for" in shell(f"{withheld} --dry-run=server").stderr, SECONDS)

    asked = csr_object(client("gpu-002"), "csr-8vq2m")
    assert as_admin("POST", CSRS, asked, user="system:node:gpu-002", group="system:nodes").status_code == 201
    said = {command: shell.does(command) for command in gone}
    assert sorted(re.findall(r"(?m)^gpu-\S+", said["kubectl get nodes -l netboot.dev/managed-by=netboot"])) == [
        "gpu-001", "gpu-002", "gpu-003",
    ]  # fmt: skip
    assert re.search(r"(?m)^csr-8vq2m .* system:node:gpu-002 .* Pending$", said["kubectl get csr"])
    wait_for(lambda: "certificate" in as_admin("GET", f"{CSRS}/csr-8vq2m").json()["status"], SECONDS)
    given = node(as_admin, "gpu-002")
    assert (ours(given), "labels" in given["metadata"]) == ([], False)
    assert as_admin("GET", f"{NODES}/gpu-003").status_code == 404


def node(as_admin: Admin, name: str) -> Any:
    return as_admin("GET", f"{NODES}/{name}").json()


def ours(found: Any) -> list[str]:
    """Keys of its taints and annotations under netboot.dev/."""
    taints = [one["key"] for one in found["spec"].get("taints", [])]
    return [key for key in (*taints, *found["metadata"].get("annotations", {})) if key.startswith("netboot.dev/")]
