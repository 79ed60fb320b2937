"""`netboot cluster enrolments`: what is on record on disk, as objects."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from netboot.cli.forms import Output
from netboot.cli.paths import config_option, find_config

if TYPE_CHECKING:
    from netboot.config import Config


@click.command()
@config_option
@click.option("--status", is_flag=True, help="What machines showed, for objects that have no status yet: see below.")
def enrolments(config: Path | None, status: bool) -> None:
    """Print what data/enrolment.db has on record as objects of `netboot cluster crds`, as YAML for kubectl.

    One for each machine of the inventory, and each that is on record: who is approved, retired, or had its TPM
    replaced, and windows that are open. With --status the TPMs that wait for approval, and alerts, once the objects are
    there. Stop the service first, and start it with `enrolments_kubernetes`.

    Create, never apply: of several services, each on its own disk, the objects of the first stay as they are, and
    kubectl names those that are there already (AlreadyExists): compare these by hand. A status is replaced whatever it
    is: only of the first disk, or of objects that have none.

    \b
      netboot cluster enrolments | kubectl create -f -
      netboot cluster enrolments --status | kubectl replace --subresource=status -f -
    """
    found = find_config(config)
    file = found.data / "enrolment.db"
    if not file.is_file():
        raise click.ClickException(
            f"{file} is not there, so nothing is on record here: run it on the host, and as the user, of the "
            "service that has the enrolments; a service that had none needs no objects of its own"
        )
    for made in _documents(found, status=status):
        click.echo(Output("yaml").line(made, None))


def _documents(config: "Config", *, status: bool) -> Iterator[dict[str, Any]]:
    from netboot.join.enrolment import Record
    from netboot.join.enrolments_moved import document, names_of, spec_of, status_of
    from netboot.kube.manifests import DEFAULT_NAMESPACE
    from netboot.lifecycle.errors import NotReadyError
    from netboot.stores.enrolment import SqliteEnrolments
    from netboot.stores.snapshot import read_snapshot

    place = config.enrolments_kubernetes
    namespace = place.namespace if place is not None else DEFAULT_NAMESPACE
    store = SqliteEnrolments(config.data / "enrolment.db")
    records, replaced = {one.machine: one for one in store.records()}, store.replaced()
    try:
        inventory = read_snapshot(config.data / "snapshot.json").inventory
    except NotReadyError:
        inventory = None  # of a site that never ran: nothing is in force
    for name in names_of(inventory, records.values()):
        record = records.get(name, Record(machine=name))
        spec, said = spec_of(record, replaced.get(name, ())), status_of(record, store.alerts(name))
        if not status:
            yield document(name, namespace, spec)
        elif said.proposed is not None or said.alerts:
            yield document(name, namespace, spec, said)
