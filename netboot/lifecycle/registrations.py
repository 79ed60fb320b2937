"""Which Node a boot registered, as it stands in the record of that: written by the node collector, read by whoever asks
whose a Node is."""

from netboot.lifecycle.phases import Phase
from netboot.lifecycle.trace import Trace


def node_detail(name: str, uid: str) -> str:
    """Of the fact that a Node of this uid was seen."""
    return f"node {name} uid {uid}"[:300]


def node_uid(boot: Trace) -> str:
    """Of the Node that it registered; "": none was seen."""
    registered = boot.phase(Phase.NODE_REGISTERED)
    return registered.detail.rpartition(" uid ")[2] if registered is not None else ""
