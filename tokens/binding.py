"""The binding: one value that says which key may become which node."""

import hashlib
import re

PREFIX = "system:bootstrappers:netboot"
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def binding(node_name: str, spki: bytes) -> str:
    """`hex(sha256("v1\\0" + node_name + "\\0" + sha256(SPKI)))`: 64 characters.

    Raises:
        ValueError: not a node's name (a DNS subdomain).
    """
    if not _NODE_NAME.fullmatch(node_name):
        raise ValueError("not a node's name: lower-case letters, digits, '-' and '.', at most 253")
    return hashlib.sha256(b"v1\0" + node_name.encode() + b"\0" + hashlib.sha256(spki).digest()).hexdigest()


def binding_group(node_name: str, spki: bytes) -> str:
    """The group that carries the binding in a bootstrap token (Kubernetes allows no dots in it)."""
    return f"{PREFIX}:v1:{binding(node_name, spki)}"
