"""Pods that are not to be disrupted, for as long as their node's class lets them say so (rule L12). Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from netboot.join.node_drains import DO_NOT_DISRUPT, DrainedNode, Pod
from netboot.lifecycle.drains import Drain
from netboot.machines.classes import Vetoes


class Vetoed(NamedTuple):
    """`pods`: which veto; `until_ms`: after that they go as others do."""

    pods: tuple[Pod, ...]
    until_ms: int

    @property
    def words(self) -> str:
        """For people."""
        until = datetime.fromtimestamp(self.until_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        first, others = self.pods[0], len(self.pods) - 1
        who = f"{first} and {others} more" if others else str(first)
        return f"{who} may not be disrupted ({DO_NOT_DISRUPT}) until {until}"


def vetoed(drain: Drain, node: DrainedNode, left: Sequence[Pod], vetoes: Vetoes | None, now_ms: int) -> Vetoed | None:
    """Who keeps this drain from evicting anybody now; None: nobody. `left`: Pods that are to go. It is counted from
    when the drain was ordered, or in a later boot from when its Node was made, as the drain's own deadline is."""
    if vetoes is None:
        return None
    until_ms = max(drain.since_ms, node.created_ms) + vetoes.max_wait * 1000
    pods = tuple(pod for pod in left if pod.veto and not pod.leaving and pod.namespace in vetoes.namespaces)
    return Vetoed(pods, until_ms) if pods and now_ms < until_ms else None
