"""The rules of enrolment: which order of an operator, or claim of a machine, changes what is on record. Pure.

States: none → (window) → pending → approved; each of them → retired, and back to it. A replaced TPM leaves none with a
new window, and its EK never comes back through one. An EK belongs to one machine.
"""

from collections.abc import Callable
from typing import Any

from netboot.join.enrolment import (
    LONGEST_DETAILS,
    Approve,
    Change,
    Import,
    OpenWindow,
    Order,
    Owner,
    Propose,
    Record,
    Reinstate,
    Release,
    Replace,
    Retire,
    UseWindow,
    short,
)
from netboot.join.errors import NotShownError, RefusedError

Owners = Callable[[str], Owner | None]


def decide(record: Record, order: Order, owners: Owners, now_ms: int) -> Change:
    """What `order` makes of `record`.

    Raises:
        RefusedError: it cannot be, with the rule and the remedy.
    """
    change = _decide(record, order, owners, now_ms)
    if not change.act:
        return change
    since = now_ms if change.record.state != record.state else record.since_ms
    return change._replace(record=change.record.model_copy(update={"revision": record.revision + 1, "since_ms": since}))


def _decide(record: Record, order: Order, owners: Owners, now_ms: int) -> Change:
    match order:
        case OpenWindow():
            return _open(record, order, now_ms)
        case Propose():
            return _propose(record, order, owners, now_ms)
        case UseWindow():
            return _use(record, order, now_ms)
        case Approve():
            return _approve(record, order, owners)
        case Reinstate():
            return _reinstate(record, order)
        case Import():
            return _import(record, order, owners)
        case Replace():
            return _replace_tpm(record, order)
        case Release():
            return _changed(record, "released", f"generation {record.generation + 1}", generation=record.generation + 1)
        case Retire():
            return _retire(record)


_CLOSED: dict[str, Any] = {"window": None, "window_id": "", "window_until_ms": 0}


def _changed(record: Record, act: str, message: str = "", **to: Any) -> Change:
    return Change(record.model_copy(update=to), act, message)


def _open(record: Record, order: OpenWindow, now_ms: int) -> Change:
    name = record.machine
    if order.until_ms <= now_ms:
        raise RefusedError("a window must end in the future")
    if record.state == "retired":
        raise RefusedError(f"{name} is retired; `netboot machine approve {name}` brings it back")
    if order.kind == "boot" and record.ek_sha256 is not None:
        raise RefusedError(f"{name} has a TPM on record (EK {short(record.ek_sha256)}) and never joins without it")
    if record.state == "pending":
        raise RefusedError(
            f"{name} has a TPM pending (EK {short(record.ek_sha256)}): `netboot machine approve {name}` if it is the "
            f"right one; if not, `netboot machine replace {name} --part tpm` refuses it for ever and opens a new window"
        )
    if record.state == "approved":
        raise RefusedError(
            f"{name} has an approved TPM (EK {short(record.ek_sha256)}); if it has another one now: "
            f"`netboot machine replace {name} --part tpm`"
        )
    window: dict[str, Any] = {"window": order.kind, "window_id": order.window_id, "window_until_ms": order.until_ms}
    seconds = (order.until_ms - now_ms) // 1000
    return _changed(record, "window-opened", f"{order.kind} window for {seconds} s", **window)


def _propose(record: Record, order: Propose, owners: Owners, now_ms: int) -> Change:
    name, ek = record.machine, order.ek_sha256
    if record.ek_sha256 == ek and record.state in ("pending", "approved"):
        return Change(record)
    owner = owners(ek)
    if owner is not None and owner.machine != name:
        raise RefusedError(f"{name} shows the TPM of {owner.machine} (EK {short(ek)}): an EK belongs to one machine")
    if owner is not None and owner.replaced:
        raise RefusedError(f"{name} shows a TPM that was taken out of it by an operator's word (EK {short(ek)})")
    if record.open_window(now_ms) != "enrol" or record.state != "none":
        raise RefusedError(f"no window is open in which {name} could enrol; `netboot machine enroll {name}` opens one")
    details = order.details[:LONGEST_DETAILS]
    new = {"state": "pending", "source": "first-use", "ek_sha256": ek, "details": details}
    return _changed(record, "proposed", "pending", **new, **_CLOSED)._replace(eks=((ek, False),))


