"""The process `keys`, with `keys_kubernetes`: the keys that replicas share, from a Secret onto the disk, where those
processes read them that need them (docs/ha.md)."""

import socket

from netboot.clock import SystemClock
from netboot.config_outside import BOOT_IDS, NONCES, SEALING
from netboot.controllers import runner
from netboot.controllers.shared_keys import SharedKeysController
from netboot.kube.connection import connect
from netboot.kube.shared_keys import KubeSharedKeys
from netboot.process import ProcessSpec
from netboot.stores.shared_keys import KeptKeys
from netboot.stores.status import StatusFile


def run(spec: ProcessSpec) -> None:
    """Follow them until told to stop."""
    place = spec.config.keys_kubernetes
    assert place is not None
    controller = SharedKeysController(
        place.replica or socket.gethostname(),
        f"{place.namespace}/{place.secret}",
        (BOOT_IDS,) if spec.config.join is None else (SEALING, NONCES, BOOT_IDS),
        lambda: KubeSharedKeys(connect(place.kubeconfig, manifests="keys"), place.namespace, place.secret),
        KeptKeys(place.place(spec.config.data)),
        SystemClock(),
    )
    runner.run(controller, StatusFile(spec.config.data / "status", spec.name).write, spec.say_ready, spec.heartbeat())
