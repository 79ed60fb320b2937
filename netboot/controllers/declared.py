"""What the published snapshot says of each machine, as the lifecycle's judgement wants it."""

from collections.abc import Callable, Collection

from netboot.controllers.sight import REPORTS, cluster_place
from netboot.lifecycle.known import Declared, Places
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.deadlines import Deadline
from netboot.machines.values import deadlines_of


def declared_of(snapshot: Snapshot, clusters: Collection[str]) -> dict[str, Declared]:
    """Each machine by its name. `clusters`: those that are configured."""
    profiles = {profile.name: profile for profile in snapshot.inventory.profiles}
    classes = {one.name: one for one in snapshot.inventory.classes}
    deadlines: dict[tuple[str, str | None], dict[str, Deadline]] = {}
    declared = {}
    for machine in snapshot.inventory.machines:
        profile, cluster, hardware = profiles[machine.profile], machine.cluster, machine.class_name
        kind = (profile.name, hardware)
        if kind not in deadlines:  # machines of one kind share them
            deadlines[kind] = deadlines_of(profile, classes[hardware] if hardware is not None else None)
        image, assigned = snapshot.digest_of(machine.name, profile.channel), snapshot.assigned.get(machine.name)
        declared[machine.name] = Declared(
            name=machine.name,
            cluster=cluster,
            node=machine.node_name,
            enabled=machine.enabled,
            joins=cluster in clusters,
            channel=profile.channel,
            image=image if image in snapshot.images else None,
            deadlines=deadlines[kind],
            places=Places(REPORTS, cluster_place(cluster), f"nodes/{cluster}/{hardware or ''}"),
            rollout=assigned.rollout if assigned is not None else None,
        )
    return declared


class Published:
    """The same of the snapshot that was published last, made anew only for another one."""

    def __init__(self, published: Callable[[], Snapshot | None], clusters: Collection[str]) -> None:
        self._published, self._clusters = published, clusters
        self._of: Snapshot | None = None
        self._declared: dict[str, Declared] | None = None

    def declared(self) -> dict[str, Declared] | None:
        """None: nothing was published yet."""
        snapshot = self._published()
        if snapshot is not None and snapshot is not self._of:
            self._of, self._declared = snapshot, declared_of(snapshot, self._clusters)
        return self._declared
