"""The processes `approver-<cluster>`: what is approved and denied of certificate requests (docs/approver.md)."""

from functools import partial

from netboot.clock import SystemClock
from netboot.config import Config
from netboot.controllers import runner
from netboot.controllers.approver.approver import Approver, Cluster
from netboot.controllers.approver.knowledge import Knowledge, Machines
from netboot.kube.certificates import KubeIssuedCertificates
from netboot.kube.connection import connect
from netboot.kube.enrolments import open_enrolments
from netboot.kube.leases import KubeLeases
from netboot.kube.requests import KubeCertificateRequests
from netboot.kube.secrets import KubeTokens
from netboot.process import ProcessSpec
from netboot.stores.facts import Facts
from netboot.stores.live import LiveView
from netboot.stores.register import open_register
from netboot.stores.status import StatusFile


def run(spec: ProcessSpec) -> None:
    """Approve certificate requests of one cluster until told to stop."""
    config, cluster = spec.config, spec.cluster
    facts = Facts(config.data / "journal" / f"{spec.name}.db")
    approver = Approver(cluster, partial(connected, config, cluster), knowledge(config, cluster), facts, SystemClock())
    runner.run(approver, StatusFile(config.data / "status", spec.name).write, spec.say_ready, spec.heartbeat())
    facts.close()


def knowledge(config: Config, cluster: str) -> Knowledge:
    """What is known of a cluster's machines: by the very register that join judges by."""
    live = LiveView(config.data / "snapshot.json")
    place = config.enrolments_kubernetes
    enrolments = open_enrolments(place, "reader") if place is not None else None
    register = open_register(config, lambda: live.view().snapshot.inventory, enrolments)
    return Knowledge(cluster, Machines(cluster, live.view), register, SystemClock().now_ms)


def connected(config: Config, name: str) -> Cluster:
    """The apiserver under the approver's account; nothing is sent yet.

    Raises:
        ClusterUnavailableError: the kubeconfig cannot be read or used.
    """
    cluster = config.clusters[name]
    api = connect(cluster.approver)
    return Cluster(
        KubeCertificateRequests(api),
        KubeLeases(api, cluster.namespace),
        KubeTokens(api),
        KubeIssuedCertificates(api, cluster.namespace),
    )
