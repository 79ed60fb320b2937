"""The commands of the page for an update, as they stand there, over a real control plane."""

import os
import re
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from lab.kube.accounts import Admin
from lab.kube.binaries import find
from lab.kube.cluster import Cluster
from netboot.kube.leases import lease_name
from tests.cluster.conftest import CACHE
from tests.kube_contract import credential
from tests.kube_world import LEASES, NODES, RealWorld

pytestmark = pytest.mark.cluster
PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def commands() -> list[str]:
    """What is to be typed, in the order of the page."""
    section = PAGE.read_text(encoding="utf-8").split("## Updating\n")[1].split("\n## ")[0]
    return [dedent(block) for block in re.findall(r"```\n(.*?)```", section, re.DOTALL)]


def test_marks_and_old_leases(control_plane: Cluster, world: RealWorld, as_admin: Admin) -> None:
    """Node and Lease of before: the Node gets its mark, whose it is the Lease says, and only then is that deleted."""
    kind = {"apiVersion": "v1", "kind": "Node"}
    for name in ("of-before.example", "control-1"):
        assert as_admin("POST", NODES, kind | {"metadata": {"name": name}}).status_code == 201
    world.leases.write(credential("of-today"))
    world.leases.write(credential("of-before"))
    old = f"{LEASES}/{lease_name('default', 'of-before')}"
    lease = as_admin("GET", old).json()
    annotations = lease["metadata"]["annotations"]
    annotations["netboot.dev/level"] = annotations.pop("netboot.dev/assurance")
    assert as_admin("PUT", old, lease).status_code == 200
    tools = f"{find(CACHE)}:{os.environ['PATH']}"
    mark, delete = commands()
    said = []
    for command in (mark, delete):
        environment = {"PATH": tools, "KUBECONFIG": str(control_plane.admin), "HOME": str(control_plane.folder)}
        run = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
        said.append((run.stdout, run.stderr))
    assert said[0][0] == "node/of-before.example labeled\n"
    assert 'nodes "of-today.example" not found' in said[0][1]  # it is not up; the others are marked all the same
    name = lease_name("default", "of-before")
    assert said[1][0].startswith(f'lease.coordination.k8s.io "{name}" deleted') and said[1][1] == ""
    marked = world.nodes.node("of-before.example")
    other = world.nodes.node("control-1")
    assert marked is not None and marked.marked
    assert other is not None and not other.marked
    assert [one.machine for one in world.leases.all()] == ["of-today"]
    for name in ("of-before.example", "control-1"):
        as_admin("DELETE", f"{NODES}/{name}")
