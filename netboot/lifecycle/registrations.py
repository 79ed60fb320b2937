"""Which Node a boot registered, as it stands in the record of that: written by the node collector, read by whoever asks
whose a Node is (`netboot.lifecycle.trace.Trace.node_uid`)."""

_BEFORE = " uid "


def node_detail(name: str, uid: str) -> str:
    """Of the fact that a Node of this uid was seen; without a name, where another replica saw it."""
    return f"node {name}{_BEFORE}{uid}"[:300] if name else f"node{_BEFORE}{uid}"


def uid_in(detail: str) -> str:
    """Of the Node of which that fact is; "": it does not say."""
    return detail.rpartition(_BEFORE)[2] if _BEFORE in detail else ""
