"""Leases of machines that have left the inventory, or gone to another cluster: kept for a while, then deleted.

For as long as such a machine's last certificates may be valid its Lease says whose they are: they are denied, not left
alone. After that it is in the way: admission asks whoever registers under its node's name for its taints too. Whoever
deletes it deletes the approver's record beside it, which Kubernetes' garbage collector takes.
"""

import logging

from netboot.join.errors import ConflictError
from netboot.join.ports import ClusterAccess, Credential
from netboot.machines.values import Inventory

log = logging.getLogger(__name__)
KEPT_MS = 7 * 86_400_000
"""From when it was first seen to have left; its last certificates end within a day."""


def clear_departed(cluster: ClusterAccess, inventory: Inventory, now_ms: int) -> None:
    """Note in the Lease of each machine that has left when that was seen first, and delete it when it is time: at once
    where another machine has its node's name. `now_ms`: ours.

    Raises:
        ClusterUnavailableError: the cluster is not fit, or does not answer; the rest is for the next time.
    """
    cluster.preflight()
    here = {machine.name: machine for machine in inventory.machines if machine.cluster == cluster.name}
    nodes, now_ms = {machine.node_name for machine in here.values()}, now_ms + cluster.clock_ahead_ms()
    for credential in cluster.leases.all():
        if credential.cluster != cluster.name:
            continue
        if credential.machine in here:
            _note(cluster, credential, None)
        elif credential.node in nodes or (credential.left_ms is not None and now_ms - credential.left_ms >= KEPT_MS):
            _delete(cluster, credential)
        else:
            _note(cluster, credential, credential.left_ms if credential.left_ms is not None else now_ms)


def _note(cluster: ClusterAccess, credential: Credential, left_ms: int | None) -> None:
    if credential.left_ms == left_ms:
        return
    try:
        cluster.leases.write(credential.model_copy(update={"left_ms": left_ms}))
    except ConflictError:
        return  # it joins at this moment: the next time


def _delete(cluster: ClusterAccess, credential: Credential) -> None:
    if credential.token_id is not None:
        cluster.tokens.delete(credential.token_id)  # nobody would ever find it
    cluster.leases.delete(credential)
    fields = {"machine": credential.machine, "node": credential.node, "cluster": cluster.name}
    log.info("the Lease of a machine that has left was deleted", extra={"fields": fields})
