"""The process `resources`, with `inventory_kubernetes`: the inventory's custom resources, as the API server has them,
onto the disk, where the publisher reads them; likewise with `holds` Holds, and with `orders` what replicas share, for
the controllers (docs/custom-resources.md)."""

import logging
from collections.abc import Iterable
from pathlib import Path

from images.values.strict import FaultsError
from netboot.clock import SystemClock
from netboot.config_outside import InKubernetes
from netboot.controllers import runner
from netboot.controllers.followed import Tied
from netboot.controllers.resources import ResourcesController
from netboot.controllers.resources_and_acts import AndActs
from netboot.controllers.runner import Controller
from netboot.kube.connection import connect
from netboot.kube.custom_resources import KubeResources, KubeTied
from netboot.kube.resources.kinds import KINDS
from netboot.lifecycle import holds, order_objects, rollout_objects
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.resources import Resource
from netboot.process import ProcessSpec
from netboot.status.resources import Followed
from netboot.stores.resources import FOLDER, HOLDS, ORDERS, ROLLOUTS, KeptResources
from netboot.stores.status import StatusFile, StatusFolder

log = logging.getLogger(__name__)


def run(spec: ProcessSpec) -> None:
    """Follow them until told to stop."""
    place = spec.config.inventory_kubernetes
    assert place is not None
    data, namespace = spec.config.data, place.namespace
    inventory = _follow(data, place, KINDS, KeptResources(data, namespace), "followed")
    followed = {HOLDS: holds.KIND} if place.holds else {}
    if place.orders is not None:
        followed |= {ORDERS: order_objects.KIND, ROLLOUTS: rollout_objects.KIND}
    acts = {
        file: _follow(data, place, (kind,), KeptResources(data, namespace, file), f"followed_{file}", kind)
        for file, kind in followed.items()
    }
    controller: Controller = AndActs(inventory, acts) if acts else inventory
    runner.run(controller, StatusFile(spec.config.data / "status", spec.name).write, spec.say_ready, spec.heartbeat())


def _follow(
    data: Path, place: InKubernetes, kinds: Iterable[str], kept: KeptResources, sign: str, tied: str = ""
) -> ResourcesController:
    """Objects of these kinds, kept there; `sign`: the file that says when they were seen last. `tied`: the kind, where
    each is an act."""
    folder = data / FOLDER
    written: tuple[Resource, ...] | None = None
    seen: Followed | None = None
    try:
        written = kept.read()
        seen = StatusFolder(folder).read(sign, Followed)
        if seen is None and kept.at_ms:  # of a backup
            seen = Followed(seen_ms=kept.at_ms)
    except FaultsError as error:
        log.info("%s", error)
    except CannotTellError as error:
        log.warning("when custom resources were read last is not known: %s", error)

    def sees() -> KubeResources:
        connection = connect(place.kubeconfig, manifests="inventory")
        return KubeTied(connection, place.namespace, tied) if tied else KubeResources(connection, place.namespace)

    return ResourcesController(
        kinds,
        sees,
        kept,
        written,
        seen,
        StatusFile(folder, sign).write,
        SystemClock(),
        tied=_TIED.get(tied),
    )


def _ended(order: Resource) -> bool:
    """Whether it is an order that has ended."""
    said = order_objects.kept_object(order).drain
    return said is not None and said.end is not None


_TIED = {
    holds.KIND: Tied("who does not want one any more applies it again, and deletes it"),
    order_objects.KIND: Tied("they stand, and `netboot machine undrain` takes one off", _ended),
    rollout_objects.KIND: Tied("they stand still, and `netboot channel set CHANNEL IMAGE --force` makes one anew"),
}
