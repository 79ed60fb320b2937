"""What is on record of machines' identities, and the orders that change it. The rules: `enrolment_rules`."""

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from pydantic import ValidationError

from images.values.strict import Strict
from netboot.join.errors import RefusedError
from netboot.join.ports import Enrolment, Enrolments

SHOWN = 16
"""Characters of an EK's hash in words; commands take a prefix."""
LONGEST_DETAILS = 65_536
ALERTS_KEPT_MS = 90 * 86_400_000
"""An alert that was not raised again for so long is forgotten."""
LONGEST_ALERT = 1000


class Details(Strict):
    """What the machine said of itself when it showed its EK: for the operator who approves, never identity."""

    ek_certificate: str | None = None
    """Base64 DER."""
    ek_public: str | None = None
    """Base64 TPM2B_PUBLIC."""
    uuid: str | None = None
    serial: str | None = None
    macs: tuple[str, ...] = ()
    peer: str = ""
    said: str = ""


def parse_details(text: str) -> Details:
    """Details from what was stored; any other text becomes `said`."""
    try:
        return Details.model_validate(json.loads(text))
    except (ValidationError, ValueError, RecursionError):
        return Details(said=text[:500])


class Record(Enrolment):
    """An enrolment with what only operators are shown. `revision` rises with every change of any part."""

    details: str = ""
    since_ms: int = 0
    """When `state` last changed."""
    revision: int = 0
    retired_from: Literal["none", "pending", "approved"] = "none"
    """State `retired`: the one before it, which `Reinstate` brings back."""

    def enrolment(self) -> Enrolment:
        """What join is told."""
        return Enrolment.model_validate(self.model_dump(exclude=set(Record.model_fields) - set(Enrolment.model_fields)))

    def open_window(self, now_ms: int) -> Literal["enrol", "boot"] | None:
        """The window that is open at this moment."""
        return self.window if now_ms < self.window_until_ms else None


class Owner(NamedTuple):
    """Whose an EK is; `replaced`: it was taken out of that machine by an operator's word."""

    machine: str
    replaced: bool


class Act(NamedTuple):
    """Who gave an order, and why, in their own words; "" for a machine's own claim."""

    operator: str = ""
    reason: str = ""


class Entry(Strict):
    """One line of the history."""

    id: int = 0
    at_ms: int
    machine: str
    act: str
    operator: str = ""
    reason: str = ""
    ek_sha256: str | None = None
    said: str = ""


class Alert(Strict):
    """What may be an attack on a machine, all of one kind together: when first and last, how often, the latest words.

    `kind`: an AlertKind; `earlier` for those of an older version.
    """

    machine: str
    kind: str
    first_ms: int
    last_ms: int
    count: int
    said: str


class OpenWindow(NamedTuple):
    """Let the machine enrol its TPM on first use, or join once without one, until `until_ms`."""

    kind: Literal["enrol", "boot"]
    window_id: str
    until_ms: int


class Propose(NamedTuple):
    """The machine shows an EK in its open window."""

    ek_sha256: str
    details: str


class UseWindow(NamedTuple):
    """The machine has joined through its boot window."""

    window_id: str


class Approve(NamedTuple):
    """Let this EK (and no other) join. `revision`: of what the operator was shown; None: the EK says enough."""

    ek_sha256: str | None
    revision: int | None = None


class Reinstate(NamedTuple):
    """A retired machine is in service again as it was before; no EK is approved by that. `revision`: as it was read."""

    revision: int


class Import(NamedTuple):
    """The operator says which EK the machine has."""

    ek_sha256: str
    details: str = ""


class Release(NamedTuple):
    """What the machine's Lease says binds nobody any more."""


class Replace(NamedTuple):
    """The TPM on record has left the machine; a window for the next one. `window_id` "": none."""

    window_id: str
    until_ms: int


class Retire(NamedTuple):
    """Out of service: no tokens, no renewals."""


Order = OpenWindow | Propose | UseWindow | Approve | Reinstate | Import | Release | Replace | Retire


class Change(NamedTuple):
    """What an order does. `act` "": nothing, it was so already. `message`: for the history. `eks`: (hash, replaced)
    rows of this machine."""

    record: Record
    act: str = ""
    message: str = ""
    eks: tuple[tuple[str, bool], ...] = ()


class OrdersRefusedError(RefusedError):
    """Of orders given together some cannot be carried out: (position, why) of each; none was carried out."""

    def __init__(self, refusals: Sequence[tuple[int, RefusedError]]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("; ".join(str(why) for _, why in self.refusals))


def short(ek_sha256: str | None) -> str:
    """The beginning of an EK's hash, for words."""
    return f"{ek_sha256[:SHOWN]}..." if ek_sha256 else "none"


class EnrolmentStore(Enrolments, Protocol):
    """What is on record, with the operators' side of it. Durable when a method returns.

    Every method raises StateUnavailableError when the disk refuses. Whoever implements it inherits from it: what a
    machine may do is an order like those of operators.
    """

    def of(self, machine: str) -> Enrolment:
        return self.record(machine).enrolment()

    def propose(self, machine: str, ek_sha256: str, details: str, now_ms: int) -> Enrolment:
        return self.apply([(machine, Propose(ek_sha256, details))], Act(), now_ms)[0].record.enrolment()

    def use_window(self, machine: str, window_id: str, now_ms: int) -> bool:
        try:
            self.apply([(machine, UseWindow(window_id))], Act(), now_ms)
        except RefusedError:
            return False
        return True

    def record(self, machine: str) -> Record:
        """What is on record; state "none" where there is nothing."""
        ...

    def records(self) -> list[Record]:
        """Of every machine that has any, by name."""
        ...

    def owner(self, ek_sha256: str) -> Owner | None:
        """Whose this EK is or was."""
        ...

    def noticed(self) -> list[Record]:
        """Of machines that are retired or have a window, by name, and maybe of others."""
        return self.records()

    def holders(self, ek_sha256: str) -> tuple[str, ...]:
        """Machines that have this EK on record now, by name; several where that is a conflict."""
        owner = self.owner(ek_sha256)
        return (owner.machine,) if owner is not None and not owner.replaced else ()

    def history(self, machine: str | None, limit: int) -> list[Entry]:
        """The latest first; of one machine or of all."""
        ...

    def alerts(self, machine: str) -> list[Alert]:
        """At most one of each kind, the latest first."""
        ...

    def latest_alerts(self) -> dict[str, int]:
        """Of all machines: kind, and when the latest of it was, milliseconds since 1970."""
        ...

    def apply(
        self, orders: Sequence[tuple[str, Order]], act: Act, now_ms: int, *, dry_run: bool = False
    ) -> list[Change]:
        """Carry out all orders, or none; with `dry_run` none, and say what they would have come to.

        Raises:
            OrdersRefusedError: with every refusal.
        """
        ...
