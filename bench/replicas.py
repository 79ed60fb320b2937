"""Three whole services over one API server, for the bench: the same machines, keys and images, each with its disk."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from bench import control_plane
from bench.join import SECTIONS
from bench.members import Door, Member
from bench.serving import HOST, BenchError, Server, get
from bench.site import ROOT, Joining, Site, make_site, netboot
from lab.errors import EndedError
from lab.kube.binaries import find
from lab.kube.cluster import Cluster
from lab.kube.kubectl import Kubectl
from lab.site import free_port
from netboot.join.errors import ClusterUnavailableError
from netboot.kube.accounts import make_kubeconfig
from netboot.kube.manifests import inventory_text
from netboot.kube.resources.definitions import definitions

NAMES = ("alpha", "beta", "gamma")
_PLACES = ("provisioning", "management", "join")
_KEY = "secrets/boot-id.key"
_OBJECTS = ("inventory", "shipper")
"""Roles whose kubeconfigs `bench.control_plane` does not make."""


@dataclass(frozen=True)
class Replica:
    """One of them, running."""

    site: Site
    server: Server
    door: Door
    management: int

    def detail(self, name: str) -> dict[str, Any]:
        """What `/readyz` says of a part; {}: nothing yet."""
        details = json.loads(get(self.management, "/readyz")[1])["details"]
        found: dict[str, Any] = details.get(name) or {}
        return found


@contextmanager
def replicas(folder: Path, cache: Path, cluster: Cluster, fleet: Sequence[Member]) -> Iterator[list[Replica]]:
    """All three, served until the block ends; these machines are declared as objects.

    Raises:
        BenchError: something did not start.
    """
    first = _first(folder / NAMES[0], cluster, fleet)
    sites = [first, *(_copied(first, folder / name) for name in NAMES[1:])]
    kubectl = Kubectl(find(cache) / "kubectl", cluster.admin, cluster.folder)
    try:
        _apply(kubectl)
        for site in sites:
            _configure(site, cluster)
        _declare(first, kubectl)
    except (EndedError, ClusterUnavailableError) as error:
        raise BenchError(f"objects are not taken: {error}") from None
    with ExitStack() as stack:
        yield [_running(site, stack.enter_context(netboot(site))) for site in sites]


def _first(folder: Path, cluster: Cluster, fleet: Sequence[Member]) -> Site:
    port = free_port(HOST)
    sections = SECTIONS.format(host=HOST, port=port, url=cluster.url, authority=cluster.folder / "ca.crt")
    eks = [member.tpm().machine.ek_sha256 for member in fleet]
    return make_site(folder, machines=len(fleet), root_mib=1, joining=Joining(port, sections, eks))


def _copied(first: Site, folder: Path) -> Site:
    """The same files, and ports of its own."""
    shutil.copytree(first.folder, folder)
    file = folder / "netboot.yaml"
    document = yaml.safe_load(file.read_text())
    for place in _PLACES:
        port, listen = free_port(HOST), urlsplit(f"//{document[place]['listen']}")
        document[place]["listen"] = f"{listen.hostname}:{port}"
        if url := document[place].get("url"):
            document[place]["url"] = f"{urlsplit(url).scheme}://{HOST}:{port}"
    file.write_text(yaml.safe_dump(document))
    return replace(first, folder=folder, port=int(document["provisioning"]["listen"].rpartition(":")[2]))


def _configure(site: Site, cluster: Cluster) -> None:
    """One of several, with accounts of its own."""
    control_plane.accounts(cluster, site.folder / "secrets")
    for role in _OBJECTS:
        path = site.folder / "secrets" / f"{role}.kubeconfig"
        path.touch(0o600)
        path.write_bytes(make_kubeconfig(cluster.admin, role, "netboot", 86_400).content)
    key = site.folder / _KEY
    key.touch(0o600)
    key.write_bytes(bytes(range(32)))
    file = site.folder / "netboot.yaml"
    document = yaml.safe_load(file.read_text())
    document["replicas"] = {"name": site.folder.name, "count": len(NAMES)}
    document["inventory_kubernetes"] = {"holds": True, "shipper": "secrets/shipper.kubeconfig"}
    document["boot_id_key"] = _KEY
    file.write_text(yaml.safe_dump(document))


def _apply(kubectl: Kubectl) -> None:
    """Definitions, rights and the Lease of who writes statuses.

    Raises:
        EndedError: they are not taken.
    """
    file = kubectl.folder / "rights.yaml"
    file.write_text("---\n".join([yaml.safe_dump_all(definitions()), inventory_text()]))
    kubectl("apply", "--server-side", "-f", str(file))
    kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")


def _declare(site: Site, kubectl: Kubectl) -> None:
    """Machines, profiles and channels, as `netboot cluster inventory` prints them.

    Raises:
        BenchError: it does not. EndedError: they are not taken.
    """
    argv = [sys.executable, "-m", "netboot.cli.main", "cluster", "inventory"]
    argv += ["--config", str(site.folder / "netboot.yaml")]
    printed = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=ROOT)
    if printed.returncode != 0:
        raise BenchError(f"netboot cluster inventory: {printed.stderr}")
    file = kubectl.folder / "machines.yaml"
    file.write_text(printed.stdout)
    kubectl("create", "-f", str(file))


def _running(site: Site, server: Server) -> Replica:
    document = yaml.safe_load((site.folder / "netboot.yaml").read_text())
    authorities = (site.folder / "tls" / "ca.crt").read_text()
    door = Door(f"http://{HOST}:{site.port}", str(document["join"]["url"]), authorities)
    return Replica(site, server, door, int(document["management"]["listen"].rpartition(":")[2]))
