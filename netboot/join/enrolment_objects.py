"""Enrolments as custom resources: what an object says, and what is on record by it. Pure.

`spec` is what people want and nobody else writes; `status` what machines showed, which may be lost; that a window was
used is a Lease, which a restore of objects leaves alone (docs/decisions/289).
"""

import json
from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

from netboot.clock import moment_ms, rfc3339
from netboot.join.enrolment import Act, Change, Details, Record, parse_details
from netboot.join.enrolment_documents import MOST_REPLACED, Described, EnrolmentSpec, EnrolmentStatus, Proposed, Window
from netboot.join.errors import RefusedError


class EnrolmentObject(NamedTuple):
    """One, as it was read. `generation`: of its spec, by the API server; `since_ms`: when that was written last."""

    name: str
    uid: str
    version: str
    generation: int
    since_ms: int
    spec: EnrolmentSpec
    status: EnrolmentStatus


class EnrolmentObjects(Protocol):
    """Enrolments of one namespace, by name of their machine, and the Leases of windows that were used.

    Every read is of what is there now, never of what somebody remembers. Every method raises CannotTellError.
    """

    def read(self, machine: str) -> EnrolmentObject | None:
        """Of one machine; None: there is none."""
        ...

    def all(self, *, damaged: bool = True) -> list[EnrolmentObject]:
        """Of all machines, by name. `damaged`: those that cannot be read are said, and left out; else it raises."""
        ...

    def noticed(self) -> list[EnrolmentObject]:
        """Those that are retired or have a boot window, by name; those that cannot be read are said, and left out."""
        ...

    def approved(self, ek_sha256: str) -> list[EnrolmentObject]:
        """Of which `spec.ek_sha256` is this, by name."""
        ...

    def proposed(self, ek_sha256: str) -> list[EnrolmentObject]:
        """Of which `status.proposed.ek_sha256` is this, by name."""
        ...

    def write_spec(
        self, machine: str, spec: EnrolmentSpec, before: EnrolmentObject | None, act: Act
    ) -> EnrolmentObject:
        """Make it, or change it as it was read. Raises ConflictError: it is another one by now."""
        ...

    def write_status(self, status: EnrolmentStatus, before: EnrolmentObject) -> EnrolmentObject:
        """Change it as it was read. Raises ConflictError: it is another one by now."""
        ...

    def use_window(self, machine: str, window: str, by: str) -> bool:
        """That this window was used, for ever, by an EK or ""; False: it was already."""
        ...

    def used_by(self, machine: str, window: str) -> str | None:
        """The EK that used it, "": a boot; None: it was not used."""
        ...

    def used(self) -> Mapping[tuple[str, str], str]:
        """Of all: machine and window → by whom."""
        ...


def pending_of(found: EnrolmentObject) -> Proposed | None:
    """The TPM that waits for approval; None: there is none, or it was taken out, or another is approved."""
    proposed = found.status.proposed
    if proposed is None or found.spec.ek_sha256 is not None or proposed.ek_sha256 in found.spec.replaced:
        return None
    return proposed


def record_of(machine: str, found: EnrolmentObject | None, used: str | None = None) -> Record:
    """What is on record of a machine. `used`: by whom its window was, as `used_by` has it.

    A window that a TPM used, of which nobody knows any more, is as it was: that TPM alone may show itself again.
    """
    if found is None:
        return Record(machine=machine)
    spec, pending = found.spec, pending_of(found)
    before: Literal["none", "pending", "approved"] = "pending" if pending is not None else "none"
    ek = spec.ek_sha256
    if ek is not None:
        before = "approved"
    window = spec.window if before == "none" and not spec.retired else None
    if window is not None and (used is not None if window.kind == "boot" else used in spec.replaced):
        window = None
    return Record(
        machine=machine,
        ek_sha256=ek or (pending.ek_sha256 if pending is not None else None),
        state="retired" if spec.retired else before,
        source=_source(found),
        generation=spec.generation,
        window=window.kind if window is not None else None,
        window_id=window.id if window is not None else "",
        window_until_ms=moment_ms(window.until) if window is not None else 0,
        details=_details(found),
        since_ms=moment_ms(pending.since) if pending is not None and not spec.retired else found.since_ms,
        revision=found.generation + found.status.proposals,
        retired_from=before if spec.retired else "none",
    )


