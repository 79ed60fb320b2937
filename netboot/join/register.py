"""Enrolments as join and operators see them: what is on record, overruled by what the inventory pins.

An EK of the inventory counts as approved. Only `retired` overrules it, for that takes something away. A conflict
between the two never gives anything: it is said, and who is in doubt waits.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from cryptography.x509 import Certificate

from images.values.strict import Strict
from netboot.join.certified import Certified, certified
from netboot.join.enrolment import (
    Act,
    Approve,
    Change,
    Details,
    EnrolmentStore,
    Import,
    OpenWindow,
    Order,
    OrdersRefusedError,
    Record,
    Replace,
    parse_details,
    short,
)
from netboot.join.errors import RefusedError
from netboot.join.ports import Enrolment
from netboot.lifecycle.snapshot import BootWindow
from netboot.machines.values import Inventory


class EnrolmentView(Strict):
    """All about a machine's enrolment, for operators."""

    machine: str
    ek_sha256: str | None
    state: str
    source: str
    generation: int
    revision: int
    since_ms: int
    window: Literal["enrol", "boot"] | None
    """Open at this moment."""
    window_id: str
    window_until_ms: int
    conflict: str = ""
    """Between inventory and record, in words."""
    details: Details = Details()
    certificate: Certified | None = None
    """None in lists, and where there is no EK."""


class _Pins(NamedTuple):
    inventory: Inventory | None
    by_ek: dict[str, str]
    by_machine: dict[str, str]
    by_tpm: frozenset[str]
    """Machines that may prove themselves by nothing less."""


