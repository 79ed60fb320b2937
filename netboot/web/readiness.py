"""What `/readyz` says. Ready: machines can boot now. Degraded: they can, and something wants attention."""

from dataclasses import dataclass, field
from typing import Any

from netboot.lifecycle.errors import CannotTellError
from netboot.web.parts import Parts

FRESH_MS = 10_000
"""A process that has said nothing for longer is taken for stuck."""
LAG_RECORDS = 10_000


@dataclass(slots=True)
class Detail:
    """One thing: `vital` where machines cannot boot without it."""

    ok: bool
    message: str
    remedy: str = ""
    vital: bool = False
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        said = {"ok": self.ok, "message": self.message, **self.facts}
        return said if self.ok or not self.remedy else {**said, "remedy": self.remedy}


@dataclass(slots=True)
class Readiness:
    """All details by name."""

    details: dict[str, Detail]

    @property
    def ready(self) -> bool:
        """Whether machines can boot now."""
        return all(detail.ok for detail in self.details.values() if detail.vital)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        degraded = not all(detail.ok for detail in self.details.values())
        details = {name: detail.as_json() for name, detail in self.details.items()}
        return {"ready": self.ready, "degraded": degraded, "details": details}


def assess(parts: Parts) -> Readiness:
    """How everything is now."""
    now = parts.clock.now_ms()
    publisher, projection = parts.status("publisher"), parts.status("projection")
    details = {"snapshot": _snapshot(parts, now), "provisioning": _provisioning(parts)}
    details["processes"] = _processes(parts.status("processes"))
    details["publisher"] = _alive("publisher", publisher, now)
    details["projection"] = _alive("projection", projection, now)
    for name, vital in (("inventory", False), ("images", False), ("bundle", False)):
        details[name] = _said(name, publisher, vital=vital)
    details["journals"] = _journals(projection)
    details |= _clusters(parts, now)
    problem = parts.tokens.problem()
    details["token"] = Detail(problem is None, problem or "in order", "see management.token_file")
    return Readiness(details)


def _snapshot(parts: Parts, now: int) -> Detail:
    try:
        snapshot = parts.live.view().snapshot
    except CannotTellError as error:
        remedy = "run `netboot config check`, and see the log of the controllers"
        return Detail(ok=False, message=str(error), remedy=remedy, vital=True)
    facts = {"machines": len(snapshot.inventory.machines), "age_seconds": max(0, now - snapshot.published_ms) // 1000}
    problem = parts.live.problem
    return Detail(problem is None, problem or "in force", "restart the service", vital=False, facts=facts)


def _provisioning(parts: Parts) -> Detail:
    said = parts.probe()
    remedy = "see the log of the boot workers"
    return Detail(bool(said.get("ok")), str(said.get("message", "")), remedy, vital=True)


def _processes(status: dict[str, Any] | None) -> Detail:
    if status is None:
        return Detail(ok=False, message="the supervisor has not said anything", remedy="start it with `netboot serve`")
    processes: dict[str, dict[str, Any]] = status.get("processes", {})
    if status.get("state") == "stopping":
        return Detail(ok=False, message="the service is stopping", vital=True, facts={"processes": processes})
    down = sorted(name for name, process in processes.items() if not process.get("ready"))
    message = f"not ready: {', '.join(down)}" if down else "all ready"
    return Detail(not down, message, "see why in the log of the service", facts={"processes": processes})


def _alive(name: str, status: dict[str, Any] | None, now: int) -> Detail:
    if status is None:
        return Detail(
            ok=False, message=f"the {name} has not said anything yet", remedy="see the log of the controllers"
        )
    quiet = max(0, now - int(status.get("at_ms", 0)))
    message = "at work" if quiet <= FRESH_MS else f"has said nothing for {quiet // 1000} s"
    return Detail(quiet <= FRESH_MS, message, "see the log of the controllers; `kill` that process to start it again")


def _said(name: str, publisher: dict[str, Any] | None, *, vital: bool) -> Detail:
    said = (publisher or {}).get(name)
    if not isinstance(said, dict):
        return Detail(ok=False, message="not known yet", remedy="see the log of the controllers", vital=vital)
    facts = {key: content for key, content in said.items() if key not in {"ok", "message", "remedy"}}
    return Detail(bool(said.get("ok")), str(said.get("message")), str(said.get("remedy", "")), vital=vital, facts=facts)


def _clusters(parts: Parts, now: int) -> dict[str, Detail]:
    """What join, approvers, node collectors and the fetcher say; none is vital: what is here boots without them."""
    processes: dict[str, Any] = (parts.status("processes") or {}).get("processes", {})
    found = {}
    for name in sorted(processes):
        if name == "fetcher" or name.startswith(("approver-", "join-", "nodes-")):
            said = parts.status(name)
            alive = _alive(name, said, now)
            found[name] = alive if not alive.ok or said is None else _said_whole(said)
    return found


def _said_whole(said: dict[str, Any]) -> Detail:
    facts = {key: content for key, content in said.items() if key not in {"ok", "message", "remedy", "at_ms"}}
    return Detail(bool(said.get("ok")), str(said.get("message")), str(said.get("remedy", "")), facts=facts)


def _journals(projection: dict[str, Any] | None) -> Detail:
    if projection is None:
        return Detail(ok=False, message="not known yet", remedy="see the log of the controllers")
    lag: dict[str, int] = projection.get("lag_records", {})
    problems: dict[str, str] = projection.get("problems", {})
    facts = {"lag_records": lag, "problems": problems}
    if problems:
        return Detail(ok=False, message="; ".join(problems.values()), remedy="check the disk", facts=facts)
    behind = sum(lag.values())
    message = "taken over" if behind <= LAG_RECORDS else f"{behind} records wait to be taken over"
    return Detail(behind <= LAG_RECORDS, message, "wait; if it grows, give the machine more CPU", facts=facts)
