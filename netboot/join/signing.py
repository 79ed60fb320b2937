"""How long the certificates of a cluster's signer live: what was seen of it, and what is too long."""

from images.values.strict import Strict

LONGEST_SECONDS = 86_400 + 600
"""That a certificate may live: a day, and by how much a signer rounds and dates back."""
SIGNING_REMEDY = (
    "give kube-controller-manager `--cluster-signing-duration=24h`, then `kubectl -n netboot delete configmap "
    "netboot-signing`"
)


class Signing(Strict):
    """How long a certificate lives whose request set no limit, by the latest that was seen; `since_ms`: when that was
    approved. `kept_since_ms`: when this record was made, by the apiserver's clock; 0: it is not written yet.

    What was approved before either shows nothing (any more): an operator who corrected the signer deletes the record.
    """

    seconds: int
    """0: none was seen yet."""
    since_ms: int
    request: str
    kept_since_ms: int = 0


NOT_SEEN = Signing(seconds=0, since_ms=0, request="")


def signing_words(signing: Signing) -> str:
    """What was seen of the signer."""
    lifetime = f"{signing.seconds / 3600:.0f} h" if signing.seconds >= 3600 else f"{signing.seconds} s"
    most = f"{LONGEST_SECONDS // 3600} h"
    beyond = f", and {most} is the most: it cannot be revoked" if signing.seconds > LONGEST_SECONDS else ""
    return f"a certificate whose request sets no limit lives {lifetime} (request {signing.request}){beyond}"
