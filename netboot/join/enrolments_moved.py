"""Enrolments that are on record on disk, as objects. Pure."""

from collections.abc import Iterable, Sequence
from typing import Any

from netboot.clock import rfc3339
from netboot.join.enrolment import Alert, Change, Record
from netboot.join.enrolment_documents import AlertTold, EnrolmentSpec, EnrolmentStatus, Proposed
from netboot.join.enrolment_objects import described, spec_after
from netboot.machines.values import Inventory

MOVED = "moved"
"""The window of a TPM that was pending on disk, of which its window is not known any more."""


def spec_of(record: Record, replaced: Sequence[str] = ()) -> EnrolmentSpec:
    """What people wanted of a machine. A window that was used is closed on record, so it is in none."""
    before = EnrolmentSpec(replaced=tuple(replaced))
    approved = "approved" in (record.state, record.retired_from)
    return spec_after(before, Change(record), record.details if approved else "")


def status_of(record: Record, alerts: Iterable[Alert]) -> EnrolmentStatus:
    """What it showed: a TPM that waits for approval stays pending."""
    proposed = None
    if record.ek_sha256 is not None and "pending" in (record.state, record.retired_from):
        since = rfc3339(record.since_ms)
        details = described(record.details)
        proposed = Proposed(ek_sha256=record.ek_sha256, window=MOVED, since=since, details=details)
    told = tuple(
        AlertTold(
            kind=each.kind, first=rfc3339(each.first_ms), last=rfc3339(each.last_ms), count=each.count, said=each.said
        )
        for each in alerts
    )
    return EnrolmentStatus(proposed=proposed, proposals=int(proposed is not None), alerts=told)


def names_of(inventory: Inventory | None, recorded: Iterable[str]) -> list[str]:
    """Of machines that have an object: those of the inventory, and all of which anything is on record."""
    declared = [machine.name for machine in inventory.machines] if inventory is not None else []
    return sorted({*declared, *recorded})


def document(name: str, namespace: str, spec: EnrolmentSpec, status: EnrolmentStatus | None = None) -> dict[str, Any]:
    """An object; `status` None: without it, for what is created has none."""
    metadata = {"name": name, "namespace": namespace}
    made = {"apiVersion": "netboot.dev/v1alpha1", "kind": "Enrolment", "metadata": metadata, "spec": _body(spec)}
    return {**made, "status": _body(status)} if status is not None else made


def _body(part: EnrolmentSpec | EnrolmentStatus) -> dict[str, Any]:
    return part.model_dump(mode="json", exclude_defaults=True)
