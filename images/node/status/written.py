"""What was written onto the Node last in this boot, when it has to be written again, and the patch that does it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..agent.files import put, small
from .said import CHECKS, CONDITION, CREDENTIAL, REPORT, Said

RENEW_SECONDS = 540.0
"""What stays the same is said again after so long: with the second report after it was, for there is one every five to
six minutes. The gate waits for three times as long before it calls it stale."""
FILE = "written.json"


class Written(NamedTuple):
    """`at`: seconds since the machine started; `since`: when the status became what it is, as Kubernetes writes it."""

    status: str
    reason: str
    message: str
    checks: str
    credential: str
    at: float
    since: str

    def still(self, now: Said, credential: str, uptime: float) -> bool:
        """Whether that is what there is to say, and was said not long ago."""
        same = (now.status, now.reason, now.message, now.checks, credential)
        return same == self[:5] and 0 <= uptime - self.at < RENEW_SECONDS


def load(folder: Path) -> Written | None:
    """None: nothing was written in this boot, or it is torn."""
    try:
        written = Written(**json.loads(small(folder / FILE, 16 * 1024) or b""))
    except (ValueError, TypeError):
        return None
    words = all(isinstance(part, str) for part in (*written[:5], written.since))
    return written if words and isinstance(written.at, float | int) else None


def keep(folder: Path, written: Written) -> None:
    """Remember it."""
    put(folder / FILE, json.dumps(written._asdict()).encode(), 0o600)


def after(before: Written | None, now: Said, credential: str, uptime: float, clock: float) -> Written:
    """What is there once it is written; `clock`: seconds since 1970."""
    same = before is not None and before.status == now.status
    since = before.since if before is not None and same else _moment(clock)
    return Written(now.status, now.reason, now.message, now.checks, credential, uptime, since)


def patch(written: Written, report: str, clock: float) -> dict[str, Any]:
    """A strategic merge patch of `nodes/status`: the conditions of others stay (they merge by `type`)."""
    condition = {
        "type": CONDITION,
        "status": written.status,
        "reason": written.reason,
        "message": written.message,
        "lastHeartbeatTime": _moment(clock),
        "lastTransitionTime": written.since,
    }
    annotations = {CREDENTIAL: written.credential, REPORT: report, CHECKS: written.checks}
    return {"metadata": {"annotations": annotations}, "status": {"conditions": [condition]}}


def _moment(clock: float) -> str:
    return datetime.fromtimestamp(clock, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
