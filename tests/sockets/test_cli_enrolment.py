"""`netboot machine enroll|approve|…` and `netboot token …` against the API: what they print, and their exit status."""

import base64
import io
import json
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from netboot.clock import rfc3339
from netboot.join.enrolment import Act, Details, Import, Release
from tests.commands import Run
from tests.sites import INVENTORY
from tests.sockets.api import NOW, Api
from tests.unit.tokens.ek_certificates import der, ek_certificate, maker
from tokens.ekcert import read_ek_certificate

A, B = "a1" * 32, "b2" * 32
CERTIFICATE = der(ek_certificate(maker()[1]))
EK = read_ek_certificate(CERTIFICATE).ek_sha256
SITE = INVENTORY.replace("serial: S2}", "serial: S2}, identity: nonce")


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path, inventory=SITE)


def says(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def propose(api: Api) -> None:
    encoded = base64.b64encode(CERTIFICATE).decode()
    said = Details(ek_certificate=encoded, serial="S1", macs=("52:54:00:00:00:01",), peer="192.0.2.7")
    api.register.propose("gpu-001", EK, said.model_dump_json(), NOW)


def test_from_window_to_approval(api: Api, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("machine", "enroll", "gpu-001", "--window", "2h", "--reason", "new board") == (
        0,
        "gpu-001 may enrol its TPM until 2023-11-15 00:15:00Z: boot it, then run `netboot machine approve gpu-001`\n",
        "",
    )
    propose(api)
    listed = run("machine", "enrolments", "--state", "pending").out.splitlines()
    assert listed[1].split()[:2] == ["gpu-001", "pending"]
    says(monkeypatch, "y\n")
    approved = run("machine", "approve", "gpu-001")
    assert approved.status == 0
    assert approved.out.splitlines() == [
        "machine            gpu-001",
        "state              pending: no token before `netboot machine approve`, first-use, since 2023-11-14 22:15:00Z",
        f"EK (SHA-256)       {EK}",
        "EK certificate     manufacturer id:53574B20, model swtpm, version id:20240125",
        "made by            CN=Maker Intermediate",
        "chain              not checked: no join.tpm_roots",
        "MACs it says       52:54:00:00:00:01",
        "MACs declared      52:54:00:00:00:01",
        "serial it says     S1",
        "serial declared    not given",
        "UUID it says       not given",
        "UUID declared      not given",
        "asked from         192.0.2.7",
        "PCR policy         no PCR policy",
        f"Let it join? [y/N]: gpu-001 may join with EK {EK}",
    ]
    assert api.register.of("gpu-001").state == "approved"
    shown = run("machine", "show", "gpu-001").out
    assert "enrolment       approved, first-use, since 2023-11-14 22:15:00Z\n" in shown
    assert f"EK              {EK}\n" in shown
    assert "PCR policy      no PCR policy\n" in shown
    assert f"  EK             {EK}\n" in run("explain", "gpu-001").out


def test_alerts_are_shown_by_kind_with_how_often(api: Api, run: Run) -> None:
    for at in range(3):
        api.register.alert("gpu-001", "other-key", f"another key ({at})", NOW + at * 60_000)
    api.register.alert("gpu-001", "counters", "was it cleared?", NOW)
    shown = [line for line in run("machine", "show", "gpu-001").out.splitlines() if line.startswith("ALERT")]
    assert shown == [
        "ALERT           2023-11-14 22:17:00Z  3 times since 2023-11-14 22:15:00Z: another key (2)",
        "ALERT           2023-11-14 22:15:00Z  was it cleared?",
    ]
    assert api.get("/v1/machines/gpu-001").json["alerts"][1] == {
        "machine": "gpu-001",
        "kind": "counters",
        "first_at": rfc3339(NOW),
        "last_at": rfc3339(NOW),
        "count": 1,
        "said": "was it cleared?",
    }


def test_who_says_no_has_approved_nothing(api: Api, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("machine", "enroll", "gpu-001")
    propose(api)
    says(monkeypatch, "n\n")
    assert run("machine", "approve", "gpu-001").status == 130
    assert api.register.of("gpu-001").state == "pending"


def test_scripts_name_what_they_approve(api: Api, run: Run) -> None:
    run("machine", "enroll", "gpu-001")
    propose(api)
    wrong = run("machine", "approve", "gpu-001", "--ek", "00000000")
    assert (wrong.status, wrong.err.splitlines()[0]) == (
        4,
        f"Error: the TPM that gpu-001 showed is {EK}, not 00000000",
    )
    assert run("machine", "approve", "gpu-001", "--ek", EK[:7]).status == 2
    right = run("machine", "approve", "gpu-001", "--ek", EK[:8].upper(), "-o", "json")
    assert json.loads(right.out)["enrolment"]["state"] == "approved"


def test_who_has_shown_no_tpm_is_not_approved(api: Api, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("machine", "approve", "gpu-002", "--ek", "00000000") == (
        4,
        "",
        (
            "Error: gpu-002 has shown no TPM\n"
            "Remedy: `netboot machine enroll gpu-002` opens a window; boot it in that, then approve\n"
        ),
    )
    asked = run("machine", "approve", "gpu-002")
    words = "Error: nothing of gpu-002 waits for approval; `netboot machine enroll gpu-002` opens a window"
    assert (asked.status, asked.err.splitlines()[0]) == (4, words)
    assert "state              none: no TPM on record\n" in asked.out
    run("machine", "retire", "gpu-002")
    says(monkeypatch, "y\n")
    back = run("machine", "approve", "gpu-002")
    said = "gpu-002 is in service again, as it was before: no TPM is on record"
    assert (back.status, back.out.splitlines()[-1].partition("[y/N]: ")[2]) == (0, said)


def test_hashes_of_keys_are_short_in_tables_and_whole_where_there_is_room(api: Api, run: Run) -> None:
    run("machine", "enroll", "gpu-001")
    propose(api)
    said = [run("machine", "enrolments", "--state", "pending", "-o", form).out for form in ("table", "wide", "json")]
    assert [f" {EK[:16]} " in said[0], f" {EK} " in said[1], f'"ek_sha256": "{EK}"' in said[2]] == [True] * 3


def test_what_changed_meanwhile_is_not_approved(api: Api, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("machine", "enroll", "gpu-001")
    propose(api)
    real = api.enrolments.history

    def between(machine: str | None, limit: int) -> object:
        """After it was looked up, and before the approval comes."""
        found = real(machine, limit)
        if len(found) == 2:
            api.register.apply([("gpu-001", Release())], Act(), NOW)
        return found

    monkeypatch.setattr(api.enrolments, "history", between)
    refused = run("machine", "approve", "gpu-001", "--ek", EK[:8])
    assert (refused.status, refused.err.splitlines()[0]) == (
        4,
        f"Error: the enrolment of gpu-001 is not what was shown: its EK is {EK[:16]}... now; look again",
    )
    assert api.register.of("gpu-001").state == "pending"


def test_lists_from_files_and_pipes(api: Api, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "eks.csv"
    file.write_text(f"machine,ek_sha256\ngpu-001,{A}\noff-001,{B}\n")
    would = run("machine", "enroll", "--csv", file, "--dry-run")
    assert would == (0, "would enrol 2 machines; 0 were already\n", "")
    assert api.register.of("gpu-001").state == "none"
    request = run("machine", "enroll", "--csv", file, "--dry-run=client", "--output", "json")
    sent = json.loads(request.out)
    assert (sent["method"], sent["body"], sent["query"]) == ("POST", file.read_text(), {"file": str(file)})
    assert sent["url"].endswith("/v1/enrolments")
    assert api.register.of("gpu-001").state == "none"
    assert run("machine", "enroll", "--csv", file) == (0, "enrolled 2 machines; 0 were already\n", "")
    says(monkeypatch, f"machine,ek_sha256\ngpu-001,{A}\n")
    assert run("machine", "enroll", "--csv", "-").out == "enrolled 0 machines; 1 were already\n"
    file.write_text(f"machine,ek_sha256\nnobody,{A}\ngpu-002,x\n")
    faulty = run("machine", "enroll", "--csv", file)
    assert (faulty.status, faulty.err) == (
        4,
        f"""Error: {file}:2: the inventory has no machine 'nobody'
{file}:3: ek_sha256: not 64 hexadecimal digits
2 faults; nothing was changed
Remedy: correct the list, and send it whole
""",
    )
    exported = run("machine", "enrolments", "--export", "csv").out
    assert exported == (
        f"machine,ek_sha256,state,source,generation\ngpu-001,{A},approved,imported,0\noff-001,{B},approved,imported,0\n"
    )
    assert run("machine", "enroll").status == 2
    assert run("machine", "enroll", "gpu-001", "--csv", file).status == 2
    assert run("machine", "enroll", "--csv", tmp_path / "none.csv").status == 3


def test_release_replace_retire(api: Api, run: Run) -> None:
    api.post("/v1/enrolments", f"machine,ek_sha256\ngpu-001,{A}\n")
    assert run("machine", "release", "gpu-001").out == "gpu-001 is released (generation 1)\n"
    assert run("machine", "replace", "gpu-001").status == 2
    replaced = run("machine", "replace", "gpu-001", "--part", "tpm", "--window", "90s")
    assert replaced.out == "the old TPM is refused; gpu-001 may enrol another until 2023-11-14 22:16:30Z\n"
    api.register.apply([("off-001", Import(B))], Act("bob"), NOW)
    off = "off-001 is disabled in the inventory and boots nothing, so nothing would come of it: enable it there first"
    assert run("machine", "replace", "off-001", "--part", "tpm", "--dry-run").out == (
        f"the old TPM would be refused; no window: {off}\n"
    )
    assert run("machine", "replace", "off-001", "--part", "tpm").out == f"the old TPM is refused; no window: {off}\n"
    assert run("machine", "retire", "gpu-001", "--reason", "sold").out == (
        "gpu-001 is retired: no new tokens, no renewals\n"
    )
    again = run("machine", "replace", "gpu-001", "--part", "tpm")
    assert again.status == 4
    assert again.err.startswith("Error: gpu-001 is retired; `netboot machine approve gpu-001` brings it back first\n")
    assert run("machine", "retire", "nobody").status == 3
    assert run("machine", "enroll", "gpu-001", "--window", "30").status == 2


def test_tokens(api: Api, run: Run, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    info = serialization.PublicFormat.SubjectPublicKeyInfo
    pem, raw = tmp_path / "key.pem", tmp_path / "key.der"
    pem.write_bytes(key.public_bytes(serialization.Encoding.PEM, info))
    raw.write_bytes(key.public_bytes(serialization.Encoding.DER, info))
    assert run("token", "list").out == "no token is out\n"
    issued = run("token", "issue", "--machine", "gpu-002", "--spki-file", pem)
    assert (issued.status, issued.err) == (0, "for gpu-002 in cluster default, until 2023-11-14 22:20:00Z:\n")
    token_id, _, secret = issued.out.strip().partition(".")
    assert api.cluster.secrets[token_id]["stringData"]["token-secret"] == secret
    again = json.loads(run("token", "issue", "--machine", "gpu-002", "--spki-file", raw, "-o", "json").out)
    listed = run("token", "list").out
    assert listed.splitlines()[1].split()[:5] == [again["id"], "gpu-002", "gpu-002", "default", "nonce"]
    assert again["token"].partition(".")[2] not in listed
    assert run("token", "revoke", again["id"]).out == f"token {again['id']} of gpu-002 is revoked\n"
    assert run("token", "revoke", again["id"]).status == 3
    assert api.cluster.secrets == {}
    assert run("token", "issue", "--machine", "gpu-001", "--spki-file", pem).status == 4
    pem.write_text("-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----\n")
    assert run("token", "issue", "--machine", "gpu-002", "--spki-file", pem).status == 1
    assert run("token", "issue", "--machine", "gpu-002", "--lifetime", "16m").status == 2
    window = run("token", "issue", "--machine", "gpu-002", "--window", "5m")
    assert window.out == "gpu-002 may join once without a TPM until 2023-11-14 22:20:00Z: boot it\n"
    api.cluster.down = "the apiserver does not answer"
    assert run("token", "list").status == 5
