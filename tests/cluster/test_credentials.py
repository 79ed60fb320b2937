"""What `tokens` makes and refuses, against a real kube-apiserver and controller-manager."""

import base64
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lab.errors import DeadlineError
from lab.kube.cluster import Cluster
from tokens.bootstrap import BootstrapToken, mint, secret_manifest
from tokens.csr import CLIENT_SIGNER, Request, check_client
from tokens.errors import CsrError

pytestmark = pytest.mark.cluster
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "netboot-bootstrappers"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:node-bootstrapper"},
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers:netboot"},
    ],
}


class Api:
    """The API server as one of its users sees it."""

    def __init__(self, cluster: Cluster, token: BootstrapToken | None = None) -> None:
        self._url, self._session = cluster.url, requests.Session()
        self._session.trust_env = False  # a CA bundle of the environment would win over ours
        self._session.verify = str(cluster.folder / "ca.crt")
        if token:
            self._session.headers["Authorization"] = f"Bearer {token.reveal()}"
        else:
            self._session.cert = (str(cluster.folder / "admin.crt"), str(cluster.folder / "admin.key"))

    def __call__(self, method: str, path: str, body: Any = None) -> requests.Response:
        return self._session.request(method, self._url + path, json=body, timeout=60)

    def close(self) -> None:
        self._session.close()


@pytest.fixture(scope="module")
def admin(control_plane: Cluster) -> Iterator[Api]:
    api = Api(control_plane)
    assert api("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", BINDING).status_code in (201, 409)
    yield api
    api.close()


@pytest.fixture
def joining(control_plane: Cluster, admin: Api) -> Iterator[Callable[[str, Any], Api]]:
    """Issue a token for a node and a key, and give the API as its holder sees it."""
    opened: list[Api] = []

    def issue(node: str, key: ec.EllipticCurvePrivateKey) -> Api:
        token = mint()
        manifest = secret_manifest(token, node, spki(key), datetime.now(UTC))
        assert admin("POST", "/api/v1/namespaces/kube-system/secrets", manifest).status_code == 201
        api = Api(control_plane, token)
        opened.append(api)
        # The authenticator learns of a new token by watching, and the authorizer of the binding above: a first 401 or
        # 403 is expected.
        until(lambda: api("GET", CSRS).status_code == 200)
        return api

    yield issue
    for api in opened:
        api.close()


def until(condition: Callable[[], Any]) -> Any:
    deadline, pause = monotonic() + 180, threading.Event()
    while not (value := condition()):
        if monotonic() >= deadline:
            raise DeadlineError("did not happen within 180 s")
        pause.wait(0.05)
    return value


def spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def submit(api: Api, node: str, key: ec.EllipticCurvePrivateKey) -> str:
    """Ask for a client certificate; the CSR object's name."""
    subject = [(NameOID.ORGANIZATION_NAME, "system:nodes"), (NameOID.COMMON_NAME, f"system:node:{node}")]
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject])
    csr = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    spec = {
        "request": base64.b64encode(csr.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": CLIENT_SIGNER,
        "usages": ["digital signature", "client auth"],
        "expirationSeconds": 3600,
    }
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    created = api("POST", CSRS, {**kind, "metadata": {"generateName": "node-csr-"}, "spec": spec})
    assert created.status_code == 201, created.text
    return str(created.json()["metadata"]["name"])


def recorded(admin: Api, name: str) -> tuple[dict[str, Any], Request]:
    body = admin("GET", f"{CSRS}/{name}").json()
    spec = body["spec"]
    request = Request(
        signer=spec["signerName"],
        username=spec["username"],
        groups=frozenset(spec["groups"]),
        usages=tuple(spec["usages"]),
        expiration_seconds=spec.get("expirationSeconds"),
        pem=base64.b64decode(spec["request"]),
    )
    return body, request


def test_the_holder_of_the_key_becomes_the_node(admin: Api, joining: Callable[[str, Any], Api]) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = submit(joining("n1", key), "n1", key)
    body, request = recorded(admin, name)
    assert check_client(request, allowed=True, because="") == "n1"

    condition = {"type": "Approved", "status": "True", "reason": "Attested", "message": "test"}
    body["status"] = {"conditions": [condition]}
    assert admin("PUT", f"{CSRS}/{name}/approval", body).status_code == 200
    issued = until(lambda: admin("GET", f"{CSRS}/{name}").json()["status"].get("certificate"))
    certificate = x509.load_pem_x509_certificate(base64.b64decode(issued))
    assert certificate.subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes"
    assert certificate.public_key() == key.public_key()


def test_a_token_used_with_another_key_or_for_another_node_is_denied(
    admin: Api, joining: Callable[[str, Any], Api]
) -> None:
    key, thief = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    api = joining("n1", key)
    for node, used in (("n1", thief), ("n2", key)):
        _, request = recorded(admin, submit(api, node, used))
        with pytest.raises(CsrError) as caught:
            check_client(request, allowed=True, because="")
        assert str(caught.value) == f"the token was not issued for node {node} with this key"


def test_a_joining_machine_may_ask_for_a_certificate_and_nothing_else(joining: Callable[[str, Any], Api]) -> None:
    api = joining("n1", ec.generate_private_key(ec.SECP256R1()))
    for path in ("/api/v1/nodes", "/api/v1/namespaces/kube-system/secrets", "/api/v1/pods"):
        assert api("GET", path).status_code == 403


def test_the_audit_log_holds_no_token(control_plane: Cluster, admin: Api) -> None:
    token = mint()
    manifest = secret_manifest(token, "n9", b"spki", datetime.now(UTC))
    assert admin("POST", "/api/v1/namespaces/kube-system/secrets", manifest).status_code == 201
    audit = until(lambda: f"bootstrap-token-{token.id}" in (text := read(control_plane)) and text)
    assert token.secret not in audit
    assert base64.b64encode(token.secret.encode()).decode() not in audit


def read(cluster: Cluster) -> str:
    return (cluster.folder / "audit.log").read_text()
