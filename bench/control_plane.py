"""The control plane that nodes join in the bench: real, on this machine, with etcd's fsync; and what it is told."""

import contextlib
import re
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.serving import BenchError
from lab.kube.accounts import apply_manifests, kubeconfigs
from lab.kube.binaries import NoKubernetesError, find
from lab.kube.cluster import Cluster, ClusterError, cluster
from netboot.join.errors import ClusterUnavailableError

DEFAULTS = {
    "--kube-api-qps": "20",
    "--kube-api-burst": "30",
    "--concurrent-csr-syncs": "5",
}
"""The controller-manager's own for what limits signing, where they are not given (kube-controller-manager --help)."""
_RELEVANT = ("--controllers", "--cluster-signing-duration", *DEFAULTS)
_FSYNC = "etcd_disk_wal_fsync_duration_seconds"


@dataclass(frozen=True)
class Fsyncs:
    """etcd's write-ahead log: how often it was synced to the disk, and the seconds in all."""

    count: int
    seconds: float

    def __sub__(self, earlier: "Fsyncs") -> "Fsyncs":
        return Fsyncs(self.count - earlier.count, self.seconds - earlier.seconds)


@contextlib.contextmanager
def control_plane(cache: Path, folder: Path) -> Iterator[Cluster]:
    """A control plane with our accounts, rights and policies, until the block ends.

    Raises:
        BenchError: there are no binaries, or it did not start.
    """
    with contextlib.ExitStack() as stack:
        try:
            running = stack.enter_context(cluster(find(cache), folder))
            apply_manifests(running)
        except (ClusterError, NoKubernetesError) as error:
            raise BenchError(f"no control plane to join: {error}") from None
        yield running


def accounts(running: Cluster, secrets: Path) -> None:
    """The kubeconfigs of our accounts, as `netboot cluster kubeconfigs` makes them.

    Raises:
        BenchError: the apiserver does not make them.
    """
    try:
        kubeconfigs(running, secrets)
    except (ClusterUnavailableError, ClusterError) as error:
        raise BenchError(f"no accounts in the cluster: {error}") from None


def signing_flags(running: Cluster) -> list[str]:
    """What the controller-manager was told that bears on how fast it signs, and its defaults where it was not."""
    given = flags_of(running, "kube-controller-manager")
    relevant = [flag for flag in given if flag.partition("=")[0] in _RELEVANT]
    names = {flag.partition("=")[0] for flag in given}
    return [*relevant, *(f"{name}={value} (default)" for name, value in DEFAULTS.items() if name not in names)]


def fsyncs(running: Cluster) -> Fsyncs:
    """What etcd counted so far.

    Raises:
        BenchError: it does not sync, or does not say.
    """
    flags = flags_of(running, "etcd")
    if any("unsafe-no-fsync" in flag for flag in flags):
        raise BenchError("etcd runs without fsync: figures of it are worth nothing")
    url = next(flag.partition("=")[2] for flag in flags if flag.startswith("--listen-client-urls="))
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    matches = [re.search(rf"^{_FSYNC}_{what} (\S+)$", text, re.MULTILINE) for what in ("count", "sum")]
    if not all(matches):
        raise BenchError(f"etcd does not tell {_FSYNC}")
    count, seconds = (float(match[1]) for match in matches if match)
    return Fsyncs(int(count), seconds)


def flags_of(running: Cluster, part: str) -> Sequence[str]:
    """What a part was started with."""
    argv = running.processes[part].args
    assert isinstance(argv, list)
    return [str(word) for word in argv[1:]]
