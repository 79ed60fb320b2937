"""The part of the demo that follows the boot: a cluster, a TPM that an operator enrols, a Ready node, a Pod on it."""

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from images.recipe.inherit import shipped
from lab.demo.progress import NAME, Demo, short
from lab.demo.summary import kernel_to_ready
from lab.kube.accounts import apply_manifests
from lab.kube.binaries import VERSION, find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import POD, UNCHECKED, Kubectl, hear_hello, let_in, start_hello
from lab.kube.recipe import node_recipe
from lab.network import Network
from lab.service import Service
from lab.site import Site
from lab.tpm import ek_sha256
from lab.work import CACHE, ROOT

POD_SECONDS = 240.0
_CLUSTER = """
clusters:
  default:
    endpoints: ["{url}"]
    authority: tls/cluster-ca.crt
"""


@dataclass(slots=True)
class Joining:
    """What the demo knows of its cluster. `recipe`: what to build in place of the shipped one."""

    demo: Demo
    cluster: Cluster
    kubectl: Kubectl
    recipe: str
    site: Site | None = None
    ek: str = ""
    approved: bool = False
    taints: str = ""
    """Those with which the node registered."""
    pod_log: str = ""
    """What the Pod printed."""

    def prepare(self, site: Site) -> None:
        """What an operator does once for each cluster."""
        self.site = site
        attach(site, self.cluster)

    def enrol(self, site: Site, chip: Path) -> None:
        """The operator notes which TPM is in the box, and opens a window for the machine."""
        with self.demo.doing(f"netboot machine enroll {NAME}: its TPM may show itself, once"):
            self.ek = ek_sha256(chip)
            self.demo.say(f"    the delivery note says: endorsement key {self.ek[:16]}…")
            site.netboot("machine", "enroll", NAME)

    def approve_if_pending(self, running: Service) -> None:
        """The operator compares what was shown with the delivery note, and lets the machine join."""
        if self.approved or self.site is None:
            return
        if running.api(f"/v1/machines/{NAME}/enrolment")["enrolment"]["state"] == "pending":
            self.site.netboot("machine", "approve", NAME, "--ek", self.ek[:16])
            self.approved = True
            self.demo.say(
                f"              [bold]the operator[/] runs: netboot machine approve {NAME} --ek {self.ek[:16]}"
            )

    def run_a_pod(self) -> None:
        """Ready does not prove a working node; a Pod that runs and speaks does."""
        node = self.kubectl.get("node", NAME)
        self.taints = ", ".join(taint_words(taint) for taint in node["spec"].get("taints", []))
        with self.demo.doing(f"the operator runs: kubectl taint nodes {NAME} {UNCHECKED}-"):
            self.demo.say(f"    it registered with {self.taints}: nothing runs on it before somebody has looked")
            let_in(self.kubectl, NAME)
        with self.demo.doing(f"the operator runs: kubectl apply -f {POD}.json; kubectl logs {POD}"):
            start_hello(self.kubectl)
            self.pod_log = hear_hello(self.kubectl, POD_SECONDS)
            self.demo.say(f"    the Pod says: [bold]{self.pod_log}[/]")

    def facts(self, events: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
        """Label and text of each row of the last page: the cluster, the node, its identity, its Pod."""
        info = self.kubectl.get("node", NAME)["status"]["nodeInfo"]
        took = kernel_to_ready(events)
        return [
            ("Ready", "" if took is None else f"{took:.1f} s after the kernel started, by the service's clock"),
            ("cluster", f"Kubernetes {VERSION} at {self.cluster.url}"),
            ("identity", f"TPM 2.0, endorsement key {self.ek[:16]}…, approved by the operator"),
            ("node", f"{info['kubeletVersion']}, {info['containerRuntimeVersion']}; it came with {self.taints}"),
            ("Pod", f"says from inside: {self.pod_log}"),
        ]

    def commands(self, site: Site) -> list[tuple[str, str]]:
        """Where to look further, while it runs."""
        kubectl = f"{shlex.quote(short(self.kubectl.program))} --kubeconfig {shlex.quote(short(self.kubectl.account))}"
        netboot = f"{short(ROOT / '.venv' / 'bin' / 'netboot')} machine show --config {shlex.quote(short(site.config))}"
        return [
            ("the node", f"{kubectl} describe node {NAME}"),
            ("the Pod's words", f"{kubectl} logs {POD}"),
            ("a command inside of it", f"{kubectl} exec {POD} -- ps"),
            ("whose TPM it is", f"{netboot} {NAME}"),
        ]


def joining(demo: Demo, stack: contextlib.ExitStack, net: Network | None) -> Joining:
    """A control plane that machines of this network reach, with our accounts, rights and policies.

    Raises:
        NoKubernetesError, ClusterError, LabError: with what to do.
    """
    with demo.doing(f"looking for Kubernetes {VERSION}"):
        binaries = find(CACHE)
        demo.say(f"    {binaries}")
    folder = demo.folder / "cluster"
    with demo.doing("starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler"):
        address = net.host if net else "127.0.0.1"
        control = stack.enter_context(cluster(binaries, folder, address))
        demo.say(f"    ready at {control.url}")
    recipe = demo.options.recipe
    if recipe in shipped():
        with demo.doing("putting the kubelet into a signed apt repository, and container images into an archive"):
            recipe = str(node_recipe(recipe, demo.folder / "recipe", CACHE))
    return Joining(demo, control, Kubectl(binaries / "kubectl", control.admin, folder), recipe)


def attach(site: Site, control: Cluster) -> None:
    """Let a site's machines join a cluster: rights and policies there, kubeconfigs and addresses here."""
    apply_manifests(control)
    (site.folder / "tls" / "cluster-ca.crt").write_bytes((control.folder / "ca.crt").read_bytes())
    with site.config.open("a") as config:
        config.write(_CLUSTER.format(url=control.url))
    site.netboot("cluster", "kubeconfigs", "--admin-kubeconfig", str(control.admin))


def taint_words(taint: Mapping[str, str]) -> str:
    """As kubectl writes it."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"
