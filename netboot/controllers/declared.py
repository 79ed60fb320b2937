"""What the published snapshot says of each machine, as the lifecycle's judgement wants it."""

import gc
import weakref
from collections.abc import Callable, Collection

from netboot.controllers.pieces import Going, in_pieces, unheard
from netboot.controllers.sight import REPORTS, cluster_place
from netboot.lifecycle.known import Declared, Places
from netboot.lifecycle.published import image_of
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.boot_limit import BootLimit
from netboot.machines.deadlines import Deadline
from netboot.machines.remedies import Rules
from netboot.machines.values import boot_limit_of, deadlines_of


def declared_of(
    snapshot: Snapshot, clusters: Collection[str], going: Going = unheard, *, replicas: bool = False
) -> dict[str, Declared]:
    """Each machine by its name. `clusters`: those that are configured; `replicas`: other services judge them too."""
    profiles = {profile.name: profile for profile in snapshot.inventory.profiles}
    classes = {one.name: one for one in snapshot.inventory.classes}
    rules = {one.name: Rules(one.remedies, f"class {one.name}", replicas) for one in snapshot.inventory.classes}
    limits: dict[tuple[str, str | None], tuple[dict[str, Deadline], BootLimit]] = {}
    places: dict[tuple[str, str | None], Places] = {}
    declared = {}
    for machine in in_pieces(snapshot.inventory.machines, going):
        profile, cluster, hardware = profiles[machine.profile], machine.cluster, machine.class_name
        kind = (profile.name, hardware)
        if kind not in limits:  # machines of one kind share them
            of_class = classes[hardware] if hardware is not None else None
            limits[kind] = deadlines_of(profile, of_class), boot_limit_of(profile, of_class)
        if (cluster, hardware) not in places:
            places[cluster, hardware] = Places(REPORTS, cluster_place(cluster), f"nodes/{cluster}/{hardware or ''}")
        image, assigned = image_of(snapshot, machine.name, profile.channel), snapshot.assigned.get(machine.name)
        declared[machine.name] = Declared(
            name=machine.name,
            cluster=cluster,
            node=machine.node_name,
            enabled=machine.enabled,
            joins=cluster in clusters,
            channel=profile.channel,
            image=image if image in snapshot.images else None,
            deadlines=limits[kind][0],
            places=places[cluster, hardware],
            boot_limit=limits[kind][1],
            rollout=assigned.rollout if assigned is not None else None,
            rack=machine.rack or "",
            rules=rules.get(hardware or "", Rules()),
        )
    return declared


class Published:
    """The same of the snapshot that was published last, made anew only for another one."""

    def __init__(
        self, published: Callable[[], Snapshot | None], clusters: Collection[str], *, replicas: bool = False
    ) -> None:
        self._published, self._clusters, self._replicas = published, clusters, replicas
        self._of: weakref.ref[Snapshot] | None = None
        """No more than that: whoever lets go of the last reference frees 50,000 machines, which is not to be done at
        the lowest priority while all other threads wait for the interpreter."""
        self._declared: dict[str, Declared] | None = None

    def declared(self, going: Going = unheard) -> dict[str, Declared] | None:
        """None: nothing was published yet."""
        snapshot = self._published()
        if snapshot is not None and (self._of is None or snapshot is not self._of()):
            gc.freeze()  # it lives long; a collection that walks 50,000 machines would hold up every thread meanwhile
            self._declared = declared_of(snapshot, self._clusters, going, replicas=self._replicas)
            self._of = weakref.ref(snapshot)
        return self._declared
