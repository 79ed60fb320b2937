"""How long the certificates of a cluster's signer live: what was seen of it, and what is too long."""

from images.values.strict import Strict

LONGEST_SECONDS = 86_400 + 600
"""That a certificate may live: a day, and by how much a signer rounds and dates back."""
SIGNING_REMEDY = (
    "give kube-controller-manager `--cluster-signing-duration=24h`, then `kubectl -n netboot delete configmap "
    "netboot-signing`"
)


class Signing(Strict):
    """How long a certificate lived whose request set no limit, the latest that was seen; `since_ms`: its notBefore."""

    seconds: int
    since_ms: int
    request: str


def signing_words(signing: Signing) -> str:
    """What was seen of the signer."""
    lifetime = f"{signing.seconds / 3600:.0f} h" if signing.seconds >= 3600 else f"{signing.seconds} s"
    most = f"{LONGEST_SECONDS // 3600} h"
    beyond = f", and {most} is the most: it cannot be revoked" if signing.seconds > LONGEST_SECONDS else ""
    return f"a certificate whose request sets no limit lives {lifetime} (request {signing.request}){beyond}"