def _shown(found: EnrolmentObject) -> bool:
    """Whether the approved TPM is the one that was shown."""
    proposed = found.status.proposed
    return proposed is not None and proposed.ek_sha256 == found.spec.ek_sha256


def _source(found: EnrolmentObject) -> Literal["first-use", "imported", ""]:
    if found.spec.ek_sha256 is not None:
        return found.spec.source or ("first-use" if _shown(found) else "imported")
    return "first-use" if pending_of(found) is not None else ""


def _details(found: EnrolmentObject) -> str:
    proposed, described = found.status.proposed, found.spec.details
    if described is None and proposed is not None and (_shown(found) or pending_of(found) is not None):
        described = proposed.details
    if described is None or (found.spec.ek_sha256 is None and pending_of(found) is None):
        return ""
    said = described.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(said) if said else ""


def described(details: str) -> Described:
    """What was stored of a machine, as an object has room for it."""
    said = parse_details(details) if details else Details()
    room = {"ek_certificate": 16_384, "ek_public": 4096, "uuid": 64, "serial": 128}
    texts = {name: getattr(said, name) for name in room}
    fitting = {name: text for name, text in texts.items() if text is not None and len(text) <= room[name]}
    macs = tuple(mac[:32] for mac in said.macs[:64])
    return Described(**fitting, macs=macs, peer=said.peer[:64], said=said.said[:500])


def spec_after(spec: EnrolmentSpec, change: Change, details: str = "") -> EnrolmentSpec:
    """What a person's order makes of it. `details`: that the order brings."""
    record = change.record
    state = record.retired_from if record.state == "retired" else record.state
    approved = state == "approved"
    replaced = [ek for ek in spec.replaced if (ek, False) not in change.eks]
    replaced += [ek for ek, gone in change.eks if gone and ek not in replaced]
    if len(replaced) > MOST_REPLACED:
        raise RefusedError(
            f"{record.machine} has had {MOST_REPLACED} TPMs taken out of it, and its Enrolment keeps no more: take "
            "those that are destroyed out of spec.replaced first"
        )
    opened = record.window is not None
    until = rfc3339(record.window_until_ms)
    return EnrolmentSpec(
        ek_sha256=record.ek_sha256 if approved else None,
        source=(record.source if record.source in ("first-use", "imported") else None) if approved else None,
        details=(described(details) if details else spec.details) if approved else None,
        generation=record.generation,
        retired=record.state == "retired",
        replaced=tuple(replaced),
        window=Window(kind=record.window, id=record.window_id, until=until) if opened else None,
    )  # fmt: skip


def spec_of_order(found: EnrolmentObject | None, change: Change, details: str = "") -> EnrolmentSpec:
    """As `spec_after`, of the object as it was read. A replacement takes out the TPM that the machine showed, too: it
    would wait for approval again.

    Raises:
        RefusedError: too many were replaced.
    """
    proposed = found.status.proposed if found is not None else None
    if change.act == "replaced" and proposed is not None and (proposed.ek_sha256, True) not in change.eks:
        change = change._replace(eks=(*change.eks, (proposed.ek_sha256, True)))
    return spec_after(found.spec if found is not None else EnrolmentSpec(), change, details)


def status_after(status: EnrolmentStatus, change: Change, window: str, now_ms: int) -> EnrolmentStatus:
    """What a machine's claim makes of it."""
    ek = change.record.ek_sha256
    assert ek is not None
    since = rfc3339(now_ms)
    proposed = Proposed(ek_sha256=ek, window=window, since=since, details=described(change.record.details))
    return status.model_copy(update={"proposed": proposed, "proposals": status.proposals + 1})
