"""`/v1/images/<digest>/uses`: who has to do with an image, for whoever thinks of revoking it."""

from images.values.types import SHA256
from netboot.lifecycle.errors import BadClaimError
from netboot.lifecycle.revocation import Uses, uses
from netboot.web.channels import judged
from netboot.web.dependencies import dependencies


def used(digest: str) -> Uses:
    """Channels that give it to machines, machines that boot it next, and those that run it; whether it is here or not.

    Raises:
        BadClaimError: not a digest.
    """
    if not SHA256.fits(digest):
        raise BadClaimError(f"not an image: {SHA256.message}")
    deps = dependencies()
    return uses(digest, deps.live.view().snapshot, deps.repository, deps.states.machines(), judged())
