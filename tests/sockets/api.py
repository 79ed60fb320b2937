"""The management API in process: a real store and snapshot, the state in memory."""

import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from images.artifact.keyring import KeyRing
from images.store.store import Store
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.join.parts import Parts as Joining
from netboot.join.parts import Target
from netboot.join.register import Register
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.live import LiveView
from netboot.web import create_app
from netboot.web.measures import Now, exposition
from netboot.web.parts import Parts
from netboot.web.tokens import TokenFile
from tests.enrolments import MemoryEnrolments
from tests.kube_fake import FakeCluster
from tests.sites import INVENTORY, TOKEN, make_site
from tests.states import MemoryStates
from tokens.sealed import Keyset

NOW = 1_700_000_100_000
WELL: dict[str, dict[str, Any]] = {
    "processes": {
        "state": "running",
        "processes": {"boot-0": {"ready": True, "restarts": 0}, "management": {"ready": True}},
    },
    "publisher": {
        "at_ms": NOW - 1_000,
        "inventory": {"ok": True, "valid": True, "message": "in force"},
        "images": {"ok": True, "message": "all", "unusable": {}},
        "bundle": {"ok": True, "message": "fits"},
    },
    "projection": {"at_ms": NOW - 1_000, "taken": 3, "unreadable": 0, "lag_records": {"boot-0.db": 0}, "problems": {}},
}


class Fixed:
    """A clock that stands still."""

    def now_ms(self) -> int:
        return NOW


def _no_keys() -> Keyset:
    raise AssertionError("operators' tokens are not sealed")


class Api:
    """`get`, `put` and `post` with the operator's token."""

    def __init__(self, root: Path, *, inventory: str = INVENTORY, publish: bool = True, clusters: bool = True) -> None:
        self.config = make_site(root / "site", inventory=inventory)
        self.config.data.mkdir()
        self.store, self.states = Store(self.config.store), MemoryStates()
        self.status: dict[str, dict[str, Any]] = dict(WELL)
        self.probe: dict[str, Any] = {"ok": True, "message": "answers"}
        self.stopping = False
        self.fit: Callable[[], None] = lambda: None
        self.watchers = threading.BoundedSemaphore(2)
        self.repository = StoreImageRepository(self.store, KeyRing(self.config.keys))
        self.publisher = SnapshotPublisher(self.config, self.repository, self.repository, self.states, Fixed())
        if publish:
            self.publisher.step()
        self.live = LiveView(self.config.data / "snapshot.json")
        self.enrolments = MemoryEnrolments()
        self.register = Register(self.enrolments, lambda: self.live.view().snapshot.inventory)
        self.cluster = FakeCluster()
        self.joining = self._joining() if clusters else None
        self.authorised = {"Authorization": f"Bearer {TOKEN}"}
        self.client: FlaskClient = create_app(self._parts()).test_client()

    def _joining(self) -> Joining:
        ports = (self.cluster.leases, self.cluster.tokens, self.cluster.nodes)
        target = Target("default", ("https://192.0.2.1:6443",), "PEM", *ports, fit=lambda: self.fit())
        return Joining(
            site="test",
            clusters={"default": target},
            view=self.live.view,
            enrolments=self.register,
            keyset=_no_keys,
            nonce_keyset=_no_keys,
            belongs=lambda _boot, _machine: True,
            journal=lambda _record: None,
            now_ms=Fixed().now_ms,
            random=os.urandom,
            choice=secrets.choice,
            token_seconds=300,
        )

    def _parts(self) -> Parts:
        now = Now(self.live, self.states, lambda name: self.status.get(name), Fixed())
        return Parts(
            live=self.live,
            states=self.states,
            sightings=self.states,
            repository=self.repository,
            repository_writer=self.repository,
            tokens=TokenFile(self.config.management.token_file),
            clock=Fixed(),
            inventory=self.config.inventory,
            status=lambda name: self.status.get(name),
            probe=lambda: self.probe,
            metrics=lambda: exposition(self.config.data / "metrics", now),
            stopping=lambda: self.stopping,
            watchers=self.watchers,
            register=self.register,
            joining=self.joining,
            boot_key=lambda: bytes(32),
        )

    def get(self, path: str, token: str | None = TOKEN) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        return self.client.get(path, headers=headers)

    def put(self, path: str, body: Any, token: str | None = TOKEN) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        return self.client.put(path, json=body, headers=headers)

    def post(self, path: str, body: Any, token: str | None = TOKEN) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        if isinstance(body, str):
            return self.client.post(path, data=body.encode(), content_type="text/csv", headers=headers)
        return self.client.post(path, json=body, headers=headers)
