"""What was moved into a cluster, read back by the readers that the service itself has, and held against the disk."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from netboot.kube.moved import shown

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.kube.connection import Connection
    from netboot.lifecycle.intents import Intent
    from netboot.lifecycle.rollout_objects import Said
    from netboot.machines.difference import Difference
    from netboot.machines.values import Inventory


def inventory_apart(
    config: "Config", inventory: "Inventory", connection: "Connection", namespace: str
) -> Iterator[str]:
    """What the service would read otherwise of objects than of files, each in words with its object and key.

    Raises:
        ClusterUnavailableError.
    """
    from images.values.strict import FaultsError
    from netboot.kube.custom_resources import KubeResources
    from netboot.kube.resources.kinds import KINDS
    from netboot.machines.difference import differences
    from netboot.machines.resources import judged
    from netboot.stores.inventory import joining_of

    reader = KubeResources(connection, namespace)
    resources = [resource for kind in KINDS for resource in reader.all(kind)]
    try:
        found = judged(resources, f"namespace {namespace}", joining_of(config))
    except FaultsError as error:
        yield from map(str, error.faults)
        return
    yield from map(str, found.left_out)
    yield from _words(differences(inventory, found.inventory))


def _words(differences: "Mapping[str, Difference]") -> Iterator[str]:
    from netboot.kube.resources.kinds import KINDS
    from netboot.machines.declared import KINDS as NAMES

    for listed, each in differences.items():
        kind = KINDS[NAMES[listed]].kind
        yield from (f"{shown(kind, name)}: is in no inventory that is read of objects" for name in each.removed)
        yield from (f"{shown(kind, name)}: is declared by no file" for name in each.added)
        for name, keys in each.changed.items():
            yield f"{shown(kind, name)}: {', '.join(f'spec.{key}' for key in keys)}: is read otherwise of the object"


def enrolments_apart(
    config: "Config", machines: Sequence[str], connection: "Connection", namespace: str
) -> Iterator[str]:
    """Likewise of what is on record of `machines`.

    Raises:
        ClusterUnavailableError, StateUnavailableError.
    """
    from netboot.join.enrolment import Record
    from netboot.join.object_enrolments import ObjectEnrolments
    from netboot.kube.enrolment_objects import KubeEnrolmentObjects
    from netboot.stores.enrolment import SqliteEnrolments

    file = config.data / "enrolment.db"
    disk = {one.machine: one for one in (SqliteEnrolments(file).records() if file.exists() else ())}
    found = ObjectEnrolments(KubeEnrolmentObjects(lambda: connection, namespace))
    objects = {one.machine: one for one in found.records()}
    for machine in machines:
        ours, theirs = (each.get(machine, Record(machine=machine)) for each in (disk, objects))
        keys = [key for key in type(ours.enrolment()).model_fields if getattr(ours, key) != getattr(theirs, key)]
        keys += ["retired_from"] if ours.retired_from != theirs.retired_from else []
        if keys:
            yield f"{shown('Enrolment', machine)}: {', '.join(keys)}: is read otherwise of the object"


def holds_apart(holds: "Sequence[Intent]", connection: "Connection", namespace: str) -> Iterator[str]:
    """Likewise of whom people hold.

    Raises:
        ClusterUnavailableError.
    """
    from netboot.kube.custom_resources import KubeResources
    from netboot.lifecycle.holds import KIND, object_of

    found = {each.name: object_of(each) for each in KubeResources(connection, namespace).all(KIND)}
    for one in holds:
        each = found.get(one.machine)
        if each is None or each.hold is None:
            yield f"{shown(KIND, one.machine)}: {each.fault if each is not None else 'is not there'}"
        elif (each.hold.machine, each.hold.reason, each.hold.until_ms) != (one.machine, one.reason, one.until_ms):
            yield f"{shown(KIND, one.machine)}: spec: is read otherwise of the object"


def rollouts_apart(pointing: "Mapping[str, Said]", connection: "Connection", namespace: str) -> Iterator[str]:
    """Likewise of where channels point, and of their rollouts.

    Raises:
        ClusterUnavailableError.
    """
    from netboot.kube.act_objects import KubeRolloutObjects
    from netboot.kube.resources.kinds import ROLLOUT
    from netboot.lifecycle.packed_members import UnreadableError
    from netboot.lifecycle.rollout_objects import said_of, spec_of

    found = {each.channel: each for each in KubeRolloutObjects(lambda: connection, namespace).all()}
    for channel, ours in pointing.items():
        there = found.get(channel)
        if there is None or there.spec is None:
            yield there.fault if there is not None else f"{shown(ROLLOUT.kind, channel)}: is not there"
            continue
        try:
            same = said_of(there.spec, {}) == said_of(spec_of(ours), {})
        except UnreadableError as error:
            yield f"{shown(ROLLOUT.kind, channel)}: spec.rollout.members: {error}"
            continue
        if not same:
            yield f"{shown(ROLLOUT.kind, channel)}: spec: is read otherwise of the object"
