"""The node's agent against a real apiserver and controller-manager: from a token to a kubeconfig that works."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import requests
import yaml

from images.node.agent.request import PATH, SIGNER
from lab.errors import DeadlineError
from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from tests.agent_tpm import soft
from tests.agents import Site, Told, machine, serving
from tokens.bootstrap import BootstrapToken, secret_manifest

pytestmark = pytest.mark.cluster
SECRETS = "/api/v1/namespaces/kube-system/secrets"


@pytest.fixture
def site(control_plane: Cluster, accounts: dict[str, Path], as_admin: Admin) -> Iterator[Site]:
    """A join service whose tokens are the cluster's."""
    one = Site(node_name="agent-1", apiservers=[control_plane.url])
    one.authorities = (control_plane.folder / "ca.crt").read_text()

    def issue(token: BootstrapToken, spki: bytes) -> None:
        made = as_admin("POST", SECRETS, secret_manifest(token, one.node_name, spki, datetime.now(UTC)))
        assert made.status_code == 201, made.text

    one.on_token = issue
    with serving(one):
        yield one
    for csr in as_admin("GET", PATH).json()["items"]:
        if csr["metadata"]["name"].startswith("netboot-"):
            as_admin("DELETE", f"{PATH}/{csr['metadata']['name']}")


def until(condition: Callable[[], Any], seconds: float = 180) -> Any:
    deadline, pause = monotonic() + seconds, threading.Event()
    while not (value := condition()):
        if monotonic() >= deadline:
            raise DeadlineError(f"did not happen within {seconds} s")
        pause.wait(0.1)
    return value


@contextmanager
def approver(cluster: Cluster, *work: Callable[[Admin, dict[str, Any]], None]) -> Iterator[None]:
    """Do `work` on the agent's requests in the order in which they come; those of tests before are none of them."""
    failed: list[BaseException] = []
    admin = Admin(cluster)

    def requests_of_agents() -> list[dict[str, Any]]:
        items = admin("GET", PATH).json()["items"]
        return [one for one in items if one["metadata"]["name"].startswith("netboot-")]

    seen = {one["metadata"]["name"] for one in requests_of_agents()}

    def run() -> None:
        def unseen() -> Any:
            return next((one for one in requests_of_agents() if one["metadata"]["name"] not in seen), None)

        try:
            for one in work:
                csr = until(unseen)
                seen.add(csr["metadata"]["name"])
                one(admin, csr)
        except BaseException as error:  # noqa: BLE001 - told to the test below
            failed.append(error)
        finally:
            admin.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        assert not failed, failed


def decide(admin: Admin, csr: dict[str, Any], kind: str, reason: str, message: str) -> None:
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    csr["status"] = {"conditions": [condition]}
    assert admin("PUT", f"{PATH}/{csr['metadata']['name']}/approval", csr).status_code == 200


def approve(admin: Admin, csr: dict[str, Any]) -> None:
    assert csr["spec"]["signerName"] == SIGNER
    assert csr["spec"]["expirationSeconds"] == 86_400
    decide(admin, csr, "Approved", "Attested", "by the test")


def as_the_node(root: Path) -> tuple[str, requests.Session]:
    """What the kubelet would do with the files that the agent left."""
    config = yaml.safe_load((root / "etc/kubernetes/kubelet.kubeconfig").read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    session = requests.Session()
    session.trust_env = False
    session.verify = str(root / cluster["certificate-authority"].lstrip("/"))
    session.cert = (str(root / user["client-certificate"].lstrip("/")), str(root / user["client-key"].lstrip("/")))
    return cluster["server"], session


def join(root: Path, site: Site) -> Told:
    """Run the agent, with real pauses: the apiserver has to learn of each token."""

    class Waiting(Told):
        def pause(self, seconds: float) -> None:
            super().pause(seconds)
            threading.Event().wait(min(seconds, 0.5))

    told = Waiting()
    told.agent(machine(root, site), open_tpm=soft).run()
    return told


def test_a_machine_ends_with_a_kubeconfig_that_works_as_its_node(
    control_plane: Cluster, site: Site, tmp_path: Path
) -> None:
    with approver(control_plane, approve):
        told = join(tmp_path, site)
    assert told.lines[-1] == "joined as agent-1; the kubelet may start"
    server, session = as_the_node(tmp_path)
    with session:
        own, other = (session.get(f"{server}/api/v1/nodes/{name}", timeout=60) for name in ("agent-1", "agent-2"))
    assert (own.status_code, other.status_code) == (404, 403), "its own node, which is not there yet, and no other"
    assert len(site.issued) == 1


def test_a_certificate_that_comes_when_the_token_is_long_gone(
    control_plane: Cluster, site: Site, tmp_path: Path
) -> None:
    """The approver deletes the token, and a busy signer takes longer than the ten seconds for which it still counts."""

    def late(admin: Admin, csr: dict[str, Any]) -> None:
        token = site.issued[0]
        assert admin("DELETE", f"{SECRETS}/bootstrap-token-{token.id}").status_code == 200
        header = {"Authorization": f"Bearer {token.reveal()}"}
        ca = str(control_plane.folder / "ca.crt")
        with requests.Session() as stranger:
            stranger.trust_env, stranger.verify = False, ca
            until(lambda: stranger.get(f"{control_plane.url}/api", headers=header, timeout=60).status_code == 401)
        approve(admin, csr)

    with approver(control_plane, late):
        told = join(tmp_path, site)
    assert told.lines[-1] == "joined as agent-1; the kubelet may start"
    assert len(site.issued) == 1, "no second token for that"


def test_a_denied_request_is_said_and_begun_again(control_plane: Cluster, site: Site, tmp_path: Path) -> None:
    def deny(admin: Admin, csr: dict[str, Any]) -> None:
        decide(admin, csr, "Denied", "NotAllowed", "agent-1 is retired")

    with approver(control_plane, deny, approve):
        told = join(tmp_path, site)
    denied = [line for line in told.lines if "denied" in line]
    assert len(denied) == 1
    assert denied[0].startswith("the certificate request was denied (NotAllowed: agent-1 is retired); trying again in ")
    assert told.lines[-1] == "joined as agent-1; the kubelet may start"
    assert len(site.issued) == 2
