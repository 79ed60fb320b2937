"""What each process of the service says of itself: written and read by one class.

A process writes its status to `data/status/<process>.json` (`netboot.stores.status`). Of one that is torn, or of
another version, nothing is read: whoever asks cannot tell, and says so.
"""

import time
from typing import Literal

from pydantic import Field

from images.values.strict import Strict

DEFECT = "a defect; see the log"
"""What somebody says of himself who failed for a reason that nobody foresaw, and tries again."""


def up_ms() -> int:
    """Milliseconds since the machine was started: the same for every process on it, nobody sets it, and it only goes
    forward (CLOCK_BOOTTIME, clock_gettime(2))."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Condition(Strict):
    """Whether one thing is in order, for people. `remedy`: what to do where it is not."""

    ok: bool
    message: str
    remedy: str = ""


class Timed(Strict):
    """`at_ms`: when it was written, milliseconds since 1970; `up_ms`: the same by `up_ms()`."""

    at_ms: int
    up_ms: int = Field(default_factory=up_ms)


class ProcessStatus(Strict):
    """One process as the supervisor sees it. `pid` None: it is down at the moment; `last_exit`: how it ended last;
    `problem`: why it is not ready though it runs."""

    ready: bool
    pid: int | None
    restarts: int
    last_exit: str | None
    problem: str = ""


class SupervisorStatus(Strict):
    """Written with every change, and every two seconds; `processes` by name. `uptime_ms`: when, by this machine's
    monotonic clock: a wrong time of day must not look like a frozen supervisor."""

    state: Literal["running", "stopping"]
    pid: int
    uptime_ms: int
    processes: dict[str, ProcessStatus]


class BootStatus(Timed):
    """A boot server. What it counted since the service began, those that it took the place of included: by outcome or
    result, or in all; and what is so now: `open_connections`, `journal_lag`."""

    scripts: dict[str, int]
    scripts_repeated: int = 0
    events: dict[str, int]
    health: dict[str, int]
    transfers: dict[str, int]
    bytes_sent: int
    refused: int
    discoveries_dropped: int
    open_connections: int
    journal_lag: int


class PendingInventory(Strict):
    """An inventory that waits for an operator's word, for it removes `removed` of the `of` machines in force.

    `digest`: its own; `lately`: machines that went within the last hour before; `names`: the first that would go.
    """

    digest: str
    removed: int
    of: int
    lately: int
    names: tuple[str, ...]


class InventoryStatus(Condition):
    """`valid`: the inventory's files, as they are now, are in force; `faults`: the first of what is wrong with them;
    `pending`: what has to be accepted before they are; `late`: what keeps them from being read; empty: nothing."""

    valid: bool
    late: str = ""
    faults: tuple[str, ...] = ()
    pending: PendingInventory | None = None


class ImagesStatus(Condition):
    """`unusable`: channel → why the image that it points to cannot be used."""

    unusable: dict[str, str]


class LoopStatus(Timed):
    """A loop of the controllers. `problem`: why it does not go round; empty: it does."""

    problem: str = ""


class PublisherStatus(LoopStatus):
    """The snapshot publisher."""

    inventory: InventoryStatus
    images: ImagesStatus
    bundle: Condition


class ProjectionStatus(LoopStatus):
    """The projection. `taken`, `set_aside`, `replaced`: since it started. `set_aside`: rows that could not be read, by
    where they were: a journal's file name, or `state.db`; `replaced`: how often a journal was found to be an older copy
    of itself; `joins_read_up_ms`: what join wrote down before that moment of `up_ms` is in the state. The others by the
    journal's file name."""

    taken: int
    set_aside: dict[str, int]
    replaced: dict[str, int]
    lag_records: dict[str, int]
    problems: dict[str, str]
    joins_read_up_ms: int = 0


class LifecycleStatus(LoopStatus):
    """The loop that judges machines. `conditions`: condition, reason, and how many machines; `overdue`: boots past a
    deadline by their furthest phase; `waiting`: machines to be looked at, the first of them for `behind_seconds`;
    `unseen`: places that cannot be looked at now, whose deadlines stand still; the last two: `controllers.found`."""

    conditions: tuple[tuple[str, str, int], ...]
    overdue: dict[str, int]
    waiting: int
    unseen: tuple[str, ...]
    behind_seconds: float = 0.0
    long_gated: int = 0
    unhealthy: int = 0


class RolloutStatus(Strict):
    """A rollout that is under way. `machines`: by their state in it."""

    number: int
    channel: str
    state: str
    undoing: bool
    machines: dict[str, int]


class RolloutsStatus(LoopStatus):
    """The loop that drives rollouts."""

    rollouts: tuple[RolloutStatus, ...]


class Transfer(Strict):
    """An image on its way: its digest, and how many bytes of how many are here."""

    image: str
    bytes: int
    of: int


class FetcherStatus(Condition, Timed):
    """`images`: digest → why it is not here yet; `fetched`, `bytes`, `failed`: since the process started."""

    images: dict[str, str]
    transfer: Transfer | None
    fetched: int
    bytes: int
    failed: int


class ApproverStatus(Condition, Timed):
    """`decided`: outcome, reason or purpose, and how many since the process started; `unavailable`: how often the
    cluster could not be asked since then; `waiting`: requests to be seen to, the oldest for `oldest_seconds`."""

    decided: tuple[tuple[str, str, int], ...]
    unavailable: int
    waiting: int
    oldest_seconds: float
    followed: bool = True
    """Whether requests are seen and can be decided: an alert, or one that waits, alters nothing of that."""


class NodesStatus(Condition, Timed):
    """The node collector: Nodes of machines of the inventory, and how many of them are Ready; `followed`: they are
    seen, and what becomes of them is written down. Their gates: how many are `open`, `shut`, `closed`; how many were
    moved since it started; how many more would be closed but for the budget; why they, or one of them, are not."""

    unavailable: int
    registered: int
    ready: int
    gates: dict[str, int] = Field(default_factory=dict)
    gates_moved: dict[str, int] = Field(default_factory=dict)
    gates_withheld: int = 0
    gate_problem: str = ""
    followed: bool = True


class FindingStatus(Strict):
    """What the self-check found of a cluster that is not in order."""

    name: str
    outcome: Literal["warn", "refuse"]
    words: str
    remedy: str


class ClusterStatus(Condition):
    """Whether machines can join this cluster."""

    findings: tuple[FindingStatus, ...]


class JoinStatus(Condition, Timed):
    """A join server: its clusters by name. `certificate_expires_ms`: in ms since 1970; None: it has none to be used."""

    clusters: dict[str, ClusterStatus]
    certificate_expires_ms: int | None = None


class JoinReadiness(Strict):
    """What a join server's own `/readyz` answers. `problems`: what stands in the way, in words; empty where `ready`."""

    ready: bool
    problems: tuple[str, ...]
    clusters: dict[str, ClusterStatus]


Reporting = FetcherStatus | ApproverStatus | NodesStatus | JoinStatus

_CLASSES: dict[str, type[Reporting]] = {
    "fetcher": FetcherStatus,
    "approver": ApproverStatus,
    "nodes": NodesStatus,
    "join": JoinStatus,
}


def reporting_class(process: str) -> type[Reporting] | None:
    """The class of what this process (`approver-default`) writes; None: one that reports no condition of its own."""
    return _CLASSES.get(process.partition("-")[0])
