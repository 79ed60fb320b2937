"""docs/first-rack.md is typed, command by command, as far as it can be without metal: a service that runs, a control
plane, and an image of tiny blobs in the place of the one that is built there."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from lab.kube.accounts import Admin
from lab.kube.binaries import find
from lab.kube.cluster import Cluster
from lab.work import CACHE, ROOT
from tests.pages_run import run_page
from tests.processes import wait_for
from tests.sites import free_ports

pytestmark = pytest.mark.cluster
MAC = "52:54:00:12:34:56"


def programs(folder: Path) -> str:
    """A PATH with this tree's `netboot`, and the kubectl of the control plane's version."""
    folder.mkdir()
    command = folder / "netboot"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m netboot.cli.main "$@"\n')
    command.chmod(0o755)
    (folder / "kubectl").symlink_to(find(CACHE) / "kubectl")
    return f"{folder}:{os.environ['PATH']}"


def test_what_the_page_tells_to_type_leads_to_where_it_says(
    tmp_path: Path, control_plane: Cluster, as_admin: Admin
) -> None:
    authority = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt"
    wait_for(lambda: as_admin("GET", authority).status_code == 200)  # a controller writes it, where a cluster is new
    machines, operators, join = free_ports(3)
    (tmp_path / ".kube").mkdir()
    shutil.copy(control_plane.admin, tmp_path / ".kube" / "config")
    image = "from pathlib import Path; from netboot.config import load_config; from tests.sites import add_image as a"
    added = f"""{image}; a(load_config(Path("netboot.yaml").absolute()), name="ubuntu-24.04-gpu")"""
    ready = f"curl --silent --fail --retry 180 --retry-connrefused --retry-delay 1 http://127.0.0.1:{operators}/readyz"
    asks = f"curl --silent --output script 'http://127.0.0.1:{machines}/v1/boot?mac={MAC}'"
    told = "netboot.yaml: no faults; "  # of tiny blobs nobody can tell which drivers they have, and that is a warning
    here = {
        "http://192.0.2.1:8080": f"http://127.0.0.1:{machines}",
        "https://192.0.2.1:8443": f"https://127.0.0.1:{join}",
        "https://192.0.2.10:6443": control_plane.url,
        f"{told}0": f"…\n{told}0",
        f"{told}1": f"…\n{told}1",
        f"{told}3": f"…\n{told}3",
        "$ cd site\n": f"$ cd site\n$ sed -i 's/:8081/:{operators}/' netboot.yaml\n",
        "netboot image build ubuntu-24.04-gpu": f"{sys.executable} -c '{added}'",
        "2> serve.log &\n": f"2> serve.log &\n$ {ready} --output ready.json\n",
        "$ netboot machine discovered\n": f"$ {asks}; netboot machine discovered\n",
    }
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("NETBOOT_", "KUBECONFIG"))}
    variables |= {"HOME": str(tmp_path), "PATH": programs(tmp_path / "bin"), "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    run_page(ROOT / "docs" / "first-rack.md", tmp_path, variables, here, seconds=600)
    declared = sorted(path.name for path in (tmp_path / "site" / "inventory").glob("*.yaml"))
    assert declared == ["gpu-001.yaml", "hardware.yaml", "rack1.yaml", "site.yaml"]
