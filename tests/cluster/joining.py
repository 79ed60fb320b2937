"""Machines that join a real control plane, as far as the approver is concerned: Leases and tokens by the issuer's
account, requests by whoever holds a token or a node's name; and approvers as processes."""

import base64
import contextlib
import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import requests
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.addresses import Address
from netboot.config import Config, Provisioning
from netboot.config_nodes import Cluster as ClusterConfig
from netboot.join.enrolment import Act, Import
from netboot.join.ports import Credential, Csr
from netboot.kube.connection import connect
from netboot.kube.leases import KubeLeases
from netboot.kube.secrets import KubeTokens
from netboot.lifecycle.snapshot import Snapshot
from netboot.machines.values import Inventory, Machine, Match, Node
from netboot.status.approver import ApproverStatus
from netboot.stores.enrolment import SqliteEnrolments
from netboot.stores.journal_reader import read_after
from netboot.stores.snapshot import write_snapshot
from netboot.stores.status import StatusFolder
from tests.kubelets import KEY, Key, client, csr_object, spki
from tests.processes import environment, wait_for
from tests.records import boot_id
from tokens.bootstrap import BootstrapToken, mint, secret_manifest

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/netboot/leases"
RECORDS = "/api/v1/namespaces/netboot/configmaps?labelSelector=app.kubernetes.io/managed-by=netboot"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
URL = "http://192.0.2.1:8080"
SECONDS = 180.0
"""Until who was away, or was refused, asks again: an approver after 30 s at most, a controller-manager after 60."""


