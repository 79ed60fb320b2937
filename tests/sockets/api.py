"""The management API in process: a real store and snapshot, the state in memory."""

import secrets
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from images.artifact.keyring import KeyRing
from images.store.store import Store
from images.values.strict import Strict
from netboot.clock import SteadyClock
from netboot.config_access import Oidc
from netboot.config_outside import InKubernetes
from netboot.config_replicas import Replicas
from netboot.controllers.snapshot_publisher import SnapshotPublisher
from netboot.join.issue import Issuer
from netboot.join.ports import ClusterAccess
from netboot.join.register import Register
from netboot.lifecycle.publish import fault_of
from netboot.lifecycle.roles import Role
from netboot.oidc.logins import Logins
from netboot.oidc.people import People
from netboot.status import Condition
from netboot.status.controllers import (
    ImagesStatus,
    InventoryStatus,
    LifecycleStatus,
    ProjectionStatus,
    PublisherStatus,
    RolloutsStatus,
    RolloutStatus,
)
from netboot.status.supervisor import ProcessStatus, SupervisorStatus
from netboot.stores import access_tokens, bootkey
from netboot.stores.acceptance import Acceptance
from netboot.stores.access_tokens import AccessToken
from netboot.stores.audit import SqliteAudit
from netboot.stores.audit import make as make_audit
from netboot.stores.conditions import JudgedFile, SqliteConditions
from netboot.stores.drains import SqliteDrains
from netboot.stores.freezes import SqliteFreezes
from netboot.stores.history import SqliteHistory
from netboot.stores.history_writer import HistoryFile
from netboot.stores.idempotency import SqliteIdempotency
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.intents import make as make_intents
from netboot.stores.inventory import holds_in, read_inventory
from netboot.stores.inventory_files import InventoryFiles
from netboot.stores.live import LiveView
from netboot.stores.remedies import SqliteRemedies
from netboot.stores.removals import RemovalsFile
from netboot.stores.rollouts import SqliteRollouts, make
from netboot.stores.signal import SaidSignal
from netboot.stores.status import StatusFolder, write_status
from netboot.web.app import create_app
from netboot.web.dependencies import Dependencies
from netboot.web.kept import Kept
from netboot.web.metrics import Now, exposition
from netboot.web.tokens import Tokens
from netboot.web.watchers import Watchers
from tests.declared import DeclaredClient
from tests.enrolments import MemoryEnrolments
from tests.intents import MemoryIntents
from tests.kube_fake import FakeCluster
from tests.sites import INVENTORY, TOKEN, as_objects, make_site
from tests.states import MemoryStates

NOW = 1_700_000_100_000
HERE = "http://localhost"
"""Where a browser of the tests finds it."""
UP_MS = 9_000_000
"""Since the machine was started."""
UP = ProcessStatus(ready=True, pid=1, restarts=0, last_exit=None)
SUPERVISOR = SupervisorStatus(state="running", pid=1, uptime_ms=2**53, processes={"boot-0": UP, "management": UP})
PUBLISHER = PublisherStatus(
    at_ms=NOW - 1_000,
    up_ms=UP_MS - 1_000,
    inventory=InventoryStatus(ok=True, valid=True, message="in force"),
    images=ImagesStatus(ok=True, message="all", unusable={}),
    bundle=Condition(ok=True, message="fits"),
)
PROJECTION = ProjectionStatus(
    at_ms=NOW - 1_000,
    up_ms=UP_MS - 1_000,
    taken=3,
    set_aside={},
    replaced={},
    lag_records={"boot-0.db": 0},
    problems={},
)


LIFECYCLE = LifecycleStatus(at_ms=NOW - 1_000, up_ms=UP_MS - 1_000, conditions=(), overdue={}, waiting=0, unseen=())


ROLLOUTS = RolloutsStatus(
    at_ms=NOW - 1_000,
    up_ms=UP_MS - 1_000,
    rollouts=(RolloutStatus(number=7, channel="stable", state="running", undoing=False, machines={"done": 3}),),
)


class Fixed:
    """A clock that stands still."""

    def now_ms(self) -> int:
        return NOW


