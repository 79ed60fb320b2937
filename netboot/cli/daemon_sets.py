"""What `netboot doctor` says of DaemonSets that a shut gate keeps off: seen with the administrator's own kubeconfig."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import click

from netboot.cli.diagnosis import Diagnosis
from netboot.cli.given_files import look_at, not_empty
from netboot.config import Config
from netboot.join.daemon_sets import FOR_EVER, DaemonSet
from netboot.join.errors import ClusterUnavailableError
from netboot.join.taints import CHECK_FIRST

NAME = "DaemonSets and the gate"
_LOOK = "`netboot doctor --admin-kubeconfig FILE` looks"
_ADD = f"add to its Pods' tolerations `{{key: {CHECK_FIRST.partition(':')[0]}, operator: Exists, effect: NoExecute}}`"
_RIGHT = "`kubectl auth can-i list daemonsets --all-namespaces` has to say yes"


def kubeconfigs(config: Config, given: Iterable[str]) -> dict[str, Path]:
    """Cluster → file, of `FILE` (where one cluster is configured) or `CLUSTER=FILE`.

    Raises:
        click.UsageError: there is no such cluster, or it is not said which. As `not_empty` and `look_at`: the file
            cannot be read. What it holds is judged by `diagnosis`.
    """
    found: dict[str, Path] = {}
    for each in given:
        name, equals, file = each.partition("=")
        if not equals or name not in config.clusters:
            if len(config.clusters) != 1:
                known = ", ".join(sorted(config.clusters)) or "none"
                raise click.UsageError(f"--admin-kubeconfig {each}: say CLUSTER=FILE, with a cluster of {known}")
            (name,), file = config.clusters, each
        not_empty(file, hint="'--admin-kubeconfig'")
        found[name] = Path(file)
        look_at(found[name], "name a file that is there with --admin-kubeconfig")
    return found


def diagnosis(config: Config, given: Mapping[str, Path]) -> Iterator[Diagnosis]:
    """Of each cluster."""
    for name in sorted(config.clusters):
        where = f"cluster {name}"
        if name in given:
            yield from _looked_at(where, given[name])
        else:
            words = "not looked at: no account of netboot's may list DaemonSets"
            yield Diagnosis(where, NAME, "advice", words, _LOOK)


def _looked_at(where: str, path: Path) -> Iterator[Diagnosis]:
    from netboot.kube.connection import connect
    from netboot.kube.daemon_sets import daemon_sets

    try:
        connection = connect(path)
        try:
            listed = daemon_sets(connection)
        finally:
            connection.close()
    except ClusterUnavailableError as error:
        yield Diagnosis(where, NAME, "unknown", f"cannot be told: {error}", "give a kubeconfig that works from here")
        return
    if listed.found is None:
        words = f"cannot be told: the account of {path} may not list DaemonSets"
        yield Diagnosis(where, NAME, "unknown", words, _RIGHT)
        return
    yield from said(where, listed.server, listed.found)


def said(where: str, server: str, found: Iterable[DaemonSet]) -> Iterator[Diagnosis]:
    """What it means for our Nodes that some do not tolerate the taint with which these register."""
    kept_off = [each for each in found if each.seconds != FOR_EVER]
    networks = [each for each in kept_off if each.network]
    others = [each for each in kept_off if not each.network]
    if networks:
        words = (
            f"likely the network of Pods, and does not tolerate {CHECK_FIRST}: {_names(networks)}; no node is Ready "
            "before its gate is open, and none whose checks fail at all"
        )
        yield Diagnosis(where, NAME, "warn", words, _ADD)
    if others:
        words = f"these start when a node's gate opens, and not before: {_names(others)}"
        yield Diagnosis(where, NAME, "advice", words, f"where one has to run on a node that is shut, {_ADD}")
    if not kept_off:
        yield Diagnosis(where, NAME, "ok", f"all of {server} tolerate {CHECK_FIRST}")


def _names(found: Iterable[DaemonSet]) -> str:
    return ", ".join(map(str, found))
