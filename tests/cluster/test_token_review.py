"""Whose a token is by the word of a real API server, asked by an account that may do nothing else."""

import json
from pathlib import Path

import pytest

from lab.kube.accounts import Admin
from lab.kube.cluster import Cluster
from netboot.config_access import TokenReview
from netboot.kube.token_reviews import KNOWN_SECONDS, Reviews
from netboot.lifecycle.errors import BadTokenError, IssuerUnavailableError, LifecycleError, NoRoleError
from netboot.lifecycle.roles import Person, Role
from tests.cluster.reviewing import RIGHTS, review_kubeconfig, token
from tests.processes import wait_for

pytestmark = pytest.mark.cluster
NAME = "system:serviceaccount:default:dashboard"
REFUSED = "the API server does not take the token: it is by another, has expired or was revoked"


@pytest.fixture(scope="module")
def kubeconfig(control_plane: Cluster, as_admin: Admin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return review_kubeconfig(control_plane, as_admin, tmp_path_factory.mktemp("review"), "parts", ("dashboard",))


def place(kubeconfig: Path, **roles: str) -> TokenReview:
    said = roles or {f"user:{NAME}": "viewer", "group:system:serviceaccounts:default": "operator"}
    return TokenReview.model_validate({"kubeconfig": kubeconfig, "audiences": ["netboot"], "roles": said})


def refused(reviews: Reviews, sent: str) -> tuple[type[LifecycleError], str]:
    with pytest.raises(LifecycleError) as said:
        reviews.person(sent)
    return type(said.value), str(said.value)


def test_a_cluster_says_who_one_is(kubeconfig: Path, as_admin: Admin) -> None:
    reviews = Reviews(place(kubeconfig))
    ours, for_all = token(as_admin, "dashboard", ["netboot"]), token(as_admin, "dashboard", [])
    assert reviews.person(ours) == Person(f"k8s:{NAME}", Role.OPERATOR, "kubernetes", None)
    assert refused(reviews, for_all)[0] is BadTokenError, "it is for the API server alone"
    header, body, signature = ours.split(".")
    assert refused(reviews, f"{header}.{body}.{signature[::-1]}") == (BadTokenError, REFUSED)
    for other in ("netboot_0123456789abcdef", "abcdef.0123456789abcdef", "", "a.b.c d"):
        assert reviews.person(other) is None, "nobody is asked about it"
    nobody = Reviews(place(kubeconfig, **{"user:someone": "admin"}))
    words = f"k8s:{NAME} has no role here: management.token_review.roles names nobody of theirs"
    assert refused(nobody, ours) == (NoRoleError, words)


def test_where_the_cluster_cannot_be_asked_nobody_can_tell(kubeconfig: Path, tmp_path: Path, as_admin: Admin) -> None:
    ours = token(as_admin, "review-parts", ["netboot"])
    kind, words = refused(Reviews(place(tmp_path / "none")), ours)
    assert (kind, words.startswith("the API server cannot say whose token it is: ")) == (IssuerUnavailableError, True)
    document = json.loads(kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    (tmp_path / "token").write_text((kubeconfig.parent / "token").read_text())
    (tmp_path / "away").write_text(json.dumps(document))
    assert refused(Reviews(place(tmp_path / "away")), ours)[0] is IssuerUnavailableError
    now = [0.0]
    reviews = Reviews(place(kubeconfig), lambda: now[0])
    assert reviews.person(ours) is not None
    assert as_admin("DELETE", f"{RIGHTS}/clusterrolebindings/review-parts").status_code == 200

    def without() -> bool:
        try:
            Reviews(place(kubeconfig)).person(ours)
        except IssuerUnavailableError as error:
            return "lacks a right" in str(error)
        return False

    wait_for(without)
    assert reviews.person(ours) is not None, "an answer counts for five seconds"
    now[0] = KNOWN_SECONDS
    assert refused(reviews, ours)[0] is IssuerUnavailableError
