"""What the API's document, and clients made from it, call its operations and its models."""

import re
from typing import Any

from netboot.web.binding import View

REFERENCE = "#/components/schemas/"
_BOTH_WAYS = re.compile(r"-(In|Out)put\Z")
VARIABLE = re.compile(r"<(?:(\w+):)?(\w+)>")
"""A part of a route's path: its converter, and its name."""
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


def template(path: str) -> str:
    """A route's path as people and the document have it: `/v1/rollouts/<number>`, without converters."""
    return VARIABLE.sub(r"<\2>", path)


def operation_id(view: View) -> str:
    """Of the view and its module: unique, and a function's name in any language."""
    name = view.__name__
    return f"{tag(view)}_{VERBS.get(name, name)}"


def tag(view: View) -> str:
    """The part of the API that it belongs to: its module's name."""
    return view.__module__.rpartition(".")[2]


def renamed(part: Any) -> Any:
    """Parts of a schema, with models of one name in two modules by the last part of their modules': pydantic has all of
    it in there. Of two of which one alone is sent, and the other answered, it says that: the latter keeps the name."""
    if isinstance(part, tuple):
        return tuple(map(renamed, part))
    if isinstance(part, dict):
        return {_short(key): _short(each) if key == "$ref" else renamed(each) for key, each in part.items()}
    return list(map(renamed, part)) if isinstance(part, list) else part


def _short(name: Any) -> Any:
    if not isinstance(name, str):
        return name
    name = _BOTH_WAYS.sub(lambda found: "Sent" if found[1] == "In" else "", name)
    if "__" not in name:
        return name
    *_, module, model = name.rpartition("/")[2].split("__")
    prefix = REFERENCE if name.startswith(REFERENCE) else ""
    return f"{prefix}{module.title().replace('_', '')}{model}"
