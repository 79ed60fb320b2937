"""`netboot doctor`: every precondition of a site, with remedies. Reads and asks; changes nothing."""

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from tempfile import gettempdir
from time import time

import click

from images.store.store import Store
from netboot.cli import answering, archives, check_listeners, daemon_sets, kubeconfigs, network
from netboot.cli.check import check_site
from netboot.cli.diagnosis import Diagnosis, blocks, confinement, ipxe, join, left_over, proofs, show, store, sum_up
from netboot.cli.output import output_option, program
from netboot.cli.paths import config_file, config_option, find_config
from netboot.cli.tls import endpoint_fault
from netboot.config import Config
from netboot.config_nodes import Cluster
from netboot.join.errors import ClusterUnavailableError
from netboot.join.preconditions import ADVICE, Finding, check, rights
from netboot.join.rights import RIGHTS

UNTRIED = (
    "gates are told by the condition netboot.dev/Gate; the Node Readiness Controller, which may act on it, was never "
    "run by netboot's tests: its rule was checked against its published schema alone"
)
UNTRIED_REMEDY = "none is needed: netboot's own taint keeps Pods off whatever it does; see docs/gate.md"


@click.command()
@config_option
@output_option
@click.option("--quiet", "-q", is_flag=True, help="Only what is not in order.")
@click.option(
    "--admin-kubeconfig",
    "admin",
    metavar="[CLUSTER=]FILE",
    multiple=True,
    help="Look at DaemonSets too, as the owner of this kubeconfig; used now, and not kept.",
)
@click.option("--network", "on_network", is_flag=True, help="Ask here as firmware does, in place of all else; as root.")
@click.option("--interface", metavar="NAME", help="With --network: where.  [default: that of the default route]")
def command(
    config: Path | None, output: str, quiet: bool, admin: tuple[str, ...], on_network: bool, interface: str | None
) -> None:
    """Check everything that booting and joining need: files, keys, the service, each cluster; say what to do.

    Nothing is changed anywhere. Exit status 1 when something is wrong that forbids to boot or join (FAIL). What cannot
    be told though it was asked for has the mark `?`.

    With --network it asks who answers DHCP, as BIOS, UEFI, UEFI HTTP Boot and iPXE do, and whether what they would be
    told is there; no address is taken.

    \b
    Example:
      netboot doctor
      netboot doctor --admin-kubeconfig ~/.kube/config
      netboot doctor --network --interface eth1
      netboot doctor --output json | jq '.diagnoses[] | select(.outcome == "refuse")'
    """
    if interface is not None and not on_network:
        raise click.UsageError("--interface is of --network alone: give both, or leave it out")
    diagnoses = network.diagnose(find_config(config), interface) if on_network else diagnose(config_file(config), admin)
    shown = [each for each in diagnoses if each.outcome in ("unknown", "warn", "refuse")] if quiet else diagnoses
    if output == "json":
        program(output, {"diagnoses": [each._asdict() for each in shown]}, sort_keys=False)
    else:
        for each in shown:
            show(each)
        sum_up(diagnoses)
    if any(diagnosis.outcome == "refuse" for diagnosis in diagnoses):
        raise click.exceptions.Exit(1)


def diagnose(path: Path, admin: Iterable[str] = ()) -> list[Diagnosis]:
    """Everything, in the order in which to put it right. `admin`: as the option has it."""
    site = check_site(path)
    diagnoses = [_fault(fault.file, str(fault)) for fault in site.faults]
    if not diagnoses:
        diagnoses.append(Diagnosis("site", "files", "ok", "configuration, inventory, keys, token and site bundle"))
    if site.config is None:
        return diagnoses
    admins, faulty = daemon_sets.kubeconfigs(site.config, admin), {fault.file for fault in site.faults}
    diagnoses += [Diagnosis("site", "inventory", "warn", words) for words in site.overlooked]
    diagnoses += [Diagnosis("site", "listeners", "warn", words) for words in check_listeners.warnings(site.config)]
    diagnoses += [Diagnosis("site", "tokens", "warn", words) for words in site.tokens]
    diagnoses += [Diagnosis("images", "fit", "warn", words) for words in site.warnings]
    ending = archives.ending(Store(site.config.store), time())
    diagnoses += [Diagnosis("images", "keys of archives", "warn", words) for words in ending]
    diagnoses += left_over((path.absolute().parent, site.config.data, Path(gettempdir())))
    diagnoses += ipxe(site.config, site.inventory)
    checks = (confinement, store, blocks, answering.diagnosis, join, proofs)
    diagnoses += (diagnosis for check in checks for diagnosis in check(site.config))
    diagnoses += kubeconfigs.of_objects(site.config, faulty)
    diagnoses += _clusters(site.config, faulty)
    return [*diagnoses, *daemon_sets.diagnosis(site.config, admins)]


