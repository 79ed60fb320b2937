"""The gate's decision: which of our taints a Node is to have now, and why. Pure, and total.

It opens when this boot says, under a certificate of its own, that its checks are in order, or when an operator accepts
the machine and this boot has a certificate; it closes, within a budget, when it says later that one failed, or says
nothing any more, or when that acceptance has ended. Taints of others stay as they are, in their order.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from netboot.join.node_said import ACCEPTED, GateSaid, HealthSaid
from netboot.join.ports import NodeView
from netboot.machines.classes import Gate
from netboot.machines.values import HELD, UNCHECKED

Taint = Mapping[str, str]
"""As the apiserver has it, so that what is not ours is written back as it was read."""


class Reason(StrEnum):
    """Why the gate is as it is."""

    HEALTHY = "Healthy"
    NO_REPORT = "NoReport"
    OTHER_BOOT = "OtherBoot"
    CHECKS_MISSING = "ChecksMissing"
    CHECKS_UNKNOWN = "ChecksUnknown"
    CHECKS_FAILED = "ChecksFailed"
    REPORT_STALE = "ReportStale"
    OPENED_OFTEN = "OpenedOften"
    ACCEPTANCE_ENDED = "AcceptanceEnded"


CLOSING = frozenset({Reason.CHECKS_FAILED, Reason.REPORT_STALE, Reason.ACCEPTANCE_ENDED})
"""What closes an open gate, and the values of the taint that does: a taint that a node registered with has none of
them."""
HOLDS = frozenset({"Held", "Quarantined", "Retired"})
"""What is on a machine that keeps it from work, and the values of the taint `netboot.dev/held` that says so. One with
another value is somebody else's, and stays."""


class Known(NamedTuple):
    """What is known of a Node besides itself. `certificates`: fingerprints of those of its machine's current boot, and
    none where that boot did not register this Node; `stale`: its last word that counts is too old; `hold`: what is on
    its machine, of HOLDS; "": nothing, None: it cannot be told; `accepted`: whether an operator accepts its machine,
    None likewise; `may_close`: the budget allows it; `often`: it was opened so often of late that it is to stay shut
    for a while."""

    certificates: Collection[str]
    gate: Gate
    stale: bool = False
    hold: str | None = None
    accepted: bool | None = False
    may_close: bool = True
    often: bool = False


class Decision(NamedTuple):
    """`taints`: all that the Node is to have; `closes`: the gate, which was open: that takes budget; `words`: why it is
    as it is, for people; `accepted`: an acceptance alone keeps it open."""

    taints: tuple[Taint, ...]
    reason: Reason
    words: str
    closes: bool = False
    accepted: bool = False


def decide(node: NodeView, known: Known) -> Decision:
    """What is to be done about a Node: nothing, where its taints are those of the decision."""
    reason, words = judged(node.health, known)
    by_acceptance = node.labels.get(ACCEPTED[0]) == ACCEPTED[1]
    if not node.marked or node.by_hand:
        why = "somebody has taken the gate of this Node into their own hands" if node.by_hand else "it is not netboot's"
        return Decision(node.taints, reason, why, accepted=by_acceptance)
    shut, healthy = is_shut(node.taints), reason is Reason.HEALTHY
    # What cannot be told begins no acceptance and ends none; who did not prove the boot is let in by nobody's word.
    told = by_acceptance and not shut if known.accepted is None else known.accepted and bool(known.certificates)
    accepted = told and not healthy
    taints = _held(tuple(node.taints), known.hold)
    if shut and healthy and known.often:
        words = "it was opened too often of late: some minutes later it is again"
        return Decision(taints, Reason.OPENED_OFTEN, words)
    if shut:
        taints = tuple(taint for taint in taints if taint["key"] != UNCHECKED or not (healthy or accepted))
        return Decision(taints, reason, words, accepted=accepted)
    ends = by_acceptance and not accepted and not healthy
    fails = reason in CLOSING and known.gate.on_failure == "taint" and not accepted
    if not known.may_close or not (ends or fails) or is_held(taints):
        return Decision(taints, reason, words, accepted=accepted or ends)
    if reason not in CLOSING:
        reason, words = Reason.ACCEPTANCE_ENDED, f"it is accepted no more, and would not be open by itself: {words}"
    taints = (*taints, {"key": UNCHECKED, "value": reason.value, "effect": "NoSchedule"})
    return Decision(taints, reason, words, closes=True)


def judged(said: HealthSaid | None, known: Known) -> tuple[Reason, str]:
    """What a node's own word comes to."""
    if said is None:
        return Reason.NO_REPORT, "the node has not said yet how healthy it is"
    if known.stale:
        return Reason.REPORT_STALE, "the node has not said for half an hour how healthy it is"
    if said.credential not in known.certificates:
        return Reason.OTHER_BOOT, "what the node says of its health is not under a certificate of its current boot"
    if said.status == "False":
        return Reason.CHECKS_FAILED, said.message
    missing = [name for name in known.gate.required if said.checks.get(name) not in ("pass", "warn")]
    if said.status != "True":
        return Reason.CHECKS_UNKNOWN, said.message
    if missing:
        return Reason.CHECKS_MISSING, f"checks that its class requires are not in: {', '.join(missing)}"
    return Reason.HEALTHY, said.message


def is_shut(taints: Sequence[Taint]) -> bool:
    """Whether the gate keeps Pods off."""
    return any(taint["key"] == UNCHECKED for taint in taints)


def told(taints: Sequence[Taint]) -> GateSaid:
    """What others are told of a gate: how its taint is, and nothing that is still to become of it."""
    if not is_shut(taints):
        return GateSaid("True", "Open", "netboot's gate is open")
    if was_closed(taints):
        why = next(taint["value"] for taint in taints if taint["key"] == UNCHECKED)
        return GateSaid("False", why, "netboot's gate was closed after it had been open")
    return GateSaid("False", "Unchecked", "netboot's gate has not opened yet")


def was_closed(taints: Sequence[Taint]) -> bool:
    """Whether it was closed by this gate, after it had been open: then no other taint shut it."""
    values = [taint.get("value") for taint in taints if taint["key"] == UNCHECKED]
    return bool(values) and CLOSING.issuperset(values)


def closed_for_silence(taints: Sequence[Taint]) -> bool:
    """Whether it was closed by this gate, for the node had said nothing for too long."""
    return was_closed(taints) and any(
        taint["key"] == UNCHECKED and taint.get("value") == Reason.REPORT_STALE for taint in taints
    )


def is_held(taints: Sequence[Taint]) -> bool:
    """Whether its machine is, as our taint says."""
    return any(_is_hold(taint) for taint in taints)


def may_close(closed: int, of: int) -> bool:
    """Whether one more of so many may be closed: a tenth, and one in any case. Beyond that it is rather a mistake of
    ours, or of the inventory, that reaches them all."""
    return closed < max(1, of // 10)


def _held(taints: tuple[Taint, ...], hold: str | None) -> tuple[Taint, ...]:
    if hold is None:
        return taints
    ours = {"key": HELD, "value": hold, "effect": "NoSchedule"}
    if hold and any(_is_hold(taint) and taint["value"] == hold for taint in taints):
        return taints
    kept = tuple(taint for taint in taints if not _is_hold(taint))
    if any((taint["key"], taint["effect"]) == (HELD, "NoSchedule") for taint in kept):
        return kept  # somebody else's keeps Pods off already, and no Node has two of one key and effect
    return (*kept, ours) if hold else kept


def _is_hold(taint: Taint) -> bool:
    return taint["key"] == HELD and taint["effect"] == "NoSchedule" and taint.get("value") in HOLDS
