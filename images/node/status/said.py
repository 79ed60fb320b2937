"""What a health report comes to on a Node: a condition, and which checks are in. Pure.

The condition is good when True, as Ready is. What only costs work later (severity `minor`) makes it no worse.
"""

import hashlib
import json
from typing import Any, NamedTuple

from ..agent.net import plain

CONDITION = "netboot.dev/Healthy"
CREDENTIAL, REPORT, CHECKS = "netboot.dev/health-credential", "netboot.dev/health-report", "netboot.dev/health-checks"
"""Annotations: `X509SHA256=` of the certificate that this is said under; SHA-256 of the report, as it lies in
/run/netboot/health.json and was sent; `name=status` of each of its checks."""
LONGEST = 900
"""Characters of a message."""


class Said(NamedTuple):
    """`status`: True, False or Unknown; `checks`: `name=status`, sorted, with commas between."""

    status: str
    reason: str
    message: str
    checks: str
    report: str


def said(data: bytes) -> Said | None:
    """What the bytes of a report come to; None: they are none."""
    try:
        checks = json.loads(data)["checks"]
        found = [
            _Check(str(one["name"]), str(one["status"]), _words(one), one["severity"] == "minor") for one in checks
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    names = ",".join(sorted(f"{one.name}={one.status}" for one in found))
    return Said(*_judged(found), names, f"sha256:{hashlib.sha256(data).hexdigest()}")


class _Check(NamedTuple):
    name: str
    status: str
    words: str
    minor: bool


def _words(one: dict[str, Any]) -> str:
    return plain(f"{one['name']}: {one.get('summary') or one['status']}")


def _judged(found: list[_Check]) -> tuple[str, str, str]:
    failed = [one for one in found if one.status == "fail" and not one.minor]
    if failed:
        return "False", "ChecksFailed", _listed("failed", failed)
    unknown = [one for one in found if one.status == "unknown" and not one.minor]
    if unknown or not found:
        return "Unknown", "ChecksUnknown", _listed("cannot tell", unknown)
    warned = [one for one in found if one.status in ("fail", "unknown", "warn")]
    if warned:
        return "True", "ChecksWarn", _listed("to look at", warned)
    return "True", "ChecksPassed", f"all checks ({len(found)}) are in order"


def _listed(what: str, checks: list[_Check]) -> str:
    words = f"{what}: " + "; ".join(one.words for one in sorted(checks))
    return words if len(words) <= LONGEST else f"{words[:LONGEST]} and more"
