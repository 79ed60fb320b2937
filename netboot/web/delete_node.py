"""`POST /v1/machines/<name>/delete-node`: an operator's word that a machine's Node goes (docs/operations.md)."""

from typing import Literal

from images.values.strict import Strict
from netboot.join.ports import MARK, NodeView
from netboot.lifecycle.cordons import Cordon, is_kept
from netboot.lifecycle.errors import ActRefusedError, NoClusterError
from netboot.lifecycle.views import machine_named
from netboot.web.binding import Shown
from netboot.web.cordons import hold
from netboot.web.dependencies import dependencies
from netboot.web.intents import Why
from netboot.web.operators import audit


class Deleting(Strict):
    """The body."""

    reason: Why
    dry_run: bool = False


class Deleted(Shown):
    """`did`: empty where there is no Node; `held`: it was cordoned, and the machine is held for that."""

    machine: str
    node: str
    did: Literal["deleted", ""]
    held: bool
    dry_run: bool


def delete_node(name: str, body: Deleting) -> Deleted:
    """Delete the Node that the machine has now, by its uid; where somebody cordoned it, its machine is held first.

    Raises:
        ActRefusedError: it is Ready, or not netboot's. NoClusterError: this service knows none.
    """
    deps = dependencies()
    machine = machine_named(deps.live.view(), name)
    if deps.issuer is None:
        raise NoClusterError("this service knows no cluster: declare `join` and `clusters` in netboot.yaml")
    nodes = deps.issuer.cluster_of(machine).nodes
    node = nodes.node(machine.node_name)
    held = node is not None and _cordoned(name, node)
    if node is not None:
        _allowed(name, node)
        if not body.dry_run:
            if held:
                hold(name, Cordon(node=node.name, by=node.cordoned_by))
            nodes.delete(node.name, node.uid)
    if not body.dry_run:
        uid = node.uid if node is not None else ""
        facts = {"node": machine.node_name, "uid": uid, "held": held}
        was = {"node": node.name, "uid": uid} if node is not None else None
        audit("delete-node", facts, machine=name, reason=body.reason, before=was, changed=node is not None)
    did: Literal["deleted", ""] = "deleted" if node is not None else ""
    return Deleted(machine=name, node=machine.node_name, did=did, held=held, dry_run=body.dry_run)


def _allowed(name: str, node: NodeView) -> None:
    label = "=".join(*MARK.items())
    if not node.marked:
        raise ActRefusedError(
            f"the Node {node.name} has not the label {label}: netboot does not know it, and may not delete it"
        )
    if node.ready:
        raise ActRefusedError(
            f"the Node {node.name} is Ready, so {name} works: `netboot machine drain {name}`, then switch it off; or "
            f"`kubectl delete node {node.name}`, if that is meant"
        )


def _cordoned(name: str, node: NodeView) -> bool:
    """Whether it has a cordon that would go with it."""
    deps = dependencies()
    return node.cordoned and not is_kept(deps.intents.of(name, deps.clock.now_ms()))
