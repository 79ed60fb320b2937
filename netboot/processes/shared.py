"""What processes keep on this disk, or share with other replicas: orders to drain and to reboot, with
`inventory_kubernetes.orders` (docs/custom-resources.md)."""

from collections.abc import Callable, Mapping, Set
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial

from netboot.clock import SystemClock
from netboot.config import Config
from netboot.lifecycle.drains import DrainsStatus
from netboot.lifecycle.errors import CannotTellError, NotReadyError
from netboot.lifecycle.rollout import Rollout
from netboot.machines.former import present_names
from netboot.stores.drains import SqliteDrains
from netboot.stores.image_repository import StoreImageRepository
from netboot.stores.live import LiveView
from netboot.stores.rollouts import SqliteRollouts
from netboot.stores.shared_drains import SharedDrains
from netboot.stores.shared_rollouts import SharedRollouts
from netboot.stores.status import StatusFolder

Acting = Callable[[], AbstractContextManager[object]]
"""As `netboot.kube.connection` has it, whose imports are large."""


def shares_orders(config: Config) -> bool:
    """Whether all replicas know all orders."""
    return config.inventory_kubernetes is not None and config.inventory_kubernetes.orders is not None


def drained(config: Config, status: StatusFolder, now_ms: Callable[[], int]) -> dict[str, DrainsStatus]:
    """Cluster → what its node collector says of the orders that it carries out here. Where replicas share orders one
    that follows, or stands still, has nothing to say: another one carries them out."""
    said = dict[str, DrainsStatus]()
    for cluster in config.clusters:
        with suppress(CannotTellError):
            found = status.read(f"drains-{cluster}", DrainsStatus)
            if found is not None and (not shares_orders(config) or (found.leads and found.fresh(now_ms()))):
                said[cluster] = found
    return said


def led_here(config: Config, status: StatusFolder, now_ms: Callable[[], int]) -> Set[str]:
    """Clusters whose orders are carried out here."""
    return drained(config, status, now_ms).keys() if shares_orders(config) else config.clusters.keys()


def drains_of(config: Config, acting: Acting = nullcontext) -> SqliteDrains:
    """For who gives orders, or ends them. `acting`: around each request that changes something, of a leader."""
    path, place = config.data / "intents.db", config.inventory_kubernetes
    if place is None or place.orders is None:
        return SqliteDrains(path)
    from netboot.kube.act_objects import KubeOrderObjects
    from netboot.kube.connection import connect  # the client of Kubernetes is large: only with clusters

    reach = partial(connect, place.orders, manifests="inventory", acting=acting)
    objects = KubeOrderObjects(reach, place.namespace)
    present = partial(_present, LiveView(config.data / "snapshot.json"))
    return SharedDrains(path, objects, present, SystemClock().now_ms)


def rollouts_of(config: Config, repository: StoreImageRepository, acting: Acting = nullcontext) -> SqliteRollouts:
    """For who begins rollouts, or drives them. `repository`: images, and where channels point, here; `acting`: as
    above."""
    place = config.inventory_kubernetes
    if place is None or place.orders is None:
        return SqliteRollouts(config.rollouts)
    from netboot.kube.act_objects import KubeRolloutObjects  # as above
    from netboot.kube.connection import connect

    reach = partial(connect, place.orders, manifests="inventory", acting=acting)
    objects = KubeRolloutObjects(reach, place.namespace)
    present = partial(_present, LiveView(config.data / "snapshot.json"))
    return SharedRollouts(config.rollouts, objects, repository, present, SystemClock().now_ms)


def completing(rollouts: SqliteRollouts, repository: StoreImageRepository) -> Callable[[Rollout], object]:
    """What moves a rollout's channel to its image, before that is written to be complete; shared, it is one write."""
    if isinstance(rollouts, SharedRollouts):
        return lambda _rollout: None
    return lambda rollout: repository.point(rollout.channel, rollout.image)


def _present(live: LiveView) -> Mapping[str, str]:
    """Former name → the name of now."""
    try:
        return present_names(live.view().snapshot.inventory)
    except NotReadyError:
        return {}
