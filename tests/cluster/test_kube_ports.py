"""The Kubernetes adapters against a real apiserver, with the accounts and rights of `deploy/kubernetes`."""

import base64
import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.kube.accounts import Admin
from netboot.join.errors import RefusedError
from netboot.join.ports import CertificateRequests, Leases, Nodes, Preconditions, Tokens
from netboot.kube.connection import Connection, connect
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.leases import KubeLeases, lease_name
from netboot.kube.nodes import KubeNodes
from netboot.kube.preconditions import KubePreconditions
from netboot.kube.requests import KubeCertificateRequests
from netboot.kube.secrets import KubeTokens
from tests.kube_contract import CASES, World, credential, manifest
from tokens.bootstrap import mint

pytestmark = pytest.mark.cluster
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/netboot/leases"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
SECRETS = "/api/v1/namespaces/kube-system/secrets"


class RealWorld:
    """A `World` of the adapters; what happens beside them is done by the administrator, by plain HTTP."""

    def __init__(self, connections: dict[str, Connection], admin: Admin) -> None:
        issuer = connections["issuer"]
        self.leases: Leases = KubeLeases(issuer, "netboot")
        self.tokens: Tokens = KubeTokens(issuer)
        self.nodes: Nodes = KubeNodes(issuer)
        self.collector: Nodes = KubeNodes(connections["nodes"])
        self.requests: CertificateRequests = KubeCertificateRequests(connections["approver"])
        self.preconditions: Preconditions = KubePreconditions(issuer, "netboot")
        self._admin = admin
        self._made: list[str] = []

    def make_node(self, name: str, *, ready: bool = False, boot_id: str = "") -> None:
        if self._admin("GET", f"/api/v1/nodes/{name}").status_code == 404:
            self._create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for _ in range(20):  # the controllers write to it, too
            node = self._admin("GET", f"/api/v1/nodes/{name}").json()
            node["status"] |= {"conditions": [condition], "nodeInfo": {"bootID": boot_id}}
            answer = self._admin("PUT", f"/api/v1/nodes/{name}/status", node)
            if answer.status_code == 200:
                return
        raise AssertionError(answer.text)

    def submit(self, name: str, *, ours: bool = True) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{name}")]
        names = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
        csr = x509.CertificateSigningRequestBuilder().subject_name(names).sign(key, hashes.SHA256())
        spec = {
            "request": base64.b64encode(csr.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet" if ours else "example.com/other",
            "usages": ["digital signature", "client auth"],
            "expirationSeconds": 3600,
        }
        kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
        # Not as the administrator, for whom Kubernetes' own approver would approve at once.
        who = {"user": "system:bootstrap:abc123", "group": "system:bootstrappers:netboot"}
        self._create(CSRS, {**kind, "metadata": {"name": name}, "spec": spec}, **who)

    def touch(self, name: str) -> None:
        csr = self._admin("GET", f"{CSRS}/{name}").json()
        csr["metadata"]["annotations"] = {"touched": "yes"}
        assert self._admin("PUT", f"{CSRS}/{name}", csr).status_code == 200

    def token_ids(self) -> set[str]:
        items = self._admin("GET", SECRETS).json()["items"]
        prefix = "bootstrap-token-"
        return {name.removeprefix(prefix) for one in items if (name := one["metadata"]["name"]).startswith(prefix)}

    def bind(self, name: str, role: str, group: str) -> None:
        rbac = "rbac.authorization.k8s.io"
        binding = {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": group}],
        }
        self._create(BINDINGS, binding)
        pause = threading.Event()  # the authorizer learns of it by watching
        for _ in range(200):
            if self.preconditions.may("x", [group], "create", *role.removeprefix("system:").split(":")):
                return
            pause.wait(0.02)

    def unbind(self, name: str) -> None:
        self._admin("DELETE", f"{BINDINGS}/{name}")

    def clean(self) -> None:
        for path in self._made:
            self._admin("DELETE", path)
        self._admin("DELETE", LEASES)

    def _create(self, path: str, body: Any, **who: str) -> None:
        created = self._admin("POST", path, body, **who)
        assert created.status_code == 201, created.text
        self._made.append(f"{path}/{body['metadata']['name']}")


@pytest.fixture(scope="module")
def connections(accounts: dict[str, Path]) -> Iterator[dict[str, Connection]]:
    opened = {role: connect(path) for role, path in accounts.items()}
    yield opened
    for one in opened.values():
        one.close()


@pytest.fixture
def world(connections: dict[str, Connection], as_admin: Admin) -> Iterator[RealWorld]:
    real = RealWorld(connections, as_admin)
    yield real
    real.clean()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_real(case: Callable[[World], None], world: RealWorld) -> None:
    case(world)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("netboot.dev/issued", "many", "netboot.dev/issued is not a number"),
        ("netboot.dev/issued", "-1", "netboot.dev/issued is not a number"),
        ("netboot.dev/rung", "friend", "netboot.dev/rung: Input should be 'tpm', 'nonce' or 'address'"),
        ("netboot.dev/boot", None, "netboot.dev/boot: Field required"),
        ("netboot.dev/machine", "other", "it is of machine other in cluster default"),
    ],
)
def test_a_damaged_lease_is_told_and_believed_by_nobody(
    world: RealWorld, as_admin: Admin, name: str, value: str | None, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    sound = world.leases.write(credential("sound"))
    world.leases.write(credential("damaged"))
    lease = lease_name("default", "damaged")
    found = as_admin("GET", f"{LEASES}/{lease}").json()
    found["metadata"]["annotations"].pop(name)
    if value is not None:
        found["metadata"]["annotations"][name] = value
    assert as_admin("PUT", f"{LEASES}/{lease}", found).status_code == 200
    with pytest.raises(RefusedError) as caught:
        world.leases.read("default", "damaged")
    assert str(caught.value) == (
        f"the Lease netboot/{lease} is damaged ({why}), so it cannot be told who holds this machine's credential: "
        f"look at it, then `kubectl -n netboot delete lease {lease}`"
    )
    assert sound in world.leases.all()


def test_a_lease_is_readable_with_kubectl(world: RealWorld, as_admin: Admin) -> None:
    world.leases.write(credential("gpu-001", reset_count=7))
    lease = as_admin("GET", f"{LEASES}/{lease_name('default', 'gpu-001')}").json()
    assert lease["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "netboot"}
    assert lease["spec"] == {"holderIdentity": credential("gpu-001").holder}
    assert lease["metadata"]["annotations"] == {
        "netboot.dev/at-ms": "1790000000000",
        "netboot.dev/boot": "0192f0c1-2b5a-8abc-9def-0123456789ab",
        "netboot.dev/cluster": "default",
        "netboot.dev/generation": "3",
        "netboot.dev/holder-spki": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+/==",
        "netboot.dev/issued": "2",
        "netboot.dev/machine": "gpu-001",
        "netboot.dev/node": "gpu-001.example",
        "netboot.dev/reset-count": "7",
        "netboot.dev/restart-count": "4294967295",
        "netboot.dev/rung": "tpm",
        "netboot.dev/token-expires-ms": "1790000300000",
        "netboot.dev/token-id": "abc123",
    }


def test_leases_of_others_are_not_ours(world: RealWorld, as_admin: Admin) -> None:
    other = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "leader"}, "spec": {}}
    assert as_admin("POST", LEASES, other).status_code == 201
    assert world.leases.all() == []


