"""What is to be done next about one order to drain, or to drain and reboot. Pure, and total.

All that must outlive a process is on the Node: that it is being drained, that it was drained once, that its machine was
told to reboot, by which order and until when. So whoever ends between any two writes goes on where it was, and no order
is given twice.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from images.values.faults import first_few
from netboot.join.node_drains import DRAIN, DRAINED, DRAINING, ORDER, DrainedNode, Pod
from netboot.join.node_said import by_hand, holder
from netboot.join.ports import MARK
from netboot.lifecycle.drains import Drain, State

ORDER_MS = 600_000
"""How long an order to reboot lives: a machine looks for one each half a minute."""
LATE_MS = 120_000
"""After the end of an order: who took it at the last moment is not Ready any more by then (a Node is found not to be
within 50 s, node-monitor-grace-period of kube-controller-manager)."""
Taints = tuple[Mapping[str, str], ...]


class Write(NamedTuple):
    """What the Node is to have, in one write."""

    taints: Taints
    annotations: Mapping[str, str | None] = {}


class Step(NamedTuple):
    """`state`: as in `netboot.lifecycle.drains.State`; `words`: why; `write`: what is to be written; `look`: its Pods
    are to be looked at, with `pods`."""

    state: str
    words: str
    write: Write | None = None
    look: bool = False


class Known(NamedTuple):
    """`boot`: the machine's current one, by our records; `its`: this very Node is on record as that boot's; `later`:
    where it is another one than the order's, it came after that."""

    boot: str
    its: bool
    later: bool = True


def decide(drain: Drain, node: DrainedNode | None, known: Known, now_ms: int, last: State | None = None) -> Step:
    """What to do before its Pods are looked at. `last`: what was said of it last, None after a restart."""
    value = value_of(node)
    another = known.boot != drain.boot and drain.what == "reboot"
    if another and known.later:
        return Step("rebooted", f"its boot is {known.boot} now", undone(node))
    if node is not None and (expires := ordered(node, drain.id)) is not None:
        return _told(node, expires, now_ms)
    if node is not None and known.its and ORDER in node.annotations and not by_hand(node.annotations):
        words = "an order to reboot that was given before is taken off its Node"
        return Step("draining", words, Write(node.taints, {ORDER: None}))
    untold = f"whether its boot {known.boot} came after {drain.boot}, that of the order, is not known here"
    why, late = untold if another else waits_for(node, known), now_ms >= _deadline(drain, node, known)
    # join deletes the Node that says so, before the machine's next boot is on record
    told = last is not None and last.state == "ordered" and not known.its
    # a drain is its machine's, over reboots: between two Nodes of it none tells that it was not drained
    if late and (drain.what == "reboot" or (known.its and value != DRAINED)):
        words = why or (last.words if last is not None else "")
        missed = "it was told to reboot, and did not come back" if told else "it was not drained by its deadline"
        return Step("undone", f"{missed}{': ' if words else ''}{words}", undone(node))
    if told:
        return Step("ordered", f"it was told to reboot, and {why}: it is on its way")
    if why:
        return Step("waiting", why)
    assert node is not None  # or it would be waited for
    if value is None:
        return Step("draining", "its Node takes no new Pods", Write(tainted(node, DRAINING)))
    return Step(value.lower(), "", look=drain.what == "reboot" or value != DRAINED)


def _deadline(drain: Drain, node: DrainedNode | None, known: Known) -> int:
    """By when it has to be drained; as long again after its Node of a later boot was made."""
    if node is None or not known.its:
        return drain.deadline_ms + ORDER_MS  # it may be on its way already, by this very order
    if known.boot == drain.boot:
        return drain.deadline_ms
    return max(drain.deadline_ms, node.created_ms + drain.deadline_ms - drain.since_ms)


def waits_for(node: DrainedNode | None, known: Known) -> str:
    """Why nothing can be done about a Node now; "": it can."""
    if node is None:
        return "the cluster has no Node of it"
    if not MARK.items() <= node.labels.items():
        return "its Node has not the label netboot.dev/managed-by=netboot"
    if not known.its:
        return "its Node is not known to be of its current boot"
    if foreign := holder(node.labels, node.annotations, cordoned=node.cordoned):
        return f"{foreign}: netboot leaves the Node alone until it is let go"
    return "" if node.ready else "its Node is not Ready: nothing there could answer"


