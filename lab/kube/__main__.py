"""`make cluster`: a control plane to play with, until Ctrl-C."""

import signal
import sys
import tempfile
import threading
from pathlib import Path

from lab.kube.binaries import NoKubernetesError, find
from lab.kube.cluster import ClusterError, cluster

CACHE = Path(".cache")


def main() -> int:
    """Start it, say how to reach it, stop it when asked to."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        binaries = find(CACHE.absolute())
        with tempfile.TemporaryDirectory(prefix="netboot-cluster-") as folder:
            print("starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler …", flush=True)
            with cluster(binaries, Path(folder)) as running:
                print(f"ready at {running.url}; logs in {folder}\n")
                print(f"  {binaries}/kubectl --kubeconfig {running.admin} get --raw /version\n")
                print("Ctrl-C stops it.", flush=True)
                ended.wait()
            print("stopped")
    except (ClusterError, NoKubernetesError) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
