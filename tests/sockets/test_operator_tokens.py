"""The operators' token API: one machine, one key, one answer."""

import base64
import logging
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from netboot.clock import rfc3339
from netboot.join.enrolment import Act, OpenWindow, Retire
from netboot.join.errors import ClusterUnavailableError
from netboot.join.ports import Credential
from netboot.lifecycle.intents import PutOn, TakeOff
from netboot.lifecycle.transitions import Mark
from tests.sites import INVENTORY
from tests.sockets.api import NOW, Api
from tokens.binding import binding_group

SITE = INVENTORY.replace("serial: S2}", "serial: S2}, identity: nonce").replace(
    "machines:\n",
    "machines:\n  - {name: old-001, match: {serial: OLD1}, profile: compute, identity: nonce, node: {name: worker-1}}\n"
    "  - {name: far-001, match: {serial: FAR1}, profile: compute, identity: nonce, cluster: elsewhere}\n",
)
KEY, OTHER = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
A = "a1" * 32


def spki(key: Any = KEY) -> str:
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    return base64.b64encode(key.public_key().public_bytes(serialization.Encoding.DER, info)).decode()


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path, inventory=SITE)


def ask(api: Api, **body: Any) -> Any:
    return api.post("/v1/tokens", {"machine": "old-001", "spki": spki(), **body})


def error(answer: Any) -> tuple[int, str, str]:
    said = answer.json
    return answer.status_code, said["code"], said["detail"]


