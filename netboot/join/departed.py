"""Leases of machines that have left the inventory, or gone to another cluster: kept for a while, then deleted.

For as long as such a machine's last certificates may be valid its Lease says whose they are: they are denied, not left
alone. Admission asks whoever registers under a node's name for the taints of each Lease that names it: so one under
whose name another machine has joined asks for none. Whoever deletes a Lease deletes the approver's record beside it,
which Kubernetes' garbage collector takes.
"""

import logging
from collections.abc import Callable

from netboot.join.errors import ConflictError
from netboot.join.left_nodes import LeftNodes
from netboot.join.ports import ClusterAccess, Credential
from netboot.join.taints import taints_of
from netboot.machines.values import Inventory

log = logging.getLogger(__name__)
KEPT_MS = 7 * 86_400_000
"""From when it was first seen to have left; its last certificates end within a day."""


def clear_departed(
    cluster: ClusterAccess, inventory: Callable[[], Inventory | None], nodes: LeftNodes, our_ms: int
) -> None:
    """Note in the Lease of each machine that has left when that was seen first, and delete it when it is time, with its
    Node; take the taints off one whose node's name is another's now; delete Nodes of machines that were retired.
    `our_ms`: by our clock; `inventory()`: None: it cannot be told.

    Raises:
        CannotTellError: the cluster is not fit, or does not answer, or a file; the rest is for the next time.
    """
    cluster.preflight()
    now_ms = our_ms + cluster.clock_ahead_ms()
    credentials = [credential for credential in cluster.leases.all() if credential.cluster == cluster.name]
    declared = inventory()  # after the Leases: who has one by now was declared before
    if declared is None:
        return
    retired = nodes.retired()
    here = {machine.name: machine for machine in declared.machines if machine.cluster == cluster.name}
    owners = {
        credential.node: credential.machine
        for credential in credentials
        if (machine := here.get(credential.machine)) is not None and machine.node_name == credential.node
    }
    for credential in credentials:
        machine, owner = here.get(credential.machine), owners.get(credential.node, credential.machine)
        left_ms, taints = None, credential.taints
        if machine is None:
            left_ms = now_ms if credential.left_ms is None else credential.left_ms
        if owner != credential.machine:
            taints = ""
        elif machine is not None and not taints and credential.left_ms is not None:
            taints = ",".join(taints_of(machine, credential.assurance))
        own = owner == credential.machine
        if own and machine is not None and machine.name in retired:
            nodes.clear_retired(cluster, credential, retired[machine.name], our_ms)
        if left_ms is not None and now_ms - left_ms >= KEPT_MS:
            if own:
                nodes.clear(cluster, credential, "it left the inventory a week ago")
            _delete(cluster, credential)
        elif (credential.left_ms, credential.taints) != (left_ms, taints):
            _write(cluster, credential.model_copy(update={"left_ms": left_ms, "taints": taints}))


def _write(cluster: ClusterAccess, credential: Credential) -> None:
    try:
        cluster.leases.write(credential)
    except ConflictError:
        return  # it joins at this moment: the next time


def _delete(cluster: ClusterAccess, credential: Credential) -> None:
    if credential.token_id is not None:
        cluster.tokens.delete(credential.token_id)  # nobody would ever find it
    cluster.leases.delete(credential)
    fields = {"machine": credential.machine, "node": credential.node, "cluster": cluster.name}
    log.info("the Lease of a machine that has left was deleted", extra={"fields": fields})