def _use(record: Record, order: UseWindow, now_ms: int) -> Change:
    if record.open_window(now_ms) != "boot" or record.window_id != order.window_id:
        raise RefusedError(f"that boot window of {record.machine} is not open (any more)")
    return _changed(record, "window-used", f"boot window {order.window_id}", **_CLOSED)


def _approve(record: Record, order: Approve, owners: Owners) -> Change:
    name = record.machine
    if record.state == "none":
        raise RefusedError(f"nothing of {name} waits for approval; `netboot machine enroll {name}` opens a window")
    shown = order.ek_sha256
    if shown is None or shown != record.ek_sha256 or order.revision not in (None, record.revision):
        raise NotShownError(name, short(record.ek_sha256))
    if record.state == "retired":
        raise NotShownError(name, short(record.ek_sha256))  # it was not when it was shown
    if record.state == "approved":
        return Change(record)
    _not_anothers(name, shown, owners(shown))
    return _changed(record, "approved", state="approved")


def _not_anothers(name: str, ek: str, owner: Owner | None) -> None:
    if owner is not None and owner.machine != name and not owner.replaced:
        raise RefusedError(f"EK {short(ek)} is the TPM of {owner.machine}, not of {name}: an EK belongs to one machine")


def _retire(record: Record) -> Change:
    if record.state == "retired":
        return Change(record)
    return _changed(record, "retired", state="retired", retired_from=record.state, **_CLOSED)


def _reinstate(record: Record, order: Reinstate) -> Change:
    if record.state != "retired" or order.revision != record.revision:
        raise NotShownError(record.machine, short(record.ek_sha256))
    message = f"in service again, as before: {record.retired_from}"
    back: dict[str, Any] = {"state": record.retired_from, "retired_from": "none"}
    return _changed(record, "returned", message, generation=record.generation + 1, **back)


def _import(record: Record, order: Import, owners: Owners) -> Change:
    name, ek = record.machine, order.ek_sha256
    if record.state == "retired":
        raise RefusedError(f"{name} is retired; `netboot machine approve {name}` brings it back")
    if record.ek_sha256 not in (None, ek):
        raise RefusedError(
            f"{name} has another TPM on record, {record.state} (EK {short(record.ek_sha256)}); "
            f"`netboot machine replace {name} --part tpm` first"
        )
    owner = owners(ek)
    _not_anothers(name, ek, owner)
    if record.state == "approved":
        return Change(record)
    moved = f"taken out of {owner.machine} before" if owner is not None and owner.replaced else ""
    new = {"state": "approved", "source": "imported", "ek_sha256": ek, "details": order.details or record.details}
    return _changed(record, "imported", moved, **new, **_CLOSED)._replace(eks=((ek, False),))


def _replace_tpm(record: Record, order: Replace) -> Change:
    name = record.machine
    if record.state == "retired":
        raise RefusedError(f"{name} is retired; `netboot machine approve {name}` brings it back first")
    if record.ek_sha256 is None:
        raise RefusedError(f"{name} has no TPM on record; `netboot machine enroll {name}` opens a window for one")
    new: dict[str, Any] = {"state": "none", "source": "", "ek_sha256": None, "details": ""}
    opened = {"window": "enrol", "window_id": order.window_id, "window_until_ms": order.until_ms}
    window = opened if order.window_id else _CLOSED
    message = f"EK {short(record.ek_sha256)} is refused from now on; generation {record.generation + 1}"
    change = _changed(record, "replaced", message, generation=record.generation + 1, **new, **window)
    return change._replace(eks=((record.ek_sha256, True),))
