"""Objects of machines in Kubernetes, as who writes their status sees them: values."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class MachineObject(NamedTuple):
    """`generation`: of its spec; `version`: another one with each change of it, by which nothing is earlier or later;
    `status`: as it was read; `writer`: what whoever changed that last calls itself, empty: that cannot be told."""

    name: str
    uid: str
    generation: int
    version: str
    spec: Any
    status: Mapping[str, Any]
    writer: str = ""


class ObjectsListed(NamedTuple):
    """All that there are."""

    objects: tuple[MachineObject, ...]


class ObjectSeen(NamedTuple):
    """One is `there` as it is now, or is there no more."""

    machine: MachineObject
    there: bool


class Unchanged(NamedTuple):
    """Nothing changed, and somebody who knows has said so."""


Seen = ObjectsListed | ObjectSeen | Unchanged
"""What is seen of them."""
