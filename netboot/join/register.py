"""Enrolments as join and operators see them: what is on record, overruled by what the inventory pins.

An EK of the inventory counts as approved. Only `retired` overrules it, for that takes something away. A conflict
between the two never gives anything: it is said, and who is in doubt waits.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from cryptography.x509 import Certificate

from images.values.strict import Strict
from netboot.join.certified import Certified, certified
from netboot.join.enrolment import (
    Act,
    Change,
    Details,
    EnrolmentStore,
    Order,
    OrdersRefusedError,
    Record,
    parse_details,
    short,
)
from netboot.join.enrolment_rules import decide
from netboot.join.errors import RefusedError
from netboot.join.pins import NO_PINS, Pins, permitted, pins_of
from netboot.join.ports import AlertKind, Enrolment
from netboot.lifecycle.snapshot import BootWindow
from netboot.machines.values import Inventory


class EnrolmentView(Strict):
    """All about a machine's enrolment, for operators."""

    machine: str
    ek_sha256: str | None
    state: str
    retired_from: str
    """State `retired`: the one that `approve` brings back; else ""."""
    source: str
    generation: int
    revision: int
    since_ms: int | None
    """When `state` last changed; None: nothing is on record."""
    window: Literal["enrol", "boot"] | None
    """Open at this moment."""
    window_id: str
    window_until_ms: int | None
    conflict: str = ""
    """Between inventory and record, in words."""
    details: Details = Details()
    certificate: Certified | None = None
    """None in lists, and where there is no EK."""


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
        self._known = NO_PINS

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

    def alert(self, machine: str, kind: AlertKind, message: str, now_ms: int) -> None:
        self.store.alert(machine, kind, message, now_ms)

    def boot_windows(self, now_ms: int) -> dict[str, BootWindow]:
        """As the function has it."""
        return boot_windows(self._inventory(), self.store.records(), now_ms)

    def apply(
        self, orders: Sequence[tuple[str, Order]], act: Act, now_ms: int, *, dry_run: bool = False
    ) -> list[Change]:
        """Carry out operators' orders, or none; `dry_run`: none, as it would be.

        Raises:
            OrdersRefusedError: with every refusal. StateUnavailableError.
        """
        refusals: dict[int, RefusedError] = {}
        allowed: list[tuple[int, str, Order]] = []
        for number, (name, order) in enumerate(orders):
            try:
                decided = permitted(self._pins(), name, order, self.store.record)
            except RefusedError as error:
                refusals[number] = error
                continue
            if decided is not None:
                allowed.append((number, name, decided))
        try:
            wanted = [(name, order) for _, name, order in allowed]
            done = self.store.apply(wanted, act, now_ms, dry_run=dry_run) if not refusals else []
        except OrdersRefusedError as error:
            refusals |= {allowed[at][0]: why for at, why in error.refusals}
            done = []
        if refusals:
            raise OrdersRefusedError([(number, refusals[number]) for number in sorted(refusals)])
        return done

    def view(self, machine: str, now_ms: int) -> EnrolmentView:
        """All about one machine, its EK's certificate too."""
        return self._whole(self.store.record(machine), now_ms)

    def would_be(self, machine: str, order: Order, now_ms: int) -> tuple[EnrolmentView, bool]:
        """What an order would make of a machine, and whether it would change anything; nothing is written.

        Raises:
            RefusedError: as `apply` would. StateUnavailableError.
        """
        record = self.store.record(machine)
        allowed = permitted(self._pins(), machine, order, self.store.record)
        change = decide(record, allowed, self.store.owner, now_ms) if allowed is not None else Change(record)
        return self._whole(change.record, now_ms), bool(change.act)

    def _whole(self, record: Record, now_ms: int) -> EnrolmentView:
        view = self._view(record, now_ms, self.store.holders)
        if view.ek_sha256 is None:
            return view
        roots = self._roots() if self._roots is not None else None
        certificate = certified(view.details, view.ek_sha256, roots, now_ms)
        return view.model_copy(update={"certificate": certificate})

    def views(self, now_ms: int) -> list[EnrolmentView]:
        """Every machine of the inventory, and every other that is on record, by name."""
        records = {record.machine: record for record in self.store.records()}
        names = {machine.name for machine in self._inventory().machines} | set(records)
        holders: dict[str, list[str]] = {}
        for name, record in records.items():
            holders.setdefault(record.ek_sha256 or "", []).append(name)

        def of(ek: str) -> Sequence[str]:
            return holders.get(ek, ()) if ek else ()

        return [self._view(records.get(name, Record(machine=name)), now_ms, of) for name in sorted(names)]

    def _view(self, record: Record, now_ms: int, holders: Callable[[str], Sequence[str]]) -> EnrolmentView:
        seen = self._overruled(record)
        window = record.open_window(now_ms) if seen.window is not None else None
        on_record = seen.ek_sha256 == record.ek_sha256
        return EnrolmentView(
            machine=record.machine,
            ek_sha256=seen.ek_sha256,
            state=seen.state,
            retired_from=_before(seen, record),
            source=seen.source,
            generation=seen.generation,
            revision=record.revision,
            since_ms=record.since_ms or None,
            window=window,
            window_id=seen.window_id if window else "",
            window_until_ms=seen.window_until_ms if window else None,
            conflict=self._conflict(record, holders),
            details=parse_details(record.details) if record.details and on_record else Details(),
        )

    def _overruled(self, record: Record) -> Enrolment:
        return _overruled(record, self._pins())

    def _conflict(self, record: Record, holders: Callable[[str], Sequence[str]]) -> str:
        pins, ek = self._pins(), record.ek_sha256
        pinned = pins.by_machine.get(record.machine)
        if pinned is not None and ek not in (None, pinned):
            return f"the inventory pins EK {short(pinned)}, on record is EK {short(ek)}: the inventory's counts"
        if pinned is None and ek is not None and ek in pins.by_ek:
            return (
                f"the inventory gives EK {short(ek)} to {pins.by_ek[ek]}: {record.machine} waits until that is settled"
            )
        others = [each for each in holders(pinned or ek or "") if each != record.machine] if pinned or ek else []
        if pinned is not None and others:
            return f"the inventory pins EK {short(pinned)}, which is on record as the TPM of {' and '.join(others)}"
        if others:
            return f"EK {short(ek)} is on record of {' and '.join(others)}, too: none of them joins until one has it"
        return ""

    def _pins(self) -> Pins:
        inventory = self._inventory()
        if inventory is not self._known.inventory:
            self._known = pins_of(inventory)
        return self._known


