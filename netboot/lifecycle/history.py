"""What is kept of boots that proved themselves and of machines' conditions beyond what is so now: values and ports."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from images.values.strict import Strict
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.decided import Decided
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.objective import Durations, Measured
from netboot.lifecycle.proof import SignedProof
from netboot.lifecycle.reasons import ConditionType, Reason, Status
from netboot.lifecycle.trace import Trace

TRANSITIONS_KEPT = 200
"""Of each machine, the latest."""
TRANSITIONS_IN_ALL = 1_000_000
"""The latest: twenty of each machine where there are 50,000. Each has some 400 bytes."""
BOOTS_KEPT = 100
"""Of each machine, the latest: more than the state keeps of those that proved themselves, so none is counted twice."""
PROOFS_KEPT = 200
"""Of each machine, the latest, whatever becomes of the machine."""
PROOFS_IN_ALL = 1_000_000
"""The latest: else names that come and go would fill the disk. Each has a kilobyte or less."""
DECISIONS_KEPT = 200_000
"""The latest; each has some 400 bytes."""


class HistoryLostError(StateUnavailableError):
    """For who writes: the file is not the one that was written before; it was removed or replaced."""


class Transition(Strict):
    """A condition of a machine became another, or has another reason. `id` rises; `at_ms`: when it was found."""

    id: int
    at_ms: int
    machine: str
    type: ConditionType
    status: Status
    reason: Reason
    message: str


class KnownBoot(NamedTuple):
    """A proven boot of which something is still to be written down. `ready`: that it was Ready is counted;
    `in_service_ms`: when it was first seen to be in service; `exact`: that is when it came into service; `over`: a
    later boot of its machine has proven itself; `counted`: nothing more is counted of it, and its proof is missing."""

    boot: str
    machine: str
    ready: bool
    in_service_ms: int | None
    exact: bool
    over: bool
    counted: bool


class Begun(NamedTuple):
    """Boots of some machines: those that are new, and all of which something is to be written down."""

    new: list[str]
    under_way: list[KnownBoot]


class Seen(NamedTuple):
    """A boot is in service. `exact`: since that moment; else it was found then, and may have been so for longer."""

    boot: str
    machine: str
    at_ms: int
    exact: bool


@dataclass
class Found:
    """What is to be counted of boots: durations; those that are counted as Ready; and those of which this is all."""

    measured: list[Measured] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)


class History(Protocol):
    """For reading. Every method raises StateUnavailableError when it cannot be read."""

    def transitions(self, machine: str | None, after: int | None, limit: int) -> list[Transition]:
        """Of one machine, or of all, after that one, in order, at most `limit`; None: the newest `limit`, in order."""
        ...

    def in_service(self, boots: Sequence[str]) -> dict[str, int]:
        """When each of these boots was first seen to be in service, milliseconds since 1970; who was not is not in it,
        nor who was longer ago than is kept."""
        ...

    def durations(self) -> list[Durations]:
        """What was counted of each target, class and image."""
        ...

    def proof(self, boot: str) -> SignedProof | None:
        """Of that boot; None: none was made, or longer ago than is kept."""
        ...

    def decided(self, digest: str) -> Decided | None:
        """What was decided from inputs of that digest; None: it was not kept, or longer ago than is."""
        ...


class ProvenBoots(Protocol):
    """Boots that proved themselves. Every method raises StateUnavailableError when they cannot be read."""

    def proven(self, machines: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Those of these machines, in the order in which they proved themselves."""
        ...

    def proven_machines(self) -> set[str]:
        """Every machine of which a boot has."""
        ...

    def boot(self, boot: str) -> Trace | None:
        """One boot; None: longer ago than is kept."""
        ...


class HistoryWriter(Protocol):
    """The same for the one process that writes it. Every method raises StateUnavailableError, and then did nothing;
    HistoryLostError: the file is another than before, and all that is under way is to be begun anew."""

    def begin(self, proven: Mapping[str, Sequence[str]]) -> Begun:
        """These are the proven boots of these machines, in their order. Of a machine of which none was known, the last
        alone is new."""
        ...

    def forget(self, machines: Collection[str]) -> None:
        """Which boots of these are known, all but the proofs of them."""
        ...

    def machines(self) -> set[str]:
        """Those of which a boot is known."""
        ...

    def judged(self) -> set[str]:
        """Those of which it is known how their conditions were last."""
        ...

    def under_way(self, boots: Sequence[str] | None = None) -> list[KnownBoot]:
        """Those of these, or all, of which something is still to be written down."""
        ...

    def note(
        self, judged: Iterable[tuple[Judged, int]], gone: Collection[str] = (), in_service: Iterable[Seen] = ()
    ) -> None:
        """What was found of machines, and when: transitions, and boots that are in service. `gone`: nobody judges these
        any more."""
        ...

    def undecided(self, digests: Collection[str]) -> set[str]:
        """Those of which no decision is kept."""
        ...

    def keep(self, decided: Sequence[Decided]) -> None:
        """These decisions, each once."""
        ...

    def count(self, found: Found) -> None:
        """Write all of this down."""
        ...

    def prove(self, proofs: Mapping[tuple[str, str], SignedProof], proven: Collection[str]) -> None:
        """Proofs by boot and machine. `proven`: nothing more is to be proven of these boots."""
        ...
