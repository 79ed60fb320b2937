"""Machines that are not well, and what is on record of them, for tests of remedies."""

from collections.abc import Sequence
from typing import Any

from netboot.lifecycle.conditions import Ailment
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.intents import Intent, by_machine
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.remedies import Books, Case, Fleet, Pause, Remedy
from netboot.machines.remedies import Remedies, Rules
from tests.records import START, boot_id

MINUTE, HOUR = 60_000, 3_600_000
WAITED = 1800 * 1000


def ailment(machine: str = "gpu-001", reason: Reason = Reason.CHECKS_FAILED, **more: Any) -> Ailment:
    values = {"reason": reason, "boot": boot_id(machine, 1), "since_ms": START, "message": "a check failed"}
    return Ailment.model_validate(values | more)


def rules(**more: Any) -> Rules:
    return Rules(Remedies.model_validate({"act": True, **more}), "class hgx")


def case(machine: str = "gpu-001", **more: Any) -> Case:
    reason = more.pop("reason", Reason.CHECKS_FAILED)
    since = more.pop("since_ms", START)
    known: dict[str, Any] = {
        "rack": "r1",
        "ailment": ailment(machine, reason, since_ms=since),
        "ready": reason is Reason.CHECKS_FAILED,
        "rules": rules(),
        "waited_ms": WAITED,
    }
    return Case(machine, **(known | more))


def remedy(machine: str = "gpu-001", **more: Any) -> Remedy:
    what = more.get("what", "reboot")
    values = {
        "id": 7,
        "at_ms": START,
        "machine": machine,
        "what": what,
        "outcome": "taken",
        "drain": "order-7" if what == "reboot" else "",
        **ailment(machine).model_dump(),
    }
    return Remedy.model_validate(values | more)


def books(
    *taken: Remedy,
    pause: Pause | None = None,
    orders: Sequence[Drain] = (),
    intents: Sequence[Intent] = (),
    now_ms: int = START,
) -> Books:
    by_id = {each.id: each for each in orders}
    standing = {each.machine: each for each in orders if each.end is None}
    return Books(now_ms, pause, taken, by_id, standing, by_machine(intents))


def fleet(machines: int = 437, withheld: str = "", **racks: str) -> Fleet:
    return Fleet(machines, {name.replace("_", "-"): rack for name, rack in racks.items()}, withheld)
