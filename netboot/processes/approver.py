"""The processes `approver-<cluster>`: what is approved and denied of certificate requests (docs/approver.md)."""

from contextlib import nullcontext
from functools import partial

from netboot.clock import SystemClock
from netboot.config import Config
from netboot.controllers.approver.approver import Approver
from netboot.controllers.approver.asked import Cluster
from netboot.controllers.approver.knowledge import Knowledge, Machines
from netboot.kube.certificates import KubeIssuedCertificates
from netboot.kube.connection import Acting, connect
from netboot.kube.enrolments import open_enrolments
from netboot.kube.leases import KubeLeases
from netboot.kube.requests import KubeCertificateRequests
from netboot.kube.secrets import KubeTokens
from netboot.process import ProcessSpec
from netboot.processes.leading import leading
from netboot.stores.facts import Facts
from netboot.stores.live import LiveView
from netboot.stores.register import open_register
from netboot.stores.status import StatusFile


def run(spec: ProcessSpec) -> None:
    """Approve certificate requests of one cluster until told to stop."""
    config, cluster = spec.config, spec.cluster
    facts = Facts(config.data / "journal" / f"{spec.name}.db")
    leads = leading(config, spec.kind, cluster)
    asked = partial(connected, config, cluster, leads.acting)
    approver = Approver(cluster, asked, knowledge(config, cluster), facts, SystemClock(), leads.leads)
    say = StatusFile(config.data / "status", spec.name).write
    leads.run(approver, say, spec)
    facts.close()


def knowledge(config: Config, cluster: str) -> Knowledge:
    """What is known of a cluster's machines: by the very register that join judges by."""
    live = LiveView(config.data / "snapshot.json")
    place = config.enrolments_kubernetes
    enrolments = open_enrolments(place, "reader") if place is not None else None
    register = open_register(config, lambda: live.view().snapshot.inventory, enrolments)
    return Knowledge(cluster, Machines(cluster, live.view), register, SystemClock().now_ms)


def connected(config: Config, name: str, acting: Acting = nullcontext) -> Cluster:
    """The apiserver under the approver's account; nothing is sent yet. `acting`: as `netboot.kube.transport` has it.

    Raises:
        ClusterUnavailableError: the kubeconfig cannot be read or used.
    """
    cluster = config.clusters[name]
    api = connect(cluster.approver, acting=acting)
    return Cluster(
        KubeCertificateRequests(api),
        KubeLeases(api, cluster.namespace),
        KubeTokens(api),
        KubeIssuedCertificates(api, cluster.namespace),
    )
