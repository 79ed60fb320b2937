"""The process `management`: the operators' API, health of the service, metrics (docs/http-management.md)."""

import secrets
from collections.abc import Callable
from functools import partial

from netboot.clock import SteadyClock, SystemClock
from netboot.config import Config
from netboot.join.enrolment import EnrolmentStore
from netboot.join.issue import Issuer
from netboot.join.register import Register
from netboot.lifecycle.intents import Intents
from netboot.lifecycle.publish import fault_of
from netboot.oidc.logins import Logins
from netboot.oidc.people import People
from netboot.process import ProcessSpec
from netboot.processes.shared import drains_of, rollouts_of
from netboot.status import up_ms
from netboot.stores import bootkey
from netboot.stores.acceptance import Acceptance
from netboot.stores.audit import SqliteAudit
from netboot.stores.conditions import SqliteConditions
from netboot.stores.freezes import SqliteFreezes
from netboot.stores.history import SqliteHistory
from netboot.stores.idempotency import SqliteIdempotency
from netboot.stores.image_repository import open_image_repository
from netboot.stores.intents import SqliteIntents
from netboot.stores.inventory import holds_in, read_inventory
from netboot.stores.inventory_files import InventoryFiles
from netboot.stores.live import LiveView
from netboot.stores.register import open_register
from netboot.stores.remedies import SqliteRemedies
from netboot.stores.removals import RemovalsFile
from netboot.stores.shared_rollouts import SharedRollouts
from netboot.stores.signal import SaidSignal
from netboot.stores.state import SqliteStates
from netboot.stores.status import StatusFolder, room
from netboot.turns import Places
from netboot.web.app import create_app
from netboot.web.dependencies import Dependencies
from netboot.web.kept import Kept
from netboot.web.metrics import Now, exposition
from netboot.web.probe import Probe
from netboot.web.server import THREADS, Server
from netboot.web.tls import Certificate
from netboot.web.tokens import Tokens, Vouching
from netboot.web.watchers import MOST_WATCHERS, Watchers

RENEW = "netboot config management-certificate"
SCRAPE_SECONDS = 1.0
"""For which what `/metrics` answers is given to all who ask, and no token is asked for."""
IN_LINES, STRANGERS = THREADS - MOST_WATCHERS - 6, 12
"""Threads that may wait for an issuer or a cluster, all lines together: six of the listener's are left to whoever has a
token of the site, however slow those are; and of strangers."""
STORE_SECONDS = 5.0
"""For which an operator's change waits for another writer of the store."""


def run(spec: ProcessSpec) -> None:
    """Serve until told to stop."""
    beats = spec.heartbeat(), spec.heartbeat("arbiter")
    tls = spec.config.management.tls
    certificate = Certificate(tls.certificate, tls.key, RENEW) if tls is not None else None
    Server(
        spec.inherited(),
        lambda stopping: create_app(
            compose(spec.config, stopping, lambda: certificate.expires_ms if certificate is not None else None)
        ),
        spec.say_ready,
        beats,
        certificate=certificate,
    ).run()


def compose(
    config: Config, stopping: Callable[[], bool], expires_ms: Callable[[], int | None] = lambda: None
) -> Dependencies:
    """What the operators' API works with. `stopping`: whether this process was told to end; `expires_ms`: see
    `Dependencies.certificate_expires_ms`."""
    live, states = LiveView(config.data / "snapshot.json"), SqliteStates(config.data / "state.db")
    repository, history = open_image_repository(config, STORE_SECONDS), SqliteHistory(config.data / "history.db")
    register = open_register(config, lambda: live.view().snapshot.inventory, _enrolments(config))
    intents, rollouts = SqliteIntents(config.data / "intents.db"), rollouts_of(config, repository)
    conditions = SqliteConditions(config.data / "conditions.db")
    status, clock = StatusFolder(config.data / "status"), SystemClock()
    people = People(config.management.oidc, clock.now_ms) if config.management.oidc is not None else None
    places = Places(IN_LINES, STRANGERS)
    return Dependencies(
        live=live,
        states=states,
        sightings=states,
        conditions=conditions,
        summaries=conditions,
        history=history,
        rollouts=rollouts,
        unusable=partial(
            fault_of,
            repository=repository,
            minimum_epoch=config.minimum_epoch,
            revoked=lambda: live.view().snapshot.revocations.images,
            fetched=config.upstream is not None,
        ),
        repository=repository,
        repository_writer=rollouts if isinstance(rollouts, SharedRollouts) else repository,
        points_to=rollouts.channel if isinstance(rollouts, SharedRollouts) else repository.channel,
        point_alone=rollouts.alone if isinstance(rollouts, SharedRollouts) else None,
        tokens=Tokens(
            config.management.token_file, config.management.tokens, clock.now_ms, _vouching(config, people, places)
        ),
        audit=SqliteAudit(config.data / "audit.db"),
        idempotency=SqliteIdempotency(config.data / "audit.db", secrets.token_hex(8)),
        clock=clock,
        steady=SteadyClock(clock.now_ms),
        declared=partial(read_inventory, config),
        inventory_files=InventoryFiles(config),
        inventory_limits=config.inventory_limits,
        acceptance=Acceptance(config.data),
        removals=RemovalsFile(config.data),
        status=status,
        room=partial(room, config.data),
        probe=Probe(config.provisioning.listen),
        metrics=partial(exposition, Now(live, states, history, status, clock)),
        scrapes=Kept(SCRAPE_SECONDS),
        certificate_expires_ms=expires_ms,
        stopping=stopping,
        watchers=Watchers(),
        register=register,
        intents=intents,
        freezes=SqliteFreezes(config.data / "intents.db"),
        signals=SaidSignal(config, up_ms),
        drains=drains_of(config),
        remedies=SqliteRemedies(config.data / "intents.db"),
        issuer=_issuer(config, register, intents) if config.clusters else None,
        has_join=config.join is not None,
        boot_key=partial(bootkey.key_of, config),
        site=partial(bootkey.said, config),
        up_ms=up_ms,
        holds_in=holds_in(config),
        replicas=config.replicas is not None,
        logins=Logins(people, config.management.base_url, places) if people is not None else None,
    )


def _vouching(config: Config, people: People | None, places: Places) -> list[Vouching]:
    """Who else knows people by their tokens; the issuer first, for its tokens name it."""
    others: list[Vouching] = [people] if people is not None else []
    if config.management.token_review is not None:
        from netboot.kube.token_reviews import Reviews  # the client of Kubernetes is large: only with clusters

        others.append(Reviews(config.management.token_review, places=places))
    return others


def _enrolments(config: Config) -> EnrolmentStore | None:
    """Those in a cluster; None: they are on disk."""
    if config.enrolments_kubernetes is None:
        return None
    from netboot.kube.enrolments import open_enrolments  # the client of Kubernetes is large: only with clusters

    return open_enrolments(config.enrolments_kubernetes, "reader")


def _issuer(config: Config, register: Register, intents: Intents) -> Issuer:
    from netboot.kube.clusters import Clusters  # the client of Kubernetes is large: only with clusters

    return Issuer(
        clusters=Clusters(config.clusters),
        enrolments=register,
        intents=intents,
        journal=None,
        now_ms=SystemClock().now_ms,
        choice=secrets.choice,
    )