class Register:
    """`netboot.join.ports.Enrolments` over a store, and the operators' orders."""

    def __init__(
        self,
        store: EnrolmentStore,
        inventory: Callable[[], Inventory],
        roots: Callable[[], Sequence[Certificate]] | None = None,
    ) -> None:
        """`roots`: what EK certificates of machines that enrol in a window must lead to; None: they need none."""
        self.store, self._inventory, self._roots = store, inventory, roots
        self._known = _Pins(None, {}, {}, frozenset())

    def by_ek(self, ek_sha256: str) -> Enrolment | None:
        pins = self._pins()
        if ek_sha256 in pins.by_ek:
            return self.of(pins.by_ek[ek_sha256])
        enrolled = self.store.by_ek(ek_sha256)
        if enrolled is not None and enrolled.machine in pins.by_machine:
            return enrolled.model_copy(update={"state": "retired"})
        return enrolled

    def of(self, machine: str) -> Enrolment:
        return self._overruled(self.store.record(machine))

    def propose(self, machine: str, ek_sha256: str, details: str, now_ms: int) -> Enrolment:
        pinned = self._pins().by_machine.get(machine)
        owner = self._pins().by_ek.get(ek_sha256)
        if owner is not None and owner != machine:
            raise RefusedError(f"{machine} shows the TPM that the inventory gives {owner} (EK {short(ek_sha256)})")
        if pinned is not None and pinned != ek_sha256:
            raise RefusedError(
                f"{machine} shows another TPM (EK {short(ek_sha256)}) than the inventory pins (EK {short(pinned)})"
            )
        if pinned is None and self._roots is not None and self.store.by_ek(ek_sha256) is None:
            certificate = certified(parse_details(details), ek_sha256, self._roots(), now_ms)
            if certificate.verdict != "good":
                raise RefusedError(
                    f"the TPM of {machine} cannot enrol here: {certificate.words}; this site wants EK certificates "
                    "that lead to its join.tpm_roots. An operator can enrol it all the same with "
                    "`netboot machine enroll --csv`"
                )
        return self.of(machine) if pinned is not None else self.store.propose(machine, ek_sha256, details, now_ms)

    def use_window(self, machine: str, window_id: str, now_ms: int) -> bool:
        return self.store.use_window(machine, window_id, now_ms)

    def alert(self, machine: str, message: str, now_ms: int) -> None:
        self.store.alert(machine, message, now_ms)

    def boot_windows(self, now_ms: int) -> dict[str, BootWindow]:
        """Open boot windows of machines that may use one: declared, enabled, not only by TPM, and none on record."""
        machines = {
            machine.name: machine
            for machine in self._inventory().machines
            if machine.enabled and machine.identity != "tpm"
        }
        windows = {}
        for record in self.store.records():
            if record.machine not in machines or record.open_window(now_ms) != "boot":
                continue
            seen = self._overruled(record)
            if seen.window == "boot" and seen.ek_sha256 is None and seen.state == "none":
                windows[record.machine] = BootWindow(id=seen.window_id, until_ms=seen.window_until_ms)
        return windows

    def apply(self, orders: Sequence[tuple[str, Order]], act: Act, now_ms: int) -> list[Change]:
        """Carry out operators' orders, or none.

        Raises:
            OrdersRefusedError: with every refusal. StateUnavailableError.
        """
        refusals: dict[int, str] = {}
        allowed: list[tuple[int, str, Order]] = []
        for number, (name, order) in enumerate(orders):
            try:
                allowed += [(number, name, permitted) for permitted in self._allowed(name, order)]
            except RefusedError as error:
                refusals[number] = str(error)
        try:
            done = self.store.apply([(name, order) for _, name, order in allowed], act, now_ms) if not refusals else []
        except OrdersRefusedError as error:
            refusals |= {allowed[at][0]: why for at, why in error.refusals}
            done = []
        if refusals:
            raise OrdersRefusedError(sorted(refusals.items()))
        return done

    def view(self, machine: str, now_ms: int) -> EnrolmentView:
        """All about one machine, its EK's certificate too."""
        record = self.store.record(machine)
        view = self._view(record, now_ms)
        if view.ek_sha256 is None:
            return view
        roots = self._roots() if self._roots is not None else None
        certificate = certified(view.details, view.ek_sha256, roots, now_ms)
        return view.model_copy(update={"certificate": certificate})

    def views(self, now_ms: int) -> list[EnrolmentView]:
        """Every machine of the inventory, and every other that is on record, by name."""
        records = {record.machine: record for record in self.store.records()}
        names = {machine.name for machine in self._inventory().machines} | set(records)
        return [self._view(records.get(name, Record(machine=name)), now_ms) for name in sorted(names)]

    def _view(self, record: Record, now_ms: int) -> EnrolmentView:
        seen = self._overruled(record)
        window = record.open_window(now_ms) if seen.window is not None else None
        on_record = seen.ek_sha256 == record.ek_sha256
        return EnrolmentView(
            machine=record.machine,
            ek_sha256=seen.ek_sha256,
            state=seen.state,
            source=seen.source,
            generation=seen.generation,
            revision=record.revision,
            since_ms=record.since_ms,
            window=window,
            window_id=seen.window_id if window else "",
            window_until_ms=seen.window_until_ms if window else 0,
            conflict=self._conflict(record),
            details=parse_details(record.details) if record.details and on_record else Details(),
        )

    def _overruled(self, record: Record) -> Enrolment:
        enrolment, pins = record.enrolment(), self._pins()
        pinned = pins.by_machine.get(record.machine)
        if pinned is not None:
            state = "retired" if record.state == "retired" else "approved"
            closed = {"window": None, "window_id": "", "window_until_ms": 0}
            return enrolment.model_copy(update={"ek_sha256": pinned, "state": state, "source": "inventory", **closed})
        if record.state == "approved" and record.ek_sha256 in pins.by_ek:
            return enrolment.model_copy(update={"state": "pending"})
        return enrolment

    def _conflict(self, record: Record) -> str:
        pins, ek = self._pins(), record.ek_sha256
        pinned = pins.by_machine.get(record.machine)
        if pinned is not None and ek not in (None, pinned):
            return f"the inventory pins EK {short(pinned)}, on record is EK {short(ek)}: the inventory's counts"
        if pinned is None and ek is not None and ek in pins.by_ek:
            return (
                f"the inventory gives EK {short(ek)} to {pins.by_ek[ek]}: {record.machine} waits until that is settled"
            )
        owner = self.store.owner(pinned) if pinned is not None else None
        if pinned is not None and owner is not None and owner.machine != record.machine and not owner.replaced:
            return f"the inventory pins EK {short(pinned)}, which is on record as the TPM of {owner.machine}"
        return ""

    def _allowed(self, name: str, order: Order) -> list[Order]:
        """The orders for the store; the inventory may have carried one out already."""
        pinned = self._pins().by_machine.get(name)
        if isinstance(order, OpenWindow) and order.kind == "boot" and name in self._pins().by_tpm:
            raise RefusedError(
                f"{name} proves itself by its TPM; to let it join without one, set `identity: nonce` in the inventory"
            )
        if isinstance(order, Import):
            owner = self._pins().by_ek.get(order.ek_sha256, name)
            if owner != name:
                raise RefusedError(f"EK {short(order.ek_sha256)} is the TPM of {owner} by the inventory, not of {name}")
        if pinned is None:
            return [order]
        if isinstance(order, Import) and order.ek_sha256 == pinned:
            return []
        if isinstance(order, OpenWindow | Import | Replace):
            raise RefusedError(
                f"the inventory pins the TPM of {name} (EK {short(pinned)}): change match.ek_sha256 there"
            )
        if isinstance(order, Approve):
            record = self.store.record(name)
            if record.state != "retired":
                raise RefusedError(f"{name} is approved by the inventory already (EK {short(pinned)})")
            if order.ek_sha256 == pinned:
                return [Approve(record.ek_sha256, order.revision)]
        return [order]

    def _pins(self) -> _Pins:
        inventory = self._inventory()
        if inventory is not self._known.inventory:
            pins = {
                machine.name: machine.match.ek_sha256
                for machine in inventory.machines
                if machine.match.ek_sha256 is not None
            }
            by_tpm = frozenset(machine.name for machine in inventory.machines if machine.identity == "tpm")
            self._known = _Pins(inventory, {ek: name for name, ek in pins.items()}, pins, by_tpm)
        return self._known
