"""How a process takes part in the election of its leader, where the configuration has `replicas` (docs/ha.md)."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

from netboot.config import Config
from netboot.config_replicas import Replicas, elections_of
from netboot.controllers import runner
from netboot.controllers.elector import Elector
from netboot.controllers.led import Led
from netboot.controllers.runner import Controller
from netboot.kube.connection import Acting, connect
from netboot.kube.elections import KubeElection
from netboot.lifecycle.election import Times
from netboot.process import ProcessSpec
from netboot.status.reporting import Reporting

_ACCOUNTS = {"rollouts": "orders"}
"""Kind → the key of its account in the configuration, where that is called otherwise."""


class Leading(NamedTuple):
    """Of one process. `elector` None: there is one replica, which does what there is to do."""

    elector: Elector | None
    long_seconds: float = 0.0

    @property
    def acting(self) -> Acting:
        """Around each request that changes something."""
        return nullcontext if self.elector is None else self.elector.acting

    def leads(self) -> bool:
        """Whether this replica does at this moment."""
        return self.elector is None or self.elector.leads()

    def another(self) -> bool:
        """Whether it is known that another replica does."""
        return self.elector is not None and self.elector.another()

    def run(self, controller: Controller, say: Callable[[Reporting], bool], spec: ProcessSpec) -> None:
        """Have the controller work until the process is told to stop; where there are several, as one of them. `say`:
        writes what it says of itself; whether it could."""
        if self.elector is None:
            runner.run(controller, say, spec.say_ready, spec.heartbeat())
            return
        led = Led(controller, self.elector, self.long_seconds)
        runner.run(led, led.saying(say), spec.say_ready, spec.heartbeat())


def leading(config: Config, kind: str, cluster: str) -> Leading:
    """Of a process of a cluster (`approver`, `nodes`), of the one that writes the status of Machines (`shipper`), or of
    the loop that drives rollouts (`rollouts`), where these are shared."""
    replicas = config.replicas
    place = config.clusters[cluster] if cluster else config.inventory_kubernetes
    account = getattr(place, _ACCOUNTS.get(kind, kind), None)
    if replicas is None or place is None or account is None:
        return Leading(None)
    connected = partial(_election, account, elections_of(place.namespace), kind, replicas)
    elector = Elector(f"{kind}-{cluster}" if cluster else kind, replicas.called, connected, times_of(replicas))
    return Leading(elector, 2.0 * replicas.lease_seconds)


def times_of(replicas: Replicas) -> Times:
    """As the configuration has them."""
    seconds = replicas.lease_seconds, replicas.renew_seconds, replicas.retry_seconds
    return Times(*(round(1000 * each) for each in seconds))


def _election(kubeconfig: Path, namespace: str, name: str, replicas: Replicas) -> KubeElection:
    """Over a connection of its own, whose writes nothing holds up; an answer that comes too late is not waited for."""
    return KubeElection(connect(kubeconfig, read=replicas.renew_seconds / 2), namespace, name)
