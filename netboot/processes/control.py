"""What the control plane works with."""

import os
import secrets
import threading
from collections.abc import Callable
from typing import Any

from netboot.config import Config
from netboot.join.parts import Parts as Exchange
from netboot.join.register import Register
from netboot.lifecycle.decide import View
from netboot.lifecycle.errors import CannotTellError
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
            joining=_joining(config, live.view, register) if config.clusters else None,
            boot_key=lambda: load_or_create(config.data / "boot-id.key"),
        )
    )


def _joining(config: Config, view: Callable[[], View], register: Register) -> Exchange:
    """For operators' tokens: no exchange is sealed or opened here, and no fact of a boot is learnt."""
    from netboot.kube.targets import Targets  # the client of Kubernetes is large: only with clusters

    def no_keys() -> Any:
        raise CannotTellError("the control plane has no sealing keys")

    return Exchange(
        site=config.site,
        clusters=Targets(config.clusters),
        view=view,
        enrolments=register,
        keyset=no_keys,
        nonce_keyset=no_keys,
        belongs=lambda _boot, _machine: False,
        journal=lambda _record: None,
        now_ms=SystemClock().now_ms,
        random=os.urandom,
        choice=secrets.choice,
        token_seconds=300,
    )
