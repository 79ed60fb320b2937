"""A whole `netboot serve` in front of a real control plane, machines that join it, and whoever means ill.

Nothing of the service is a fake: boot server, join in TLS, approver and node collector run as they ship, each with an
account of its own. Another replica of join is the same code (`tests.sockets.joined`); tests move its clock.
"""

import base64
import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import requests
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from images.node.agent import exchange
from images.node.agent.answers import Admission
from images.store.store import Store
from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.cli.authority import new_authority, new_certificate
from netboot.config import load_config
from netboot.join.ports import Csr
from netboot.stores.live import LiveView
from netboot.stores.sealing import NONCES, new_key, write_keys
from tests import soft_tpm
from tests.agent_tpm import SoftTpm
from tests.agents import Told
from tests.cluster.threats.chassis import Chassis
from tests.kubelets import client, csr_object
from tests.processes import wait_for
from tests.sites import add_image, free_ports, make_site
from tests.sockets.join_site import JoinSite, Said
from tests.sockets.service import Service, serving
from tokens.sealed import Keyset

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
NODES = "/api/v1/nodes"
SETS = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/netboot/leases"
RECORDS = "/api/v1/namespaces/netboot/configmaps?labelSelector=app.kubernetes.io/managed-by=netboot"
PROFILES = {"compute": "stable", "rolled": "rolled", "ring": "ring"}
"""And their channels; machines of the other two are alone in them, for rollouts."""
CLASSES: tuple[dict[str, Any], ...] = (
    {"name": "vetoed", "vetoes": {"namespaces": ["default"], "max_wait": "1h"}},
    {"name": "reporting", "gate": {"on_failure": "report"}},
    {"name": "prompt", "deadlines": {"InitrdStarted": "3s", "Booted": "1s"}},
)
SERVE = "serve"
"""The name of the service's own listener among the replicas."""


class Patient(Told):
    """An agent that waits, though not as long as it says."""

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        assert len(self.pauses) < 1_000, self.lines[-5:]
        threading.Event().wait(min(seconds, 0.3))


