"""What `/v1/fleet[/machines]` read and answer."""

from typing import Annotated

from pydantic import Field

from netboot.lifecycle.summary import MachineStatus
from netboot.status.controllers import RolloutStatus
from netboot.web.binding import Shown
from netboot.web.inputs import Whole
from netboot.web.pages import PageAsked, Paged

SHOWN, MOST = 100, 1_000
LONGEST_TEXT = 200
"""Characters of what a list of machines is asked for."""


class MachinesAsked(PageAsked):
    """What machines have to fit, all of it. `image`: a digest, or its beginning; `cause`: one of a fleet's `cases`;
    `text`: a part of name, rack, reason or message; `offset`: so many are left out, where no `continue` says how
    many."""

    name: str | None = None
    status: MachineStatus | None = None
    reason: str | None = None
    step: str | None = None
    rack: str | None = None
    image: str | None = None
    class_name: str | None = Field(None, alias="class")
    cause: str | None = None
    text: Annotated[str, Field(max_length=LONGEST_TEXT)] | None = None
    limit: Annotated[int, Whole(1, MOST)] = SHOWN
    offset: Annotated[int, Whole(0, 10_000_000)] = 0


class MachineEntry(Shown):
    """A machine, and of the condition that says how it is `condition`, `reason`, `message`, `since_ms`, and `said`: the
    machine's own words in `message`, as it said them; `step`, `boot`, `image` of the boot that counts. Empty, or null:
    not known. `cause`: of the case in which it is, empty of one that is neither late nor ill."""

    name: str
    rack: str | None
    position: int | None
    class_name: str | None = Field(serialization_alias="class")
    profile: str
    status: MachineStatus
    condition: str
    reason: str
    message: str
    since_ms: int | None
    step: str
    boot: str
    image: str
    said: str
    cause: str


class FleetMachines(Paged):
    """A page of those that fit, from `offset` on, by their number: their order is another one a moment later; `of`: how
    many fit; `problem`: as the fleet has it."""

    at_ms: int
    machines: tuple[MachineEntry, ...]
    of: int
    offset: int
    problem: str


class ImageRun(Shown):
    """How many run an image. `name`: null where it is not known here."""

    image: str
    name: str | None
    machines: int


class Run(Shown):
    """So many that stand beside each other and are alike, and the first of them, with its unit. `gap`: units are free
    before it."""

    status: MachineStatus
    first: str
    count: int
    position: int | None
    gap: bool


class Rack(Shown):
    """A rack, "" for none, with its machines as they stand: the highest unit first, those that say none after them by
    name."""

    rack: str
    machines: int
    runs: tuple[Run, ...]


class CaseShown(Shown):
    """`machines`: how many are late or ill for the same cause, `racks`: in how many racks, none being
    one of them; `first`: the one that wants to be seen first."""

    cause: str
    machines: int
    racks: int
    first: MachineEntry


class Fleet(Shown):
    """How many machines are how, have which reason of which condition, are at which phase. `first`: late and ill ones;
    `cases`: all of these by their causes, no machine in two, the twenty that want to be seen first; `rollouts`: those
    under way, null where that cannot be told; `problem`: why this may not be so any more, empty while machines are
    looked at."""

    at_ms: int
    machines: int
    statuses: dict[MachineStatus, int]
    reasons: dict[str, dict[str, int]]
    steps: dict[str, int]
    images: tuple[ImageRun, ...]
    racks: tuple[Rack, ...]
    first: tuple[MachineEntry, ...]
    cases: tuple[CaseShown, ...]
    rollouts: tuple[RolloutStatus, ...] | None
    problem: str
