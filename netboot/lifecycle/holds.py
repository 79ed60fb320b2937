"""Holds that people declare as objects (`kubectl apply`, `kubectl delete hold`): what one is, and what it is told.
Pure; what is to be done so that they stand: `netboot.lifecycle.hold_steps`.

They are kept with all other holds, by an owner of their own each, so that whoever asks who is held asks one place; what
cannot be read of them takes none off.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import NAME, Name
from netboot.clock import Moment, moment_ms, rfc3339
from netboot.lifecycle.intents import LONGEST_REASON, Intent
from netboot.lifecycle.object_status import ConditionTold
from netboot.machines.resources import Resource

OBJECTS = "kubernetes"
"""Who acts where an object comes and goes; and, with the object's name, the owner of what it holds."""
KIND = "hold"
IN_FORCE = "InForce"
Why = Literal["Held", "Ended", "NoSuchMachine", "Malformed"]


def one_line(text: str) -> str:
    """Of a document: text that fits in a line of a log or a list. Raises ValueError."""
    if not text.isprintable() or not text.strip():
        raise ValueError("must be one line of printable text")
    return text


class Hold(Strict):
    """A machine takes no new work for as long as this object is there: its Node has the taint netboot.dev/held, that of
    each boot to come, too."""

    machine: Name
    """The machine, by its name in the inventory. It stays: to hold another one, make another object."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_REASON), AfterValidator(one_line)]
    """Why, for whoever finds it held."""
    by: Annotated[str, StringConstraints(min_length=1, max_length=64), AfterValidator(one_line)] | None = None
    """Who wants it, in his own words; nobody checks it. Who wrote the object is in the API server's audit log."""
    until: Moment | None = None
    """When it ends by itself, by the clock of the host that netboot runs on; left out: when the object is deleted."""

    @property
    def until_ms(self) -> int | None:
        """Its end, as what is kept has it."""
        return moment_ms(self.until) if self.until is not None else None


class HoldStatus(Strict):
    """What became of it. Nothing is decided by it; netboot alone writes it."""

    conditions: Annotated[tuple[ConditionTold, ...], Field(max_length=4)] = ()
    """InForce: whether the machine is held by it, else why not."""


class HoldObject(NamedTuple):
    """One, as it was read. `hold` None: it cannot be one, for the reason that `fault` says; `generation` 0: not
    known."""

    name: str
    uid: str
    hold: Hold | None
    fault: str = ""
    generation: int = 0


class HoldSaid(Strict):
    """What became of an object. `machine`: the one that it names, or named before its fault; `held`: the one that it
    holds, or held last, by its name in the inventory; `since_ms`: since when this is so; `generation`: of the object
    of which this is said."""

    uid: str
    machine: str = ""
    held: str = ""
    by: str = ""
    why: Why
    message: str
    since_ms: int
    generation: int = 0

    def status(self) -> dict[str, Any]:
        """As it is written into the object. `observedGeneration` is always there: one that has none is believed."""
        condition = ConditionTold(
            type=IN_FORCE,
            status="True" if self.why == "Held" else "False",
            reason=self.why,
            message=self.message,
            lastTransitionTime=rfc3339(self.since_ms, "seconds"),
            observedGeneration=self.generation,
        )
        return {"conditions": [condition.model_dump(mode="json")]}


class HoldsSaid(Strict):
    """Of all, by their names."""

    holds: Mapping[str, HoldSaid] = Field(default_factory=dict)

    def statuses(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """Name → the uid of the object, and what it is to say."""
        return {name: (each.uid, each.status()) for name, each in self.holds.items()}


def shown(name: str) -> str:
    """As kubectl takes it."""
    return f"{KIND}/{name}"


def owner_of(namespace: str, name: str) -> str:
    """Whose a hold is that an object declares."""
    return f"{OBJECTS}/{namespace}/{name}"


def former_owner_of(name: str) -> str:
    """Likewise as it was written at first, whatever the namespace."""
    return f"{OBJECTS}/{name}"


def is_object(intent: Intent) -> bool:
    """Whether an object declares it."""
    return intent.owner.startswith(f"{OBJECTS}/")


def of_owner(owner: str) -> tuple[str, str]:
    """Namespace and name of the object; the namespace is "" where that was not written down."""
    namespace, _, name = owner.removeprefix(f"{OBJECTS}/").rpartition("/")
    return namespace, name


def object_of(resource: Resource) -> HoldObject:
    """What an object says."""
    hold, fault = _hold(resource)
    return HoldObject(resource.name, resource.uid, hold, fault, resource.generation)


def _hold(resource: Resource) -> tuple[Hold | None, str]:
    if not NAME.fits(resource.name):
        return None, f"metadata.name {NAME.message}"
    if resource.refused:
        return None, resource.refused
    try:
        return Hold.model_validate(resource.spec), ""
    except ValidationError as error:
        fault = first_fault(error)
        where = f"spec.{fault.key}" if fault.location else "spec"
        return None, f"{where}: {fault.message}"


def who_of(each: HoldObject) -> str:
    """By whom it is, as what is kept has it: the object, and whom that names."""
    by = each.hold.by if each.hold is not None else None
    return f"{by} ({shown(each.name)})" if by else shown(each.name)