class Pods(NamedTuple):
    """What is on a Node that is to go. `blocking`: it may not be evicted without a word more of the operator; `evict`:
    who is to be asked to go now; `left`: who has not gone yet, those with it."""

    blocking: tuple[Pod, ...]
    evict: tuple[Pod, ...]
    left: tuple[Pod, ...]


def sorted_out(drain: Drain, pods: Collection[Pod]) -> Pods:
    """DaemonSets' Pods and mirror Pods stay, for they would come back at once; what has ended is nobody's work. While
    one Pod blocks nothing is evicted: a drain that cannot be carried out disturbs nobody."""
    left = tuple(sorted(pod for pod in pods if not (pod.mirror or pod.over or pod.owner == "DaemonSet")))
    blocking = tuple(
        pod
        for pod in left
        if not pod.leaving and ((not pod.owner and not drain.bare) or (pod.local and not drain.local))
    )
    return Pods(blocking, () if blocking else tuple(pod for pod in left if not pod.leaving), left)


def after_pods(
    drain: Drain, node: DrainedNode, pods: Pods, refused: Mapping[Pod, str], now_ms: int, *, empty_before: bool
) -> Step:
    """What to do once they were looked at, and asked to go. `refused`: why some may not now; `empty_before`: the last
    look found none either, so none that was on its way to the Node can come any more."""
    if pods.blocking:
        bare = [pod for pod in pods.blocking if not pod.owner]
        allow = "--allow-bare" if bare else "--allow-local-data"
        what = "have no controller that would start them elsewhere" if bare else "have data in an emptyDir"
        return Step("draining", f"{first_few(bare or pods.blocking)} {what}: only with {allow}")
    if refused:
        return Step("draining", f"{first_few(pods.left)} are left; {_reasons(refused)}")
    if pods.left:
        return Step("draining", f"{first_few(pods.left)} are left")
    if not empty_before:
        return Step("draining", "no Pod is left; it is looked at once more")
    if drain.what == "drain":
        return Step("drained", "no Pod is left", Write(tainted(node, DRAINED)))
    expires = min(now_ms + ORDER_MS, drain.deadline_ms) // 1000
    order = {"machine": drain.machine, "boot": drain.boot, "slot": drain.id, "what": "reboot", "expires": expires}
    write = Write(tainted(node, DRAINED), {ORDER: json.dumps(order, separators=(",", ":"))})
    return Step("ordered", "its Node is drained, and it is told to reboot", write)


def undone(node: DrainedNode | None) -> Write | None:
    """A Node as it was before; None: there is nothing of ours on it, or somebody has taken it into their own hands, or
    from netboot."""
    if node is None or by_hand(node.annotations) or not MARK.items() <= node.labels.items():
        return None
    if value_of(node) is None and ORDER not in node.annotations:
        return None
    return Write(_others(node.taints), {ORDER: None} if ORDER in node.annotations else {})


def tainted(node: DrainedNode, value: str) -> Taints:
    """Its taints, with ours."""
    return (*_others(node.taints), {"key": DRAIN, "value": value, "effect": "NoSchedule"})


def value_of(node: DrainedNode | None) -> str | None:
    """Of our taint; None: it has none."""
    taints = node.taints if node is not None else ()
    found = next((taint.get("value") for taint in taints if taint["key"] == DRAIN), None)
    return None if found is None else (DRAINED if found == DRAINED else DRAINING)


def ordered(node: DrainedNode, drain: str) -> int | None:
    """When the order expires by which its machine was told to reboot, in ms; None: it was not, by this one."""
    try:
        order: Any = json.loads(node.annotations.get(ORDER, ""))
        return int(order["expires"]) * 1000 if order["slot"] == drain else None
    except (ValueError, KeyError, TypeError):
        return None


def _told(node: DrainedNode, expires: int, now_ms: int) -> Step:
    if not node.ready:
        return Step("ordered", "it was told to reboot, and its Node is not Ready: it is on its way")
    if now_ms < expires + LATE_MS:
        return Step("ordered", "its Node is drained, and it is told to reboot")
    why = "it did not take the order to reboot: `journalctl -u netboot-orders -u netboot-reboot` there says why"
    return Step("undone", why, undone(node))


def _others(taints: Taints) -> Taints:
    return tuple(taint for taint in taints if taint["key"] != DRAIN)


def _reasons(refused: Mapping[Pod, str]) -> str:
    pod, why = next(iter(sorted(refused.items())))
    more = f" ({len(refused) - 1} more are refused)" if len(refused) > 1 else ""
    return f"{pod} may not go now: {why}{more}"
