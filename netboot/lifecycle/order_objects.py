"""Orders to drain and to reboot as custom resources (`netboot.lifecycle.drains`): of each machine of which any was
given one object, by the machine's name, which says the last one. Pure but for its port.

So the API server itself lets no second order stand of a machine, and what was ordered at one replica is known to all.
"""

from typing import Annotated, Literal, NamedTuple, Protocol

from pydantic import StringConstraints, ValidationError

from images.values.faults import first_fault
from images.values.strict import Strict
from netboot.clock import Moment, moment_ms, rfc3339
from netboot.lifecycle.drains import Drain, End, What
from netboot.lifecycle.intents import LONGEST_REASON, Owner
from netboot.machines.resources import Resource

KIND = "order"


_Words = Annotated[str, StringConstraints(max_length=1000)]


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

    id: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z-]{1,32}$")]
    """Of this order alone."""
    what: What
    """drain: its Pods are moved away. reboot: then it is told to reboot, too."""
    boot: Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{36}$")]
    """The boot that ran then, to which it is bound."""
    who: Annotated[str, StringConstraints(max_length=256)]
    """Who gave it, in his own words."""
    owner: Owner = "operator"
    """operator, or what acts by itself: rollout/12, remedy/3."""
    reason: Annotated[str, StringConstraints(max_length=LONGEST_REASON)]
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


class OrderStatus(Strict):
    """How far it is, as who carries it out says. Nothing is decided by it; netboot alone writes it."""

    id: Annotated[str, StringConstraints(max_length=16)] = ""
    """Of the order of which this is said."""
    state: Literal["", "waiting", "draining", "drained", "ordered", "undone", "rebooted"] = ""
    """ordered: the machine was told to reboot."""
    message: _Words = ""
    """Why, for people."""
    since: Annotated[str, StringConstraints(max_length=40)] = ""
    """Since when."""


class OrderObject(NamedTuple):
    """One, as it was read. `spec` None: it cannot be one, for the reason that `fault` says, and whatever it means, its
    machine is nobody's to order."""

    name: str
    uid: str
    version: str
    spec: OrderSpec | None
    fault: str = ""

    @property
    def drain(self) -> Drain | None:
        """What it says; None: it cannot be told."""
        return drain_of(self.name, self.spec) if self.spec is not None else None


def parsed(name: str, spec: object) -> tuple[OrderSpec | None, str]:
    """What an object of that name says, or why that is no order."""
    try:
        return OrderSpec.model_validate(spec), ""
    except ValidationError as error:
        fault = first_fault(error)
        return None, f"{KIND}/{name}: {'.'.join(map(str, ('spec', *fault.location)))}: {fault.message}"


def order_of(resource: Resource) -> tuple[Drain | None, str]:
    """Likewise of one that was kept."""
    if resource.refused:
        return None, f"{KIND}/{resource.name}: spec: {resource.refused}"
    spec, fault = parsed(resource.name, resource.spec)
    return (drain_of(resource.name, spec) if spec is not None else None), fault


class OrderObjects(Protocol):
    """Those of one namespace, by the name of their machine. Every read is of what is there now. Every method raises
    CannotTellError."""

    def read(self, machine: str) -> OrderObject | None:
        """Of one machine; None: no order of it was ever given."""
        ...

    def all(self) -> list[OrderObject]:
        """Of all machines, by name."""
        ...

    def write(self, machine: str, spec: OrderSpec, before: OrderObject | None) -> OrderObject:
        """Make it, or change it as it was read. Raises ConflictError: it is another one by now."""
        ...


def spec_of(drain: Drain) -> OrderSpec:
    """An order as an object says it."""
    end = None
    if drain.end is not None:
        end = OrderEnd(how=drain.end, at=rfc3339(drain.ended_ms or 0), words=drain.words[:1000])
    return OrderSpec(
        id=drain.id,
        what=drain.what,
        boot=drain.boot,
        who=drain.who[:256],
        owner=drain.owner,
        reason=drain.reason,
        since=rfc3339(drain.since_ms),
        deadline=rfc3339(drain.deadline_ms),
        bare=drain.bare,
        local=drain.local,
        end=end,
    )


def drain_of(machine: str, spec: OrderSpec) -> Drain:
    """What an object says as an order."""
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
