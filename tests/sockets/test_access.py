"""Who may do what: roles of tokens over every route, their end, and the record of each act."""

import errno
import os
import pwd
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from images.values import files
from netboot.lifecycle.roles import Role
from netboot.stores import access_tokens
from netboot.web import app
from tests.commands import Run
from tests.sites import TOKEN, add_image
from tests.sockets.api import HERE, NOW, Api, given

ADMINS = {
    ("POST", "/v1/inventory/machines"),
    ("PUT", "/v1/inventory/machines/<name>"),
    ("DELETE", "/v1/inventory/machines/<name>"),
    ("POST", "/v1/inventory/machines/<name>/rename"),
    ("PUT", "/v1/inventory/<kind:kind>/<name>"),
    ("DELETE", "/v1/inventory/<kind:kind>/<name>"),
    ("POST", "/v1/discovered/<mac>/declare"),
    ("POST", "/v1/inventory/accept"),
    ("POST", "/v1/enrolments"),
    ("POST", "/v1/machines/<name>/approve"),
    ("POST", "/v1/machines/<name>/release"),
    ("POST", "/v1/machines/<name>/replace"),
    ("POST", "/v1/tokens"),
    ("DELETE", "/v1/tokens/<token_id>"),
}
OPERATORS = {
    ("PUT", "/v1/channels/<name>"),
    ("POST", "/v1/rollouts"),
    ("POST", "/v1/rollouts/<int:number>/pause"),
    ("POST", "/v1/rollouts/<int:number>/resume"),
    ("POST", "/v1/rollouts/<int:number>/undo"),
    ("POST", "/v1/machines/<name>/enroll"),
    ("POST", "/v1/machines/<name>/retire"),
    ("POST", "/v1/freeze"),
    ("POST", "/v1/unfreeze"),
    ("POST", "/v1/machines/<name>/hold"),
    ("POST", "/v1/machines/<name>/unhold"),
    ("POST", "/v1/machines/<name>/quarantine"),
    ("POST", "/v1/machines/<name>/readmit"),
    ("POST", "/v1/machines/<name>/accept"),
    ("POST", "/v1/machines/<name>/unaccept"),
    ("POST", "/v1/machines/<name>/drain"),
    ("POST", "/v1/machines/<name>/reboot"),
    ("POST", "/v1/machines/<name>/undrain"),
    ("POST", "/v1/machines/<name>/delete-node"),
    ("POST", "/v1/remedies/pause"),
    ("POST", "/v1/remedies/resume"),
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def test_every_route_as_every_role(api: Api) -> None:
    closed = {(each.method, each.path) for each in app.ROUTES if each.method != "GET"}
    assert closed == OPERATORS | ADMINS, "say here, and in netboot/web/roles.py, who may do what is new"
    tokens = {role: given(api, str(role), role) for role in Role}
    for method, path in [(each.method, each.path) for each in app.ROUTES if each.guarded]:
        if path.endswith("/watch"):
            continue
        written = path.replace("<int:", "<").replace("<kind:", "<")
        asked = (
            path.replace("<int:number>", "1")
            .replace("<kind:kind>", "racks")
            .replace("<name>", "none")
            .replace("<boot>", "none")
        )
        for role, token in tokens.items():
            needs = Role.ADMIN if (method, path) in ADMINS else Role.OPERATOR
            may = method == "GET" or role.may(needs)
            answer = api.client.open(asked, method=method, headers={"Authorization": f"Bearer {token}"})
            assert (answer.status_code == 403) == (not may), (method, path, role)
            if not may:
                assert answer.get_json() == {
                    "type": "tag:netboot.dev,2026:problem/not-allowed",
                    "title": "that needs another role",
                    "instance": answer.headers["X-Request-ID"],
                    "status": 403,
                    "code": "not-allowed",
                    "detail": f"{method} {written} needs the role {needs}, and {role} has the role {role}",
                    "remedy": "an admin of the service gives roles: `netboot access token create`",
                }


def test_a_token_ends_by_time_and_by_word_at_once(api: Api) -> None:
    ended, good = given(api, "ended", Role.ADMIN, NOW), given(api, "good", Role.VIEWER)
    assert api.get("/v1/channels", good).status_code == 200
    answer = api.get("/v1/channels", ended)
    assert (answer.status_code, answer.json["code"], answer.json["detail"]) == (
        401,
        "token-expired",
        "the token ended expired at 2023-11-14T22:15:00Z",
    )
    access_tokens.change(
        api.config.management.tokens, lambda there: there.model_copy(update={"tokens": there.tokens[:1]})
    )
    revoked = api.get("/v1/channels", good)
    assert (revoked.status_code, revoked.json["detail"]) == (401, "the operator's token is missing, wrong or revoked")
    assert "management.token_file" not in revoked.json["remedy"], "nobody but the host's commands has that"


def test_the_file_of_before_may_go_where_there_are_named_tokens(api: Api) -> None:
    good = given(api, "good", Role.VIEWER)
    api.config.management.token_file.unlink()
    assert api.get("/v1/channels", good).status_code == 200
    assert api.get("/v1/channels").status_code == 401
    assert api.get("/readyz").json["details"]["token"]["ok"] is True
    file = api.config.management.tokens
    assert (oct(file.stat().st_mode)[-3:], good in file.read_text()) == ("600", False)
    file.write_text("{")
    assert api.get("/v1/channels", good).status_code == 503, "it cannot be told, and that is not no"


def test_the_text_of_a_named_token_in_the_file_of_before_opens_nothing_by_itself(api: Api, run: Run) -> None:
    config, file = ("--config", api.config.data.parent / "netboot.yaml"), api.config.management.token_file
    assert run("access", "token", "host", "--ttl", "2d", *config).status == 0
    text = file.read_text().strip()
    assert api.get("/v1/channels").status_code == 401, "what was there before"
    said = api.get("/v1/whoami", text).json
    assert (said["name"], said["role"], said["expires_at"] is None) == ("host-admin", "admin", False)
    assert api.get("/readyz").json["details"]["token"]["ok"] is True
    client = {"Authorization": f"Bearer {text}"}
    assert api.client.post("/v1/machines/gpu-001/hold", json={"reason": "DIMM 4"}, headers=client).status_code == 200
    assert [(one["act"], one["who"]) for one in api.get("/v1/audit", text).json["audit"]] == [
        ("hold", "host-admin"),
        ("access-token-host", api.get("/v1/audit", text).json["audit"][1]["who"]),
    ]
    assert run("access", "token", "host", *config).status == 0
    assert api.get("/v1/channels", text).status_code == 401
    text = file.read_text().strip()
    with pytest.MonkeyPatch.context() as patched:
        tokens = api.client.application.extensions["netboot"].tokens
        patched.setattr(tokens, "_now_ms", lambda: 4_000_000_000_000)
        said = api.get("/v1/whoami", text).json
    assert (said["code"], said["remedy"]) == (
        "token-expired",
        "an admin makes another: `netboot access token create`; for commands of its host: `netboot access token host`",
    )
    assert run("access", "token", "revoke", "host-admin", *config).status == 0
    assert api.get("/v1/channels", text).status_code == 401, "its text is still there"


def test_acts_and_refusals_are_kept_with_before_and_after(api: Api) -> None:
    first, second = add_image(api.config), add_image(api.config, name="other", salt="2")
    for image in (first, second):
        assert api.put("/v1/channels/stable", {"image": image, "reason": "trial"}).status_code == 200
    assert api.put("/v1/channels/stable", {"image": first, "dry_run": True}).status_code == 200
    viewer = {"Authorization": f"Bearer {given(api, 'carol', Role.VIEWER)}"}
    assert api.client.post("/v1/machines/gpu-001/hold", json={"reason": "x"}, headers=viewer).status_code == 403
    assert api.post("/v1/machines/gpu-001/hold", {"reason": "DIMM 4"}).status_code == 200
    kept = api.get("/v1/audit").json["audit"]
    assert [(one["act"], one["who"], one["role"], one["machine"], one["result"]) for one in kept] == [
        ("hold", "token 9d913f87", "admin", "gpu-001", "done"),
        ("POST /v1/machines/<name>/hold", "carol", "viewer", "gpu-001", "not-allowed"),
        ("channel-set", "token 9d913f87", "admin", "", "done"),
        ("channel-set", "token 9d913f87", "admin", "", "done"),
    ]
    assert (kept[2]["before"], kept[2]["after"]) == ({"image": first}, {"image": second, "name": "other"})
    assert (kept[2]["reason"], len({one["request_id"] for one in kept})) == ("trial", 4)
    assert (kept[0]["before"], kept[0]["after"]["intents"][0]["reason"]) == ({"intents": []}, "DIMM 4")
    of_machine = api.get("/v1/audit?machine=gpu-001&limit=1").json
    assert [one["act"] for one in of_machine["audit"]] == ["hold"]
    older = api.get(f"/v1/audit?machine=gpu-001&continue={of_machine['continue']}").json
    assert ([one["who"] for one in older["audit"]], older["continue"]) == (["carol"], None)


def test_a_refused_name_forges_no_row_and_nothing_that_a_terminal_obeys(api: Api) -> None:
    viewer = {"Authorization": f"Bearer {given(api, 'carol', Role.VIEWER)}"}
    path = "/v1/machines/gpu-001%0A%1B]0;x%07%C2%9B31m/hold"
    assert api.client.post(path, json={"reason": "x"}, headers=viewer).status_code == 403
    assert [one["machine"] for one in api.get("/v1/audit").json["audit"]] == ["gpu-001??]0;x??31m"]


def test_who_says_dry_run_is_refused_no_less(api: Api) -> None:
    viewer = {"Authorization": f"Bearer {given(api, 'carol', Role.VIEWER)}"}
    said = api.client.post("/v1/machines/gpu-001/hold", json={"reason": "x", "dry_run": True}, headers=viewer)
    assert said.status_code == 403
    assert [one["result"] for one in api.get("/v1/audit").json["audit"]] == ["not-allowed"]


def test_who_may_not_is_written_down_whatever_was_sent(api: Api) -> None:
    viewer = {"Authorization": f"Bearer {given(api, 'carol', Role.VIEWER)}"}
    for body in (b"[" * 60_000, b'{"dry_run":', b"\xff", b""):
        said: Any = api.client.post("/v1/tokens", data=body, content_type="application/json", headers=viewer)
        assert (said.status_code, said.json["code"], "X-Request-ID" in said.headers) == (403, "not-allowed", True)
    assert [one["result"] for one in api.get("/v1/audit").json["audit"]] == ["not-allowed"] * 4


@pytest.mark.parametrize(
    ("method", "path", "body", "machine", "facts"),
    [
        ("PUT", "/v1/channels/canary", {"image": "tiny"}, "", {"channel": "canary", "image": "tiny"}),
        ("POST", "/v1/rollouts", {"channel": "stable", "image": "tiny"}, "", {"channel": "stable", "image": "tiny"}),
        ("POST", "/v1/rollouts/7/pause", {}, "", {"number": "7"}),
        ("DELETE", "/v1/tokens/ab12cd", None, "", {"token_id": "ab12cd"}),
        ("POST", "/v1/tokens", {"machine": "gpu-001", "spki": "a secret"}, "gpu-001", {}),
        ("POST", "/v1/discovered/52:54:00:00:00:09/declare", {"name": "x"}, "", {"mac": "52:54:00:00:00:09"}),
        ("POST", "/v1/machines/gpu-001/hold", {"reason": "x", "machine": "another"}, "gpu-001", {}),
        ("PUT", "/v1/channels/two%0Alines", {"image": "\x1b[2J" + "x" * 99}, "", None),
    ],
)
def test_who_may_not_is_written_down_with_what_it_was_to_concern(
    api: Api, method: str, path: str, body: Any, machine: str, facts: dict[str, str] | None
) -> None:
    viewer = {"Authorization": f"Bearer {given(api, 'carol', Role.VIEWER)}"}
    assert api.client.open(path, method=method, json=body, headers=viewer).status_code == 403
    [record] = api.get("/v1/audit").json["audit"]
    hostile = {"channel": "two?lines", "image": "?[2J" + "x" * 60}
    assert (record["machine"], record["facts"]) == (machine, facts if facts is not None else hostile)


def test_the_page_shows_what_was_before_and_is_after(api: Api) -> None:
    old, new = (add_image(api.config, salt=salt) for salt in ("old", "new"))
    for image in (old, new):
        assert api.put("/v1/channels/stable", {"image": image}).status_code == 200
    client = api.client.application.test_client()
    client.post("/page/login", data={"token": TOKEN}, headers={"Origin": HERE})
    said = next(line for line in client.get("/page/audit").text.splitlines() if "channel-set" in line)
    before, after = re.findall(r'class="value">([^<]*)</td>', said)[:2]
    assert (before, after) == (f"image {old[:12]}", f"image {new[:12]}, name tiny")


def test_a_row_that_is_damaged_is_said(api: Api) -> None:
    assert api.post("/v1/machines/gpu-001/hold", {"reason": "DIMM 4"}).status_code == 200
    with closing(sqlite3.connect(api.config.data / "audit.db")) as db:
        db.execute("UPDATE audit SET body = '{'")
        db.commit()
    said = api.get("/v1/audit")
    assert (said.status_code, said.json["code"]) == (503, "state-unavailable")


def test_what_cannot_be_written_down_is_done_and_in_the_log(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    (api.config.data / "audit.db").unlink()
    assert api.post("/v1/machines/gpu-001/hold", {"reason": "DIMM 4"}).status_code == 200
    assert "audit: hold is in this log alone: " in caplog.text
    assert api.get("/v1/audit").status_code == 503


def test_refusals_push_out_no_acts(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netboot.stores.audit.KEPT", {False: 2, True: 2})
    assert api.post("/v1/machines/gpu-001/hold", {"reason": "x"}).status_code == 200
    for _ in range(4):
        assert api.post("/v1/machines/none/hold", {"reason": "x"}).status_code == 404
    results = [one["result"] for one in api.get("/v1/audit").json["audit"]]
    assert results == ["no-such-machine", "no-such-machine", "done"]


def test_the_command_line_makes_lists_and_revokes(api: Api, run: Run, tmp_path: Path) -> None:
    config = ("--config", tmp_path / "site" / "netboot.yaml")
    made = run("access", "token", "create", "alice", "--role", "viewer", "--ttl", "30d", *config)
    assert (made.status, made.out.startswith("netboot_"), "alice is viewer until " in made.err) == (0, True, True)
    assert api.get("/v1/channels", made.out.strip()).status_code == 200
    again = run("access", "token", "create", "alice", "--role", "admin", *config)
    assert (again.status, again.err) == (
        1,
        "Error: alice has a token already\nRemedy: choose another name, or `netboot access token revoke alice` first\n",
    )
    listed = run("access", "token", "list", "-o", "json", *config).json["tokens"]
    assert [(one["name"], one["role"], one["expired"]) for one in listed] == [("alice", "viewer", False)]
    assert run("access", "token", "revoke", "alice", *config).out == "the token of alice is revoked\n"
    assert api.get("/v1/channels", made.out.strip()).status_code == 401
    assert run("access", "token", "revoke", "alice", *config).status == 3
    revoked, created = api.get("/v1/audit").json["audit"]
    alice = {"name": "alice", "role": "viewer"} | {name: listed[0][name] for name in ("created_at", "expires_at")}
    assert (revoked["act"], revoked["before"], revoked["after"]) == ("access-token-revoke", alice, None)
    assert (created["act"], created["before"], created["after"]) == ("access-token-create", None, alice)
    account = pwd.getpwuid(os.geteuid()).pw_name
    assert [(each["who"].partition(" ")[0], each["role"], each["facts"]) for each in (revoked, created)] == [
        (f"{account}@host", "files", {"name": "alice"})
    ] * 2
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "sync_folder", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "Input/output error")))
        shaken = run("access", "token", "create", "zed", "--role", "viewer", *config)
    assert shaken.status != 0
    assert "a power cut may undo that" in shaken.err
    assert api.get("/v1/audit").json["audit"][0]["facts"] == {"name": "zed"}, "it is in place"
    (api.config.data / "audit.db").write_bytes(b"")
    damaged = run("access", "token", "create", "eve", "--role", "viewer", *config)
    assert (damaged.status, "\nit is done, and in no audit: " in f"\n{damaged.err}") == (0, True)
    (api.config.data / "audit.db").unlink()
    assert run("access", "token", "revoke", "eve", *config).err == "", "no service has been here yet"
    wrong = run("access", "token", "create", "bob", "--role", "viewer", "--ttl", "9000d", *config)
    assert "a whole number and s, m, h or d, like 12h or 30d, from 1m to 366d" in wrong.err


def test_a_token_that_had_ended_stays_so_when_the_clock_is_set_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, other = given(api, "alice", Role.VIEWER), given(api, "bob", Role.VIEWER)
    with monkeypatch.context() as patched:
        tokens = api.client.application.extensions["netboot"].tokens
        patched.setattr(tokens, "_now_ms", lambda: NOW + 400 * 86_400_000)
        assert api.get("/v1/whoami", ended).json["code"] == "token-expired"
    assert api.get("/v1/whoami", ended).json["code"] == "token-expired"
    assert api.get("/v1/whoami", other).status_code == 200, "nobody came with it meanwhile"


def test_the_audit_is_kept_by_nobody_on_the_way_and_no_answer_is_run_as_something_else(api: Api) -> None:
    audit, channels = api.get("/v1/audit"), api.get("/v1/channels")
    assert (audit.headers.get("Cache-Control"), channels.headers.get("Cache-Control")) == ("no-store", None)
    refused = api.get("/v1/audit", "a-token-of-nobody-at-all")
    said = [each.headers.get_all("X-Content-Type-Options") for each in (audit, channels, refused, api.get("/metrics"))]
    assert said == [["nosniff"]] * 4
