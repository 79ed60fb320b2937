"""What the loops of the process `controllers` say: publisher, projection, lifecycle and rollouts, a file each."""

from images.values.faults import first_few
from images.values.strict import Strict
from netboot.status import FRESH_MS, Condition, Timed
from netboot.status.leading import LeaderStatus

BEHIND_SECONDS = 300
"""For so long a machine may wait to be judged; as in the alert NetbootConditionsBehind."""


class LoopStatus(Timed):
    """A loop of the controllers. `problem`: why it does not go round; empty: it does."""

    problem: str = ""


class PendingInventory(Strict):
    """An inventory that waits for an operator's word, for it removes `removed` of the `of` machines in force, or makes
    `others` of them others: recognised by something else, or let in by another proof.

    `digest`: its own; `older`, `of_older`: how many go or become others of how many that were there before the last
    hour, where that is why it waits, else 0; `lately`: machines that went or became others within the last hour before;
    `names`, `other_names`: the first of them; `lists`: lists of the inventory of which all that there was is gone;
    `untold`: which machines went within that hour cannot be told, and who is new may be one of them, so is among
    `others`.
    """

    digest: str
    removed: int
    of: int
    older: int = 0
    of_older: int = 0
    lately: int
    names: tuple[str, ...]
    lists: tuple[str, ...] = ()
    others: int = 0
    other_names: tuple[str, ...] = ()
    untold: bool = False


class InventoryStatus(Condition):
    """`valid`: what is declared now is in force; `faults`: the first of what is wrong with it; `left_out`: how many
    faults there are of objects that are left out, while all others are in force;
    `pending`: what has to be accepted before they are; `late`: what keeps them from being read; empty: nothing;
    `lately`: how many machines went or became others within the last hour, which count with those that do next."""

    valid: bool
    late: str = ""
    lately: int = 0
    faults: tuple[str, ...] = ()
    left_out: int = 0
    pending: PendingInventory | None = None


class ImagesStatus(Condition):
    """`unusable`: channel → why the image that it points to cannot be used."""

    unusable: dict[str, str]


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
    """The loop that drives rollouts. `undone`: how many undid themselves, under way when the
    process was started or since then. `leader`: who does, where replicas share rollouts; None: this one does."""

    rollouts: tuple[RolloutStatus, ...]
    undone: int = 0
    leader: LeaderStatus | None = None


def idle(name: str, said: Timed | None, now: int) -> str:
    """Why it does not go on, by what it said last; empty: it does. `now`: by `up_ms()`."""
    if said is None:
        return f"the {name} has not said anything yet"
    quiet = now - said.up_ms
    if quiet < 0:
        return "has said nothing since the machine was started"
    if quiet > FRESH_MS:
        return f"has said nothing for {quiet // 1000} s"
    return said.problem if isinstance(said, LoopStatus) else ""


def not_of_now(projection: ProjectionStatus | None, lifecycle: LifecycleStatus | None, now: int) -> str:
    """Why what was found of machines last may not be so any more, in words; empty: it is looked at all the time."""
    for name, said in (("projection", projection), ("lifecycle", lifecycle)):
        if why := idle(name, said, now):
            return f"nobody looks at machines now: {name}: {why}"
    assert lifecycle is not None
    if lifecycle.unseen:
        places = first_few([place.rstrip("/") for place in lifecycle.unseen])
        return f"{places} cannot be looked at: nobody there is found late or lost meanwhile"
    if lifecycle.behind_seconds > BEHIND_SECONDS:
        return f"machines were looked at {lifecycle.behind_seconds:.0f} s ago: {lifecycle.waiting} wait for it"
    return ""
