"""The processes `join-<index>`: machines prove what they are and get a token (docs/join.md)."""

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from netboot.clock import SystemClock
from netboot.config import Config, Join
from netboot.config_nodes import Cluster
from netboot.connections import allow_files
from netboot.join.departed import clear_departed
from netboot.join.enrolment import EnrolmentStore
from netboot.join.exchange import Exchange
from netboot.join.issue import Issuer
from netboot.join.issued_tokens import sweep
from netboot.join.left_nodes import LeftNodes
from netboot.join.ports import ClusterAccess
from netboot.join.preconditions import Connected
from netboot.lifecycle.bootid import belongs
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.intents import Intents
from netboot.lifecycle.ports import Clock
from netboot.lifecycle.state import KEPT
from netboot.machines.values import Inventory
from netboot.process import ProcessSpec
from netboot.reread import Reread
from netboot.status.join import JoinStatus
from netboot.stores import bootkey
from netboot.stores.facts import Facts
from netboot.stores.intents import SqliteIntents
from netboot.stores.live import LiveView
from netboot.stores.register import open_register
from netboot.stores.said_enrolments import SayEnrolments, changes_of, recorded
from netboot.stores.sealing import NONCES, sealing_keys
from netboot.stores.state import SqliteStates
from netboot.stores.status import StatusFile
from netboot.web.join import preflight
from netboot.web.join.app import Dependencies, create_app, readiness
from netboot.web.join.limits import Buckets
from netboot.web.join.server import JoinServer
from netboot.web.refusals import Refusals
from netboot.web.tls import Certificate
from tokens.sealed import Keyset

REPORT_SECONDS = 3.0


