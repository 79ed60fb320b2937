"""What a site has on its disk as objects of Kubernetes: the inventory's files, who is enrolled, whom people hold."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from images.values.strict import FaultsError
from netboot.clock import rfc3339

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.join.enrolment_documents import EnrolmentSpec, EnrolmentStatus
    from netboot.kube.moved import Document
    from netboot.lifecycle.intents import Intent
    from netboot.lifecycle.rollout_objects import Said
    from netboot.machines.values import Inventory

_LAST = {"profile": 1, "machine": 2}
"""What refers to others, in whose place they are made: one without them is left out until they are there."""
_LONGEST_BY = 64
"""Of `by` of a Hold; who held a machine by command may have a longer name."""


class Site(NamedTuple):
    """What is to be moved. `inventory` None: objects are the inventory already; `enrolled`: machines whose enrolment
    is, None: enrolments are objects already, or nobody joins; `wanted`: all that is wanted of machines, also what is
    not moved; `documents`: what is moved, as objects; `pointing`: where channels point, and their rollouts, by their
    names; empty: they are not to be moved."""

    inventory: "Inventory | None"
    enrolled: tuple[str, ...] | None
    wanted: "Sequence[Intent]"
    documents: "Sequence[Document]"
    pointing: "Mapping[str, Said]"

    @property
    def holds(self) -> "list[Intent]":
        """Those of people."""
        return [one for one in self.wanted if is_hold_of_people(one)]


class Enrolled(NamedTuple):
    """Of one machine."""

    machine: str
    spec: "EnrolmentSpec"
    status: "EnrolmentStatus"


def namespace_of(config: "Config", given: str | None) -> str:
    """The namespace of objects: as it was given, else as the configuration has it.

    Raises:
        click.UsageError: it can be none, or the configuration has two.
    """
    from pydantic import ValidationError

    from netboot.config_outside import InKubernetes
    from netboot.kube.manifests import DEFAULT_NAMESPACE

    if given is not None:
        try:
            return InKubernetes(namespace=given).namespace
        except ValidationError:
            words = f"{given!r} is no namespace: give lower-case letters, digits and '-', at most 63"
            raise click.BadParameter(words, param_hint="--namespace") from None
    places = (config.inventory_kubernetes, config.enrolments_kubernetes)
    found = {place.namespace for place in places if place is not None}
    if len(found) > 1:
        names = " and ".join(sorted(found))
        raise click.UsageError(f"the configuration has objects in {names}: say which with --namespace")
    return found.pop() if found else DEFAULT_NAMESPACE


def site_of(config: "Config", namespace: str, *, rollouts: bool = False) -> Site:
    """What is on the disk. `rollouts`: where channels point, and rollouts, too.

    Raises:
        FaultsError, StateUnavailableError, images.errors.ImageError, click.ClickException: it cannot be told.
        RolloutRefusedError: an object does not hold so many machines.
    """
    from netboot.cli.site_channels import channels_here, rollout_object

    inventory, enrolled, documents = None, None, list[dict[str, Any]]()
    if config.inventory_kubernetes is None:
        inventory, documents = inventory_objects(config, namespace)
    wanted = intents(config, time.time_ns() // 1_000_000)
    documents += [hold_object(one, namespace) for one in wanted if is_hold_of_people(one)]
    joins = config.join is not None or (config.data / "enrolment.db").exists()
    if config.enrolments_kubernetes is None and joins:
        of_machines = enrolment_objects(config, inventory or published(config), namespace)
        enrolled = tuple(each["metadata"]["name"] for each in of_machines)
        documents += of_machines
    pointing = channels_here(config, ran=ran(config)) if rollouts else {}
    documents += [rollout_object(channel, each, namespace) for channel, each in pointing.items()]
    return Site(inventory, enrolled, wanted, documents, pointing)


def inventory_objects(config: "Config", namespace: str) -> tuple["Inventory", list[dict[str, Any]]]:
    """What the files of `inventory` declare, as it is read and as objects; first what others refer to.

    Raises:
        FaultsError: of the files.
    """
    from netboot.kube.resources.definitions import objects_of
    from netboot.machines.declared import documents_of, items_of
    from netboot.machines.inventory import load_inventory
    from netboot.stores.inventory import joining_of

    inventory = load_inventory(config.inventory, joining_of(config))
    documents, faults = documents_of(config.inventory)
    if faults:  # since they were checked
        raise FaultsError(faults)
    items = [item for document in documents for item in items_of(document)]
    return inventory, objects_of(sorted(items, key=lambda item: _LAST.get(item.kind, 0)), namespace)


def published(config: "Config") -> "Inventory | None":
    """The inventory in force; None: of a site that never ran nothing is."""
    from netboot.lifecycle.errors import NotReadyError
    from netboot.stores.snapshot import read_snapshot

    try:
        return read_snapshot(config.data / "snapshot.json").inventory
    except NotReadyError:
        return None


def ran(config: "Config") -> bool:
    """Whether the service ever ran here: else nothing is held, and nobody on record."""
    return any((config.data / name).exists() for name in ("intents.db", "state.db", "enrolment.db"))


def on_record(config: "Config", inventory: "Inventory | None", *, never_ran: bool = False) -> Iterator[Enrolled]:
    """Of each machine of `inventory`, and each of which data/enrolment.db has anything on record, by name. `never_ran`:
    the service need not have run here.

    Raises:
        click.ClickException: the file is not there. StateUnavailableError: it cannot be read.
    """
    from netboot.join.enrolment import Alert, Record
    from netboot.join.enrolments_moved import names_of, spec_of, status_of
    from netboot.stores.enrolment import SqliteEnrolments

    file = config.data / "enrolment.db"
    if never_ran and not ran(config):
        for record in (Record(machine=name) for name in names_of(inventory, ())):
            yield Enrolled(record.machine, spec_of(record), status_of(record, ()))
        return
    if not file.is_file():
        raise click.ClickException(
            f"{file} is not there, so nothing is on record here: run it on the host, and as the user, of the "
            "service that has the enrolments; a service that had none needs no objects of its own"
        )
    store = SqliteEnrolments(file)
    records, replaced = {one.machine: one for one in store.records()}, store.replaced()
    alerts: dict[str, list[Alert]] = {}
    for alert in store.all_alerts():
        alerts.setdefault(alert.machine, []).append(alert)
    for name in names_of(inventory, {*records, *replaced, *alerts}):
        record = records.get(name, Record(machine=name))
        spec, status = spec_of(record, replaced.get(name, ())), status_of(record, alerts.get(name, ()))
        yield Enrolled(name, spec, status)


def is_said(status: "EnrolmentStatus") -> bool:
    """Whether it has anything in it."""
    return status.proposed is not None or bool(status.alerts)


def enrolment_objects(config: "Config", inventory: "Inventory | None", namespace: str) -> list[dict[str, Any]]:
    """As `on_record`, with their status where they have one."""
    from netboot.join.enrolments_moved import document

    return [
        document(one.machine, namespace, one.spec, one.status if is_said(one.status) else None)
        for one in on_record(config, inventory, never_ran=True)
    ]


def intents(config: "Config", now_ms: int) -> "list[Intent]":
    """What people and others want of machines, in force now; of a site that never ran nothing.

    Raises:
        StateUnavailableError: it cannot be told.
    """
    from netboot.stores.intents import SqliteIntents

    return SqliteIntents(config.data / "intents.db").all(now_ms) if ran(config) else []


def is_hold_of_people(intent: "Intent") -> bool:
    """Whether people hold the machine, by command or API."""
    from netboot.lifecycle.intents import OPERATORS
    from netboot.lifecycle.transitions import Mark

    return intent.mark is Mark.HELD and intent.owner == OPERATORS


def hold_object(intent: "Intent", namespace: str) -> dict[str, Any]:
    """A hold of people, by the name of its machine, of which people have one."""
    from netboot.kube.resources.kinds import GROUP, HOLD, VERSION

    by = intent.who.strip()[:_LONGEST_BY]
    until = rfc3339(intent.until_ms) if intent.until_ms is not None else None
    spec = {"machine": intent.machine, "reason": intent.reason, "by": by or None, "until": until}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": HOLD.kind,
        "metadata": {"name": intent.machine, "namespace": namespace},
        "spec": {key: value for key, value in spec.items() if value is not None},
    }
