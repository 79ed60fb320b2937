"""Tokens that are in Secrets, as the Leases tell of them: listed, revoked, and deleted once they have expired.

Kubernetes' own clean-up (tokencleaner) is off by default, and a Secret is a Secret.
"""

from netboot.join.errors import ConflictError
from netboot.join.ports import ClusterAccess, Credential

GRACE_MS = 60_000
"""After a token's expiry; replicas' clocks may differ."""


def issued(cluster: ClusterAccess) -> list[Credential]:
    """What a cluster's Leases say of tokens that are, or were until they expired, in a Secret.

    Raises:
        CannotTellError: the cluster does not answer.
    """
    return [credential for credential in cluster.leases.all() if credential.token_id is not None]


def revoke(cluster: ClusterAccess, token_id: str) -> Credential | None:
    """Delete the Secret of a token; what its Lease said, or None where no Lease names it.

    Kubernetes goes on believing a token for 10 seconds after it has believed it once; its key is still wanted for it.

    Raises:
        CannotTellError: the cluster does not answer.
    """
    for credential in issued(cluster):
        if credential.token_id == token_id:
            _delete(cluster, credential, token_id)
            return credential
    return None


def sweep(cluster: ClusterAccess, now_ms: int) -> int:
    """Delete the Secrets of tokens that have expired by the apiserver's clock, for it is that one which ends them; how
    many. `now_ms`: ours, which may be wrong.

    Raises:
        ClusterUnavailableError: the cluster is not fit, or does not answer; the rest is for the next time.
    """
    cluster.preflight()
    swept, now_ms = 0, now_ms + cluster.clock_ahead_ms()
    for credential in issued(cluster):
        if credential.token_id is not None and now_ms >= (credential.token_expires_ms or 0) + GRACE_MS:
            _delete(cluster, credential, credential.token_id)
            swept += 1
    return swept


def _delete(cluster: ClusterAccess, credential: Credential, token_id: str) -> None:
    cluster.tokens.delete(token_id)
    try:
        cluster.leases.write(credential.model_copy(update={"token_id": None, "token_expires_ms": None}))
    except ConflictError:
        return  # another token since, or another replica was first: the Secret of this one is gone all the same