def boot_windows(inventory: Inventory, records: Sequence[Record], now_ms: int) -> dict[str, BootWindow]:
    """Open boot windows of machines that may use one: declared, enabled, not only by TPM, and none on record."""
    may = {each.name for each in inventory.machines if each.enabled and each.identity != "tpm"}
    pins = pins_of(inventory)
    windows = {}
    for record in records:
        if record.machine not in may or record.open_window(now_ms) != "boot":
            continue
        seen = _overruled(record, pins)
        if seen.window == "boot" and seen.ek_sha256 is None and seen.state == "none":
            windows[record.machine] = BootWindow(id=seen.window_id, until_ms=seen.window_until_ms)
    return windows


def _overruled(record: Record, pins: Pins) -> Enrolment:
    enrolment = record.enrolment()
    pinned = pins.by_machine.get(record.machine)
    if pinned is not None:
        state = "retired" if record.state == "retired" else "approved"
        closed = {"window": None, "window_id": "", "window_until_ms": 0}
        return enrolment.model_copy(update={"ek_sha256": pinned, "state": state, "source": "inventory", **closed})
    if record.state == "approved" and record.ek_sha256 in pins.by_ek:
        return enrolment.model_copy(update={"state": "pending"})
    return enrolment


def _before(seen: Enrolment, record: Record) -> str:
    if seen.state != "retired":
        return ""
    return "approved" if seen.source == "inventory" else record.retired_from