def test_a_token_is_for_one_machine_and_one_key(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    answer = ask(api, lifetime_seconds=600, reason="capi")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    said = answer.json
    assert (said["machine"], said["node_name"], said["cluster"]) == ("old-001", "worker-1", "default")
    assert said["expires_at"] == rfc3339((NOW + 600_000) // 1000 * 1000)
    token_id, _, secret = said["token"].partition(".")
    assert said["id"] == token_id
    manifest = api.cluster.secrets[token_id]
    group = binding_group("worker-1", base64.b64decode(spki()))
    assert manifest["stringData"]["auth-extra-groups"] == f"system:bootstrappers:netboot,{group}"
    assert manifest["stringData"]["token-secret"] == secret
    lease = api.cluster.credentials["default", "old-001"]
    assert (lease.token_id, lease.assurance, lease.issued, lease.holder_spki) == (token_id, "nonce", 1, spki())
    assert secret not in caplog.text
    [audited] = [one.fields for one in caplog.records if one.name == "netboot.audit"]  # type: ignore[attr-defined]
    assert (audited["act"], audited["machine"], audited["issued"], audited["reason"]) == (
        *("token", "old-001", token_id),
        "capi",
    )
    history = [(one.act, one.reason) for one in api.enrolments.history("old-001", 5)]
    assert history == [("window-used", ""), ("window-opened", "capi")]


def test_an_act_is_audited_and_answered_though_its_operators_token_is_taken_back_meanwhile(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    api.preflight = api.config.management.token_file.unlink
    answer = ask(api, reason="capi")
    assert answer.status_code == 201
    assert answer.json["id"] in api.cluster.secrets
    [audited] = [one.fields for one in caplog.records if one.name == "netboot.audit"]  # type: ignore[attr-defined]
    assert (audited["act"], audited["machine"], audited["issued"]) == ("token", "old-001", answer.json["id"])
    assert error(ask(api))[:2] == (503, "no-tokens")


def test_it_is_listed_without_its_secret_and_revoked(api: Api) -> None:
    said = ask(api).json
    listed = api.get("/v1/tokens").json
    assert listed["problems"] == {}
    [one] = listed["tokens"]
    assert (one["id"], one["machine"], one["node"], one["expired"]) == (said["id"], "old-001", "worker-1", False)
    assert said["token"].partition(".")[2] not in str(listed)
    revoked = api.client.delete(f"/v1/tokens/{said['id']}", headers=api.authorised)
    assert revoked.json == {"revoked": said["id"], "machine": "old-001", "cluster": "default"}
    assert (api.cluster.secrets, api.get("/v1/tokens").json["tokens"]) == ({}, [])
    again = api.client.delete(f"/v1/tokens/{said['id']}", headers=api.authorised)
    assert error(again) == (404, "no-such-token", "no machine's Lease names a token of that id")
    whole = api.client.delete(f"/v1/tokens/{said['token']}", headers=api.authorised)
    assert error(whole)[:2] == (400, "bad-request")


def test_another_token_takes_the_place_of_the_first(api: Api) -> None:
    first, second = ask(api).json, ask(api, spki=spki(OTHER)).json
    assert list(api.cluster.secrets) == [second["id"]] != [first["id"]]


def test_without_a_key_a_boot_window_opens(api: Api) -> None:
    answer = api.post("/v1/tokens", {"machine": "old-001", "window_seconds": 600})
    assert answer.status_code == 202
    kept = api.get("/v1/audit").json["audit"][0]
    assert (kept["act"], kept["before"]) == ("boot-window", {"window": None, "until": None})
    assert kept["after"] == {"window": "boot", "until": rfc3339(NOW + 600_000)}
    assert answer.json == {"machine": "old-001", "window": {"kind": "boot", "until": rfc3339(NOW + 600_000)}}
    assert api.register.of("old-001").window == "boot"
    assert (api.cluster.calls, api.cluster.secrets) == ([], {})


def test_an_operator_s_word_is_not_over_what_is_wanted_of_the_machine(api: Api) -> None:
    api.intents.order("old-001", PutOn(Mark.QUARANTINED, "breach"), "bob", NOW)
    words = "old-001 is in quarantine: `netboot machine readmit old-001` lets it join again"
    assert error(ask(api)) == (403, "refused", words)
    assert api.cluster.secrets == {}
    assert api.register.of("old-001").window is None, "nothing stays open that nobody asked for"
    api.intents.order("old-001", TakeOff(Mark.QUARANTINED, "a mistake"), "bob", NOW)
    api.intents.order("old-001", PutOn(Mark.HELD, "DIMM 4"), "bob", NOW)
    assert ask(api).json["taints"][-1] == "netboot.dev/held=Held:NoSchedule"


@pytest.mark.parametrize("key", [spki(), None])
def test_who_gets_none(api: Api, key: str | None) -> None:
    def refused(machine: str) -> tuple[int, str, str]:
        return error(api.post("/v1/tokens", {"machine": machine, "spki": key}))

    assert refused("gpu-001") == (
        403,
        "refused",
        "gpu-001 proves itself by its TPM; to let it join without one, set `identity: nonce` in the inventory",
    )
    assert refused("off-001") == (
        403,
        "refused",
        "off-001 is disabled: set `enabled: true` in the inventory to let it join",
    )
    assert refused("nobody")[:2] == (404, "no-such-machine")
    api.register.apply([("old-001", Retire())], Act(), NOW)
    words = "old-001 is retired; `netboot machine approve old-001` brings it back"
    assert refused("old-001") == (403, "refused", words)
    api.register.apply([("gpu-002", OpenWindow("enrol", "w", NOW + 9_000))], Act(), NOW)
    api.register.propose("gpu-002", A, "", NOW)
    words = f"gpu-002 has a TPM on record (EK {A[:16]}...) and never joins without it"
    assert refused("gpu-002") == (403, "refused", words)
    assert api.cluster.secrets == {}


def test_a_machine_that_proved_itself_by_its_tpm_does_not_fall(api: Api) -> None:
    api.cluster.leases.write(
        Credential(
            machine="old-001",
            cluster="default",
            node="worker-1",
            assurance="tpm",
            boot="0" * 8 + "-0000-8000-8000-" + "0" * 12,
            holder="ab" * 32,
            holder_spki=spki(OTHER),
            reset_count=1,
            restart_count=1,
            issued=1,
            at_ms=NOW - 9,
        )
    )
    assert error(ask(api))[:2] == (409, "held")
    assert api.register.of("old-001").window is None


def test_a_ready_node_is_not_taken_over(api: Api) -> None:
    api.cluster.make_node("worker-1", ready=True)
    assert error(ask(api)) == (
        403,
        "refused",
        "worker-1 is a Ready node: only a TPM can show that it is this machine that asks",
    )
    api.cluster.make_node("worker-1", ready=False)
    assert ask(api).status_code == 201
    assert "nodes.delete worker-1" in api.cluster.calls
    assert api.cluster.calls.index("nodes.delete worker-1") < next(
        number for number, call in enumerate(api.cluster.calls) if call.startswith("tokens.create")
    )


def test_a_node_that_somebody_cordoned_leaves_a_hold(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    node = api.cluster.make_node("worker-1")
    api.cluster.put_node(node._replace(cordoned=True, cordoned_by="kubectl-cordon, 2026-11-23T10:00:00Z"))
    answer = ask(api)
    assert (answer.status_code, answer.json["taints"][-1]) == (201, "netboot.dev/held=Held:NoSchedule")
    [held] = api.intents.of("old-001", NOW)
    said = (held.mark, held.owner, held.who, held.reason, held.until_ms)
    reason = "the Node worker-1 was cordoned when it was deleted"
    assert said == (Mark.HELD, "cordon", "kubectl-cordon, 2026-11-23T10:00:00Z", reason, None)
    audits = [record.fields["act"] for record in caplog.records if record.getMessage() == "audit"]  # type: ignore[attr-defined]
    assert audits == ["hold", "token"]
    kept = api.get("/v1/audit").json["audit"][1]
    assert (kept["before"], [one["owner"] for one in kept["after"]["intents"]]) == ({"intents": []}, ["cordon"])
    assert (len(api.cluster.secrets), api.register.of("old-001").window) == (1, None)


def test_a_cluster_that_cannot_be_used(api: Api) -> None:
    def unfit() -> None:
        raise ClusterUnavailableError("cluster default is not fit: nodeclient is bound by kubeadm:node-autoapprove")

    api.preflight = unfit
    assert error(ask(api)) == (
        *(503, "cluster-unavailable"),
        "cluster default is not fit: nodeclient is bound by kubeadm:node-autoapprove",
    )
    assert api.enrolments.history(None, 5) == []
    api.preflight = lambda: None
    api.cluster.down = "the apiserver does not answer"
    answer = ask(api)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
    assert api.register.of("old-001").window is None
    assert error(api.get("/v1/tokens"))[0] == 503
    assert error(ask(api, machine="far-001")) == (
        403,
        "refused",
        "far-001 is of cluster elsewhere, which this service does not know: add `clusters.elsewhere` to netboot.yaml",
    )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"lifetime_seconds": 901}, "lifetime_seconds: must be 900 at most"),
        ({"lifetime_seconds": 0}, "lifetime_seconds: must be 60 at least"),
        ({"spki": "%%%"}, "spki is not base64 (standard alphabet, padded)"),
        ({"spki": "AAAA"}, "spki is not a public key in DER"),
        ({"spki": ""}, "spki is not a public key in DER"),
        ({"spki": spki(ed25519.Ed25519PrivateKey.generate())}, "spki must be a key on P-256 or P-384"),
        (
            {"groups": ["system:masters"]},
            "groups: unknown key; valid keys: lifetime_seconds, machine, reason, spki, window_seconds",
        ),
    ],
)
def test_bodies_that_make_no_sense(api: Api, body: dict[str, Any], words: str) -> None:
    assert error(ask(api, **body)) == (400, "bad-request", words)
    assert api.enrolments.records() == []


def test_a_site_without_clusters_has_no_tokens(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=SITE, clusters=False)
    words = "this service knows no cluster: declare `join` and `clusters` in netboot.yaml"
    assert error(ask(api)) == (400, "no-cluster", words)
    listed = api.get("/v1/tokens")
    assert error(listed) == (400, "no-cluster", words)
    assert listed.json["remedy"] == "restart the service once they are declared: docs/kubernetes.md"
