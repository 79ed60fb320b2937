"""Whose a Node is: which attested boot of a machine a Node object belongs to, and what it proves of it. Pure.

Before an attested boot gets its token, the machine's old Node is deleted (`docs/join.md`), so a Node belongs to the
latest attested boot, unless it is one that an earlier boot registered, or was made before that boot attested.
"""

from collections.abc import Collection, Sequence

from images.values.strict import Strict
from netboot.join.ports import NodeView
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.registrations import node_detail
from netboot.lifecycle.trace import Trace

SKEW_MS = 30_000
"""The apiserver's clock says when a Node was made, in whole seconds; ours when the boot attested."""
LATE_MS = 5_000
"""What was seen later than this after it was so was not seen as it happened: the cluster's own time tells better."""


class Seen(Strict):
    """A Node, and when it was first seen to be there and to be ready, by our clock."""

    node: NodeView
    registered_ms: int
    ready_ms: int | None = None


def seen(before: Seen | None, node: NodeView, now_ms: int) -> Seen:
    """With one more view of it; a Node of another uid is another one."""
    if before is None or before.node.uid != node.uid:
        before = Seen(node=node, registered_ms=_when(node.created_ms, now_ms))
    ready = before.ready_ms
    if node.ready and ready is None:
        ready = _when(node.ready_since_ms, now_ms)
    return Seen(node=node, registered_ms=before.registered_ms, ready_ms=ready)


def belongs(node: NodeView, boot: Trace, others: Sequence[Trace], *, several: bool = False) -> bool:
    """Whether a Node is of this boot, the machine's latest attested one. `others`: boots of the same machine.
    `several`: another replica may have been told of a later one, which is not known here yet."""
    attested = boot.phase(Phase.ATTESTED)
    if attested is None or node.created_ms + SKEW_MS < attested.at_ms:
        return False
    if several and not registered(node.uid, boot) and not certified(boot, others):
        return False
    return node.uid not in _uids(others)


def certified(boot: Trace, others: Sequence[Trace]) -> bool:
    """Whether of this machine's boots it is the last that got a certificate, without which no Node is made: each
    replica sees these come, and learns later what another one was told of a boot."""
    newest = max((each.at_ms for each in boot.certificates), default=-1)
    return newest > max((each.at_ms for other in others for each in other.certificates), default=-1)


def registered(uid: str, boot: Trace) -> bool:
    """Whether the Node of this uid is on record as the boot's. A state that has not heard yet of the machine's next
    boot has it with none: the Node of the next one is another."""
    return uid in _uids([boot])


def facts(node: Seen, boot: Trace) -> list[EventRecord]:
    """What is not yet known of the boot to which this Node belongs."""
    attested = boot.phase(Phase.ATTESTED)
    assert attested is not None  # or it would not belong to it
    records = []
    if boot.phase(Phase.NODE_REGISTERED) is None:
        records.append(_record(boot, Phase.NODE_REGISTERED, max(node.registered_ms, attested.at_ms), node.node))
    if node.ready_ms is not None and boot.phase(Phase.READY) is None:
        records.append(_record(boot, Phase.READY, max(node.ready_ms, node.registered_ms, attested.at_ms), node.node))
    return records


def _when(said_ms: int | None, now_ms: int) -> int:
    return said_ms if said_ms is not None and now_ms - said_ms > LATE_MS else now_ms


def _record(boot: Trace, phase: Phase, at_ms: int, node: NodeView) -> EventRecord:
    detail = node_detail(node.name, node.uid)
    return EventRecord(at_ms=at_ms, boot=boot.boot, machine=boot.machine, phase=phase, detail=detail, peer="")


def _uids(boots: Sequence[Trace]) -> Collection[str]:
    """Of the Nodes that these boots registered."""
    return {boot.node_uid for boot in boots} - {""}
