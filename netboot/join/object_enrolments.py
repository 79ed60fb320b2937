"""`netboot.join.enrolment.EnrolmentStore` over custom resources: the rules are those of `enrolment_rules`, and every
change is of an object as it was read, decided anew where that is another one by now.

What spans objects no API server decides: an EK that is approved for two machines lets none of them in.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

from netboot.join.enrolment import (
    Act,
    Change,
    EnrolmentStore,
    Entry,
    Import,
    Order,
    OrdersRefusedError,
    Owner,
    Propose,
    Record,
    UseWindow,
)
from netboot.join.enrolment_objects import (
    EnrolmentObject,
    EnrolmentObjects,
    pending_of,
    record_of,
    spec_of_order,
    status_after,
)
from netboot.join.enrolment_rules import decide
from netboot.join.errors import ConflictError, RefusedError
from netboot.join.object_alerts import ATTEMPTS, ObjectAlerts, busy
from netboot.join.object_orders import both, in_part
from netboot.join.ports import Enrolment
from netboot.lifecycle.errors import CannotTellError

REPLACED_SECONDS = 10.0
"""For which it is remembered which TPMs were taken out of which machines; of the machine itself it is asked anew."""
Refusal = Callable[[EnrolmentObject | None, Change, str], str]
"""The object as it was read, what is to become of it, and what the order brings of details → words for people."""
_RETIRED = {"state": "retired", "window": None, "window_id": "", "window_until_ms": 0}


class ObjectEnrolments(ObjectAlerts, EnrolmentStore):
    """Safe for threads, processes and replicas. It has no history: that is the API server's audit log."""

    def __init__(
        self, objects: EnrolmentObjects, refusal: Refusal | None = None, seconds: Callable[[], float] = monotonic
    ) -> None:
        """`refusal`: operators' orders are not for this account, and this says who carries them out; None: they are.
        `seconds`: a clock that goes on."""
        super().__init__(objects)
        self._refusal, self._seconds, self._reading = refusal, seconds, threading.Lock()
        self._gone: tuple[float, dict[str, str]] | None = None

    def by_ek(self, ek_sha256: str) -> Enrolment | None:
        """A replaced EK is its machine's, and retired.

        Raises:
            RefusedError: it is approved for several machines.
        """
        approved = self._objects.approved(ek_sha256)
        if len(approved) > 1:
            raise RefusedError(both(ek_sha256, [each.name for each in approved]))
        if approved:
            return self._record(approved[0]).enrolment()
        machine = self._replaced().get(ek_sha256)
        if machine is None:
            pending = self._pending(ek_sha256)
            return self._record(pending[0]).enrolment() if pending else None
        return self.of(machine).model_copy(update=_RETIRED | {"ek_sha256": ek_sha256})

    def record(self, machine: str) -> Record:
        """One whose EK is approved for another machine, too, is pending: nobody can tell whose it is."""
        found = self._objects.read(machine)
        if found is None:
            return Record(machine=machine)
        record = self._record(found)
        shared = record.state == "approved" and len(self.holders(record.ek_sha256 or "")) > 1
        return record.model_copy(update={"state": "pending"}) if shared else record

    def records(self) -> list[Record]:
        found = self._objects.all()
        used = self._objects.used() if any(each.spec.window is not None for each in found) else {}
        machines: dict[str, int] = {}
        for each in found:
            if each.spec.ek_sha256 is not None:
                machines[each.spec.ek_sha256] = machines.get(each.spec.ek_sha256, 0) + 1
        records = []
        for each in found:
            window = each.spec.window
            record = record_of(each.name, each, used.get((each.name, window.id)) if window is not None else None)
            shared = record.state == "approved" and machines[record.ek_sha256 or ""] > 1
            records.append(record.model_copy(update={"state": "pending"}) if shared else record)
        return records

    def noticed(self) -> list[Record]:
        return [self._record(each) for each in self._objects.noticed()]

    def holders(self, ek_sha256: str) -> tuple[str, ...]:
        found = self._objects.approved(ek_sha256) or self._pending(ek_sha256)
        return tuple(each.name for each in found)

    def owner(self, ek_sha256: str) -> Owner | None:
        return self._owner(ek_sha256, "")

    def history(self, machine: str | None, limit: int) -> list[Entry]:  # noqa: ARG002 - who did what is in no object
        return []

    def apply(
        self, orders: Sequence[tuple[str, Order]], act: Act, now_ms: int, *, dry_run: bool = False
    ) -> list[Change]:
        """An object is changed at a time.

        Raises:
            DoneInPartError: some were, and others could not be.
        """
        if len(orders) > 1 or dry_run:
            would = self._would(orders, now_ms)
            if dry_run:
                return would
            self._not_ours(orders, would)
        done: list[Change] = []
        try:
            for machine, order in orders:
                done.append(self._do(machine, order, act, now_ms))
        except RefusedError as error:
            if any(change.act for change in done):
                raise in_part(done, error) from None
            raise OrdersRefusedError([(len(done), error)]) from None
        except CannotTellError as error:
            if any(change.act for change in done):
                raise in_part(done, error) from None
            raise
        return done

    def _would(self, orders: Sequence[tuple[str, Order]], now_ms: int) -> list[Change]:
        """What they would come to, one after the other.

        Raises:
            OrdersRefusedError.
        """
        records, owners = dict[str, Record](), dict[str, Owner]()
        done: list[Change] = []
        refusals: list[tuple[int, RefusedError]] = []

        def whose(machine: str, ek: str) -> Owner | None:
            return owners[ek] if ek in owners else self._owner(ek, machine)

        for number, (machine, order) in enumerate(orders):
            record = records[machine] if machine in records else self.record(machine)
            try:
                change = decide(record, order, partial(whose, machine), now_ms)
            except RefusedError as error:
                refusals.append((number, error))
                continue
            records[machine] = change.record
            owners.update({ek: Owner(machine, replaced) for ek, replaced in change.eks})
            done.append(change)
        if refusals:
            raise OrdersRefusedError(refusals)
        return done

    def _not_ours(self, orders: Sequence[tuple[str, Order]], would: Sequence[Change]) -> None:
        """Raises OrdersRefusedError: they are not for this account, with a command for each."""
        if self._refusal is None:
            return
        refusals: list[tuple[int, RefusedError]] = []
        for number, ((machine, order), change) in enumerate(zip(orders, would, strict=True)):
            if change.act:
                details = order.details if isinstance(order, Import) else ""
                refusals.append((number, RefusedError(self._refusal(self._objects.read(machine), change, details))))
        if refusals:
            raise OrdersRefusedError(refusals)

    def _do(self, machine: str, order: Order, act: Act, now_ms: int) -> Change:
        for _ in range(ATTEMPTS):
            found = self._objects.read(machine)
            record = self._record(found) if found is not None else Record(machine=machine)
            change = decide(record, order, lambda ek: self._owner(ek, machine), now_ms)
            if not change.act:
                return change
            try:
                written = self._write(order, found, change, act, now_ms)
            except ConflictError:
                continue
            return change._replace(record=self._record(written))
        raise busy(machine)

    def _write(
        self, order: Order, found: EnrolmentObject | None, change: Change, act: Act, now_ms: int
    ) -> EnrolmentObject:
        """Raises ConflictError: it is another object by now. RefusedError: its window was used."""
        machine, objects = change.record.machine, self._objects
        if isinstance(order, UseWindow):
            assert found is not None
            if not objects.use_window(machine, order.window_id, ""):
                raise RefusedError(f"that boot window of {machine} is not open (any more)")
            return found
        if isinstance(order, Propose):
            assert found is not None
            assert found.spec.window is not None
            window, ek, self._gone = found.spec.window.id, order.ek_sha256, None
            decide(self._record(found), order, lambda ek: self._owner(ek, machine), now_ms)  # by what is replaced now
            if not objects.use_window(machine, window, ek) and objects.used_by(machine, window) != ek:
                raise RefusedError(
                    f"the window in which {machine} could enrol was used by another TPM; "
                    f"`netboot machine enroll {machine}` opens one"
                )
            return objects.write_status(status_after(found.status, change, window, now_ms), found)
        details = order.details if isinstance(order, Import) else ""
        if self._refusal is not None:
            raise RefusedError(self._refusal(found, change, details))
        spec = spec_of_order(found, change, details)
        self._gone = None
        return objects.write_spec(machine, spec, found, act)

    def _record(self, found: EnrolmentObject) -> Record:
        window = found.spec.window
        used = None
        asked = window is not None and (window.kind == "boot" or found.spec.replaced)
        if window is not None and asked and record_of(found.name, found).window is not None:
            used = self._objects.used_by(found.name, window.id)
        return record_of(found.name, found, used)

    def _owner(self, ek_sha256: str, machine: str) -> Owner | None:
        """Whose it is; another machine than `machine`, where it is several machines'."""
        approved = self._objects.approved(ek_sha256)
        own = self._objects.read(machine) if machine and not approved else None
        if own is not None and ek_sha256 in own.spec.replaced:
            return Owner(machine, replaced=True)
        if not approved and (replaced := self._replaced().get(ek_sha256)) is not None:
            return Owner(replaced, replaced=True)
        names = [each.name for each in approved or self._pending(ek_sha256)]
        return Owner(next((name for name in names if name != machine), machine), replaced=False) if names else None

    def _pending(self, ek_sha256: str) -> list[EnrolmentObject]:
        return [each for each in self._objects.proposed(ek_sha256) if pending_of(each) is not None]

    def _replaced(self) -> dict[str, str]:
        """TPMs that were taken out of machines, for no API server finds objects by what is in a list."""
        with self._reading:
            if self._gone is None or self._seconds() - self._gone[0] >= REPLACED_SECONDS:
                at = self._seconds()
                found = self._objects.all(damaged=False)
                self._gone = at, {ek: each.name for each in found for ek in each.spec.replaced}
            return self._gone[1]
