"""The part of the demo that follows the boot: a cluster, a TPM that an operator enrols, a Ready node, a Pod on it."""

import contextlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape

from images.recipe.inherit import shipped
from lab.demo.progress import CHANNEL, NAME, Demo, short
from lab.demo.summary import kernel_to_ready
from lab.errors import LabError
from lab.kube.accounts import apply_manifests
from lab.kube.binaries import VERSION, find
from lab.kube.cluster import Cluster, cluster
from lab.kube.kubectl import DEPLOYMENT, POD, UNCHECKED, Kubectl, deploy_hello, hear_hello
from lab.kube.recipe import node_recipe
from lab.network import Network
from lab.service import Service
from lab.site import CommandFailedError, Site
from lab.tpm import ek_sha256
from lab.work import CACHE, ROOT

POD_SECONDS = 240.0
KINDS = "machines,rollouts,enrolments"
"""Of the objects that are shown where the state is in the cluster."""
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
    declared: bool = False
    """Its TPM is declared with it, so that nobody has to approve it."""
    enrolments_are_objects: bool = False
    taints: str = ""
    """Those with which the node registered."""
    pod_log: str = ""
    """What the Pod printed."""
    gate: str = ""
    """What the node says of its checks, by which the gate opened."""

    def prepare(self, site: Site) -> None:
        """What an operator does once for each cluster."""
        self.site = site
        attach(site, self.cluster)

    def enrol(self, chip: Path) -> None:
        """The operator notes which TPM is in the box, and opens a window for the machine."""
        with self.demo.doing(f"netboot machine enroll {NAME}: its TPM may show itself, once"):
            self.ek = ek_sha256(chip)
            self.demo.say(f"    the delivery note says: endorsement key {self.ek[:16]}…")
            self._order("enroll", NAME)

    def pinned(self, ek: str) -> None:
        """Its TPM is declared with it: nothing has to be approved."""
        self.ek, self.declared = ek, True

    def approve_if_pending(self, running: Service) -> None:
        """The operator compares what was shown with the delivery note, and lets the machine join."""
        if self.approved or self.declared or self.site is None:
            return
        if running.api(f"/v1/machines/{NAME}/enrolment")["enrolment"]["state"] == "pending":
            self.demo.say(
                f"              [bold]the operator[/] runs: netboot machine approve {NAME} --ek {self.ek[:16]}"
            )
            self._order("approve", NAME, "--ek", self.ek[:16])
            self.approved = True

    def _order(self, *order: str) -> None:
        """`netboot machine …`; where enrolments are objects it says by which command people carry that out, and this is
        run."""
        assert self.site is not None
        try:
            self.site.netboot("machine", *order)
        except CommandFailedError as error:
            command = re.search(r"does it by `kubectl (.+)`", str(error))
            if command is None or not self.enrolments_are_objects:
                raise
            said = self.kubectl(*shlex.split(command[1]))
            self.demo.say(f"    as netboot says, the operator runs: kubectl {escape(command[1])}: {said.strip()}")

    def run_a_pod(self, events: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
        """A Pod of a Deployment: one without a controller is not drained, for nobody would start it again. Returns as
        `hear_the_pod`."""
        with self.demo.doing(f"the operator runs: kubectl apply -f {POD}.json, a Deployment of one Pod"):
            deploy_hello(self.kubectl)
        return self.hear_the_pod(events)

    def hear_the_pod(self, events: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
        """Ready does not prove a working node; a Pod that runs and speaks does. Nobody touches a taint: the Pod runs
        because the gate opens by the node's own checks. Label and text of each row about this boot on the last page;
        `events`: its."""
        leases = self.kubectl.get("leases", "-n", "netboot", "-l", "app.kubernetes.io/managed-by=netboot")
        self.taints = leases["items"][0]["metadata"]["annotations"]["netboot.dev/taints"]
        with self.demo.doing(f"waiting for its Pod, nobody touches anything; then: kubectl logs {DEPLOYMENT}"):
            self.demo.say(f"    {NAME} came with {self.taints}: nothing runs on it before its checks are in order")
            self.pod_log = hear_hello(self.kubectl, POD_SECONDS, DEPLOYMENT)
            self.gate = self._gate()
            self.demo.say(f"    the gate opened by itself: [bold]{self.gate}[/]")
            self.demo.say(f"    the Pod says: [bold]{self.pod_log}[/]")
        return self._rows(events)

    def _gate(self) -> str:
        """Raises LabError: the gate is not open, or not by the node's own word."""
        node = self.kubectl.get("node", NAME)
        said = [each for each in node["status"]["conditions"] if each["type"] == "netboot.dev/Healthy"]
        if any(taint["key"] == UNCHECKED for taint in node["spec"].get("taints", [])) or not said:
            raise LabError(f"the Pod runs, and the gate of {NAME} is not open: kubectl describe node {NAME}")
        return f"{said[0]['reason']}: {said[0]['message']}"

    def facts(self) -> list[tuple[str, str]]:
        """Label and text of each row of the last page that hold for every boot: the cluster, the machine's identity."""
        how = "declared with the machine" if self.declared else "approved by the operator"
        return [
            ("cluster", f"Kubernetes {VERSION} at {self.cluster.url}"),
            ("identity", f"TPM 2.0, endorsement key {self.ek[:16]}…, {how}"),
        ]

    def _rows(self, events: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
        info = self.kubectl.get("node", NAME)["status"]["nodeInfo"]
        took = kernel_to_ready(events)
        return [
            ("Ready", "" if took is None else f"{took:.1f} s after the kernel started, by the service's clock"),
            ("node", f"{info['kubeletVersion']}, {info['containerRuntimeVersion']}; it came with {self.taints}"),
            ("gate", f"opened by itself; {self.gate}"),
            ("Pod", f"says from inside: {self.pod_log}"),
        ]

    def commands(self, site: Site, *, rolled: bool, objects: bool) -> list[tuple[str, str]]:
        """Where to look further, while it runs; `rolled`: there was a rollout, and a boot by its order; `objects`: the
        state is in the cluster."""
        kubectl = f"{shlex.quote(short(self.kubectl.program))} --kubeconfig {shlex.quote(short(self.kubectl.account))}"
        netboot, config = short(ROOT / ".venv" / "bin" / "netboot"), f"--config {shlex.quote(short(site.config))}"
        node = [
            ("the node", f"{kubectl} describe node {NAME}"),
            ("the Pod's words", f"{kubectl} logs {DEPLOYMENT}"),
            ("a command inside of it", f"{kubectl} exec {DEPLOYMENT} -- ps"),
        ]
        if objects:
            node.append(("the state, as objects", f"{kubectl} get {KINDS} -n netboot"))
            node.append(("who leads", f"{kubectl} get leases -n netboot-leaders"))
        if not rolled:
            return [*node, ("whose TPM it is", f"{netboot} machine show {config} {NAME}")]
        return [
            *node,
            ("whose TPM it is, and why it was rebooted", f"{netboot} machine show {config} {NAME}"),
            ("the rollout, and what it waits for", f"{netboot} rollout status {config} {CHANNEL}"),
            ("both boots, and their images", f"{netboot} boot list {config} --machine {NAME}"),
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
