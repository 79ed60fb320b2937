"""Orders to drain and to reboot as custom resources (`netboot.lifecycle.drains`): of each machine of which any was
given one object, by the machine's name, which says the last one. Pure but for its port.

So the API server itself lets no second order stand of a machine, and what was ordered at one replica is known to all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self

from pydantic import AfterValidator, StringConstraints, ValidationError, model_validator

from images.values.faults import first_fault
from images.values.strict import Strict
from netboot.clock import Moment, moment_ms, rfc3339
from netboot.lifecycle.drains import LONGEST_MS, Drain, End, State, What
from netboot.lifecycle.holds import one_line
from netboot.lifecycle.intents import LONGEST_REASON, Owner
from netboot.machines.resources import Resource

KIND = "order"
LONGEST_WHO, LONGEST_WORDS = 256, 1000
LONGEST_KEPT = 256
"""Of the words of a status, in characters."""


def printable(text: str) -> str:
    """Raises ValueError: it is not."""
    if text and not text.isprintable():
        raise ValueError("must be printable text")
    return text


_Words = Annotated[str, StringConstraints(max_length=LONGEST_WORDS), AfterValidator(printable)]
_Id = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z-]{1,32}$")]


class OrderEnd(Strict):
    """That an order has ended, and how."""

    how: End
    """taken-off: by a person; replaced: by a newer order; undone: past its deadline, or its machine left; rebooted: the
    machine has another boot; withdrawn: by what gave it, before its machine was told."""
    at: Moment
    """When."""
    words: _Words = ""
    """Why, for people."""


class OrderSpec(Strict):
    """The last order to drain or to reboot a machine. netboot writes it for whoever gave the order:
    `netboot machine drain`, `reboot`, `undrain`."""

    id: _Id
    """Of this order alone."""
    what: What
    """drain: its Pods are moved away. reboot: then it is told to reboot, too."""
    boot: Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{36}$")]
    """The boot that ran then, to which it is bound."""
    who: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_WHO), AfterValidator(one_line)]
    """Who gave it, in his own words."""
    owner: Owner = "operator"
    """operator, or what acts by itself: rollout/12, remedy/3."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_REASON), AfterValidator(one_line)]
    """Why, for people."""
    since: Moment
    """When it was given."""
    deadline: Moment
    """Until when its Pods have to be gone: what is not drained by then is undone."""
    bare: bool = False
    """Pods without a controller are evicted too, and are lost."""
    local: bool = False
    """Pods with an emptyDir are evicted too, with what is in it."""
    end: OrderEnd | None = None
    """Left out: it stands."""

    @model_validator(mode="after")
    def _ends_in_a_while(self) -> Self:
        if not 0 <= moment_ms(self.deadline) - moment_ms(self.since) <= LONGEST_MS:
            raise ValueError("`deadline` must be within a day of `since`")
        return self


class OrderStatus(Strict):
    """How far it is, as who carries it out says; netboot alone writes it. What acts by itself at another replica takes
    back no order of a machine that, by this, was told to reboot."""

    id: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z-]{0,32}$")] = ""
    """Of the order of which this is said."""
    state: Literal["", "waiting", "draining", "drained", "ordered", "undone", "rebooted"] = ""
    """ordered: the machine was told to reboot."""
    message: _Words = ""
    """Why, for people."""
    since: Annotated[str, StringConstraints(max_length=40)] = ""
    """Since when."""


def kept_status(status: object) -> dict[str, str] | None:
    """What is kept of an object's status; None: it says nothing that can be read."""
    try:
        said = OrderStatus.model_validate(status)
    except ValidationError:
        return None
    return said.model_copy(update={"message": said.message[:LONGEST_KEPT]}).model_dump(mode="json")


def state_of(status: object) -> State | None:
    """How far an order is, as its object's status says it; None: it says nothing of any."""
    try:
        said = OrderStatus.model_validate(status)
        since_ms = moment_ms(said.since)
    except ValueError:
        return None
    return State(id=said.id, state=said.state, words=said.message, since_ms=since_ms) if said.state else None