@dataclass
class LiveSite:
    """`machines`: machines by name. `net`: the listeners of join, the service's own (`SERVE`) and other replicas'."""

    service: Service
    net: JoinSite
    cluster: Cluster
    admin: Admin
    break_glass: Admin
    """The same, of the group that may touch what is netboot's on a Node."""
    machines: dict[str, Chassis]
    secrets: set[str] = field(default_factory=set)
    """Every token that was handed out."""
    _opened: list[requests.Session] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _taken: set[str] = field(default_factory=set)

    def fresh(self, kind: str = "k") -> Chassis:
        """A machine that no other test has."""
        left = [one for one in self.machines.values() if one.name.startswith(f"{kind}-")]
        chassis = next((one for one in left if one.name not in self._taken), None)
        assert chassis is not None, f"tests took all {len(left)} machines {kind}-…: declare more of them"
        self._taken.add(chassis.name)
        return chassis

    def power_on(self, chassis: Chassis, **more: Any) -> soft_tpm.Machine:
        """A machine boots: it fetches its script, its TPM counts, its agent makes a key."""
        chassis.resets += 1
        return chassis.as_it_is(self.service.boot(chassis.mac), **more)

    def hello(self, machine: soft_tpm.Machine, to: str = SERVE, **how: Any) -> Said:
        return self.net.hello(machine, to, **how)

    def attest(self, machine: soft_tpm.Machine, answer: Any, to: str = SERVE, **changes: Any) -> Said:
        """Post attest; `changes` bend it."""
        said = self.net.ask(to, "POST", "/v1/join/attest", machine.attest(answer, **changes))
        if said.status == 200:
            self.secrets.add(said.body["token"])
        return said

    def prove(self, machine: soft_tpm.Machine) -> Any:
        """The whole exchange; what attest answered."""
        hello = self.hello(machine)
        assert hello.status == 200, hello
        said = self.attest(machine, hello.body)
        assert said.status == 200, said
        return said.body

    def bearer(self, token: str) -> requests.Session:
        """The apiserver as the holder of a token sees it, once it has heard of the token."""
        session = self._session()
        session.headers["Authorization"] = f"Bearer {token}"
        wait_for(lambda: session.get(f"{self.cluster.url}/api", timeout=60).status_code == 200)
        return session

    def as_node(self, certificate: bytes, key: ec.EllipticCurvePrivateKey) -> requests.Session:
        """The apiserver as the holder of a node's certificate sees it."""
        path = self.net.folder / f"node-{next(self._numbers)}.pem"
        path.write_bytes(certificate + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        session = self._session()
        session.cert = str(path)
        return session

    def ask(self, session: requests.Session, csr: Csr) -> str:
        """Ask for a certificate; the name of the request."""
        name, answer = self.asked(session, csr)
        assert answer.status_code == 201, answer.text
        return name

    def asked(self, session: requests.Session, csr: Csr) -> tuple[str, requests.Response]:
        """The same, whatever the apiserver says to it."""
        name = f"bad-{next(self._numbers)}"
        return name, session.post(self.cluster.url + CSRS, json=csr_object(csr, name), timeout=60)

    def decision(self, name: str) -> tuple[str, str, str]:
        """What the approver decided about a request: type, reason, message."""

        def decided() -> Any:
            return self.admin("GET", f"{CSRS}/{name}").json()["status"].get("conditions")

        one = wait_for(decided, 180)[0]
        return one["type"], one["reason"], one["message"]

    def certificate(self, name: str) -> bytes:
        """What was signed."""
        status = functools.partial(self.admin, "GET", f"{CSRS}/{name}")
        assert self.decision(name)[0] == "Approved", self.decision(name)
        return base64.b64decode(wait_for(lambda: status().json()["status"].get("certificate"), 180))

    def join(self, machine: soft_tpm.Machine) -> tuple[Any, requests.Session]:
        """Join to the end: what attest answered, and the apiserver as the node sees it."""
        said = self.prove(machine)
        name = self.ask(self.bearer(said["token"]), client(said["node_name"], key=machine.key))
        return said, self.as_node(self.certificate(name), machine.key)

    def has_token(self, token: str) -> bool:
        return self.admin("GET", f"{SECRETS}/bootstrap-token-{token[:6]}").status_code == 200

    def tokens(self) -> set[str]:
        """Ids of all tokens that there are."""
        names = (one["metadata"]["name"] for one in self.admin("GET", SECRETS).json()["items"])
        return {name.removeprefix("bootstrap-token-") for name in names if name.startswith("bootstrap-token-")}

    def agent(self, root: Path, machine: soft_tpm.Machine, **parts: Any) -> Patient:
        """Run the shipped agent in what the initrd left below `root`; what it said."""
        told = Patient()
        soft = SoftTpm(machine)
        with self._noting_tokens():
            told.agent(self.left_by_initrd(root, machine), open_tpm=lambda _root: _Opened(soft), **parts).run()
        return told

    @contextmanager
    def _noting_tokens(self) -> Iterator[None]:
        """What an agent is given is a secret of this run too."""
        prove = exchange.prove

        def noted(*given: Any) -> Admission:
            admission = prove(*given)
            self.secrets.add(admission.token)
            return admission

        with patch.object(exchange, "prove", noted):
            yield

    def left_by_initrd(self, root: Path, machine: soft_tpm.Machine) -> Path:
        """`/run/netboot` of a machine that has booted."""
        run = root / "run/netboot"
        run.mkdir(parents=True, exist_ok=True)
        env = {"BOOT": machine.boot, "IMAGE": "a" * 64, "REPORT": self.service.provisioning, "MAC": machine.macs[0]}
        (run / "boot.env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
        (run / "site.json").write_bytes(self.service.config.site_bundle(issued=1_700_000_000).to_bytes())
        return root

    def boot_server_knows(self) -> None:
        """Wait until the boot server, of which there is one here, has what is published: others may have it before."""
        published = LiveView(self.service.config.data / "snapshot.json").view().snapshot.published_ms
        url = f"{self.service.provisioning}/readyz"
        wait_for(lambda: requests.get(url, timeout=60).json()["published_ms"] >= published)

    def proven(self, machine: soft_tpm.Machine) -> bool:
        """The whole exchange; False: join has not seen yet that its cluster is fit again: it looks each 3 s."""
        hello = self.hello(machine)
        return hello.status == 200 and self.attest(machine, hello.body).status == 200

    @contextmanager
    def inventory(self) -> Iterator[tuple[Any, Callable[[], None]]]:
        """The inventory as it is, and what puts it in force; as it was before after the block."""
        file = self.service.config.inventory / "site.yaml"
        before = file.read_text()
        declared = yaml.safe_load(before)

        def put(text: str) -> None:  # whole: whoever reads meanwhile would miss machines
            partial = file.with_name(".site.yaml.new")
            partial.write_text(text)
            partial.replace(file)

        try:
            yield declared, lambda: put(yaml.safe_dump(declared))
        finally:
            put(before)

    def restarted(self, process: str, pid: int) -> bool:
        """Another one is ready in the place of the one with this pid, which was killed: for a moment its supervisor
        says still that the killed one is."""
        now = self.service.processes()[process]
        return now["pid"] not in (None, pid) and bool(now["ready"])

    def phases(self, boot: str) -> list[str]:
        """What is known of a boot."""
        return [one["phase"] for one in self.service.api(f"/v1/boots/{boot}").get("reached", ())]

    def replica(self, index: int) -> JoinSite:
        """Another process of join, `join-<index>`: its journal and its clock are its own, all else is the site's."""
        folder, root = self.net.folder.parent / f"replica-{index}", self.net.folder
        (folder / "data").mkdir(parents=True)
        shared = ("snapshot.json", "enrolment.db", "intents.db", "boot-id.key")
        for name in ("netboot.yaml", "tls", "secrets", *(f"data/{file}" for file in shared)):
            (folder / name).symlink_to(root / name)
        other = JoinSite(folder, load_config(folder / "netboot.yaml"), self.net.ports, self.net.processes)
        name = other.start(index, cluster="real")
        wait_for(lambda: other.ready(name), 180)
        return other

    def close(self) -> None:
        """Leave the cluster as it was: other tests look at everything that there is."""
        for path in (CSRS, NODES, LEASES, RECORDS):
            self.admin("DELETE", path)
        for token in self.tokens():
            self.admin("DELETE", f"{SECRETS}/bootstrap-token-{token}")
        self.admin.close()
        self.break_glass.close()
        for session in self._opened:
            session.close()
        for process in self.net.processes.values():
            process.kill()
            process.wait()

    def _session(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self.cluster.folder / "ca.crt")
        self._opened.append(session)
        return session


@dataclass
class _Opened:
    tpm: SoftTpm

    def __enter__(self) -> SoftTpm:
        return self.tpm

    def __exit__(self, *_: object) -> None:
        pass


def failed(said: Said, status: int, code: str) -> str:
    """The words of a refusal, which has a remedy."""
    assert (said.status, said.body["error"]["code"]) == (status, code), said
    assert said.body["error"]["remedy"]
    return said.message


@contextmanager
def live_site(root: Path, cluster: Cluster, accounts: dict[str, Path], *machines: Chassis) -> Iterator[LiveSite]:
    """A service that runs while in the block."""
    port, inventory = free_ports(1)[0], {"machines": [chassis.entry() for chassis in machines]}
    rest: dict[str, Any] = {
        "profiles": [{"name": name, "channel": channel, "pcrs": "none"} for name, channel in PROFILES.items()],
        "channels": [{"name": channel} for channel in PROFILES.values()],
    }
    rest["racks"] = [{"name": "r1", "topology": {"zone": "hall-2", "region": "eu-1", "tiers": ["leaf-7", "spine-1"]}}]
    rest["racks"] += [{"name": "r2"}, {"name": "r3"}]
    rest["classes"] = list(CLASSES)
    make_site(root, workers=1, inventory=yaml.safe_dump(inventory | rest))
    given = {role: str(path) for role, path in accounts.items()}
    default: dict[str, Any] = {"endpoints": [cluster.url], "authority": str(cluster.folder / "ca.crt"), **given}
    default["labels"], default["gate_condition"] = {"region": "example.com/site"}, True
    joining = {"listen": f"127.0.0.1:{port}", "url": f"https://127.0.0.1:{port}", "hellos_per_minute": 100_000}
    with (root / "netboot.yaml").open("a") as file:
        file.write(yaml.safe_dump({"join": joining, "clusters": {"default": default}}))
    (root / "tls").mkdir()
    authority, signer = new_authority("test")
    certificate, own = new_certificate(authority, signer, ["127.0.0.1"])
    for name, data in (("ca.crt", authority), ("join.crt", certificate), ("join.key", own)):
        (root / "tls" / name).write_bytes(data)
        (root / "tls" / name).chmod(0o600)
    write_keys(root / "secrets" / "sealing.keys", Keyset((new_key(),)))
    write_keys(root / "secrets" / "nonce.keys", Keyset((new_key(),)), NONCES)
    config = load_config(root / "netboot.yaml")
    for channel in PROFILES.values():
        Store(config.store).set_channel(channel, add_image(config))
    with serving(config, root / "netboot.yaml") as service:
        net, glass = JoinSite(root, config, ports={SERVE: port}), Admin(cluster, pair="break-glass")
        one = LiveSite(service, net, cluster, Admin(cluster), glass, {chassis.name: chassis for chassis in machines})
        try:
            wait_for(lambda: net.ready(SERVE), 180)
            wait_for(lambda: all(service.outcome(chassis.mac) == "boot" for chassis in machines), 180)
            yield one
        finally:
            one.close()