class Site:
    """A site with machines n-01 … n-30, each enrolled, and a cluster that they join."""

    def __init__(self, cluster: Cluster, accounts: dict[str, Path], folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.admin = Admin(cluster)
        given = ClusterConfig(endpoints=(cluster.url,), authority=cluster.folder / "ca.crt", **accounts)
        provisioning = Provisioning(listen=Address("127.0.0.1", 8080), url=URL)
        self.config = Config(site="test", data=folder / "data", provisioning=provisioning, clusters={"default": given})
        self.config.data.mkdir()
        self.enrolments = SqliteEnrolments(self.config.data / "enrolment.db")
        self._issuer = connect(accounts["issuer"])
        self._sessions: list[requests.Session] = []
        self.publish()
        orders = [(name, Import(f"{number:064x}")) for number, name in enumerate(self.names)]
        self.enrolments.apply(orders, Act(), 1)

    @property
    def names(self) -> list[str]:
        return [f"n-{number:02}" for number in range(1, 31)]

    def ek(self, name: str) -> str:
        """The fingerprint of its TPM's endorsement key, as it is enrolled."""
        return f"{self.names.index(name):064x}"

    def publish(self, **pins: str) -> None:
        """`pins`: machines (with `_` for `-`) to which the inventory pins a TPM."""
        machines = tuple(
            Machine(
                name=name, profile="compute", node=Node(addresses=("192.0.2.7",)),
                match=Match(serial=f"S-{name}", ek_sha256=pins.get(name.replace("-", "_"))),
            )
            for name in self.names
        )  # fmt: skip
        snapshot = Snapshot(
            site="test", published_ms=1, inventory=Inventory(machines=machines), channels={}, unusable={}, images={},
            url=URL, origins=(URL,),
        )  # fmt: skip
        write_snapshot(self.config.data / "snapshot.json", snapshot)

    def issue(self, name: str, key: Key = KEY, number: int = 1, generation: int = 0) -> BootstrapToken:
        """As join does when the machine has proven itself in its boot of that number: the Lease, then the token."""
        token, now = mint(), datetime.now(UTC)
        leases, at_ms = KubeLeases(self._issuer, "netboot"), int(now.timestamp() * 1000)
        before = leases.read("default", name)
        leases.write(
            Credential(
                machine=name, cluster="default", node=name, assurance="tpm", boot=boot_id(name, number),
                holder=hashlib.sha256(spki(key)).hexdigest(), ek_sha256=self.ek(name), generation=generation,
                holder_spki=base64.b64encode(spki(key)).decode(), token_id=token.id, token_expires_ms=at_ms + 300_000,
                at_ms=at_ms, version=before.version if before else "",
            )
        )  # fmt: skip
        KubeTokens(self._issuer).create(secret_manifest(token, name, spki(key), now))
        return token

    def bearer(self, token: BootstrapToken) -> requests.Session:
        """The apiserver as the holder of a token sees it."""
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self.cluster.folder / "ca.crt")
        session.headers["Authorization"] = f"Bearer {token.reveal()}"
        self._sessions.append(session)
        return session

    def ask(self, token: BootstrapToken, csr: Csr, name: str) -> str:
        """Ask with a token; the name of the request. The authenticator learns of a new token by watching."""
        session = self.bearer(token)

        def posted() -> list[requests.Response]:
            found = session.post(self.cluster.url + CSRS, json=csr_object(csr, name), timeout=60)
            return [] if found.status_code == 401 else [found]

        answer = wait_for(posted)[0]
        assert answer.status_code == 201, answer.text
        return name

    def joined(self, name: str, key: Key = KEY, **boot: int) -> requests.Session:
        """The apiserver as the node sees it, with the first certificate of a boot."""
        request = self.ask(self.issue(name, key, **boot), client(name, key=key), f"join-{time.monotonic_ns()}")
        return self.holder(self.certificate(request), key)

    def holder(self, certificate: bytes, key: Key = KEY) -> requests.Session:
        """The apiserver as the holder of a certificate sees it."""
        path = self.folder / f"node-{time.monotonic_ns()}.pem"
        path.write_bytes(certificate + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        session = requests.Session()
        session.trust_env, session.verify, session.cert = False, str(self.cluster.folder / "ca.crt"), str(path)
        self._sessions.append(session)
        return session

    def ask_by(self, session: requests.Session, csr: Csr) -> str:
        """Ask with a certificate; the name of the request."""
        name = f"by-{time.monotonic_ns()}"
        answer = session.post(self.cluster.url + CSRS, json=csr_object(csr, name), timeout=60)
        assert answer.status_code == 201, answer.text
        return name

    def ask_as(self, user: str, group: str, csr: Csr, name: str) -> str:
        """Ask as somebody who has authenticated otherwise."""
        answer = self.admin("POST", CSRS, csr_object(csr, name), user=user, group=group)
        assert answer.status_code == 201, answer.text
        return name

    def ask_as_node(self, csr: Csr, name: str) -> str:
        return self.ask_as(csr.username, "system:nodes", csr, name)

    def conditions(self, name: str) -> list[tuple[str, str, str]]:
        status = self.admin("GET", f"{CSRS}/{name}").json()["status"]
        return [(one["type"], one["reason"], one["message"]) for one in status.get("conditions", ())]

    def decision(self, name: str) -> tuple[str, str, str]:
        """What was decided about a request."""
        return wait_for(lambda: self.conditions(name), SECONDS)[0]

    def certificate(self, name: str) -> bytes:
        def issued() -> str:
            return str(self.admin("GET", f"{CSRS}/{name}").json()["status"].get("certificate") or "")

        return base64.b64decode(wait_for(issued, SECONDS))

    def has_token(self, token: BootstrapToken) -> bool:
        return self.admin("GET", f"{SECRETS}/bootstrap-token-{token.id}").status_code == 200

    def approved_phases(self) -> list[str]:
        """Bodies of what the approver has written down."""
        return [row.body for row in read_after(self.config.data / "journal" / "approver-default.db", 0)]

    def status(self) -> ApproverStatus:
        status = StatusFolder(self.config.data / "status").read("approver-default", ApproverStatus)
        return status or ApproverStatus(
            at_ms=0, ok=False, message="", decided=(), unavailable=0, waiting=0, oldest_seconds=0.0
        )

    def close(self) -> None:
        for path in (CSRS, LEASES, RECORDS):
            self.admin("DELETE", path)
        self.admin.close()
        self._issuer.close()
        for session in self._sessions:
            session.close()

    @contextlib.contextmanager
    def approver(self, *options: str) -> Iterator["subprocess.Popen[bytes]"]:
        """An approver as a process of its own, ready; ended with the block."""
        config, ready = self.folder / "config.json", self.folder / f"ready-{time.monotonic_ns()}"
        config.write_text(self.config.model_dump_json())
        argv = [sys.executable, "-m", "tests.approver_process", str(config), str(ready), *options]
        with (self.folder / "approver.log").open("ab") as log:
            process = subprocess.Popen(argv, env=environment(), stderr=log)
        try:
            wait_for(lambda: (ready.exists() and ready.stat().st_size) or process.poll() is not None)
            assert ready.exists(), (self.folder / "approver.log").read_text()
            yield process
        finally:
            process.terminate()
            process.wait(SECONDS)

    @property
    def log(self) -> str:
        return (self.folder / "approver.log").read_text()