class OrderObject(NamedTuple):
    """One, as it was read. `generation`: grows with each change of what it says; `version`: what a change of it goes
    by, "" of one that was kept. `drain`: what it says, by its own name; None: it can be no order, for the reason that
    `fault` says, and whatever it means, its machine is nobody's to order. `state`: how far it is, as is said there;
    `metadata`: what others put there, which a change of it leaves; `going`: it was deleted, and has finalizers."""

    name: str
    uid: str
    generation: int
    version: str
    drain: Drain | None
    fault: str = ""
    state: State | None = None
    metadata: Mapping[str, Any] = MappingProxyType({})
    going: bool = False

    def refused(self, where: str, why: str) -> "OrderObject":
        """The same, as one that can be no order."""
        return self._replace(drain=None, fault=f"{KIND}/{self.name}: {where}: {why}")


def order_object(name: str, uid: str, generation: int, spec: object, version: str = "") -> OrderObject:
    """One that says this."""
    found = OrderObject(name, uid, generation, version, None)
    try:
        return found._replace(drain=_drain_of(name, OrderSpec.model_validate(spec)))
    except ValidationError as error:
        fault = first_fault(error)
        return found.refused(".".join(map(str, ("spec", *fault.location))), fault.message)


def kept_object(resource: Resource) -> OrderObject:
    """One that was kept."""
    found = order_object(resource.name, resource.uid, resource.generation, resource.spec)
    found = found.refused("spec", resource.refused) if resource.refused else found
    return found._replace(state=state_of(resource.status))


def apart(objects: Iterable[OrderObject]) -> list[OrderObject]:
    """By name. Of several that are one order, as a copy is, none is believed: whose it is cannot be told."""
    found = sorted(objects, key=lambda each: each.name)
    ids = Counter(each.drain.id for each in found if each.drain is not None)
    return [of_two(each) if each.drain is not None and ids[each.drain.id] > 1 else each for each in found]


def of_two(found: OrderObject) -> OrderObject:
    """One that says the same order as another."""
    return found.refused("spec.id", "another object has the same")


class OrderObjects(Protocol):
    """Those of one namespace, by the name that their machine had. Every read is of what is there now. Every method
    raises CannotTellError."""

    def read(self, name: str) -> OrderObject | None:
        """One; None: there is none."""
        ...

    def all(self) -> list[OrderObject]:
        """Of all machines, by name."""
        ...

    def write(self, name: str, spec: OrderSpec, before: OrderObject | None) -> OrderObject:
        """Make it, or change it as it was read; as it is then. Raises ConflictError: it is another one by now."""
        ...


def spec_of(drain: Drain) -> OrderSpec:
    """An order as an object says it."""
    end = None
    if drain.end is not None:
        end = OrderEnd(how=drain.end, at=rfc3339(drain.ended_ms or 0), words=clean(drain.words, LONGEST_WORDS))
    return OrderSpec(
        id=drain.id,
        what=drain.what,
        boot=drain.boot,
        who=clean(drain.who, LONGEST_WHO),
        owner=drain.owner,
        reason=clean(drain.reason, LONGEST_REASON),
        since=rfc3339(drain.since_ms),
        deadline=rfc3339(drain.deadline_ms),
        bare=drain.bare,
        local=drain.local,
        end=end,
    )


def clean(text: str, most: int) -> str:
    """What an object may say of it."""
    return "".join(c if c.isprintable() else " " for c in text)[:most]


def _drain_of(machine: str, spec: OrderSpec) -> Drain:
    return Drain(
        id=spec.id,
        machine=machine,
        what=spec.what,
        boot=spec.boot,
        who=spec.who,
        reason=spec.reason,
        since_ms=moment_ms(spec.since),
        deadline_ms=moment_ms(spec.deadline),
        bare=spec.bare,
        local=spec.local,
        owner=spec.owner,
        end=spec.end.how if spec.end is not None else None,
        ended_ms=moment_ms(spec.end.at) if spec.end is not None else None,
        words=spec.end.words if spec.end is not None else "",
    )
