"""What keeps work off a machine, from one of its Nodes to the next: with which taints a node is to register, whether
what operators want of its machine lets it, and what must not be lost with the Node that an earlier boot left."""

import logging
from collections.abc import Sequence

from netboot.join.errors import CordonedError, RefusedError
from netboot.join.ports import MARK, ClusterAccess, NodeView
from netboot.lifecycle.cordons import Cordon, is_kept
from netboot.lifecycle.intents import Intent, Intents, marks_of
from netboot.lifecycle.transitions import Mark
from netboot.machines.values import HELD, UNATTESTED, UNCHECKED, AssuranceLevel, Machine

log = logging.getLogger(__name__)

CHECK_FIRST = f"{UNCHECKED}:NoExecute"
"""NoExecute, for a kubelet turns away Pods that are bound to its node already by this effect alone
(kubernetes/pkg/kubelet/lifecycle/predicate.go): those of the boot before, which a power cut left there."""


def wanted(intents: Intents, machine: str, now_ms: int) -> Sequence[Intent]:
    """What stands of it; where that holds it, its node registers with the taint that says so.

    Raises:
        RefusedError: it is in quarantine; why, the machine is not told. CannotTellError: it cannot be told.
    """
    stands = intents.of(machine, now_ms)
    if Mark.QUARANTINED in marks_of(stands):
        raise RefusedError(f"{machine} is in quarantine: `netboot machine readmit {machine}` lets it join again")
    return stands


def taints_of(machine: Machine, assurance: AssuranceLevel, *, held: bool = False) -> tuple[str, ...]:
    """With which taints the node is to register: those that are declared, and ours; an empty value is none. `held`:
    whether the machine is; the taint says by its value that it is ours, to take off again."""
    taints = [taint.replace("=:", ":") for taint in machine.node.taints]
    ours = (CHECK_FIRST,) if assurance == "tpm" else (CHECK_FIRST, f"{UNATTESTED}:NoSchedule")
    keys = {_key(taint) for taint in taints}
    taints += [taint for taint in ours if _key(taint) not in keys]
    kept_off = any(_key(taint) == HELD and taint.endswith(":NoSchedule") for taint in taints)
    return (*taints, f"{HELD}={Mark.HELD}:NoSchedule") if held and not kept_off else tuple(taints)


def _key(taint: str) -> str:
    return taint.partition(":")[0].partition("=")[0]


def old_node(cluster: ClusterAccess, name: str) -> NodeView | None:
    """The Node that an earlier boot left, which is to be deleted; None: there is none.

    Raises:
        RefusedError: it is not known to be of netboot. Asked before anything is written: trying again changes nothing.
    """
    node, label = cluster.nodes.node(name), "=".join(*MARK.items())
    if node is not None and not node.marked:
        raise RefusedError(
            f"there is a Node {name} without the label {label}, so netboot does not know it and may not delete it: if "
            f"an earlier boot of this machine left it, `kubectl label node {name} {label}`; if it is another "
            "machine's, give this one another name in the inventory"
        )
    return node


def delete_old_node(cluster: ClusterAccess, machine: str, name: str, stands: Sequence[Intent]) -> None:
    """A kubelet adopts a Node that is there, and never shows its taints. `stands`: what did of the machine when those
    were chosen.

    Raises:
        RefusedError: as above. CordonedError: it has a cordon that is no hold of the machine yet. NodeKeptError: it
        is not gone, and a kubelet would adopt it.
    """
    node = old_node(cluster, name)
    if node is None:
        return
    if node.cordoned and not is_kept(stands):
        raise CordonedError(machine, Cordon(node=name, by=node.cordoned_by))
    log.info("deleting the Node of an earlier boot", extra={"fields": {"node": name, "uid": node.uid}})
    cluster.nodes.delete(name, node.uid)
