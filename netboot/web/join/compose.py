"""One join process, put together: files, keys, journal, clusters."""

import os
import secrets
import threading
from collections.abc import Callable
from functools import partial

from flask import Flask

from netboot.config import Cluster, Config
from netboot.join.errors import ClusterUnavailableError
from netboot.join.parts import Parts, Target
from netboot.join.preconditions import check
from netboot.lifecycle.bootid import belongs
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.stores.bootkey import load_or_create
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.facts import Facts
from netboot.stores.live import LiveView
from netboot.stores.sealing import SealingKeys
from netboot.web.join import create_app, fitness
from netboot.web.join.limits import Buckets
from netboot.web.join.parts import Desk
from netboot.web.join.tls import Certificate


def compose(
    config: Config,
    index: int,
    certificate: Certificate,
    clock: Clock,
    stopping: Callable[[], bool],
    connect: Callable[[str, Cluster], fitness.Connected] | None = None,
) -> Flask:
    """The application of process `join-<index>`, and the thread that asks the clusters whether they are fit.

    `connect`: how a cluster is reached, for tests.

    Raises:
        StateUnavailableError: the boot-id key cannot be read or made.
    """
    assert config.join is not None
    key = load_or_create(config.data / "boot-id.key")
    live, keys = LiveView(config.data / "snapshot.json"), SealingKeys(config.join.sealing_keys)
    facts = Facts(config.data / "journal" / f"join-{index}.db")
    reach = connect or connected
    clusters = {name: fitness.Cluster(name, partial(reach, name, one)) for name, one in config.clusters.items()}
    fit = fitness.Fitness(clusters, clock.now_ms, sweeps=index == 0)
    parts = Parts(
        site=config.site,
        clusters=fit.target,
        gate=fit.gate,
        view=live.view,
        enrolments=SqliteEnrolments(config.data / "enrolment.db"),
        keyset=keys,
        belongs=lambda boot, machine: belongs(key, boot, machine),
        journal=facts.append,
        now_ms=clock.now_ms,
        random=os.urandom,
        choice=secrets.choice,
        token_seconds=config.join.token_seconds,
        addresses_attest=config.join.addresses_attest,
    )

    def problems() -> list[str]:
        try:
            keys()
        except CannotTellError as error:
            return [str(error)]
        return [words for words in (keys.problem, certificate.problem, facts.failure) if words is not None]

    hellos, attests = (Buckets(config.join.hellos_per_minute) for _ in range(2))
    threading.Thread(target=fit.run, name="fitness", daemon=True).start()
    return create_app(Desk(parts, fit, hellos, attests, problems, stopping))


def connected(name: str, cluster: Cluster) -> fitness.Connected:
    """Everything that the issuer's account of a cluster is used for; nothing is sent yet.

    Raises:
        ClusterUnavailableError: its kubeconfig or authorities cannot be read.
    """
    from netboot.kube.connection import connect
    from netboot.kube.leases import KubeLeases
    from netboot.kube.nodes import KubeNodes
    from netboot.kube.preconditions import KubePreconditions
    from netboot.kube.secrets import KubeTokens

    try:
        authorities = cluster.authority.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not PEM"
        raise ClusterUnavailableError(f"{cluster.authority} cannot be read: {why}") from None
    connection = connect(cluster.issuer)
    target = Target(
        name=name,
        endpoints=cluster.endpoints,
        authorities=authorities,
        leases=KubeLeases(connection, cluster.namespace),
        tokens=KubeTokens(connection),
        nodes=KubeNodes(connection),
    )
    return target, partial(check, KubePreconditions(connection, cluster.namespace), cluster.namespace)
