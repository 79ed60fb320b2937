"""What the API's document, and clients made from it, call its operations."""

from netboot.web.binding import View

VERBS = {
    "accepted": "accept",
    "claim_explained": "explain_claim",
    "compared": "diff",
    "created": "create",
    "described": "document",
    "discovered": "list_discovered",
    "ended": "unfreeze",
    "explained": "explain",
    "frozen": "freeze",
    "healthy": "healthz",
    "imported": "import",
    "listed": "list",
    "moved": "move",
    "offered": "get",
    "paused": "get_pause",
    "ready": "readyz",
    "removed": "delete",
    "revoked": "revoke",
    "shown": "get",
    "started": "start",
    "used": "uses",
    "watched": "watch",
}
"""View → what its operation is called; others are called as the view is."""


def operation_id(view: View) -> str:
    """Of the view and its module: unique, and a function's name in any language."""
    name = view.__name__
    return f"{tag(view)}_{VERBS.get(name, name)}"


def tag(view: View) -> str:
    """The part of the API that it belongs to: its module's name."""
    return view.__module__.rpartition(".")[2]
