"""The approver as a process, with its own account, against a real control plane: whom it lets in."""

import base64
import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from lab.kube.cluster import Cluster
from netboot.join.enrolment import Act, Retire
from netboot.join.ports import Csr
from tests.cluster.joining import Site
from tests.kubelets import THIEF, client, pem, renewal, serving
from tests.processes import wait_for
from tests.records import boot_id
from tokens.csr import CLIENT_SIGNER

ASKERS = "netboot-test:askers"
"""A group that may ask for certificates, and for which nobody approves."""
RBAC = "rbac.authorization.k8s.io"
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def quiet(
    control_plane: Cluster, accounts: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A site of which no approver runs."""
    made = Site(control_plane, accounts, tmp_path_factory.mktemp("approver"))
    subject = {"kind": "Group", "apiGroup": RBAC, "name": ASKERS}
    role = {"kind": "ClusterRole", "apiGroup": RBAC, "name": "system:node-bootstrapper"}
    binding = {"kind": "ClusterRoleBinding", "apiVersion": f"{RBAC}/v1", "roleRef": role, "subjects": [subject]}
    made.admin.apply({**binding, "metadata": {"name": "netboot-test-askers"}})
    yield made
    made.close()


@pytest.fixture(scope="module")
def running(quiet: Site) -> Iterator["subprocess.Popen[bytes]"]:
    with quiet.approver() as process:
        yield process


@pytest.fixture
def site(quiet: Site, running: "subprocess.Popen[bytes]") -> Site:
    """The same, while one runs."""
    assert running.poll() is None, quiet.log
    return quiet


def test_a_machine_that_has_proven_itself_gets_its_certificate_and_its_token_ends(site: Site) -> None:
    token = site.issue("n-01")
    name = site.ask(token, client("n-01"), "good")
    boot = boot_id("n-01", 1)
    assert site.decision(name) == ("Approved", "NetbootAttested", f"machine n-01, proven by tpm in boot {boot}")
    certificate = x509.load_pem_x509_certificate(site.certificate(name))
    assert certificate.subject.rfc4514_string() == "CN=system:node:n-01,O=system:nodes"
    wait_for(lambda: not site.has_token(token))
    sha256 = hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()

    def told() -> list[str]:
        return [body for body in site.approved_phases() if boot in body]

    wait_for(lambda: len(told()) == 2)
    approved, signed = told()
    assert '"phase":"CSRApproved"' in approved
    assert '"kind":"certificate"' in signed and f'"sha256":"{sha256}"' in signed
    wait_for(lambda: ("approved", "client", 1) in site.status().decided)
    wait_for(lambda: site.status().ok)
    assert token.secret not in site.log


SUBJECT = "the subject must be exactly O=system:nodes and CN=system:node:<name>"
USAGES = "the usages must be digital signature and client auth, and at most key encipherment beside"


@pytest.mark.parametrize(
    ("csr", "reason", "words"),
    [
        pytest.param(
            client("n-02", key=THIEF),
            "NetbootNotBound",
            "the token was not issued for node n-02 with this key",
            id="a stolen token with another key",
        ),
        pytest.param(
            client("n-03"),
            "NetbootNotBound",
            "the token was not issued for node n-03 with this key",
            id="a token for one machine and a request for another",
        ),
        pytest.param(
            client("n-02", pem=pem("n-02", sans=["n-02"])),
            "NetbootMalformed",
            "a node's client certificate has no alternative names and no other extensions",
            id="alternative names",
        ),
        pytest.param(
            client("n-02", pem=pem("n-02", organisations=["system:nodes", "system:masters"])),
            "NetbootMalformed",
            SUBJECT,
            id="extra organisations",
        ),
        pytest.param(
            client("n-02", pem=client("n-02").pem + pem("n-03")),
            "NetbootMalformed",
            "must be exactly one PEM block of a certificate request",
            id="two PEM blocks",
        ),
        pytest.param(
            client("n-02", usages=("digital signature", "client auth", "server auth")),
            "NetbootMalformed",
            USAGES,
            id="wrong usages",
        ),
        pytest.param(
            client("n-02", expiration_seconds=31_536_000),
            "NetbootMalformed",
            "expirationSeconds must be between 600 and 86400, it is 31536000",
            id="a year",
        ),
    ],
)
def test_denied(site: Site, request: pytest.FixtureRequest, csr: Csr, reason: str, words: str) -> None:
    token = site.issue("n-02")
    name = site.ask(token, csr, request.node.callspec.id.replace(" ", "-").lower())
    kind, said, message = site.decision(name)
    assert (kind, said) == ("Denied", reason)
    assert message == words
    assert site.has_token(token)  # its owner may still use it: a thief must not be able to end it
    wait_for(lambda: f'msg="denied: {words}' in site.log.replace('\\"', '"'))


def test_a_token_replayed_after_use(site: Site) -> None:
    """The apiserver goes on believing a deleted token for ten seconds; the binding holds meanwhile."""
    token = site.issue("n-04")
    site.certificate(site.ask(token, client("n-04"), "used"))
    wait_for(lambda: not site.has_token(token))
    stolen = site.bearer(token)
    for number in range(1000):  # whoever has it may try as often as it is believed
        name = f"replay-{number}"
        body = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {
                "request": base64.b64encode(pem("n-04", THIEF)).decode(),
                "signerName": CLIENT_SIGNER,
                "usages": ["digital signature", "client auth"],
                "expirationSeconds": 3600,
            },
        }
        answer = stolen.post(f"{site.cluster.url}/apis/certificates.k8s.io/v1/certificatesigningrequests", json=body)
        if answer.status_code == 401:
            return
        assert answer.status_code == 201, answer.text
        assert site.decision(name)[:2] == ("Denied", "NetbootNotBound")
    raise AssertionError("the token is believed for ever")


def test_a_renewal_of_a_machine_in_service(site: Site) -> None:
    node = site.joined("n-05")
    site.certificate(site.ask_by(node, serving("n-05", sans=["n-05"])))
    name = site.ask_by(node, renewal("n-05"))
    assert site.decision(name)[:2] == ("Approved", "NetbootInService")
    site.certificate(name)


def test_a_retired_machine_s_renewal_is_denied(site: Site) -> None:
    site.issue("n-06")
    site.enrolments.apply([("n-06", Retire())], Act("operator", "sold"), 2)
    words = "machine n-06 is retired; `netboot machine approve n-06` brings it back"
    name = site.ask_as_node(renewal("n-06"), "renewal-n-06")
    assert site.decision(name) == ("Denied", "NetbootNotAllowed", f"node n-06 may not renew: {words}")
    name = site.ask_as_node(serving("n-06", sans=["n-06"]), "serving-n-06")
    words = f"node n-06 may not have a serving certificate: {words}"
    assert site.decision(name) == ("Denied", "NetbootNotAllowed", words)


def test_a_renewal_in_another_s_name_is_denied(site: Site) -> None:
    """Where NodeRestriction does not see to it already: a user of a node's name outside `system:nodes`."""
    site.issue("n-07")
    name = site.ask_as("system:node:n-08", ASKERS, renewal("n-07"), "renewal-by-n-08")
    words = "asked for by system:node:n-08, only system:node:n-07 may"
    assert site.decision(name) == ("Denied", "NetbootMalformed", words)


def test_a_serving_certificate_for_the_machine_s_own_names(site: Site) -> None:
    name = site.ask_by(site.joined("n-09"), serving("n-09", sans=["n-09", "192.0.2.7"]))
    assert site.decision(name)[:2] == ("Approved", "NetbootOwnNames")
    extensions = x509.load_pem_x509_certificate(site.certificate(name)).extensions
    names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["n-09"]


@pytest.mark.parametrize(
    ("sans", "words"),
    [
        (["n-10", "192.0.2.8"], "the address 192.0.2.8 is not this machine's"),
        (["n-09"], "the name n-09 is not this machine's"),
        (["*.n-10"], "the name *.n-10 may not be served by a node"),
        (["kubernetes.default.svc"], "the name kubernetes.default.svc may not be served by a node"),
    ],
    ids=["address", "name", "wildcard", "kubernetes"],
)
def test_a_serving_certificate_for_other_names(
    site: Site, request: pytest.FixtureRequest, sans: list[str], words: str
) -> None:
    site.issue("n-10")
    name = site.ask_as_node(serving("n-10", sans=sans), f"serving-{request.node.callspec.id}")
    given = "; the inventory gives machine n-10 the name n-10 and 192.0.2.7: declare what is right in its "
    assert site.decision(name) == ("Denied", "NetbootForeignName", f"{words}{given}`node.addresses`")


def test_what_whoever_holds_a_token_may(site: Site) -> None:
    """What 30-bootstrappers.yaml says: ask, and read all requests; nothing else."""
    session = site.bearer(site.issue("n-12"))
    wait_for(lambda: session.get(f"{site.cluster.url}/api", timeout=60).status_code == 200)
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "x"}}
    url = f"{site.cluster.url}/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    rules = session.post(url, json=review, timeout=60).json()["status"]["resourceRules"]
    may = {
        (verb, resource)
        for rule in rules
        for verb in rule["verbs"]
        for resource in rule["resources"]
        if not resource.startswith("selfsubject")
    }
    assert may == {(verb, "certificatesigningrequests") for verb in ("create", "get", "list", "watch")}
    words = (Path(__file__).parents[2] / "deploy/kubernetes/30-bootstrappers.yaml").read_text(encoding="ascii")
    assert "may ask for certificates and read all requests for them, other machines' too" in words


def test_requests_of_others_are_left_alone(site: Site) -> None:
    own = client("n-11", signer="kubernetes.io/kube-apiserver-client", pem=pem("n-11"))
    others = [
        site.ask_as("system:bootstrap:zzzzzz", ASKERS, client("foreign"), "other-token"),
        site.ask_as_node(renewal("control-1"), "other-node"),
        site.ask_as_node(serving("control-1", sans=["control-1"]), "other-serving"),
        site.ask_as("alice", ASKERS, own, "other-signer"),
        site.ask_as("alice", ASKERS, client("n-11"), "other-user"),
    ]
    last = site.ask(site.issue("n-11"), client("n-11"), "after-the-others")
    assert site.decision(last)[0] == "Approved"
    assert [site.conditions(name) for name in others] == [[]] * 5
