"""The process `approver-<cluster>`: what the approver is made of."""

from collections.abc import Callable

from netboot.config import Config
from netboot.controllers import runner
from netboot.controllers.approver.approver import Approver, Cluster
from netboot.controllers.approver.knowledge import Knowledge, Machines
from netboot.kube.connection import connect
from netboot.kube.leases import KubeLeases
from netboot.kube.requests import KubeCertificateRequests
from netboot.kube.secrets import KubeTokens
from netboot.lifecycle.ports import Clock
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.facts import Facts
from netboot.stores.live import LiveView
from netboot.stores.status import write_status


def run(config: Config, cluster: str, clock: Clock, ready: Callable[[], None]) -> None:
    """Until told to stop."""
    name = f"approver-{cluster}"
    facts = Facts(config.data / "journal" / f"{name}.db")
    machines = Machines(cluster, LiveView(config.data / "snapshot.json").view)
    knowledge = Knowledge(cluster, machines, SqliteEnrolments(config.data / "enrolment.db"))
    approver = Approver(cluster, lambda: connected(config, cluster), knowledge, facts, clock)
    runner.run(approver, lambda said: write_status(config.data / "status", name, said), ready)
    facts.close()


def connected(config: Config, cluster: str) -> Cluster:
    """The apiserver under the approver's account; nothing is sent yet.

    Raises:
        ClusterUnavailableError: the kubeconfig cannot be read or used.
    """
    given = config.clusters[cluster]
    connection = connect(given.approver)
    return Cluster(KubeCertificateRequests(connection), KubeLeases(connection, given.namespace), KubeTokens(connection))
