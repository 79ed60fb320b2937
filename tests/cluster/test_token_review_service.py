"""A whole service, behind its walls, to which tokens of a real cluster come: what each opens, and what it is told."""

import base64
import json
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import requests
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.config import load_config
from netboot.stores import access_tokens
from tests.cluster.reviewing import ACCOUNTS, review_kubeconfig, token
from tests.processes import stopped, wait_for
from tests.sites import TOKEN, make_site
from tests.sockets.service import Service, serving

pytestmark = pytest.mark.cluster
ROLES = {"user:system:serviceaccount:default:screen": "viewer", "user:system:serviceaccount:default:bot": "operator"}
NOBODY = "k8s:system:serviceaccount:default:nobody"
SECONDS = 16
"""After which what a cluster takes back opens nothing any more: fifteen (docs/operations.md), and a question; one more
for what the API server itself hears late."""


class Said(NamedTuple):
    """What is answered to a token."""

    status: int
    code: str
    detail: str


@pytest.fixture(scope="module")
def service(control_plane: Cluster, as_admin: Admin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    root = tmp_path_factory.mktemp("reviewed")
    make_site(root, workers=1)
    review_kubeconfig(control_plane, as_admin, root / "secrets", "whole", ("screen", "bot", "nobody", "leaver"))
    said = {"kubeconfig": "secrets/review.kubeconfig", "audiences": ["netboot"], "roles": ROLES}
    said["roles"] = {**ROLES, "user:system:serviceaccount:default:leaver": "viewer"}
    file = root / "netboot.yaml"
    file.write_text(f"{file.read_text()}  token_review: {json.dumps(said)}\n")
    access_tokens.change(root / "secrets" / "access.json", lambda there: there)
    with serving(load_config(file), file) as running:
        yield running


def asked(service: Service, sent: str, path: str = "/v1/whoami", **body: Any) -> requests.Response:
    headers, method = {"Authorization": f"Bearer {sent}"}, "POST" if body else "GET"
    return requests.request(method, service.management + path, headers=headers, json=body or None, timeout=60)


def said(service: Service, sent: str) -> Said:
    answer = asked(service, sent)
    problem = answer.json()
    return Said(answer.status_code, problem.get("code", ""), problem.get("detail", ""))


def coded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def ending(control_plane: Cluster, sent: str, seconds: int) -> str:
    """The same token, signed by the cluster's own key, that ends in so many seconds: the API gives no ended one."""
    header, body, _ = sent.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    now = int(time.time())
    claims.update(exp=now + seconds, iat=now - 7200, nbf=now - 7200)
    text = f"{header}.{coded(json.dumps(claims).encode())}"
    key = serialization.load_pem_private_key((control_plane.folder / "service-accounts.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    r, s = decode_dss_signature(key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{text}.{coded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def test_an_account_acts_as_its_role_and_nobody_else_does(
    service: Service, control_plane: Cluster, as_admin: Admin
) -> None:
    screen, bot = token(as_admin, "screen", ["netboot"]), token(as_admin, "bot", ["netboot"])
    assert {key: asked(service, screen).json()[key] for key in ("name", "role", "issuer")} == {
        "name": "k8s:system:serviceaccount:default:screen",
        "role": "viewer",
        "issuer": "kubernetes",
    }
    hold = "/v1/machines/gpu-001/hold"
    assert asked(service, screen, hold, reason="a look").status_code == 403
    assert asked(service, bot, hold, reason="DIMM 4").status_code == 200
    of_it = [(each["act"], each["who"], each["role"], each["result"]) for each in service.api("/v1/audit")["audit"]]
    assert of_it == [
        ("hold", "k8s:system:serviceaccount:default:bot", "operator", "done"),
        (
            "POST /v1/machines/<name>/hold",
            "k8s:system:serviceaccount:default:screen",
            "viewer",
            "not-allowed",
        ),
    ]
    nobody = said(service, token(as_admin, "nobody", ["netboot"]))
    assert nobody == (
        403,
        "no-role",
        f"{NOBODY} has no role here: management.token_review.roles names nobody of theirs",
    )
    assert said(service, ending(control_plane, bot, 600)).status == 200
    for other in (
        token(as_admin, "bot", ["elsewhere"]),
        token(as_admin, "bot", []),
        ending(control_plane, bot, -3600),
        f"{bot.rpartition('.')[0]}.{coded(b'of nobody')}",
    ):
        assert said(service, other)[:2] == (401, "bad-token")
    assert screen not in service.log
    assert bot not in service.log


def test_what_a_cluster_takes_back_opens_nothing_any_more(service: Service, as_admin: Admin) -> None:
    leaver = token(as_admin, "leaver", ["netboot"])
    assert said(service, leaver).status == 200
    assert as_admin("DELETE", f"{ACCOUNTS}/leaver").status_code == 200
    taken, longest = time.monotonic(), 0.0
    opened = [taken]

    def refused() -> bool:
        nonlocal longest
        asked_at = time.monotonic()
        answer = said(service, leaver)
        longest = max(longest, time.monotonic() - asked_at)
        if answer.status == 200:
            opened.append(asked_at)
        return answer[:2] == (401, "bad-token")

    wait_for(refused, pause=0.5)
    assert opened[-1] - taken < SECONDS + longest


def test_while_the_api_server_does_not_answer_nobody_is_called_a_stranger(
    service: Service, control_plane: Cluster, as_admin: Admin
) -> None:
    new = token(as_admin, "bot", ["netboot"])
    with stopped(control_plane.processes["kube-apiserver"].pid):
        away = asked(service, new)
        assert (away.status_code, away.json()["code"], away.headers["Retry-After"]) == (503, "issuer-unavailable", "5")
        assert away.json()["detail"].startswith("the API server cannot say whose token it is: the apiserver 127.0.0.1")
        assert asked(service, TOKEN).status_code == 200, "a token of the site asks nobody"
    wait_for(lambda: said(service, new).status == 200, pause=0.2)
