"""What is done by itself about machines that are not well: values, as they are kept, and the port. docs/remedies.md.

What was decided is kept with what is wanted of machines (rule L8): no loss of what was observed undoes it, and the
order that carries it out is written with it, in one transaction, or not at all.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from pydantic import Field

from images.values.strict import Strict
from netboot.lifecycle.conditions import Ailment, Judged
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.intents import Intent
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.transitions import Mark
from netboot.machines.remedies import Action, Rules

MOST_SHOWN = 2_000
WHO = "netboot"
"""Who orders what a remedy wants."""
OWNED = "remedy/"
"""Before its number: the owner of what it orders."""
DAY_MS = 86_400_000
End = Literal["back", "taken-off", "replaced", "undone", "withdrawn", "readmitted", "gone"]
"""The machine is in service again; the order to reboot was taken off, or came to nothing; another remedy, or another
order, took its place; it was let out of quarantine; it is retired, or in the inventory no more."""


class Remedy(Strict):
    """One that was taken, or was due and withheld. `reason`, `boot`, `since_ms`, `message`: what was wrong, as in
    `Ailment`; `words`: why it was withheld; `drain`: the order to reboot; `end` None: the machine is under it still."""

    id: int = 0
    at_ms: int
    machine: str
    what: Action
    outcome: Literal["taken", "withheld"]
    reason: Reason
    boot: str
    since_ms: int
    message: str
    words: str = ""
    drain: str = ""
    end: End | None = None
    ended_ms: int | None = None

    @property
    def owner(self) -> str:
        """Whose the quarantine is, or the order."""
        return f"{OWNED}{self.id}"


class Pause(Strict):
    """Whether nothing may begin, by whose word and why. `stands` False: it was resumed, then."""

    stands: bool
    who: str
    reason: str
    since_ms: int

    def changes(self, before: "Pause | None") -> bool:
        """Whether it is not so already."""
        return self.stands != (before is not None and before.stands)


class Case(NamedTuple):
    """A machine that is not well. `ready`: its Node is Ready; `waited_ms`: for how long it has been so, or since the
    last remedy, counted while it could be seen; `unseen`: why it cannot be seen now; `elsewhere`: who else has it."""

    machine: str
    rack: str
    ailment: Ailment
    ready: bool
    rules: Rules
    waited_ms: int
    unseen: str = ""
    elsewhere: str = ""


class Books(NamedTuple):
    """What is on record, read at once. `pause`: the last word; `taken`: remedies of the last day, and those that have
    not ended; `orders`: those of them by which machines are rebooted, by id; `drains`, `intents`: what stands, by
    machine."""

    now_ms: int
    pause: Pause | None
    taken: Sequence[Remedy]
    orders: Mapping[str, Drain]
    drains: Mapping[str, Drain]
    intents: Mapping[str, Sequence[Intent]]


class Fleet(NamedTuple):
    """`machines`: how many the inventory has; `racks`: of those that may be out of service, by name, "": it has none;
    `withheld`: why nothing may begin now, by a freeze, a signal from outside or the maintenance windows; `out`: who is
    out of service beside what `Books` say, by whose word, but for those that wait for a remedy themselves."""

    machines: int
    racks: Mapping[str, str]
    withheld: str = ""
    out: Mapping[str, str] = MappingProxyType({})


class Standing(Strict):
    """A machine that is not well, as it is shown. `what`: the next remedy, "": none; `left_seconds`: of its wait;
    `words`: what withholds it, or is done already."""

    machine: str
    reason: Reason
    since_ms: int
    message: str
    what: str
    left_seconds: int
    words: str


class RemediesStatus(Strict):
    """What the loop says. `paused`: why nothing begins, "": it may; `machines`: those that are not well, the first
    MOST_SHOWN of `ailing`; `taken`: since the process started, by what was done; `under`: machines under a remedy;
    `unseen`: why it cannot be told of all machines whether they are well, "": it can."""

    at_ms: int
    problem: str = ""
    unseen: str = ""
    paused: str = ""
    ailing: int = 0
    withheld: int = 0
    under: int = 0
    machines: tuple[Standing, ...] = ()
    taken: Mapping[str, int] = Field(default_factory=dict)


class Taking(NamedTuple):
    """What is to be carried out. `evidence`: what was at hand of the boot, for the reboot takes it away."""

    remedy: Remedy
    evidence: str


def needless(drain: Drain, intents: Sequence[Intent], judged: Judged | None) -> str:
    """Why what acts by itself has no reason any more for its order to reboot; "": it has. `intents`: what stands of the
    machine; `judged`: what was found of it, None: it cannot be seen now. Who cannot be reached is not well again."""
    helps = drain.owner.startswith(OWNED)
    for intent in intents:
        if helps or isinstance(intent.mark, Mark):
            return f"it is {intent.mark.value.lower()}, by {intent.who}: {intent.reason}"
    if not helps or judged is None or judged.boot != drain.boot or judged.ailment is not None:
        return ""
    reachable = judged.condition(ConditionType.REACHABLE)
    there = reachable is not None and reachable.reason is Reason.NODE_READY
    return "its node says no more that a check failed" if there else ""


class RemedyReader(Protocol):
    """For reading. Every method raises StateUnavailableError where it cannot be told."""

    def books(self, now_ms: int) -> Books:
        """What is on record."""
        ...

    def latest(self, machine: str | None, limit: int, before: int | None = None) -> list[Remedy]:
        """Taken and withheld, of one machine or of all, the latest first, or of those before that number."""
        ...

    def one(self, number: int) -> tuple[Remedy, str]:
        """With its evidence, as JSON.

        Raises:
            NoSuchRemedyError.
        """
        ...

    def taken_after(self, number: int, limit: int) -> list[Remedy]:
        """Those that were taken after that one, in order."""
        ...


class RemedyStore(RemedyReader, Protocol):
    """With the side that writes: all of a call or nothing, and durable when it returns."""

    def take(self, look: Callable[[Books], Taking | None], now_ms: int) -> Remedy | None:
        """Look at what is on record, and where `look` says so write down the remedy and order what it wants."""
        ...

    def note(self, withheld: Remedy) -> None:
        """It is due, and withheld; the same as was noted last of the machine is not noted again."""
        ...

    def settle(self, ends: Mapping[int, End], now_ms: int) -> None:
        """These have ended so."""
        ...

    def pause(self, pause: Pause) -> bool:
        """Say whether anything may begin; whether that is new."""
        ...
