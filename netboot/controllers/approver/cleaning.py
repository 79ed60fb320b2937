"""Tokens that were never used: their Secrets go when they have expired. Kubernetes' own tokencleaner is off by default.

Which there are, the Leases say: no Secret is read.
"""

import logging
from collections.abc import Iterable

from netboot.controllers.approver.remembered import Remembered
from netboot.join.ports import Credential, Tokens

log = logging.getLogger(__name__)

AFTER_MS = 60_000
"""Of clocks that differ: a token is left alone until this long after its end by ours."""


def expired(credentials: Iterable[Credential], now_ms: int) -> list[str]:
    """The ids of tokens that nobody can use any more."""
    return [
        one.token_id
        for one in credentials
        if one.token_id is not None and one.token_expires_ms is not None and one.token_expires_ms + AFTER_MS <= now_ms
    ]


def clean(credentials: Iterable[Credential], tokens: Tokens, deleted: Remembered, now_ms: int) -> int:
    """Delete each that is not known to be `deleted`; how many.

    Raises:
        ClusterUnavailableError: the rest is for the next time.
    """
    left = [one for one in expired(credentials, now_ms) if one not in deleted]
    for token in left:
        tokens.delete(token)
        deleted.add(token)
    return len(left)
