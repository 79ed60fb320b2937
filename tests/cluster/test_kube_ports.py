"""The Kubernetes adapters against a real apiserver, with the accounts and rights of `deploy/kubernetes`."""

import base64
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.kube.accounts import Admin
from netboot.join.certificates import Issued, recorded
from netboot.join.errors import InvalidError, RefusedError
from netboot.join.node_said import GateSaid
from netboot.kube.connection import Connection, connect
from netboot.kube.errors import ClusterRefusedError
from netboot.kube.leases import KubeLeases, lease_name
from netboot.kube.preconditions import KubePreconditions
from netboot.kube.secrets import KubeTokens
from tests.kube_contract import CASES, World, credential, manifest, tainted, told
from tests.kube_world import CONFIG_MAPS, LEASES, NODES, RealWorld
from tests.processes import wait_for
from tokens.bootstrap import mint

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_real(case: Callable[[World], None], world: RealWorld) -> None:
    case(world)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("netboot.dev/issued", "many", "netboot.dev/issued is not a number"),
        ("netboot.dev/issued", "-1", "netboot.dev/issued is not a number"),
        ("netboot.dev/generation", None, "netboot.dev/generation is missing"),
        ("netboot.dev/assurance", "friend", "netboot.dev/assurance: Input should be 'tpm', 'nonce' or 'address'"),
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
        "netboot.dev/ek-sha256": "e" * 64,
        "netboot.dev/generation": "3",
        "netboot.dev/holder-spki": "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+/==",
        "netboot.dev/issued": "2",
        "netboot.dev/machine": "gpu-001",
        "netboot.dev/node": "gpu-001.example",
        "netboot.dev/reset-count": "7",
        "netboot.dev/restart-count": "4294967295",
        "netboot.dev/assurance": "tpm",
        "netboot.dev/token-expires-ms": "1790000300000",
        "netboot.dev/token-id": "abc123",
    }


def test_the_record_of_a_boot_goes_with_its_lease(world: RealWorld, as_admin: Admin) -> None:
    """Kubernetes' garbage collector deletes it: the issuer may not, and the approver need not."""
    lease = world.leases.write(credential("gpu-001"))
    issued = Issued("1" * 64, 1_790_000_000_000, 86_400)
    record = recorded(None, lease, issued, issued.since_ms)
    assert record is not None
    world.certificates.write(record)
    config_map = f"{CONFIG_MAPS}/{lease_name('default', 'gpu-001')}"
    assert as_admin("GET", config_map).status_code == 200
    world.leases.delete(lease)
    wait_for(lambda: as_admin("GET", config_map).status_code == 404, 180)


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


@pytest.mark.parametrize(("moment", "takes"), [("0000-01-01T00:00:00Z", True), ("9999-12-31T23:59:59-12:00", False)])
def test_a_node_that_wrote_a_time_which_nobody_can_read_is_seen_and_hinders_no_other(
    world: RealWorld, as_admin: Admin, moment: str, takes: bool
) -> None:
    """`takes`: whether the apiserver can read back what it has stored, to change anything of that Node."""
    world.make_node("odd")
    for _ in range(20):  # the controllers write to it, too
        node = as_admin("GET", f"{NODES}/odd").json()
        node["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": moment}]
        if (answer := as_admin("PUT", f"{NODES}/odd/status", node)).status_code == 200:
            break
    assert answer.status_code == 200, answer.text
    world.make_node("even")
    seen = {node.name: node for node in world.collector.watch(0.5)}
    assert seen.keys() >= {"odd", "even"}
    assert (seen["odd"].ready, seen["odd"].ready_since_ms) == (True, None)
    one = {"key": "netboot.dev/held", "effect": "NoSchedule"}
    refused = contextlib.nullcontext() if takes else pytest.raises(InvalidError)
    with refused:
        tainted(world, "odd", lambda node: [*node.taints, one])


def test_since_when_a_gate_is_as_it_is_changes_with_its_status_alone(world: RealWorld, as_admin: Admin) -> None:
    world.make_node("since", ready=True)
    for status, reason, at_ms, since in (
        ("False", "Unchecked", 1_790_000_000_000, "2026-09-21T14:13:20Z"),
        ("False", "ReportStale", 1_790_000_060_000, "2026-09-21T14:13:20Z"),
        ("True", "Open", 1_790_000_120_000, "2026-09-21T14:15:20Z"),
    ):
        told(world, "since", GateSaid(status, reason, "m"), at_ms)
        conditions = as_admin("GET", f"{NODES}/since").json()["status"]["conditions"]
        (found,) = [one for one in conditions if one["type"] == "netboot.dev/Gate"]
        assert (found["status"], found["reason"], found["lastTransitionTime"]) == (status, reason, since)
