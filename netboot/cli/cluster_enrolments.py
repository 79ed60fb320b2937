"""`netboot cluster enrolments`: what is on record on disk, as objects."""

from pathlib import Path

import click

from netboot.cli.forms import Output
from netboot.cli.paths import config_option, find_config
from netboot.cli.site_objects import is_said, on_record, published


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
    from netboot.join.enrolments_moved import document
    from netboot.kube.manifests import DEFAULT_NAMESPACE

    found = find_config(config)
    namespace = found.enrolments_kubernetes.namespace if found.enrolments_kubernetes is not None else DEFAULT_NAMESPACE
    for one in on_record(found, published(found)):
        if not status:
            click.echo(Output("yaml").line(document(one.machine, namespace, one.spec), None))
        elif is_said(one.status):
            click.echo(Output("yaml").line(document(one.machine, namespace, one.spec, one.status), None))
