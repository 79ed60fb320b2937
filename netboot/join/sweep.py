"""Clean-up of expired tokens: Kubernetes' own (tokencleaner) is off by default, and a Secret is a Secret."""

import logging

from netboot.join.errors import ConflictError
from netboot.join.parts import Target

log = logging.getLogger(__name__)

GRACE_MS = 60_000
"""After its expiry; replicas' clocks may differ."""


def sweep(target: Target, now_ms: int) -> int:
    """Delete the Secrets of tokens that have expired, by what the Leases say; how many.

    Raises:
        ClusterUnavailableError: the rest is for the next time.
    """
    swept = 0
    for credential in target.leases.all():
        expires = credential.token_expires_ms or 0
        if credential.token_id is None or now_ms < expires + GRACE_MS:
            continue
        target.tokens.delete(credential.token_id)
        swept += 1
        try:
            target.leases.write(credential.model_copy(update={"token_id": None, "token_expires_ms": None}))
        except ConflictError:
            continue  # another token since, or another replica swept too
    return swept
