"""What is asked for and shown of rollouts."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from images.values.strict import Strict
from images.values.types import Name
from netboot.lifecycle.rollout import Member, MemberState, Rollout
from netboot.lifecycle.rollout_counts import RackRuns
from netboot.lifecycle.rollout_store import Entry
from netboot.web.binding import Shown
from netboot.web.inputs import Whole, one_line
from netboot.web.pages import PageAsked, Paged
from netboot.web.shapes import DrainShown

SHOWN, MOST = 20, 200
Reason = Annotated[str, StringConstraints(max_length=500, strip_whitespace=True), AfterValidator(one_line)]


class Start(Strict):
    """The body of a POST. `image`: as `Move` has it; `strategy`: over the channel's, key by key; `on_next_boot`:
    machines are assigned the image, and somebody else reboots them, else the service does; `any_kubelet`: also an image
    whose kubelet a cluster does not take; `force`: whoever asks passed over what he found himself, which is noted;
    `control_plane`: machines of one that are to go too."""

    channel: Name
    image: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]
    strategy: dict[str, Any] = Field(default_factory=dict)
    on_next_boot: bool = False
    any_kubelet: bool = False
    force: bool = False
    control_plane: Annotated[tuple[Name, ...], Field(max_length=100)] = ()
    dry_run: bool = False
    reason: Reason = ""


class Order(Strict):
    """The body of `pause`, `resume` and `undo`."""

    reason: Reason = ""
    dry_run: bool = False


class RolloutsAsked(PageAsked):
    """How many."""

    limit: Annotated[int, Whole(1, MOST)] = SHOWN


_ONE_STATE = f"({'|'.join(MemberState)})"
_STATES: dict[str, str | int] = {"type": "string", "maxLength": 100, "pattern": f"^{_ONE_STATE}(,{_ONE_STATE})*$"}


def _states(text: object) -> tuple[MemberState, ...]:
    """Each once, in the order in which they are named."""
    said = str(text)
    try:
        if len(said) <= 100:
            return tuple(dict.fromkeys(map(MemberState, said.split(","))))
    except ValueError:
        pass
    raise ValueError(f"must be some of {', '.join(MemberState)}, with commas between")


class RolloutAsked(Strict):
    """`members`: false: without its machines."""

    members: bool = True


class MembersAsked(PageAsked):
    """Which of a rollout's machines. `state`: those that are in one of these states, state by state in this order, else
    all of them by name."""

    state: Annotated[tuple[MemberState, ...], BeforeValidator(_states), WithJsonSchema(_STATES)] = ()


class ControlPlaneMachines(Shown):
    """Machines of a control plane: those that go, and those that are kept as they are."""

    named: tuple[str, ...]
    kept: tuple[str, ...]


class RolloutShown(Rollout):
    """With what follows from it. `machines`: state → how many; `most`: how many may be out of service at once;
    `domains`: accelerator domain → how many machines of it go together; `of`, and what is counted by it, are without
    machines that are kept; `to_reboot`: names."""

    blocked: int | None = Field(None, serialization_alias="blocked_clock_ms")
    machines: dict[MemberState, int]
    of: int
    racks: int
    domains: dict[str, int]
    control_plane: ControlPlaneMachines
    most: int
    to_reboot: tuple[str, ...]


class Rollouts(Paged):
    """The newest first."""

    rollouts: tuple[RolloutShown, ...]


class MemberShown(Member):
    """`order`: the drain that stands of it; `since_clock_ms`: what the rollout's clock showed when its state
    changed."""

    since: int = Field(0, serialization_alias="since_clock_ms")

    order: DrainShown | None


class RolloutDetail(RolloutShown):
    """With its machines and what was done to it, the latest last. `by_rack`: all machines, as they stand; `members`:
    empty where nobody asked for them."""

    by_rack: tuple[RackRuns, ...]
    members: tuple[MemberShown, ...]
    history: tuple[Entry, ...]


class RolloutMembers(Paged):
    """Machines of a rollout, by name, or state by state and by name."""

    members: tuple[MemberShown, ...]


class RolloutStarted(RolloutShown):
    """It has begun."""

    dry_run: bool


class RolloutPlanned(RolloutStarted):
    """It would be so. `up`: how many of its machines are in service now."""

    up: int


class RolloutActed(RolloutShown):
    """`did`: false where it was so already; `dry_run`: as it would be."""

    act: str
    did: bool
    dry_run: bool
