"""Kubelets without machines: each with the certificate that it joined with, a Node, a Lease that it renews every ten
seconds, and a word of its health, which is the shipped program's own."""

import contextlib
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from bench.serving import BenchError
from images.node.status import written
from images.node.status.said import said
from lab.kube.cluster import Cluster
from netboot.join.ports import MARK
from netboot.machines.values import UNCHECKED

RENEW_SECONDS = 10.0
"""A kubelet's Lease (kubernetes.io: `nodeLeaseDurationSeconds` 40, a quarter of it)."""
THREADS = 4
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
_MERGE = {"Content-Type": "application/merge-patch+json"}
CHECKS = 18
"""Of a report: about what a server with GPUs has."""


@dataclass
class Kubelet:
    """One node. `said`: what it wrote of its health last."""

    name: str
    session: requests.Session
    url: str
    credential: str
    said: written.Written | None = field(default=None)
    off: bool = True
    """Its machine is, or it has not registered: it renews nothing."""

    def register(self) -> None:
        """Its Node, Ready, and its Lease."""
        self._register_node()
        lease = {"metadata": {"name": self.name}, "spec": {"holderIdentity": self.name, **self._renewed()}}
        self._ask("POST", _LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease})
        self.off = False

    def come_back(self, pair: Path) -> None:
        """After a reboot of its machine, with the certificate of that boot: its Node anew, and its Lease as it is."""
        with self.session:
            self.session, self.credential = _certified(pair, str(self.session.verify))
        self.said = None
        self._register_node()
        self.renew()
        self.off = False

    def node(self) -> Any:
        """Its own Node, as the API server has it."""
        return self._ask("GET", f"/api/v1/nodes/{self.name}")

    def _register_node(self) -> None:
        taint = {"key": UNCHECKED, "effect": "NoExecute"}
        node = {"metadata": {"name": self.name, "labels": dict(MARK)}, "spec": {"taints": [taint]}}
        self._ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **node})
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is simulated"}
        ready |= {"lastHeartbeatTime": now, "lastTransitionTime": now}
        self._ask("PATCH", f"/api/v1/nodes/{self.name}/status", {"status": {"conditions": [ready]}}, _STRATEGIC)

    def renew(self) -> None:
        """Its Lease."""
        self._ask("PATCH", f"{_LEASES}/{self.name}", {"spec": self._renewed()}, _MERGE)

    def say(self, status: str) -> None:
        """What its checks find: `pass` or `fail`, all of them."""
        checks = [
            {"name": f"check-{number:02}", "status": status, "severity": "major", "summary": "as it was simulated"}
            for number in range(CHECKS)
        ]
        now, clock = said(json.dumps({"checks": checks}).encode()), time.time()
        assert now is not None
        self.said = written.after(self.said, now, self.credential, time.monotonic(), clock)
        body = written.patch(self.said, now.report, clock)
        self._ask("PATCH", f"/api/v1/nodes/{self.name}/status", body, _STRATEGIC)

    def _renewed(self) -> dict[str, Any]:
        now = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime())}.000000Z"
        return {"leaseDurationSeconds": 40, "renewTime": now}

    def _ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        answer = self.session.request(method, f"{self.url}{path}", json=body, headers=headers, timeout=60)
        if not answer.ok:
            raise BenchError(f"{self.name}: {method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer.json()


class Kubelets:
    """All of them; their Leases are renewed in threads until the block of `kubelets` ends."""

    def __init__(self, each: Sequence[Kubelet]) -> None:
        self.each = each
        self._stopping, self._problems = threading.Event(), list[BaseException]()
        self._threads = [
            threading.Thread(target=self._renew, args=(each[number::THREADS],), daemon=True)
            for number in range(THREADS)
        ]

    def start(self) -> None:
        """Renew Leases from now on, of each that has registered."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """No more."""
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def all(self, what: Callable[[Kubelet], None]) -> None:
        """Do this with each, several at once.

        Raises:
            BenchError: one could not.
        """
        parts = [
            threading.Thread(target=self._part, args=(what, self.each[number::THREADS])) for number in range(THREADS)
        ]
        for part in parts:
            part.start()
        for part in parts:
            part.join()
        self.check()

    def check(self) -> None:
        """
        Raises:
            BenchError: a request of one failed.
        """
        if self._problems:
            raise BenchError(f"a simulated kubelet: {self._problems[0]}")

    def _part(self, what: Callable[[Kubelet], None], part: Sequence[Kubelet]) -> None:
        for kubelet in part:
            try:
                what(kubelet)
            except (BenchError, requests.RequestException) as error:
                self._problems.append(error)
                return

    def _renew(self, part: Sequence[Kubelet]) -> None:
        while not self._stopping.is_set():
            for kubelet in part:
                if self._stopping.wait(RENEW_SECONDS / len(part)):
                    return
                if not kubelet.off:
                    self._part(Kubelet.renew, [kubelet])


@contextlib.contextmanager
def kubelets(cluster: Cluster, pairs: Path) -> Iterator[Kubelets]:
    """One for each file of `pairs`, NAME.pem: a certificate and its key."""
    authority, each = str(cluster.folder / "ca.crt"), list[Kubelet]()
    for path in sorted(pairs.glob("*.pem")):
        session, credential = _certified(path, authority)
        each.append(Kubelet(path.stem, session, cluster.url, credential))
    made = Kubelets(each)
    try:
        yield made
    finally:
        made.stop()
        for kubelet in each:
            kubelet.session.close()


def _certified(pair: Path, authority: str) -> tuple[requests.Session, str]:
    """Who asks with this certificate and key, and how the API server calls the certificate."""
    session = requests.Session()
    session.trust_env, session.verify, session.cert = False, authority, str(pair)
    certificate = pair.read_text().partition("-----END CERTIFICATE-----")
    der = ssl.PEM_cert_to_DER_cert(certificate[0] + certificate[1])
    return session, f"X509SHA256={hashlib.sha256(der).hexdigest()}"
