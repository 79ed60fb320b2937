"""`netboot cluster manifests` and `kubeconfigs`: the accounts of the service, their rights, and their tokens."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from images.values import files
from netboot.cli import keys_secret
from netboot.cli.given_files import NamedFile
from netboot.cli.outcomes import UNKNOWN, ApiError
from netboot.cli.paths import config_option, find_config
from netboot.cli.times import moment

if TYPE_CHECKING:
    from netboot.config import Config
    from netboot.config_nodes import Cluster
    from netboot.config_outside import EnrolmentsInKubernetes, InKubernetes
    from netboot.kube.errors import Manifests

PRIVATE = 0o600


@click.command()
@config_option
@click.option("--name", help="Cluster of the configuration, for its namespace.  [default: the namespace netboot]")
@click.option(
    "--inventory",
    is_flag=True,
    help="Of the inventory's custom resources (`inventory_kubernetes`) alone: who reads them, who says how they are.",
)
@click.option("--enrolments", is_flag=True, help="Of Enrolments (`enrolments_kubernetes`) alone.")
@click.option("--keys", is_flag=True, help="Of the keys that replicas share (`keys_kubernetes`) alone: who reads them.")
def manifests(config: Path | None, name: str | None, inventory: bool, enrolments: bool, keys: bool) -> None:
    """Print the accounts, their rights and the admission policies as YAML, for `kubectl apply -f -`.

    With --inventory, --enrolments or --keys the namespace is not among them, and has to be there: to delete them
    deletes no object, and no keys.

    \b
      netboot cluster manifests | kubectl apply -f -
    """
    from netboot.kube.manifests import DEFAULT_NAMESPACE, enrolments_text, inventory_text, keys_text, manifest_text

    which = _which(inventory=inventory, enrolments=enrolments, keys=keys)
    if which and name is not None:
        raise click.UsageError(f"--{which} has the namespace of `{which}_kubernetes`: leave --name out")
    if which == "inventory":
        text = inventory_text(_inventory_of(find_config(config)).namespace)
    elif which == "enrolments":
        text = enrolments_text(_enrolments_of(find_config(config)).namespace)
    elif which == "keys":
        place = keys_secret.place_of(find_config(config))
        text = keys_text(place.namespace, place.secret)
    else:
        text = manifest_text(DEFAULT_NAMESPACE if name is None else find_cluster(find_config(config), name).namespace)
    click.echo(text, nl=False)


@click.command()
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
@click.option("--enrolments", is_flag=True, help="Of who reads Enrolments, and writes their status, alone.")
@click.option("--keys", is_flag=True, help="Of who reads the keys that replicas share, alone.")
def kubeconfigs(
    config: Path | None,
    admin_kubeconfig: Path,
    name: str,
    server: str | None,
    days: int,
    inventory: bool,
    enrolments: bool,
    keys: bool,
) -> None:
    """Write the kubeconfigs of the three accounts to where the configuration says, with mode 0600.

    Each holds a token that expires. A running service takes up a new one by itself.

    \b
      netboot cluster kubeconfigs --admin-kubeconfig admin.conf
    """
    from netboot.kube.accounts import make_kubeconfig

    which = _which(inventory=inventory, enrolments=enrolments, keys=keys)
    namespace, paths = _files_of(find_config(config), which, name)
    made = {role: make_kubeconfig(admin_kubeconfig, role, namespace, days * 86_400, server) for role in paths}
    for role, kubeconfig in made.items():
        path = paths[role]
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write(path, kubeconfig.content, mode=PRIVATE)
        click.echo(f"wrote {path}: {kubeconfig.account}, until {moment(kubeconfig.expires_ms)}")
    soonest = min(kubeconfig.expires_ms for kubeconfig in made.values())
    click.echo(f"make them again before {moment(soonest)}; `netboot doctor` warns 30 days before")


def _files_of(config: "Config", which: "Manifests", name: str) -> tuple[str, dict[str, Path]]:
    """The accounts' namespace, and role → file. `name`: of the cluster, where they are a cluster's."""
    from netboot.kube.accounts import ACCOUNTS, ENROLMENTS, INVENTORY, KEYS, ORDERS, SHIPPER

    if which == "keys":
        secret = keys_secret.place_of(config)
        return secret.namespace, {KEYS: secret.kubeconfig}
    if which == "enrolments":
        enrolled = _enrolments_of(config)
        return enrolled.namespace, {role: getattr(enrolled, role) for role in ENROLMENTS}
    if which == "inventory":
        place = _inventory_of(config)
        files = {INVENTORY: place.kubeconfig, SHIPPER: place.shipper, ORDERS: place.orders}
        return place.namespace, {role: path for role, path in files.items() if path is not None}
    cluster = find_cluster(config, name)
    return cluster.namespace, {role: getattr(cluster, role) for role in ACCOUNTS}


def _which(*, inventory: bool, enrolments: bool, keys: bool) -> "Manifests":
    """Raises click.UsageError: more than one."""
    options: dict[Manifests, bool] = {"inventory": inventory, "enrolments": enrolments, "keys": keys}
    given = [option for option, is_given in options.items() if is_given]
    if len(given) > 1:
        both = f"--{given[0]} and --{given[1]}"
        raise click.UsageError(f"{both} are different accounts: ask for one after the other")
    return given[0] if given else ""


def _inventory_of(config: "Config") -> "InKubernetes":
    """Raises click.ClickException: files are the inventory."""
    if config.inventory_kubernetes is None:
        raise click.ClickException(
            "the configuration has no `inventory_kubernetes`, so files are the inventory: see docs/custom-resources.md"
        )
    return config.inventory_kubernetes


def _enrolments_of(config: "Config") -> "EnrolmentsInKubernetes":
    """Raises click.ClickException: enrolments are on disk."""
    if config.enrolments_kubernetes is None:
        raise click.ClickException(
            "the configuration has no `enrolments_kubernetes`, so enrolments are in data/enrolment.db: see "
            "docs/custom-resources.md"
        )
    return config.enrolments_kubernetes


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
