"""What processes keep on this disk, or share with other replicas: orders to drain and to reboot, with
`inventory_kubernetes.orders` (docs/custom-resources.md)."""

from functools import partial
from pathlib import Path

from netboot.config import Config
from netboot.stores.drains import SqliteDrains
from netboot.stores.shared_drains import SharedDrains


def orders_in(config: Config) -> Path | None:
    """The kubeconfig of who writes them; None: they are on this disk alone."""
    place = config.inventory_kubernetes
    return place.orders if place is not None else None


def drains_of(config: Config) -> SqliteDrains:
    """For who gives orders, or ends them."""
    path, place, kubeconfig = config.data / "intents.db", config.inventory_kubernetes, orders_in(config)
    if place is None or kubeconfig is None:
        return SqliteDrains(path)
    from netboot.kube.connection import connect  # the client of Kubernetes is large: only with clusters
    from netboot.kube.order_objects import KubeOrderObjects

    return SharedDrains(path, KubeOrderObjects(partial(connect, kubeconfig, manifests="inventory"), place.namespace))
