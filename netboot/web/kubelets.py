"""Before a rollout: whether the API servers of its machines' clusters take the image's kubelet, as they are now."""

from collections.abc import Iterable

from images.errors import ImageError
from images.values.skew import skew
from netboot.lifecycle.errors import CannotTellError, RolloutRefusedError
from netboot.lifecycle.published import View
from netboot.lifecycle.snapshot import ImageFacts
from netboot.web.dependencies import dependencies

ANYHOW = "--any-kubelet begins all the same"


def require_kubelet(view: View, machines: Iterable[str], image: ImageFacts) -> None:
    """Return where each cluster takes it; machines that join none are not asked about.

    Raises:
        RolloutRefusedError: one does not, or it cannot be told.
    """
    issuer, names = dependencies().issuer, set(machines)
    clusters = issuer.clusters if issuer is not None else {}
    joined = {each.cluster for each in view.snapshot.inventory.machines if each.name in names}
    what = f"the kubelet of {image.name} {image.digest[:12]}"
    for cluster in sorted(joined & clusters.keys()):
        unknown = f"whether cluster {cluster} takes {what} cannot be told: "
        try:
            kubelet = dependencies().repository.kubelet(image.digest)
            server = clusters[cluster].server_version()
        except (CannotTellError, ImageError) as error:
            raise RolloutRefusedError(f"{unknown}{error}; try again later, or {ANYHOW}") from None
        if not kubelet:
            raise RolloutRefusedError(f"{unknown}none of its packages is a kubelet; choose another image, or {ANYHOW}")
        words = skew(kubelet, server)
        if words is None:
            raise RolloutRefusedError(f"{unknown}it is {kubelet!r}, and the API server {server!r}; {ANYHOW}")
        if words:
            first = f", or upgrade the control plane of cluster {cluster} first" if words.startswith("newer") else ""
            raise RolloutRefusedError(f"{what} is {kubelet}, {words}: choose another image{first}; {ANYHOW}")