class Going:
    """One that goes, `ahead_ms` before the real one."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return round(time.time() * 1000) + self.ahead_ms


class Api:
    """`get`, `put` and `post` with the operator's token."""

    def __init__(
        self,
        root: Path,
        *,
        inventory: str = INVENTORY,
        publish: bool = True,
        clusters: bool = True,
        join: bool = True,
        places: int = 2,
        oidc: Oidc | None = None,
        here: str = HERE,
        writable: bool = False,
        kubernetes: InKubernetes | None = None,
        replicas: Replicas | None = None,
    ) -> None:
        """`clusters`, `join`: whether the service has them. `oidc`: an issuer, whose tokens are of now: the clock goes
        then; `here`: where its browsers find us. `kubernetes`: what was declared in files is custom resources."""
        self.config = make_site(root / "site", inventory=inventory)
        self.config = self.config.model_copy(
            update={"inventory_writable": writable, "inventory_kubernetes": kubernetes, "replicas": replicas}
        )
        self.here = here
        self.clock: Fixed | Going = Going() if oidc is not None else Fixed()
        self.people = People(oidc, self.clock.now_ms) if oidc is not None else None
        self.config.data.mkdir()
        if kubernetes is not None:
            as_objects(self.config)
        if oidc is not None:
            access_tokens.change(self.config.management.tokens, lambda there: there)
        self.store, self.states = Store(self.config.store), MemoryStates()
        self.say(supervisor=SUPERVISOR, publisher=PUBLISHER, projection=PROJECTION, lifecycle=LIFECYCLE)
        self.say(rollouts=ROLLOUTS)
        make(self.config.data / "rollouts.db").close()
        make_audit(self.config.data / "audit.db").close()
        self.rollouts = SqliteRollouts(self.config.data / "rollouts.db")
        self.kept = JudgedFile(self.config.data / "conditions.db")
        self.history = HistoryFile(self.config.data / "history.db")
        assert (self.kept.names(), self.history.machines()) == (set(), set())  # makes the files
        self.probe = Condition(ok=True, message="answers")
        self.stopping = False
        self.room: int | None = 2**40
        self.up_ms = UP_MS
        self.preflight: Callable[[], None] = lambda: None
        self.watchers = Watchers(places)
        self.repository = StoreImageRepository(self.store, KeyRing(self.config.keys))
        self.publisher = SnapshotPublisher(self.config, self.repository, self.repository, self.states, Fixed())
        if publish:
            self.publisher.step()
        self.live = LiveView(self.config.data / "snapshot.json")
        self.enrolments, self.intents = MemoryEnrolments(), MemoryIntents()
        make_intents(self.config.data / "intents.db").close()
        self.freezes = SqliteFreezes(self.config.data / "intents.db")
        self.drains = SqliteDrains(self.config.data / "intents.db")
        self.remedies = SqliteRemedies(self.config.data / "intents.db")
        self.register = Register(self.enrolments, lambda: self.live.view().snapshot.inventory)
        self.cluster = FakeCluster()
        self.issuer = self._issuer() if clusters else None
        self.has_join = join
        self.authorised = {"Authorization": f"Bearer {TOKEN}"}
        app = create_app(self._dependencies())
        app.test_client_class = DeclaredClient
        self.client: FlaskClient = app.test_client()

    def _issuer(self) -> Issuer:
        cluster = ClusterAccess(
            name="default",
            endpoints=("https://192.0.2.1:6443",),
            authorities="PEM",
            leases=self.cluster.leases,
            tokens=self.cluster.tokens,
            nodes=self.cluster.nodes,
            preflight=lambda: self.preflight(),
            clock_ahead_ms=lambda: 0,
            server_version=self.cluster.preconditions.server_version,
        )
        return Issuer(
            clusters={"default": cluster},
            enrolments=self.register,
            intents=self.intents,
            journal=None,
            now_ms=Fixed().now_ms,
            choice=secrets.choice,
        )

    def say(self, **statuses: Strict) -> None:
        """What processes say of themselves from now on."""
        for name, status in statuses.items():
            write_status(self.config.data / "status", name.replace("_", "-"), status)

    def _dependencies(self) -> Dependencies:
        status = StatusFolder(self.config.data / "status")
        history = SqliteHistory(self.config.data / "history.db")
        conditions = SqliteConditions(self.config.data / "conditions.db")
        now = Now(self.live, self.states, history, status, Fixed())
        return Dependencies(
            live=self.live,
            states=self.states,
            sightings=self.states,
            conditions=conditions,
            summaries=conditions,
            history=history,
            rollouts=self.rollouts,
            unusable=partial(
                fault_of,
                repository=self.repository,
                minimum_epoch=self.config.minimum_epoch,
                revoked=lambda: self.live.view().snapshot.revocations.images,
            ),
            repository=self.repository,
            repository_writer=self.repository,
            points_to=self.repository.channel,
            point_alone=None,
            tokens=Tokens(
                self.config.management.token_file,
                self.config.management.tokens,
                self.clock.now_ms,
                [self.people] if self.people is not None else [],
            ),
            audit=SqliteAudit(self.config.data / "audit.db"),
            idempotency=SqliteIdempotency(self.config.data / "audit.db", secrets.token_hex(8)),
            clock=self.clock,
            steady=SteadyClock(self.clock.now_ms),
            declared=partial(read_inventory, self.config),
            inventory_files=InventoryFiles(self.config),
            inventory_limits=self.config.inventory_limits,
            acceptance=Acceptance(self.config.data),
            removals=RemovalsFile(self.config.data),
            status=status,
            room=lambda: self.room,
            probe=lambda: self.probe,
            metrics=lambda: exposition(now),
            scrapes=Kept(0.0),
            certificate_expires_ms=lambda: NOW + 86_400_000,
            stopping=lambda: self.stopping,
            watchers=self.watchers,
            register=self.register,
            intents=self.intents,
            freezes=self.freezes,
            signals=SaidSignal(self.config, lambda: UP_MS),
            drains=self.drains,
            remedies=self.remedies,
            issuer=self.issuer,
            has_join=self.has_join,
            boot_key=lambda: bytes(32),
            site=lambda: bootkey.said(self.config),
            up_ms=lambda: self.up_ms,
            logins=Logins(self.people, self.here) if self.people is not None else None,
            holds_in=holds_in(self.config),
            replicas=self.config.replicas is not None,
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


def of_alice(api: Api) -> Api:
    """The same, whose operator has a name."""
    api.config.management.token_file.write_text(f"# alice\n{TOKEN}\n")
    return api


def given(api: Api, name: str, role: Role, expires_ms: int = NOW + 1) -> str:
    """A token of that role."""
    text = access_tokens.new_token()
    made = AccessToken(
        name=name, role=role, sha256=access_tokens.hash_of(text), created_ms=NOW - 9, expires_ms=expires_ms
    )
    access_tokens.change(
        api.config.management.tokens, lambda there: there.model_copy(update={"tokens": (*there.tokens, made)})
    )
    return text
