"""How a machine is, in a word of a list."""

from time import time
from typing import Any

from netboot.cli import conditions
from netboot.clock import rfc3339


def condition(type_: str, status: str, reason: str, seconds: int) -> dict[str, Any]:
    since = rfc3339(round((time() - seconds) * 1000))
    return {"type": type_, "status": status, "reason": reason, "lastTransitionTime": since}


def test_what_is_not_in_order_is_told_with_for_how_long() -> None:
    booted, joined = condition("Booted", "True", "Booted", 9_000), condition("Joined", "True", "Joined", 8_000)
    gated = condition("InService", "False", "HealthGated", 7_300)
    assert conditions.brief([booted, joined, gated]) == "InService: HealthGated for 2 h"
    late = [condition("Booted", "False", "Stuck", 130), condition("InService", "False", "NotBooted", 400_000)]
    assert conditions.brief(late) == "Booted: Stuck for 2 min"


def test_what_is_in_order_has_no_age() -> None:
    booted = condition("Booted", "True", "Booted", 9_000)
    assert conditions.brief([booted, condition("InService", "True", "NodeReady", 9_000)]) == "InService"
    assert conditions.brief([booted, condition("InService", "Unknown", "NoCluster", 9_000)]) == "Booted"
    assert (conditions.brief(None), conditions.brief([])) == ("cannot be told", "")
