"""`netboot cluster`: what an operator does once for a cluster that machines join. Works with kubeconfig files."""

from pathlib import Path
from typing import Any

import click

from netboot.cli import cluster_accounts, cluster_keys
from netboot.cli.cluster_accounts import find_cluster
from netboot.cli.cluster_enrolments import enrolments
from netboot.cli.forms import Output
from netboot.cli.paths import config_option, find_config
from netboot.cli.site_objects import inventory_objects


@click.group()
def group() -> None:
    """Prepare a Kubernetes cluster that machines of this site join, or that has the site's inventory.

    `netboot migrate` moves what is on this site's disk there.

    \b
    Once for a cluster, with an administrator's kubeconfig; the second again before its tokens expire:
      netboot cluster manifests | kubectl apply -f -
      netboot cluster kubeconfigs --admin-kubeconfig ~/.kube/config
      netboot doctor

    \b
    Where custom resources are to be the inventory (`inventory_kubernetes`), likewise:
      kubectl create namespace netboot
      netboot cluster crds | kubectl apply -f -
      netboot cluster manifests --inventory | kubectl apply -f -
      netboot cluster kubeconfigs --inventory --admin-kubeconfig ~/.kube/config
      netboot cluster inventory | kubectl apply -f -

    Where enrolments are to be objects (`enrolments_kubernetes`), likewise with --enrolments, and `netboot cluster
    enrolments`.

    \b
    Where replicas share their keys by a Secret (`keys_kubernetes`), likewise:
      netboot cluster manifests --keys | kubectl apply -f -
      netboot cluster kubeconfigs --keys --admin-kubeconfig ~/.kube/config
      netboot cluster keys push --admin-kubeconfig ~/.kube/config
    """


group.add_command(cluster_accounts.manifests)
group.add_command(cluster_accounts.kubeconfigs)
group.add_command(cluster_keys.group)
group.add_command(enrolments)


@group.command()
def crds() -> None:
    """Print the custom resources of `netboot.dev/v1alpha1` as YAML for `kubectl apply -f -`.

    Machine, Profile, Channel, MachineClass, Rack and MaintenanceWindow, with the keys that the inventory's files have;
    Hold and Enrolment.
    With `inventory_kubernetes` their objects are the inventory; else files are, and nothing reads objects. An API
    server checks them as the service checks files, as far as one object says it, and `kubectl explain
    machine.spec.match` says what each key is for.

    \b
      netboot cluster crds | kubectl apply -f -
      netboot cluster inventory | kubectl apply --dry-run=server -f -
    """
    from netboot.kube.resources.definitions import definitions

    _print(definitions())


@group.command()
@config_option
@click.option(
    "--name",
    help="Cluster of the configuration, for its namespace.  [default: that of inventory_kubernetes, else netboot]",
)
def inventory(config: Path | None, name: str | None) -> None:
    """Print what the inventory's files declare as objects of `netboot cluster crds`, as YAML for kubectl.

    Files are those of `inventory`, also where they are not read any more. They are checked first, and printed only
    where nothing is wrong with them; first what others refer to.

    \b
      netboot cluster inventory | kubectl apply --dry-run=server -f -
    """
    from netboot.kube.manifests import DEFAULT_NAMESPACE

    found = find_config(config)
    namespace = found.inventory_kubernetes.namespace if found.inventory_kubernetes is not None else DEFAULT_NAMESPACE
    if name is not None:
        namespace = find_cluster(found, name).namespace
    _print(inventory_objects(found, namespace)[1])


@group.command("readiness-rule")
@config_option
@click.option("--name", default="default", show_default=True, help="Cluster of the configuration.")
def rule(config: Path | None, name: str) -> None:
    """Print the rule by which the Node Readiness Controller's taint follows netboot's gate.

    It wants `gate_condition: true`, for without the condition that controller keeps work off all Nodes.

    \b
      netboot cluster readiness-rule | kubectl apply -f -
    """
    from netboot.kube.manifests import readiness_rule

    if not find_cluster(find_config(config), name).gate_condition:
        raise click.ClickException(
            f"the cluster {name!r} has no `gate_condition: true`, so no Node would have the condition "
            "netboot.dev/Gate, and the rule would keep work off all of them: set it, "
            "start the service again, then ask again"
        )
    click.echo(readiness_rule(), nl=False)


def _print(documents: list[dict[str, Any]]) -> None:
    """As one YAML stream."""
    for document in documents:
        click.echo(Output("yaml").line(document, None))