def test_environment_proxies_and_bundles_change_nothing(accounts: dict[str, Path], monkeypatch: Any) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, "/etc/hostname")
    with contextlib.closing(connect(accounts["issuer"])) as connection:
        assert KubePreconditions(connection, "netboot").server_version() == "v1.34.4"


def test_a_renewed_kubeconfig_is_picked_up(accounts: dict[str, Path], tmp_path: Path) -> None:
    path, good = tmp_path / "issuer.kubeconfig", accounts["issuer"].read_text()
    path.write_text(good.replace('"token": "', '"token": "x'))
    with contextlib.closing(connect(path)) as connection:
        leases = KubeLeases(connection, "netboot")
        with pytest.raises(ClusterRefusedError) as caught:
            leases.all()
        assert str(caught.value) == (
            f"the apiserver does not accept the account of {path}: it may have expired; "
            "make a new one with `netboot cluster kubeconfigs`"
        )
        path.write_text("kind: [")  # half written: the old one stays in use
        with pytest.raises(ClusterRefusedError):
            leases.all()
        path.write_text(good)
        assert leases.all() == []


def test_a_missing_right_is_named(connections: dict[str, Connection], accounts: dict[str, Path]) -> None:
    with pytest.raises(ClusterRefusedError) as caught:
        KubeTokens(connections["nodes"]).delete("abc123")
    assert str(caught.value) == (
        f'the account of {accounts["nodes"]} lacks a right: secrets "bootstrap-token-abc123" is forbidden: User '
        '"system:serviceaccount:netboot:netboot-nodes" cannot delete resource "secrets" in API group "" in the '
        'namespace "kube-system"; the rights are in deploy/kubernetes: `netboot cluster manifests | kubectl apply -f -`'
    )


def test_no_secret_is_logged_or_shown(world: RealWorld, connections: dict[str, Connection], caplog: Any) -> None:
    token = mint()
    with contextlib.ExitStack() as stack:
        for name in ("", "urllib3", "client", "kubernetes", "netboot"):
            stack.enter_context(caplog.at_level(logging.DEBUG, logger=name))
        world.tokens.create(manifest(token))
        world.tokens.delete(token.id)
    issuer = connections["issuer"]
    bearer = issuer.api.configuration.api_key["authorization"].removeprefix("Bearer ")
    shown = caplog.text + repr(issuer) + repr(vars(issuer)) + repr(issuer.transport)
    assert f"bootstrap-token-{token.id}" in caplog.text
    for secret in (token.secret, base64.b64encode(token.secret.encode()).decode(), bearer):
        assert secret not in caplog.text
    assert token.secret not in shown
