"""Kubernetes bootstrap tokens: made for one key and one node, short-lived, never shown.

Source: Kubernetes, `k8s.io/cluster-bootstrap/token/api` (1.32 to 1.36).
"""

import hmac
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tokens.binding import PREFIX, binding_group
from tokens.errors import MalformedError

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
LONGEST = timedelta(minutes=15)
_FORM = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")


@dataclass(frozen=True, slots=True)
class BootstrapToken:
    """`id.secret`; the secret shows in no repr."""

    id: str
    secret: str = field(repr=False)

    def reveal(self) -> str:
        """The token itself: for the body of one answer, and nowhere else."""
        return f"{self.id}.{self.secret}"

    def matches(self, other: "BootstrapToken") -> bool:
        """Equality in constant time."""
        return hmac.compare_digest(self.reveal(), other.reveal())


def parse(text: str) -> BootstrapToken:
    """A token from its written form.

    Raises:
        MalformedError: not a token; the message does not repeat it.
    """
    match = _FORM.fullmatch(text)
    if not match:
        raise MalformedError("not a bootstrap token: six, a dot, and sixteen lower-case letters or digits")
    return BootstrapToken(match[1], match[2])


def mint(choice: Callable[[str], str] = secrets.choice) -> BootstrapToken:
    """A new token; `choice` draws one character of the alphabet."""
    drawn = "".join(choice(ALPHABET) for _ in range(22))
    return BootstrapToken(drawn[:6], drawn[6:])


def secret_manifest(
    token: BootstrapToken, node_name: str, spki: bytes, now: datetime, lifetime: timedelta = timedelta(minutes=5)
) -> dict[str, Any]:
    """The Secret that makes `token` valid for the holder of `spki` to become `node_name`, until `now + lifetime`.

    Authentication only. An absent expiry would mean "for ever" to Kubernetes, so there always is one.

    Raises:
        ValueError: a lifetime of nothing or of more than 15 minutes, a time without a zone, or not a node's name.
    """
    if not timedelta(0) < lifetime <= LONGEST:
        raise ValueError("a token lives more than nothing and at most 15 minutes")
    if now.tzinfo is None:
        raise ValueError("the time must have a zone")
    expiry = (now + lifetime).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"bootstrap-token-{token.id}", "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": token.id,
            "token-secret": token.secret,
            "expiration": expiry,
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": f"{PREFIX},{binding_group(node_name, spki)}",
            "description": f"netboot: {node_name}",
        },
    }
