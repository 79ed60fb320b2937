"""The process `resources`, with `inventory_kubernetes`: the inventory's custom resources, as the API server has them,
onto the disk, where the publisher reads them; with `holds`, holds likewise, where the controllers read them
(docs/custom-resources.md)."""

import logging
from collections.abc import Iterable
from pathlib import Path

from images.values.strict import FaultsError
from netboot.clock import SystemClock
from netboot.config_outside import InKubernetes
from netboot.controllers import runner
from netboot.controllers.resources import ResourcesController
from netboot.controllers.resources_and_holds import AndHolds
from netboot.controllers.runner import Controller
from netboot.kube.connection import connect
from netboot.kube.custom_resources import KubeHolds, KubeResources
from netboot.kube.resources.definitions import KINDS
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.holds import KIND
from netboot.machines.resources import Resource
from netboot.process import ProcessSpec
from netboot.status.resources import Followed
from netboot.stores.resources import FOLDER, HOLDS, KeptResources
from netboot.stores.status import StatusFile, StatusFolder

log = logging.getLogger(__name__)


def run(spec: ProcessSpec) -> None:
    """Follow them until told to stop."""
    place = spec.config.inventory_kubernetes
    assert place is not None
    inventory = _follow(spec.config.data, place, KINDS, KeptResources(spec.config.data, place.namespace), "followed")
    controller: Controller = inventory
    if place.holds:
        kept = KeptResources(spec.config.data, place.namespace, HOLDS)
        controller = AndHolds(inventory, _follow(spec.config.data, place, (KIND,), kept, "followed_holds", tied=True))
    runner.run(controller, StatusFile(spec.config.data / "status", spec.name).write, spec.say_ready, spec.heartbeat())


def _follow(
    data: Path, place: InKubernetes, kinds: Iterable[str], kept: KeptResources, sign: str, *, tied: bool = False
) -> ResourcesController:
    """Objects of these kinds, kept there; `sign`: the file that says when they were seen last."""
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
    sees = KubeHolds if tied else KubeResources
    return ResourcesController(
        kinds,
        lambda: sees(connect(place.kubeconfig, manifests="inventory"), place.namespace),
        kept,
        written,
        seen,
        StatusFile(folder, sign).write,
        SystemClock(),
        tied=tied,
    )
