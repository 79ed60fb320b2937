"""The process `resources`, with `inventory_kubernetes`: the inventory's custom resources, as the API server has them,
onto the disk, where the publisher reads them (docs/custom-resources.md)."""

import logging

from images.values.strict import FaultsError
from netboot.clock import SystemClock
from netboot.controllers import runner
from netboot.controllers.resources import ResourcesController
from netboot.kube.connection import connect
from netboot.kube.custom_resources import KubeResources
from netboot.kube.resources.definitions import KINDS
from netboot.lifecycle.errors import CannotTellError
from netboot.machines.resources import Resource
from netboot.process import ProcessSpec
from netboot.status.resources import Followed
from netboot.stores.resources import FOLDER, KeptResources
from netboot.stores.status import StatusFile, StatusFolder

log = logging.getLogger(__name__)


def run(spec: ProcessSpec) -> None:
    """Follow them until told to stop."""
    config, place = spec.config, spec.config.inventory_kubernetes
    assert place is not None
    kept, folder = KeptResources(config.data, place.namespace), config.data / FOLDER
    written: tuple[Resource, ...] | None = None
    seen: Followed | None = None
    try:
        written = kept.read()
        seen = StatusFolder(folder).read("followed", Followed)
        if seen is None and kept.at_ms:  # of a backup
            seen = Followed(seen_ms=kept.at_ms)
    except FaultsError as error:
        log.info("%s", error)
    except CannotTellError as error:
        log.warning("when custom resources were read last is not known: %s", error)
    controller = ResourcesController(
        KINDS,
        lambda: KubeResources(connect(place.kubeconfig, inventory=True), place.namespace),
        kept,
        written,
        seen,
        StatusFile(folder, "followed").write,
        SystemClock(),
    )
    runner.run(controller, StatusFile(config.data / "status", spec.name).write, spec.say_ready, spec.heartbeat())
