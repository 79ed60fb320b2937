"""How a started Python becomes one of the processes of the service."""

import logging
import os
import shutil
import socket
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit

from images.store import modes
from netboot import credentials, logs
from netboot.config import Config
from netboot.confine.access import Access, access_of
from netboot.lifecycle.errors import StateUnavailableError
from netboot.process import ProcessSpec, end_with
from netboot.stores.bootkey import key_of

log = logging.getLogger(__name__)


def start(spec: ProcessSpec) -> None:
    """Be the process of this kind until told to stop: `run` of the file here that bears the kind's name, confined to
    what the kind needs.

    Raises:
        OrphanedError: the supervisor has ended already. OSError: it cannot be confined.
    """
    end_with(spec.supervisor)
    logs.set_up(spec.name, spec.kind, spec.config.log)
    access = access_of(spec.kind, spec.name, spec.cluster, spec.config)
    _make(spec.config)
    _temporary_files_in(spec.config.data / "tmp" / spec.name)
    from netboot.confine.enter import enter  # it loads SQLite, which looks now where temporary files go

    run = import_module(f"netboot.processes.{spec.kind}").run
    if spec.broker is not None:
        credentials.ask(socket.socket(fileno=spec.broker))
    enter(access, _ports(access))
    run(spec)


def _make(config: Config) -> None:
    """Folders, and the key, that a process finds once it is confined, and may not make then. What fails is said by who
    needs it."""
    with suppress(OSError, StateUnavailableError):
        modes.folder(config.store, config.store)
        for folder in ("accepted", "journal", "pause", "resources", "status", "traces"):
            (config.data / folder).mkdir(parents=True, exist_ok=True)
        if config.keys_kubernetes is not None:
            config.keys_kubernetes.place(config.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        key_of(config)


def _temporary_files_in(folder: Path) -> None:
    """Python's and SQLite's. Nothing in there outlives the process, but where that left what cannot be removed, or the
    disk takes nothing: then it goes on with what there is."""
    try:
        with suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        log.warning("temporary files cannot be made in %s: %s", folder, error.strerror)
        return
    os.environ["TMPDIR"] = os.environ["SQLITE_TMPDIR"] = str(folder)


def _ports(access: Access) -> frozenset[int]:
    """Where the apiservers are that it asks, as their kubeconfigs say now."""
    if not access.kubeconfigs:
        return frozenset()
    from netboot.kube.errors import KubeconfigError
    from netboot.kube.kubeconfig import read_kubeconfig  # only where there is a cluster

    ports = set()
    for path in access.kubeconfigs:
        try:
            ports.add(urlsplit(read_kubeconfig(path).server).port or 443)
        except KubeconfigError:
            continue  # whoever needs it says so, and it may come
    return frozenset(ports)
