"""What the control plane works with."""

import secrets
import threading
from collections.abc import Callable
from typing import Any

from netboot.config import Config
from netboot.join.issue import Issuer
from netboot.join.register import Register
from netboot.processes.clock import SystemClock
from netboot.processes.image_repository import open_image_repository
from netboot.stores.bootkey import load_or_create
from netboot.stores.live import LiveView
from netboot.stores.register import open_register
from netboot.stores.state import SqliteStates
from netboot.stores.status import StatusFolder
from netboot.web import create_app
from netboot.web.dependencies import Dependencies
from netboot.web.metrics import Now, exposition
from netboot.web.probe import Probe
from netboot.web.tokens import TokenFile
from netboot.web.watch import MOST_WATCHERS


def make_web(config: Config, stopping: Callable[[], bool]) -> Any:
    """The control plane's application."""
    live, states = LiveView(config.data / "snapshot.json"), SqliteStates(config.data / "state.db")
    repository = open_image_repository(config)
    register = open_register(config, lambda: live.view().snapshot.inventory)

    status = StatusFolder(config.data / "status")
    now = Now(live, states, status, SystemClock())
    return create_app(
        Dependencies(
            live=live,
            states=states,
            sightings=states,
            repository=repository,
            repository_writer=repository,
            tokens=TokenFile(config.management.token_file),
            clock=SystemClock(),
            inventory=config.inventory,
            status=status,
            probe=Probe(config.provisioning.listen),
            metrics=lambda: exposition(config.data / "metrics", now),
            stopping=stopping,
            watchers=threading.BoundedSemaphore(MOST_WATCHERS),
            register=register,
            issuer=_issuer(config, register) if config.clusters else None,
            boot_key=lambda: load_or_create(config.data / "boot-id.key"),
        )
    )


def _issuer(config: Config, register: Register) -> Issuer:
    from netboot.kube.clusters import Clusters  # the client of Kubernetes is large: only with clusters

    return Issuer(
        clusters=Clusters(config.clusters),
        enrolments=register,
        journal=None,
        now_ms=SystemClock().now_ms,
        choice=secrets.choice,
    )
