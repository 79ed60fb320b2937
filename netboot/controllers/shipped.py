"""What the process `shipper` goes by: what is known of machines, and where their objects are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from netboot.controllers.object_events import Events
from netboot.lifecycle.object_status import Facts, ObjectStatus, Urgency
from netboot.lifecycle.objects import MachineObject, Seen

REMEDY = (
    "see whether the API server answers, and has what `netboot cluster crds` and `netboot cluster manifests "
    "--inventory` print; `netboot cluster kubeconfigs --inventory` makes new tokens; machines boot without it"
)
LEFT_OUT_SECONDS = 30.0
"""For so long an object may be known here, and not be in force yet."""


class Due(NamedTuple):
    """What an object as it was is to say. `since`: when that was first another thing; `after`: not before."""

    machine: MachineObject
    status: ObjectStatus
    document: Mapping[str, Any]
    urgency: Urgency
    since: float
    after: float = float("-inf")


class Writing(NamedTuple):
    """What is being written. `seen`: versions of that object, and `listed`: a list, that came meanwhile."""

    name: str
    seen: set[str]
    listed: bool = False


class Objects(Events, Protocol):
    """Where the objects are: `netboot.kube.machine_objects`. All raise ClusterUnavailableError."""

    def watch(self, seconds: float) -> Iterator[Seen]:
        """All, then what becomes of each."""
        ...

    def write(self, machine: MachineObject, status: Mapping[str, Any]) -> MachineObject:
        """It says this from now on; the object as it is then. Raises ConflictError: it is gone, or another one has its
        name, or the API server says so. InvalidError: this one is not taken."""
        ...

    def renew(self, holder: str, at_ms: int) -> None:
        """What objects say is known to be so at that moment."""
        ...


class Known(Protocol):
    """What is known: `netboot.stores.object_facts`. All raise CannotTellError."""

    def changed(self) -> set[str] | None:
        """Machines of which something else may be known than when this was asked last; None: anything, of any."""
        ...

    def facts(self, names: Sequence[str]) -> Mapping[str, Facts | None]:
        """Of these; None: the inventory in force has no such machine."""
        ...

    def of_now(self) -> bool:
        """Whether machines are looked at all the time, so that what was found last is so now."""
        ...
