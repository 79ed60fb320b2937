"""Enrolment in memory: what other rooms' tests use, and what the contract suite holds against the one on disk."""

import threading
from collections.abc import Sequence

from netboot.join.enrolment import (
    ALERTS_KEPT_MS,
    LONGEST_ALERT,
    Act,
    Alert,
    Change,
    EnrolmentStore,
    Entry,
    Order,
    OrdersRefusedError,
    Owner,
    Record,
)
from netboot.join.enrolment_rules import decide
from netboot.join.errors import RefusedError
from netboot.join.ports import AlertKind, Enrolment


class MemoryEnrolments(EnrolmentStore):
    """The obvious way: dictionaries, put in place once all orders are decided."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}
        self._owners: dict[str, Owner] = {}
        self._entries: list[Entry] = []
        self._alerts: list[Alert] = []
        self._lock = threading.Lock()

    def by_ek(self, ek_sha256: str) -> Enrolment | None:
        owner = self._owners.get(ek_sha256)
        if owner is None:
            return None
        found = self.of(owner.machine)
        if not owner.replaced:
            return found
        return Enrolment(
            machine=owner.machine,
            ek_sha256=ek_sha256,
            state="retired",
            generation=found.generation,
            source=found.source,
        )

    def alert(self, machine: str, kind: AlertKind, message: str, now_ms: int) -> None:
        with self._lock:
            kept = [one for one in self._alerts if one.last_ms >= now_ms - ALERTS_KEPT_MS]
            old = next((one for one in kept if (one.machine, one.kind) == (machine, kind)), None)
            new = Alert(
                machine=machine, kind=kind, first_ms=old.first_ms if old else now_ms, last_ms=now_ms,
                count=old.count + 1 if old else 1, said=message[:LONGEST_ALERT],
            )  # fmt: skip
            self._alerts = [*(one for one in kept if one is not old), new]

    def alerts(self, machine: str) -> list[Alert]:
        mine = [one for one in self._alerts if one.machine == machine]
        return sorted(mine, key=lambda one: (-one.last_ms, one.kind))

    def latest_alerts(self) -> dict[str, int]:
        kinds = sorted({one.kind for one in self._alerts})
        return {kind: max(one.last_ms for one in self._alerts if one.kind == kind) for kind in kinds}

    def record(self, machine: str) -> Record:
        return self._records.get(machine, Record(machine=machine))

    def records(self) -> list[Record]:
        return [self._records[name] for name in sorted(self._records)]

    def owner(self, ek_sha256: str) -> Owner | None:
        return self._owners.get(ek_sha256)

    def history(self, machine: str | None, limit: int) -> list[Entry]:
        return [entry for entry in reversed(self._entries) if machine in (None, entry.machine)][:limit]

    def apply(
        self, orders: Sequence[tuple[str, Order]], act: Act, now_ms: int, *, dry_run: bool = False
    ) -> list[Change]:
        with self._lock:
            records, owners, entries = dict(self._records), dict(self._owners), list(self._entries)
            done: list[Change] = []
            refusals: list[tuple[int, RefusedError]] = []
            for number, (machine, order) in enumerate(orders):
                try:
                    change = decide(records.get(machine, Record(machine=machine)), order, owners.get, now_ms)
                except RefusedError as error:
                    refusals.append((number, error))
                    continue
                done.append(change)
                if not change.act:
                    continue
                records[machine] = change.record
                owners.update({ek: Owner(machine, replaced) for ek, replaced in change.eks})
                ek = change.eks[0][0] if change.eks else change.record.ek_sha256
                said = {"operator": act.operator, "reason": act.reason, "ek_sha256": ek, "said": change.message}
                new = {"id": len(entries) + 1, "at_ms": now_ms, "machine": machine, "act": change.act}
                entries.append(Entry.model_validate(new | said))
            if refusals:
                raise OrdersRefusedError(refusals)
            if not dry_run:
                self._records, self._owners, self._entries = records, owners, entries
            return done
