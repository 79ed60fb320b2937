"""Where channels point, as custom resources: of each channel that was set one object, by its name. Pure but for its
port."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, Protocol

from pydantic import AfterValidator, StringConstraints, ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from images.values.types import NAME, Sha256
from netboot.clock import Moment, rfc3339
from netboot.lifecycle.holds import one_line
from netboot.lifecycle.order_objects import LONGEST_WHO, clean, printable
from netboot.machines.resources import Resource

KIND = "assignment"
LONGEST_NAME = 256


class AssignmentSpec(Strict):
    """The image that a channel points to, at all replicas. netboot writes it: `netboot channel set`, and a rollout that
    is complete."""

    image: Sha256
    """Its digest."""
    image_name: Annotated[str, StringConstraints(max_length=LONGEST_NAME), AfterValidator(printable)] = ""
    """What it is called."""
    who: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_WHO), AfterValidator(one_line)]
    """Who set it, in his own words, or a rollout by its number."""
    since: Moment
    """When it was set: whoever sets it to what it is writes it, too."""


class AssignmentObject(NamedTuple):
    """One, as it was read. `generation`: grows with each change of what it says; `version`: what a change of it goes
    by, "" of one that was kept. `image`: "": it cannot be told, for the reason that `fault` says; `metadata`: what
    others put there, which a change of it leaves."""

    channel: str
    uid: str
    generation: int
    version: str
    image: str
    fault: str = ""
    metadata: Mapping[str, Any] = MappingProxyType({})


class AssignmentObjects(Protocol):
    """Those of one namespace, by their channels. Every read is of what is there now. Every method raises
    CannotTellError."""

    def read(self, channel: str) -> AssignmentObject | None:
        """One; None: there is none."""
        ...

    def write(self, channel: str, spec: AssignmentSpec, before: AssignmentObject | None) -> AssignmentObject:
        """Make it, or change it as it was read; as it is then. Raises ConflictError: it is another one by now."""
        ...


def spec_of(image: str, name: str, who: str, now_ms: int) -> AssignmentSpec:
    """`image`: a digest, `name`: what it is called, "": that is not known."""
    name, who = clean(name, LONGEST_NAME), clean(who, LONGEST_WHO) or "netboot"
    return AssignmentSpec(image=image, image_name=name, who=who, since=rfc3339(now_ms))


def assignment_object(name: str, uid: str, generation: int, spec: object, version: str = "") -> AssignmentObject:
    """One that says this."""
    found = AssignmentObject(name, uid, generation, version, "")
    if not NAME.fits(name):
        return found._replace(fault=f"{KIND}/{name}: metadata.name: {NAME.message}")
    try:
        return found._replace(image=AssignmentSpec.model_validate(spec).image)
    except ValidationError as error:
        fault = first_fault(error)
        return found._replace(fault=f"{KIND}/{name}: {'.'.join(map(str, ('spec', *fault.location)))}: {fault.message}")


def kept_object(resource: Resource) -> AssignmentObject:
    """One that was kept."""
    found = assignment_object(resource.name, resource.uid, resource.generation, resource.spec)
    if not resource.refused:
        return found
    return found._replace(image="", fault=f"{KIND}/{resource.name}: spec: {resource.refused}")