def _fault(file: str, message: str) -> Diagnosis:
    return Diagnosis(
        "site", Path(file).name, "refuse", message, "correct it; `netboot config check` says when it is right"
    )


def _clusters(config: Config, faulty: Container[str]) -> Iterator[Diagnosis]:
    """`faulty`: files of which it was said already what is wrong with them."""
    if not config.clusters:
        message = "none is configured: machines boot, and join nothing"
        yield Diagnosis("clusters", "configured", "advice", message, "add `clusters` and `join` to the configuration")
        return
    for name, cluster in sorted(config.clusters.items()):
        where = f"cluster {name}"
        yield from _endpoints(where, cluster)
        untold: dict[str, list[str]] = {}
        for role in RIGHTS:
            if str(getattr(cluster, role)) in faulty:
                continue
            try:
                yield from _account(where, role, cluster, electing=config.replicas is not None)
            except ClusterUnavailableError as error:
                untold.setdefault(str(error), []).append(role)
        for words, roles in untold.items():  # one API server that is away is one thing that is wrong
            path = getattr(cluster, roles[0])
            remedy = f"is it up, and reached from here? `kubectl --kubeconfig {path} get --raw /readyz` asks it, too"
            name = f"apiserver, as the {' and the '.join(roles)}"
            yield Diagnosis(where, name, "refuse", f"cannot be told: {words}", remedy)
        if cluster.gate_condition:
            yield Diagnosis(where, "gate_condition", "warn", UNTRIED, UNTRIED_REMEDY)
    for note in ADVICE:
        yield Diagnosis("clusters", note.name, "advice", note.words, note.remedy)


def _endpoints(where: str, cluster: Cluster) -> Iterator[Diagnosis]:
    """The API servers as nodes will see them, believing `authority`."""
    remedy = "put the cluster's authority into `authority`: `kubectl config view --minify --raw` has it, in base64"
    for url in cluster.endpoints:
        name = f"endpoint {url}"
        try:
            fault, answered = endpoint_fault(url, cluster.authority)
        except OSError as error:  # an SSLError is one, too
            message = f"{cluster.authority}: {error.strerror or 'holds no certificates in PEM'}"
            yield Diagnosis(where, "authority", "refuse", message, remedy)
            return
        if not fault:
            yield Diagnosis(where, name, "ok", f"believed by {cluster.authority}")
        elif answered:
            yield Diagnosis(where, name, "refuse", f"nodes would not believe it: {fault}", remedy)
        else:
            message = f"cannot be reached from here: {fault}"
            yield Diagnosis(where, name, "warn", message, "see whether nodes reach it; they try all endpoints in turn")


def _account(where: str, role: str, cluster: Cluster, *, electing: bool) -> Iterator[Diagnosis]:
    """A kubeconfig, what its account may, and with the issuer's what its cluster is like.

    Raises:
        ClusterUnavailableError: its API server does not say.
    """
    from netboot.kube.connection import connect
    from netboot.kube.preconditions import KubePreconditions

    path: Path = getattr(cluster, role)
    try:
        connection = connect(path)
    except ClusterUnavailableError as error:
        yield Diagnosis(where, f"kubeconfig of the {role}", "refuse", str(error), f"make it anew: {kubeconfigs.AGAIN}")
        return
    try:
        yield from kubeconfigs.diagnosis(where, role, path, connection)
        preconditions = KubePreconditions(connection, cluster.namespace)
        findings: tuple[Finding, ...]
        if role == "issuer":
            findings = check(preconditions, cluster.namespace)
        else:
            findings = (rights(preconditions, role, cluster.namespace, electing=electing),)
        for finding in findings:
            yield Diagnosis(where, finding.name, finding.outcome, finding.words, finding.remedy)
    finally:
        connection.close()
