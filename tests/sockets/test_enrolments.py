"""Enrolment through the management API: what it answers, in which words it refuses, what it writes into the log."""

import base64
import logging
from pathlib import Path
from typing import Any

import pytest

from netboot.clock import rfc3339
from netboot.join.enrolment import Act, Details, Import, Owner
from netboot.lifecycle.errors import StateUnavailableError
from tests.sites import INVENTORY, TOKEN
from tests.sockets.api import NOW, Api
from tests.unit.tokens.ek_certificates import der, ek_certificate, maker
from tokens.ekcert import read_ek_certificate

A, B = "a1" * 32, "b2" * 32
NOTHING = "so nothing would come of it"
NOBODY = f"proves itself to nobody, {NOTHING}: netboot.yaml has no `join` (docs/join.md)"
WHICH = "`join` and `clusters` of netboot.yaml say which there are (docs/kubernetes.md)"
CERTIFICATE = der(ek_certificate(maker()[1]))
EK = read_ek_certificate(CERTIFICATE).ek_sha256
PINNED = INVENTORY.replace('["52:54:00:00:00:02"]', f'["52:54:00:00:00:02"], ek_sha256: {B}').replace(
    "profile: compute, enabled", 'profile: compute, pcrs: {"7": [' + "0" * 64 + "]}, enabled"
)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def act(api: Api, name: str, act: str, **body: Any) -> Any:
    return api.post(f"/v1/machines/{name}/{act}", body)


def error(answer: Any) -> tuple[int, str, str]:
    said = answer.json
    return answer.status_code, said["code"], said["detail"]


def enrolled(api: Api, name: str, ek: str) -> None:
    """Before what the test is about."""
    api.register.apply([(name, Import(ek))], Act("bob"), NOW)


def shown_details() -> str:
    encoded = base64.b64encode(CERTIFICATE).decode()
    return Details(ek_certificate=encoded, serial="S1", macs=("52:54:00:00:00:01",), peer="192.0.2.7").model_dump_json()


@pytest.mark.parametrize(
    ("name", "there", "why"),
    [
        ("gpu-001", {"clusters": False}, f"gpu-001 joins no cluster of this service, {NOTHING}: {WHICH}"),
        ("gpu-001", {"join": False}, f"gpu-001 {NOBODY}"),
        (
            "off-001",
            {},
            f"off-001 is disabled in the inventory and boots nothing, {NOTHING}: enable it there first",
        ),
    ],
)
def test_no_window_opens_where_nothing_can_use_it(tmp_path: Path, name: str, there: dict[str, bool], why: str) -> None:
    api = Api(tmp_path, **there)  # type: ignore[arg-type]
    assert error(act(api, name, "enroll")) == (409, "act-refused", why)
    assert api.register.view(name, NOW).window is None


def test_a_tpm_that_left_is_refused_where_nothing_can_use_a_window(tmp_path: Path) -> None:
    """Its board may be in another machine by now, whose list then names it."""
    api = Api(tmp_path, join=False)
    enrolled(api, "gpu-001", A)
    why = f"gpu-001 {NOBODY}"
    for dry_run in (True, False):
        done = act(api, "gpu-001", "replace", part="tpm", dry_run=dry_run).json
        assert (done["no_window"], done["enrolment"]["window"], done["enrolment"]["state"]) == (why, None, "none")
    assert api.enrolments.owner(A) == Owner("gpu-001", replaced=True)


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ({"clusters": False}, f"gpu-002 joins no cluster of this service, {NOTHING}: {WHICH}"),
        ({"join": False}, f"gpu-002 {NOBODY}"),
    ],
)
def test_nothing_is_for_a_machine_that_has_nothing_to_join(tmp_path: Path, there: dict[str, bool], why: str) -> None:
    """Neither a boot window nor a place in a list, all of whose faults are named at once."""
    api = Api(tmp_path, **there)  # type: ignore[arg-type]
    assert error(api.post("/v1/tokens", {"machine": "gpu-002"})) == (409, "act-refused", why)
    assert api.register.view("gpu-002", NOW).window is None
    enrolled(api, "gpu-001", A)  # before; a list may be sent again
    refused = api.post("/v1/enrolments", f"machine,ek_sha256\ngpu-001,{A}\nnobody,{B}\ngpu-002,{EK}\n")
    assert refused.json["faults"] == ["list:3: the inventory has no machine 'nobody'", f"list:4: {why}"]
    assert api.register.view("gpu-002", NOW).state == "none"


