"""One join process, put together: files, keys, journal, clusters."""

import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from flask import Flask

from netboot.config import Cluster, Config
from netboot.join.parts import Parts
from netboot.lifecycle.bootid import belongs
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.ports import Clock
from netboot.status import ClusterStatus, JoinStatus
from netboot.stores.bootkey import load_or_create
from netboot.stores.facts import Facts
from netboot.stores.live import LiveView
from netboot.stores.register import open_register
from netboot.stores.sealing import NONCES, SealingKeys
from netboot.stores.status import write_status
from netboot.web.join import create_app, preflight
from netboot.web.join.health import said
from netboot.web.join.limits import Buckets
from netboot.web.join.parts import Desk
from netboot.web.join.tls import Certificate

REPORT_SECONDS = 3.0


def compose(
    config: Config,
    index: int,
    certificate: Certificate,
    clock: Clock,
    stopping: Callable[[], bool],
    connect: Callable[[str, Cluster], preflight.Connected] | None = None,
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
    clusters = {name: partial(connect or _reach, name, one) for name, one in config.clusters.items()}
    fit = preflight.Fitness(clusters, clock.now_ms, sweeps=index == 0)
    parts = Parts(
        site=config.site,
        clusters=fit,
        view=live.view,
        enrolments=open_register(config, lambda: live.view().snapshot.inventory),
        keyset=keys,
        nonce_keyset=SealingKeys(config.join.nonce_keys, NONCES),
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
    desk = Desk(parts, fit, hellos, attests, problems, stopping)
    for name, target in (("fitness", fit.run), ("report", partial(_report_for_ever, config, index, desk))):
        threading.Thread(target=target, name=name, daemon=True).start()
    return create_app(desk)


def _report_for_ever(config: Config, index: int, desk: Desk) -> None:
    """For the control plane's `/readyz`; beside the checks, which wait for an apiserver that does not answer."""
    while True:
        found = said(desk)
        message = "; ".join(found["problems"]) or "machines can join"
        clusters = {name: ClusterStatus.model_validate(one) for name, one in found["clusters"].items()}
        status = JoinStatus(at_ms=desk.parts.now_ms(), ok=found["ready"], message=message, clusters=clusters)
        with suppress(OSError):
            write_status(config.data / "status", f"join-{index}", status)
        time.sleep(REPORT_SECONDS)


def _reach(name: str, cluster: Cluster) -> preflight.Connected:
    from netboot.kube.targets import reach  # half a second that tests with a cluster in memory need not wait

    return reach(name, cluster)
