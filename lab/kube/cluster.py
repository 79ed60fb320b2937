"""A control plane: etcd, apiserver, controller-manager, scheduler; started and ended in the right order."""

import contextlib
import ctypes
import signal
import socket
import ssl
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from lab.kube.authority import Authority, kubeconfig, write_private

AUDIT_POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
"""Who did what to which object, never with a body: bodies of token Secrets would be secrets in a log."""
START_SECONDS = 180
LOOPBACK = "127.0.0.1"
KUBELET_ADMINS = "system:masters"
"""The apiserver's own group when it calls kubelets; kubeadm has a group of its own for it since 1.29."""
_PDEATHSIG = 1


class ClusterError(Exception):
    """The control plane did not start; the message names the part and its log."""


@dataclass(frozen=True)
class Cluster:
    """A running control plane. `folder` has the logs, the audit log, `admin.kubeconfig` and `ca.crt`."""

    folder: Path
    url: str
    processes: dict[str, subprocess.Popen[bytes]]

    @property
    def admin(self) -> Path:
        """A kubeconfig that may do everything."""
        return self.folder / "admin.kubeconfig"


@contextlib.contextmanager
def cluster(binaries: Path, folder: Path, address: str = LOOPBACK, names: Sequence[str] = ()) -> Iterator[Cluster]:
    """Run a control plane on free ports until the block ends, however it ends.

    `address`: of this host, where the apiserver listens, so that machines of a lab network reach it; all else stays on
    loopback. `names`: what else the apiserver's certificate is to say, where machines call it otherwise.

    Raises:
        ClusterError: a part ended, or was not ready within three minutes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as ends:
        ports = [_hold(ends, where) for where in (LOOPBACK, LOOPBACK, address, LOOPBACK, LOOPBACK)]
        url = f"https://{address}:{ports[2]}"
        _write_files(folder, url, (address, *names))
        running = Cluster(folder, url, {})
        context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
        ends.callback(_stop, running)
        _start(running, "etcd", _etcd(ports))
        _start(running, "kube-apiserver", [str(binaries / "kube-apiserver"), *_apiserver(ports, address)])
        _wait(running, "kube-apiserver", f"{url}/readyz", context)
        _start(running, "kube-controller-manager", [str(binaries / "kube-controller-manager"), *_controllers(ports)])
        _start(running, "kube-scheduler", [str(binaries / "kube-scheduler"), *_scheduler(ports)])
        # Pods cannot be made before the controller-manager has made the default ServiceAccount.
        _wait(
            running,
            "kube-controller-manager",
            f"{url}/api/v1/namespaces/default/serviceaccounts/default",
            context,
        )
        yield running


def _write_files(folder: Path, url: str, more: Sequence[str]) -> None:
    authority = Authority("netboot-lab")
    ca = authority.pair.certificate
    names = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", LOOPBACK, "10.96.0.1")
    pairs = {
        "ca": authority.pair,
        "apiserver": authority.issue("kube-apiserver", server=tuple(dict.fromkeys((*names, *more)))),
        "kubelet-client": authority.issue("kube-apiserver-kubelet-client", (KUBELET_ADMINS,)),
        "service-accounts": Authority("service-accounts").pair,
        "admin": authority.issue("admin", ("system:masters",)),
        "break-glass": authority.issue("admin", ("system:masters", "netboot:break-glass")),
    }
    for name, pair in pairs.items():
        write_private(folder / f"{name}.crt", pair.certificate)
        write_private(folder / f"{name}.key", pair.key)
    for name in ("kube-controller-manager", "kube-scheduler"):
        pair = authority.issue(f"system:{name}")
        write_private(folder / f"{name}.kubeconfig", kubeconfig(url, ca, pair))
    write_private(folder / "admin.kubeconfig", kubeconfig(url, ca, pairs["admin"]))
    (folder / "audit.yaml").write_text(AUDIT_POLICY)


def _etcd(ports: list[int]) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in ports[:2])
    urls = [f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}"]
    urls += [f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}"]
    return ["etcd", "--data-dir=etcd", *urls]


def _apiserver(ports: list[int], address: str) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{ports[0]}",
        f"--secure-port={ports[2]}",
        f"--bind-address={address}",
        "--client-ca-file=ca.crt",
        "--tls-cert-file=apiserver.crt",
        "--tls-private-key-file=apiserver.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=service-accounts.crt",
        "--service-account-signing-key-file=service-accounts.key",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--enable-bootstrap-token-auth=true",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
        # For logs and exec: a kubelet is believed only by a serving certificate that somebody has approved.
        "--kubelet-client-certificate=kubelet-client.crt",
        "--kubelet-client-key=kubelet-client.key",
        "--kubelet-certificate-authority=ca.crt",
        "--kubelet-preferred-address-types=InternalIP",
        "--audit-policy-file=audit.yaml",
        "--audit-log-path=audit.log",
        "--audit-log-maxsize=4096",  # MiB; left out it is turned at 100, and who counts in it begins at nothing
    ]


def _controllers(ports: list[int]) -> list[str]:
    return [
        "--kubeconfig=kube-controller-manager.kubeconfig",
        "--controllers=*,tokencleaner",
        "--cluster-signing-cert-file=ca.crt",
        "--cluster-signing-key-file=ca.key",
        "--cluster-signing-duration=24h",
        "--root-ca-file=ca.crt",
        "--service-account-private-key-file=service-accounts.key",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[3]}",
    ]


def _scheduler(ports: list[int]) -> list[str]:
    return [
        "--kubeconfig=kube-scheduler.kubeconfig",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[4]}",
    ]


def _hold(until: contextlib.ExitStack, address: str) -> int:
    """A port that is free, and is given to nobody else until then: some seconds pass before a part listens there, and
    again where one is started anew. Listeners of Go reuse addresses: a socket that does not listen is not in their
    way."""
    one = until.enter_context(socket.socket())
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((address, 0))
    return int(one.getsockname()[1])


def _start(running: Cluster, name: str, argv: list[str]) -> None:
    log = (running.folder / f"{name}.log").open("ab")
    with log:
        running.processes[name] = subprocess.Popen(
            argv,
            cwd=running.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent,
        )


def _end_with_parent() -> None:
    """A parent that is killed takes its control plane with it; Ctrl-C is for the parent, which ends it in order."""
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _wait(running: Cluster, name: str, url: str, context: ssl.SSLContext) -> None:
    deadline, last, pause = monotonic() + START_SECONDS, "", threading.Event()
    while monotonic() < deadline:
        for part, process in running.processes.items():
            if process.poll() is not None:
                raise ClusterError(f"{part} ended with status {process.returncode}; see {running.folder}/{part}.log")
        try:
            with urllib.request.urlopen(url, context=context, timeout=30):
                return
        except (urllib.error.URLError, OSError) as error:
            last = str(error)
        pause.wait(0.1)
    raise ClusterError(f"{name} was not ready within {START_SECONDS} s ({last}); see {running.folder}/{name}.log")


def _stop(running: Cluster) -> None:
    """The apiserver before etcd: without etcd it hangs and keeps its port."""
    for name in reversed(running.processes):
        process = running.processes[name]
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