def test_a_list_has_machines_that_are_not_enabled_yet(api: Api) -> None:
    """Declared, and delivered later: it joins when it is enabled."""
    done = api.post("/v1/enrolments", f"machine,ek_sha256\noff-001,{A}\ngpu-001,{B}\n")
    assert done.json == {"machines": 2, "enrolled": ["off-001", "gpu-001"], "dry_run": False}


def test_from_window_to_approval(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    api.config.management.token_file.write_text(f"# alice\n{TOKEN}\n")
    opened = act(api, "gpu-001", "enroll", window_seconds=600, reason="new board")
    assert opened.status_code == 200
    assert opened.json["enrolment"]["window"] == "enrol"
    assert opened.json["enrolment"]["window_until"] == rfc3339(NOW + 600_000)
    api.register.propose("gpu-001", EK, shown_details(), NOW)
    found = api.get("/v1/machines/gpu-001/enrolment").json
    assert (found["enrolment"]["state"], found["enrolment"]["ek_sha256"]) == ("pending", EK)
    assert found["enrolment"]["details"]["serial"] == "S1"
    assert found["enrolment"]["certificate"]["verdict"] == "unchecked"
    assert (found["pcr_policy"], found["identity"]) == ("no PCR policy", "tpm")
    stale = act(api, "gpu-001", "approve", ek_sha256=A)
    assert stale.json["remedy"] == "look with `netboot machine show`, then approve what it shows"
    assert error(stale) == (
        409,
        "not-shown",
        f"the enrolment of gpu-001 is not what was shown: its EK is {EK[:16]}... now; look again",
    )
    done = act(api, "gpu-001", "approve", ek_sha256=EK, revision=found["enrolment"]["revision"], reason="checked")
    assert done.json["enrolment"]["state"] == "approved"
    history = [(one["act"], one["operator"], one["reason"]) for one in done.json["history"]]
    assert history == [("approved", "alice", "checked"), ("proposed", "", ""), ("window-opened", "alice", "new board")]
    audited = [one.fields for one in caplog.records if one.name == "netboot.audit"]  # type: ignore[attr-defined]
    assert [(one["act"], one["operator"], one["machine"], one["reason"]) for one in audited] == [
        ("enroll", "alice", "gpu-001", "new board"),
        ("approve", "alice", "gpu-001", "checked"),
    ]
    assert TOKEN not in caplog.text
    approved = api.get("/v1/audit").json["audit"][0]
    for stood in (approved["before"], approved["after"]):
        details = stood["details"]
        assert (stood["ek_sha256"], details["serial"], details["ek_certificate"]) == (EK, "S1", None)


def test_the_audit_of_a_list_has_no_certificates(api: Api) -> None:
    """Of 30,000 machines they would be more than all that it keeps."""
    text = f"machine,ek_certificate\ngpu-001,{base64.b64encode(CERTIFICATE).decode()}\n"
    assert api.post("/v1/enrolments", text).json["enrolled"] == ["gpu-001"]
    assert api.get("/v1/machines/gpu-001/enrolment").json["enrolment"]["details"]["ek_certificate"]
    (row,) = [one for one in api.get("/v1/audit").json["audit"] if one["machine"]]
    assert (row["after"]["ek_sha256"], row["after"]["details"]["ek_certificate"]) == (EK, None)


def test_release_replace_retire(api: Api) -> None:
    api.post("/v1/enrolments", f"machine,ek_sha256\ngpu-001,{A}\n")
    assert act(api, "gpu-001", "release").json["enrolment"]["generation"] == 1
    replaced = act(api, "gpu-001", "replace", part="tpm", window_seconds=60).json["enrolment"]
    assert (replaced["state"], replaced["window"], replaced["generation"]) == ("none", "enrol", 2)
    retired = act(api, "gpu-001", "retire", reason="sold").json
    assert retired["enrolment"]["state"] == "retired"
    assert retired["enrolment"]["retired_from"] == "none"
    assert retired["history"][0]["operator"].startswith("token ")
    assert error(act(api, "gpu-001", "approve", ek_sha256=A))[:2] == (409, "not-shown")
    back = act(api, "gpu-001", "approve", ek_sha256=None).json["enrolment"]
    assert (back["state"], back["generation"]) == ("none", 3)


def test_a_list_may_be_looked_at_alone(api: Api) -> None:
    """Faults are named as they would be, of two lines with one TPM too; nothing is written, nor audited."""
    enrolled(api, "gpu-001", A)
    records = api.register.store.records()
    looked = api.post("/v1/enrolments?dry_run=true", f"machine,ek_sha256\ngpu-001,{A}\noff-001,{EK}\n")
    assert looked.json == {"machines": 2, "enrolled": ["off-001"], "dry_run": True}
    bad = api.post("/v1/enrolments?dry_run=true", f"machine,ek_sha256\ngpu-002,{A}\n")
    assert (bad.status_code, len(bad.json["faults"])) == (422, 1)
    assert error(api.post("/v1/enrolments?dry_run=yes", f"machine,ek_sha256\noff-001,{EK}\n"))[0] == 400
    assert api.register.store.records() == records
    assert [one["act"] for one in api.get("/v1/audit").json["audit"] if one["act"] == "import"] == []


def test_a_list_is_taken_whole_or_not_at_all(api: Api) -> None:
    done = api.post("/v1/enrolments", f"machine,ek_sha256\ngpu-001,{A}\ngpu-002,{B}\n")
    assert done.json == {"machines": 2, "enrolled": ["gpu-001", "gpu-002"], "dry_run": False}
    again = api.post("/v1/enrolments", f"machine,ek_sha256\ngpu-001,{A}\noff-001,{EK}\n")
    assert again.json == {"machines": 2, "enrolled": ["off-001"], "dry_run": False}
    bad = api.post("/v1/enrolments", f"machine,ek_sha256\nnobody,{A}\ngpu-001,x\n")
    assert error(bad) == (422, "faults", "2 faults; nothing was changed")
    assert bad.json["faults"] == [
        "list:2: the inventory has no machine 'nobody'",
        "list:3: ek_sha256: not 64 hexadecimal digits",
    ]
    other = "c3" * 32
    conflict = api.post("/v1/enrolments", f"machine,ek_sha256\ngpu-001,{other}\n\ngpu-002,{B}\n")
    [fault] = conflict.json["faults"]
    assert fault == (
        "list:2: gpu-001 has another TPM on record, approved (EK a1a1a1a1a1a1a1a1...); "
        "`netboot machine replace gpu-001 --part tpm` first"
    )
    records = api.get("/v1/audit").json["audit"]
    assert [(one["act"], one["machine"], one["facts"]) for one in records if one["result"] == "done"] == [
        ("import", "", {"machines": 2, "enrolled": 1}),
        ("import", "off-001", {}),
        ("import", "", {"machines": 2, "enrolled": 2}),
        ("import", "gpu-002", {}),
        ("import", "gpu-001", {}),
    ]
    seen = {one["machine"]: (one["before"], one["after"]) for one in records if one["machine"]}
    assert {name: (was["state"], now["state"], now["ek_sha256"]) for name, (was, now) in seen.items()} == {
        "gpu-001": ("none", "approved", A),
        "gpu-002": ("none", "approved", B),
        "off-001": ("none", "approved", EK),
    }
    listed = api.get("/v1/enrolments").json["enrolments"]
    assert [(one["machine"], one["state"], one["source"]) for one in listed] == [
        ("gpu-001", "approved", "imported"),
        ("gpu-002", "approved", "imported"),
        ("off-001", "approved", "imported"),
    ]


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/octet-stream", None])
def test_a_list_is_said_to_be_one(api: Api, kind: str | None) -> None:
    text = f"machine,ek_sha256\ngpu-001,{A}\n".encode()
    said = api.client.post("/v1/enrolments", data=text, content_type=kind, headers=api.authorised)
    assert error(said) == (415, "unsupported-media-type", "The body has to be of the Content-Type text/csv")
    assert {each["state"] for each in api.get("/v1/enrolments").json["enrolments"]} == {"none"}
    charset = {"data": text, "content_type": "text/csv; charset=utf-8", "headers": api.authorised}
    assert api.client.post("/v1/enrolments", **charset).status_code == 200


def test_a_list_may_be_larger_than_other_bodies(api: Api) -> None:
    text = f"machine,ek_sha256\ngpu-001,{A}\n" + "\n" * 70_000
    assert api.post("/v1/enrolments", text).status_code == 200
    assert api.post("/v1/machines/gpu-001/release", {"reason": "x" * 70_000}).status_code == 413


@pytest.mark.parametrize(
    ("name", "what", "body", "words"),
    [
        ("gpu-001", "enroll", {"window_seconds": 59}, "window_seconds: must be 60 at least"),
        ("gpu-001", "enroll", {"window": 90}, "window: unknown key; did you mean 'window_seconds'?"),
        ("gpu-001", "replace", {}, "part: this key is required"),
        ("gpu-001", "replace", {"part": "nic"}, "part: must be 'tpm'"),
        ("gpu-001", "approve", {}, "ek_sha256: this key is required"),
        ("gpu-001", "retire", {"reason": "x" * 501}, "reason: must have 500 characters at most"),
    ],
)
def test_bodies_that_make_no_sense(api: Api, name: str, what: str, body: dict[str, Any], words: str) -> None:
    assert error(act(api, name, what, **body)) == (400, "bad-request", words)
    assert api.enrolments.records() == []


@pytest.mark.parametrize("what", ["enroll", "approve", "release", "replace", "retire"])
def test_a_machine_that_nobody_declared(api: Api, what: str) -> None:
    bodies: dict[str, dict[str, Any]] = {"approve": {"ek_sha256": None}, "replace": {"part": "tpm"}}
    body = bodies.get(what, {})
    assert error(act(api, "gpu-01", what, **body)) == (
        404,
        "no-such-machine",
        "the inventory has no machine of that name; did you mean gpu-001?",
    )
    assert api.get("/v1/machines/gpu-01/enrolment").status_code == 404
    assert api.enrolments.records() == []


def test_what_is_left_of_a_machine_that_was_renamed_can_be_settled(api: Api) -> None:
    """Its EK is on record under the old name, and belongs to the new one."""
    api.post("/v1/enrolments", f"machine,ek_sha256\ngpu-001,{A}\n")
    file = api.config.inventory / "site.yaml"
    file.write_text(file.read_text().replace("gpu-001", "rack1-001"))
    api.publisher.step(now=True)
    assert act(api, "gpu-001", "enroll").status_code == 404
    assert act(api, "gpu-001", "replace", part="tpm").status_code == 200
    assert api.get("/v1/machines/gpu-001/enrolment").json["pcr_policy"] == "not in the inventory"
    assert api.post("/v1/enrolments", f"machine,ek_sha256\nrack1-001,{A}\n").json["enrolled"] == ["rack1-001"]


def test_machines_show_who_they_are(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=PINNED)
    found = api.get("/v1/machines/gpu-002").json
    assert (found["enrolment"]["state"], found["enrolment"]["source"]) == ("approved", "inventory")
    assert found["enrolment"]["ek_sha256"] == B
    assert found["pcr_policy"] == "no PCR policy"
    assert api.get("/v1/machines/off-001/explain").json["pcr_policy"] == "PCR 7: 1 allowed"


def test_a_record_that_cannot_be_read_hides_no_machine(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StateUnavailableError("the disk fails")

    monkeypatch.setattr(api.enrolments, "record", fail)
    found = api.get("/v1/machines/gpu-001").json
    assert (found["enrolment"], found["name"]) == (None, "gpu-001")
    assert found["enrolment_problem"] == "the record of enrolments cannot be read right now"
    assert error(api.get("/v1/machines/gpu-001/enrolment"))[:2] == (503, "state-unavailable")
