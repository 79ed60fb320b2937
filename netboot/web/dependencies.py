"""What the management server's views work with. `netboot.processes` puts it together; tests put fakes in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from flask import current_app

from netboot.config_limits import InventoryLimits
from netboot.join.issue import Issuer
from netboot.join.register import Register
from netboot.lifecycle.conditions import Conditions
from netboot.lifecycle.drains import DrainStore
from netboot.lifecycle.history import History
from netboot.lifecycle.image_repository import ImageRepository, ImageRepositoryWriter
from netboot.lifecycle.intents import FreezeStore, IntentStore
from netboot.lifecycle.ports import Clock, Sightings, States
from netboot.lifecycle.remedies import RemedyStore
from netboot.lifecycle.rollout_store import RolloutStore
from netboot.lifecycle.summary import Summaries
from netboot.machines.values import Inventory, Machine
from netboot.oidc.logins import Logins
from netboot.status import Condition
from netboot.stores.acceptance import Acceptance
from netboot.stores.audit import SqliteAudit
from netboot.stores.idempotency import SqliteIdempotency
from netboot.stores.inventory_files import InventoryFiles
from netboot.stores.live import LiveView
from netboot.stores.removals import RemovalsFile
from netboot.stores.signal import SaidSignal
from netboot.stores.status import StatusFolder
from netboot.web.kept import Kept
from netboot.web.tokens import Tokens
from netboot.web.watchers import Watchers

EXTENSION = "netboot"


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Ports and places.

    `status`: what processes say of themselves; `room`: bytes free for `data`, None: it cannot be told; `probe`: asks
    the provisioning listener for its readiness; `stopping`: whether this process was told to end; `watchers`: their
    places; `issuer`: None where this service knows no cluster.
    """

    live: LiveView
    states: States
    sightings: Sightings
    conditions: Conditions
    summaries: Summaries
    history: History
    rollouts: RolloutStore
    unusable: Callable[[str], str | None]
    """Why an image cannot be used, in words; None: it can, or would be fetched."""
    repository: ImageRepository
    repository_writer: ImageRepositoryWriter
    points_to: Callable[[str], str | None]
    """Where a channel points, at all replicas; None: nowhere yet."""
    point_alone: Callable[[str, str, str], Sequence[int] | None] | None
    """`(channel, image, who)`: it points there at this replica alone; the rollouts that end here by that, None: what
    they assigned stays so. None: there are no others."""
    tokens: Tokens
    audit: SqliteAudit
    idempotency: SqliteIdempotency
    clock: Clock
    steady: Clock
    """The same as of the start, and what has gone by since, whatever is set: by it is forgotten what is old."""
    declared: Callable[[], Inventory]
    """What its files say now; raises FaultsError."""
    inventory_files: InventoryFiles
    inventory_limits: InventoryLimits
    acceptance: Acceptance
    removals: RemovalsFile
    status: StatusFolder
    room: Callable[[], int | None]
    probe: Callable[[], Condition]
    metrics: Callable[[], bytes]
    scrapes: Kept
    stopping: Callable[[], bool]
    watchers: Watchers
    register: Register
    intents: IntentStore
    freezes: FreezeStore
    signals: SaidSignal
    drains: DrainStore
    remedies: RemedyStore
    issuer: Issuer | None
    has_join: bool
    """Whether there is a listener at which machines prove themselves."""
    boot_key: Callable[[], bytes]
    site: Callable[[], str]
    """As `netboot.stores.bootkey.said`."""
    up_ms: Callable[[], int]
    """`netboot.status.up_ms`, by which processes say when they were at work last."""
    certificate_expires_ms: Callable[[], int | None] = lambda: None
    """Of the operators' listener, milliseconds since 1970; None: it has none."""
    logins: Logins | None = None
    """At an issuer of OpenID Connect, where one is configured."""
    holds_in: str | None = None
    """The namespace whose objects hold machines, too; None: none do."""
    replicas: bool = False
    """Whether other services look after the same clusters, with disks of their own."""

    def joins(self, machine: Machine) -> bool:
        """Whether its cluster is one that this service knows."""
        return self.issuer is not None and machine.cluster in set(self.issuer.clusters)


def dependencies() -> Dependencies:
    """Those of the application that serves this request."""
    return cast("Dependencies", current_app.extensions[EXTENSION])
