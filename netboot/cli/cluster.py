"""`netboot cluster`: what an operator does once for a cluster that machines join. Works with kubeconfig files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from images.values import files
from images.values.strict import FaultsError
from netboot.cli import cluster_keys, keys_secret
from netboot.cli.forms import Output
from netboot.cli.given_files import NamedFile
from netboot.cli.outcomes import UNKNOWN, ApiError
from netboot.cli.paths import config_option, find_config
from netboot.cli.times import moment

if TYPE_CHECKING:
    from netboot.config import Cluster, Config
    from netboot.config_outside import InKubernetes

PRIVATE = 0o600
_LAST = {"profile": 1, "machine": 2}
"""What refers to others, in whose place they are applied: one without them is left out until they are there."""


@click.group()
def group() -> None:
    """Prepare a Kubernetes cluster that machines of this site join, or that has the site's inventory.

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

    \b
    Where replicas share their keys by a Secret (`keys_kubernetes`), likewise:
      netboot cluster manifests --keys | kubectl apply -f -
      netboot cluster kubeconfigs --keys --admin-kubeconfig ~/.kube/config
      netboot cluster keys push --admin-kubeconfig ~/.kube/config
    """


group.add_command(cluster_keys.group)


@group.command()
@config_option
@click.option("--name", help="Cluster of the configuration, for its namespace.  [default: the namespace netboot]")
@click.option(
    "--inventory",
    is_flag=True,
    help="Of the inventory's custom resources (`inventory_kubernetes`) alone: who reads them, who says how they are.",
)
@click.option("--keys", is_flag=True, help="Of the keys that replicas share (`keys_kubernetes`) alone: who reads them.")
def manifests(config: Path | None, name: str | None, inventory: bool, keys: bool) -> None:
    """Print the accounts, their rights and the admission policies as YAML, for `kubectl apply -f -`.

    With --inventory or --keys the namespace is not among them, and has to be there: to delete them deletes no
    inventory, and no keys.

    \b
      netboot cluster manifests | kubectl apply -f -
    """
    from netboot.kube.manifests import DEFAULT_NAMESPACE, inventory_text, keys_text, manifest_text

    _one(name if inventory or keys else None, inventory=inventory, keys=keys)
    if keys:
        place = keys_secret.place_of(find_config(config))
        click.echo(keys_text(place.namespace, place.secret), nl=False)
        return
    if inventory:
        click.echo(inventory_text(_in_kubernetes(find_config(config)).namespace), nl=False)
        return
    namespace = DEFAULT_NAMESPACE if name is None else find_cluster(find_config(config), name).namespace
    click.echo(manifest_text(namespace), nl=False)


@group.command()
def crds() -> None:
    """Print the custom resources of the inventory, `netboot.dev/v1alpha1`, as YAML for `kubectl apply -f -`.

    Machine, Profile, Channel, MachineClass, Rack and MaintenanceWindow, with the keys that the inventory's files have.
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
    from netboot.kube.resources.definitions import objects_of
    from netboot.machines.declared import documents_of, items_of
    from netboot.machines.inventory import load_inventory
    from netboot.stores.inventory import joining_of

    found = find_config(config)
    namespace = found.inventory_kubernetes.namespace if found.inventory_kubernetes is not None else DEFAULT_NAMESPACE
    if name is not None:
        namespace = find_cluster(found, name).namespace
    load_inventory(found.inventory, joining_of(found))
    documents, faults = documents_of(found.inventory)
    if faults:  # since they were checked
        raise FaultsError(faults)
    items = [item for document in documents for item in items_of(document)]
    _print(objects_of(sorted(items, key=lambda item: _LAST.get(item.kind, 0)), namespace))


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


@group.command()
@config_option
@click.option(
    "--admin-kubeconfig",
    type=NamedFile(),
    required=True,
    help="Kubeconfig of who may make tokens for ServiceAccounts; used now, and not kept.",
)
@click.option("--name", default="default", show_default=True, help="Cluster of the configuration.")
@click.option("--server", help="Address of the apiserver for the service, if not the administrator's.")
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="How long they are good.")
@click.option("--inventory", is_flag=True, help="Of who reads the inventory, and writes its status, alone.")
@click.option("--keys", is_flag=True, help="Of who reads the keys that replicas share, alone.")
def kubeconfigs(
    config: Path | None, admin_kubeconfig: Path, name: str, server: str | None, days: int, inventory: bool, keys: bool
) -> None:
    """Write the kubeconfigs of the three accounts to where the configuration says, with mode 0600.

    Each holds a token that expires. A running service takes up a new one by itself.

    \b
      netboot cluster kubeconfigs --admin-kubeconfig admin.conf
    """
    from netboot.kube.accounts import ACCOUNTS, INVENTORY, KEYS, SHIPPER, make_kubeconfig

    _one(None, inventory=inventory, keys=keys)
    found = find_config(config)
    if keys:
        secret = keys_secret.place_of(found)
        namespace, paths = secret.namespace, {KEYS: secret.kubeconfig}
    elif inventory:
        place = _in_kubernetes(found)
        namespace, paths = place.namespace, {INVENTORY: place.kubeconfig}
        paths |= {SHIPPER: place.shipper} if place.shipper is not None else {}
    else:
        cluster = find_cluster(found, name)
        namespace, paths = cluster.namespace, {role: getattr(cluster, role) for role in ACCOUNTS}
    kubeconfigs = {role: make_kubeconfig(admin_kubeconfig, role, namespace, days * 86_400, server) for role in paths}
    for role, kubeconfig in kubeconfigs.items():
        path: Path = paths[role]
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write(path, kubeconfig.content, mode=PRIVATE)
        click.echo(f"wrote {path}: {kubeconfig.account}, until {moment(kubeconfig.expires_ms)}")
    soonest = min(kubeconfig.expires_ms for kubeconfig in kubeconfigs.values())
    click.echo(f"make them again before {moment(soonest)}; `netboot doctor` warns 30 days before")


def _one(name: str | None, *, inventory: bool, keys: bool) -> None:
    """Raises click.UsageError: options that do not go together. `name`: of a cluster, which neither has."""
    if inventory and keys:
        raise click.UsageError("--inventory and --keys are two accounts' manifests: ask for one after the other")
    if name is not None:
        option, section = ("--keys", "keys_kubernetes") if keys else ("--inventory", "inventory_kubernetes")
        raise click.UsageError(f"{option} has the namespace of `{section}`: leave --name out")


def _print(documents: list[dict[str, Any]]) -> None:
    """As one YAML stream."""
    for document in documents:
        click.echo(Output("yaml").line(document, None))


def _in_kubernetes(config: "Config") -> "InKubernetes":
    """Raises click.ClickException: files are the inventory."""
    if config.inventory_kubernetes is None:
        raise click.ClickException(
            "the configuration has no `inventory_kubernetes`, so files are the inventory: see docs/custom-resources.md"
        )
    return config.inventory_kubernetes


def find_cluster(config: "Config", name: str) -> "Cluster":
    """A cluster of the configuration.

    Raises:
        ApiError: there is none of that name.
    """
    cluster = config.clusters.get(name)
    if cluster is None:
        known = ", ".join(sorted(config.clusters)) or "none"
        words = f"the configuration has no cluster {name!r} (it has: {known}): add it to `clusters`"
        raise ApiError(words, "", UNKNOWN)
    return cluster