def run(spec: ProcessSpec) -> None:
    """Serve until told to stop.

    Raises:
        StateUnavailableError: the certificate cannot be used, or the boot-id key cannot be read or made.
    """
    config = spec.config
    assert config.join is not None
    join, clock, certificate = config.join, SystemClock(), Certificate(config.join.certificate, config.join.key)
    certificate.context()  # so that a certificate that cannot be used is said at once, and not to every machine
    allow_files(-(-join.max_connections // join.workers))

    async def serve() -> None:
        server = JoinServer(
            join, certificate, lambda stopping: create_app(compose(config, spec.index, certificate, clock, stopping))
        )
        await server.serve(spec.inherited(), spec.say_ready, spec.heartbeat())

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(serve())


def compose(
    config: Config,
    index: int,
    certificate: Certificate,
    clock: Clock,
    stopping: Callable[[], bool],
    connect: Callable[[str, Cluster], Connected] | None = None,
) -> Dependencies:
    """What join works with, and the threads that ask the clusters whether they are fit and report it.

    `connect`: how a cluster is reached, for tests.

    Raises:
        StateUnavailableError: the boot-id key cannot be read or made.
    """
    assert config.join is not None
    live, keys = LiveView(config.data / "snapshot.json"), sealing_keys(config.join.sealing_keys)
    facts = Facts(config.data / "journal" / f"join-{index}.db")
    intents = SqliteIntents(config.data / "intents.db")
    enrolments = _enrolments(config)
    said = SayEnrolments(config, enrolments, clock.now_ms) if enrolments is not None and index == 0 else None
    reached = {name: partial(connect or _reach, name, cluster) for name, cluster in config.clusters.items()}
    clean = partial(_clean, live, left_nodes(config)) if index == 0 else None
    clusters = preflight.CheckedClusters(reached, clock.now_ms, clean)
    issuer = Issuer(
        clusters=clusters,
        enrolments=open_register(config, lambda: live.view().snapshot.inventory, enrolments),
        intents=intents,
        journal=facts.append,
        now_ms=clock.now_ms,
        choice=secrets.choice,
    )
    exchange = _exchange(config, config.join, issuer, live, keys)
    hellos, attests = (Buckets(config.join.hellos_per_minute) for _ in range(2))
    problems = partial(_problems, keys, certificate, facts, intents, said)
    dependencies = Dependencies(exchange, clusters, hellos, attests, problems, stopping, Refusals())
    report = partial(_report_for_ever, config, index, dependencies, certificate, said)
    for name, target in (clusters.loops() | {"report": report}).items():
        threading.Thread(target=target, name=name, daemon=True).start()
    return dependencies


def _exchange(config: Config, join: Join, issuer: Issuer, live: LiveView, keys: Reread[Keyset]) -> Exchange:
    bootkey.key_of(config)
    key = bootkey.BootIdKey(bootkey.file_of(config))
    return Exchange(
        issuer=issuer,
        site=config.site,
        view=live.view,
        keyset=keys.current,
        nonce_keyset=sealing_keys(join.nonce_keys, NONCES).current,
        belongs=lambda boot, machine: belongs(key.current(), boot, machine),
        random=os.urandom,
        token_seconds=join.token_seconds,
        image_of=partial(_image_of, SqliteStates(config.data / "state.db")),
        addresses_attest=join.addresses_attest,
        boot_days=join.boot_days,
    )


def _image_of(states: SqliteStates, boot: str) -> str | None:
    trace = states.boot(boot)
    return trace.script.image if trace is not None and trace.script is not None else None


def left_nodes(config: Config) -> LeftNodes:
    """By who is retired on record, and which Nodes were seen to be whose."""
    enrolments, states, file = recorded(config), SqliteStates(config.data / "state.db"), changes_of(config)
    asking, found = threading.Lock(), dict[str, int]()

    def retired() -> Mapping[str, int]:
        """On disk read again when it changed: all that is on record is much to read each minute. What is said of a
        cluster is little, and too old while nothing changes."""
        nonlocal found
        with asking:  # each cluster has a thread
            if file.changed() or config.enrolments_kubernetes is not None:
                found = {one.machine: one.since_ms for one in enrolments.records() if one.state == "retired"}
                file.taken()
            return found

    def its(machine: str, uid: str) -> bool:
        return any(boot.node_uid == uid for boot in states.boots(machine, sum(KEPT.values())))

    return LeftNodes(retired, its)


def _clean(live: LiveView, nodes: LeftNodes, cluster: ClusterAccess, now_ms: int) -> None:
    """Tokens that have expired, then Leases and Nodes of machines that have left or are retired: by an inventory that
    is no older than they."""
    sweep(cluster, now_ms)

    def inventory() -> Inventory | None:
        found = live.view().snapshot.inventory
        return found if live.problem is None else None

    clear_departed(cluster, inventory, nodes, now_ms)


def _problems(
    keys: Reread[Keyset], certificate: Certificate, facts: Facts, intents: Intents, said: SayEnrolments | None
) -> list[str]:
    """What is wrong with this process's own files and journal, and with what says who may not join."""
    try:
        keys.current()
        intents.of("", SystemClock().now_ms())
    except CannotTellError as error:
        return [str(error)]
    unread = said.problem or None if said is not None else None
    return [problem for problem in (keys.problem, certificate.problem, facts.failure, unread) if problem is not None]


def _report_for_ever(
    config: Config, index: int, dependencies: Dependencies, certificate: Certificate, said: SayEnrolments | None
) -> None:
    """For the management server's `/readyz`, until this process is told to stop. A thread of its own, for the checks
    wait for an apiserver that does not answer. `said`: what is written of enrolments beside it."""
    file = StatusFile(config.data / "status", f"join-{index}")
    while True:
        if said is not None:
            said.tell()
        also = {"certificate_expires_ms": certificate.expires_ms, "refused": dependencies.refusals.by_status()}
        file.write(status_of(dependencies).model_copy(update=also))
        if dependencies.stopping():
            return
        time.sleep(REPORT_SECONDS)


def status_of(dependencies: Dependencies) -> JoinStatus:
    """In order: machines can join, and nothing else needs to be looked at."""
    state = readiness(dependencies)
    problems = [*state.problems, *dependencies.clusters.defects()]
    return JoinStatus(
        at_ms=dependencies.exchange.issuer.now_ms(),
        ok=not problems,
        message="; ".join(problems) or "machines can join",
        clusters=state.clusters,
    )


def _enrolments(config: Config) -> EnrolmentStore | None:
    """Those in a cluster; None: they are on disk."""
    if config.enrolments_kubernetes is None:
        return None
    from netboot.kube.enrolments import open_enrolments  # the client of Kubernetes is large

    return open_enrolments(config.enrolments_kubernetes, "join")


def _reach(name: str, cluster: Cluster) -> Connected:
    from netboot.kube.clusters import reach  # half a second that tests with a cluster in memory need not wait

    return reach(name, cluster)
