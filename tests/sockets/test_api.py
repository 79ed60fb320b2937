"""The management API: what it answers, to whom, and in which words it refuses."""

import itertools
import json
import logging
import re
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from images.artifact.signing import SigningKey
from images.store.store import Store
from images.values.strict import Strict
from netboot.clock import rfc3339
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.roles import Role
from netboot.lifecycle.state import Batch
from netboot.processes import management
from netboot.processes.management import compose
from netboot.status import Condition, Timed
from netboot.status.controllers import InventoryStatus
from netboot.status.nodes import NodesStatus
from netboot.stores import access_tokens
from netboot.stores.journal_file import STANDING
from netboot.stores.status import StatusFolder
from netboot.web import readiness, watch
from netboot.web.app import ROUTES
from netboot.web.binding import signature
from netboot.web.openapi import Route, document
from tests.commands import Run
from tests.records import START, boot_id, event, script, sighted, waits
from tests.sites import INVENTORY, TOKEN, add_image
from tests.sockets.api import NOW, PROJECTION, PUBLISHER, SUPERVISOR, UP, UP_MS, Api, given, of_alice

PROTECTED = (
    "/v1/machines",
    "/v1/machines/gpu-001",
    "/v1/machines/gpu-001/explain",
    "/v1/machines/gpu-001/events",
    "/v1/machines/gpu-001/events/watch",
    "/v1/explain?mac=525400000001",
    "/v1/discovered",
    "/v1/boots",
    "/v1/boots/watch",
    f"/v1/boots/{boot_id('gpu-001', 1)}",
    "/v1/channels",
    "/v1/channels/stable",
)
REMEDY = (
    "send one that is in force, by `--token-file` or in the file of the context (`netboot context list`): an admin "
    "makes another, `netboot access token create`; for commands of the service's host, `netboot access token host`"
)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def error(answer: Any) -> tuple[int, str, str, str]:
    """Status, code, message, remedy."""
    said = answer.json
    assert answer.content_type == "application/problem+json"
    assert said["status"] == answer.status_code
    assert said["type"] == f"tag:netboot.dev,2026:problem/{said['code']}"
    assert said["instance"] == answer.headers["X-Request-ID"]
    return answer.status_code, said["code"], said["detail"], said["remedy"]


@pytest.mark.parametrize("path", PROTECTED)
@pytest.mark.parametrize(
    "header", [None, "Bearer", "Bearer wrong-token-wrong-token", f"Basic {TOKEN}", f"Bearer {TOKEN}x"]
)
def test_nobody_gets_in_without_the_token(api: Api, path: str, header: str | None) -> None:
    answer = api.client.get(path, headers={"Authorization": header} if header is not None else {})
    assert error(answer) == (
        401,
        "not-authenticated",
        "the operator's token is missing, wrong or revoked",
        REMEDY,
    )
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="netboot"'


def test_every_route_but_health_metrics_and_how_to_log_in_is_protected(api: Api) -> None:
    open_routes = {"/healthz", "/readyz", "/metrics", "/v1/login"}
    assert api.get("/v1/login", None).json == {"oidc": None}
    routes = {str(rule) for rule in api.client.application.url_map.iter_rules()}
    assert open_routes <= routes
    for route in routes - open_routes:
        path = (
            route.replace("<name>", "x")
            .replace("<boot>", "x")
            .replace("<int:number>", "1")
            .replace("<kind:kind>", "racks")
        )
        for method in ("GET", "PUT", "POST", "DELETE"):
            assert api.client.open(path, method=method).status_code in (401, 405)


def test_the_token_file_is_read_again_and_may_hold_several(api: Api) -> None:
    file = api.config.management.token_file
    file.write_text(f"# old\n{TOKEN}\n\nanother-token-of-sixteen\n")
    assert api.get("/v1/channels").status_code == 200
    assert api.get("/v1/channels", "another-token-of-sixteen").status_code == 200
    file.write_text("another-token-of-sixteen\n")
    assert api.get("/v1/channels").status_code == 401
    file.write_text("short\n")
    assert error(api.get("/v1/channels", "short"))[:2] == (503, "no-tokens")
    file.unlink()
    assert error(api.get("/v1/channels"))[:2] == (503, "no-tokens")
    assert api.get("/readyz").json["details"]["token"]["ok"] is False


def test_a_token_that_others_can_read_is_pointed_out(api: Api) -> None:
    file = api.config.management.token_file
    file.chmod(0o644)
    said = api.get("/readyz").json
    assert (said["ready"], said["degraded"]) == (True, True)
    assert said["details"]["token"]["message"] == f"{file} can be read by others than its owner; run `chmod 600 {file}`"


def test_machines_with_what_is_known_of_them(api: Api) -> None:
    api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED, 9_000)]))
    found = api.get("/v1/machines").json["machines"]
    assert [one["name"] for one in found] == ["gpu-001", "gpu-002", "off-001"]
    assert (found[0]["current"]["state"], found[0]["claims"]["served"]) == ("Booted", 1)
    assert (found[1]["current"], found[1]["claims"]["served"]) == (None, 0)
    one = api.get("/v1/machines/gpu-001").json
    assert one["match"]["macs"] == ["52:54:00:00:00:01"]
    assert [boot["boot"] for boot in one["boots"]] == [boot_id("gpu-001", 1)]
    assert one["decision"]["outcome"] == "unavailable"
    assert error(api.get("/v1/machines/gpu-01")) == (
        404,
        "no-such-machine",
        "the inventory has no machine of that name; did you mean gpu-001?",
        "see `netboot machine list`",
    )
    whose = {
        "52-54-00-00-00-01": "no machine is named 52:54:00:00:00:01; it is a MAC of gpu-001",
        "5254.0000.00aa": "no machine has the name or MAC 52:54:00:00:00:aa; "
        "`netboot machine declare 52:54:00:00:00:aa` declares one that asked",
    }
    for mac, words in whose.items():
        assert error(api.get(f"/v1/machines/{mac}"))[:3] == (404, "no-such-machine", words)


def test_conditions_are_shown_as_kubernetes_has_them(api: Api) -> None:
    condition = MachineCondition.of(ConditionType.BOOTED, Reason.STUCK, "said", NOW)
    api.kept.keep([Judged(machine="gpu-001", conditions=(condition,), timers={})], (), {})
    shown = {
        "type": "Booted",
        "status": "False",
        "reason": "Stuck",
        "message": "said",
        "lastTransitionTime": "2023-11-14T22:15:00.000Z",
    }
    assert [one["conditions"] for one in api.get("/v1/machines").json["machines"]] == [[shown], [], []]
    one = api.get("/v1/machines/gpu-001").json
    assert one["conditions"] == [shown]
    assert one["deadlines"]["Switched"] == {"seconds": 600, "said_by": ""}
    api.kept.close()
    for file in (api.config.data / "conditions.db").parent.glob("conditions.db*"):
        file.unlink()
    assert [one["conditions"] for one in api.get("/v1/machines").json["machines"]] == [None, None, None]
    assert api.get("/v1/machines/gpu-001").json["conditions"] is None


def test_boots(api: Api) -> None:
    api.states.take(
        Batch("boot-0.db", 1, 3, [script("gpu-001", 1), event("gpu-001", 1, Phase.FAILED), script("gpu-002", 2)])
    )
    assert [one["machine"] for one in api.get("/v1/boots").json["boots"]] == ["gpu-002", "gpu-001"]
    assert [one["machine"] for one in api.get("/v1/boots?limit=1").json["boots"]] == ["gpu-002"]
    only = api.get("/v1/boots?machine=gpu-001").json["boots"]
    assert [(one["state"], one["claim"], one["last_served"]) for one in only] == [("Failed", False, "ScriptServed")]
    assert api.get(f"/v1/boots/{boot_id('gpu-002', 2)}").json["claim"] is True
    assert api.get("/v1/boots?machine=off-001").json == {"boots": [], "continue": None}
    assert api.get("/v1/boots?machine=nobody").status_code == 404
    assert error(api.get("/v1/boots/x"))[:3] == (
        404,
        "no-such-boot",
        "no such boot: x was never heard of, or is longer ago than is kept",
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("limit=0", "limit: must be a whole number from 1 to 1000"),
        ("limit=1001", "limit: must be a whole number from 1 to 1000"),
        ("limit=%C2%B2", "limit: must be a whole number from 1 to 1000"),
        ("limit=" + "9" * 30, "limit: must be a whole number from 1 to 1000"),
        ("machnie=gpu-001", "unknown parameters: machnie; there are: continue, limit, machine"),
    ],
)
def test_parameters_that_make_no_sense(api: Api, query: str, words: str) -> None:
    assert error(api.get(f"/v1/boots?{query}")) == (400, "bad-request", words, "correct the request")


def test_where_there_are_no_parameters_that_is_said(api: Api) -> None:
    words = "unknown parameters: limit; there are: none"
    assert error(api.get("/v1/freeze?limit=3")) == (400, "bad-request", words, "correct the request")


def test_the_discovered(api: Api) -> None:
    api.states.take(Batch("boot-0.db", 1, 1, [sighted("52:54:00:00:00:99")]))
    assert [one["mac"] for one in api.get("/v1/discovered").json["discovered"]] == ["52:54:00:00:00:99"]


def test_who_may_boot_by_now_is_no_more_among_the_discovered(api: Api) -> None:
    """However many of the latest may; and who is known and disabled stays."""
    (disabled,) = [one["match"]["macs"][0] for one in api.get("/v1/machines").json["machines"] if not one["enabled"]]
    known = [one["match"]["macs"][0] for one in api.get("/v1/machines").json["machines"] if one["enabled"]]
    asked = ["52:54:00:00:00:99", disabled, *known]
    api.states.take(Batch("boot-0.db", 1, len(asked), [sighted(mac) for mac in asked]))
    for limit in (1, 100):
        there = api.get(f"/v1/discovered?limit={limit}").json["discovered"]
        assert [one["mac"] for one in there] == [disabled, "52:54:00:00:00:99"][:limit]


def test_explain_is_the_decision_that_is_served(api: Api) -> None:
    digest = add_image(api.config)
    api.store.set_channel("stable", digest)
    api.publisher.step()
    said = api.get("/v1/machines/gpu-001/explain").json["decision"]
    assert (said["outcome"], said["image"]["digest"]) == ("boot", digest)
    assert said["because"] == [
        "machine gpu-001 (inventory)",
        "profile compute uses channel stable",
        f"channel stable is image tiny {digest[:12]}",
    ]
    for claim, outcome in (
        ("mac=5254.0000.0001&arch=x86_64", "boot"),
        ("mac=525400000099", "unknown"),
        ("mac=52-54-00-00-00-01&serial=S2", "refused"),
        ("mac=525400000003", "refused"),
        ("", "unknown"),
    ):
        assert api.get(f"/v1/explain?{claim}").json["decision"]["outcome"] == outcome
    assert api.get("/v1/explain?mac=zz").json["claim"]["ignored"] != []
    assert api.get("/v1/explain?name=x").status_code == 400
    assert api.states.entries == []


def test_that_a_machine_was_told_to_wait_stays_known_when_it_may_boot_again(api: Api, run: Run) -> None:
    assert "waited" not in api.get("/v1/machines/gpu-001").json["claims"]
    heard = [waits("gpu-001", START + at, "channel stable has no image yet", "192.0.2.7") for at in (0, 301_000)]
    api.states.take(Batch("boot-0.db", 1, 2, heard))
    api.store.set_channel("stable", add_image(api.config))
    api.publisher.step()
    found = api.get("/v1/machines/gpu-001").json
    assert found["decision"]["outcome"] == "boot"
    assert found["claims"]["waited"] == {
        "reason": "channel stable has no image yet",
        "peer": "192.0.2.7",
        "first_at": rfc3339(START),
        "last_at": rfc3339(START + 301_000),
    }
    lines = run("machine", "show", "gpu-001").out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("told to wait"))
    assert lines[at : at + 2] == [
        "told to wait    since 2023-11-14 22:13:20Z, last 2023-11-14 22:18:21Z, whoever asked from 192.0.2.7",
        "                channel stable has no image yet",
    ]
    assert "told to wait" not in run("machine", "show", "gpu-002").out
    rows = [line for line in run("machine", "list").out.splitlines() if line.startswith("gpu-001 ")]
    assert [bool(re.search(r"  0 +[0-9]+ d ago", row)) for row in rows] == [True], "it has asked, and got no script"


def test_without_a_snapshot_nothing_can_be_told(tmp_path: Path) -> None:
    api = Api(tmp_path, publish=False)
    for path in ("/v1/machines", "/v1/channels", "/v1/explain?mac=525400000001"):
        answer = api.get(path)
        assert error(answer)[:2] == (503, "not-ready")
        assert answer.headers["Retry-After"] == "5"
    assert api.get("/readyz").status_code == 503
    assert api.get("/healthz").json == {"healthy": True}


def test_a_channel_is_moved_once_another_writer_of_the_store_has_ended(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(management, "STORE_SECONDS", 60.0)
    image = add_image(api.config)
    writer = compose(api.config, lambda: False).repository_writer
    with ThreadPoolExecutor(1) as pool:
        with Store(api.config.store).writing():
            moved = pool.submit(writer.point, "stable", image, "alice")
            assert wait([moved], 0.3).done == set()
        moved.result(60)
    assert api.get("/v1/channels/stable").json["image"] == image


def test_moving_a_channel(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    first, second = add_image(api.config), add_image(api.config, name="other", salt="2")
    with caplog.at_level(logging.INFO):
        said = api.put("/v1/channels/stable", {"image": first}).json
    assert (said["image"], said["image_name"], said["in_force"], said["machines"]) == (first, "tiny", None, 2)
    audit = next(record for record in caplog.records if record.getMessage() == "audit")
    fields = audit.__dict__["fields"]
    assert fields == {
        "act": "channel-set",
        "operator": "token 9d913f87",
        "role": "admin",
        "token": "9d913f87",
        "peer": "127.0.0.1",
        "channel": "stable",
        "image": first,
        "was": None,
        "ended_rollouts": [],
        "reason": "",
        "result": "done",
        "changed": True,
    }
    assert TOKEN not in caplog.text
    api.publisher.step()
    assert api.get("/v1/channels/stable").json["in_force"] == first
    assert api.put("/v1/channels/stable", {"image": "other"}).json["image"] == second
    assert api.put("/v1/channels/stable", {"image": first[:9]}).json["image"] == first


def test_a_channel_whose_file_is_damaged_is_mended_by_setting_it_as_is_said(api: Api) -> None:
    image = add_image(api.config)
    api.put("/v1/channels/stable", {"image": image})
    (api.config.store / "channels" / "stable.json").write_text("{")
    api.publisher.step(now=True)
    shown = api.get("/v1/channels/stable").json
    assert shown["image"] is None
    assert shown["unusable"].endswith("is damaged: set the channel again with `netboot channel set stable IMAGE`")
    answer = api.put("/v1/channels/stable", {"image": image})
    assert (answer.status_code, answer.json["image"]) == (200, image)
    api.publisher.step(now=True)
    shown = api.get("/v1/channels/stable").json
    assert (shown["image"], shown["in_force"], shown["unusable"]) == (image, image, None)


def test_a_channel_is_not_moved_to_what_cannot_boot(tmp_path: Path) -> None:
    api = Api(tmp_path, inventory=INVENTORY + f"  - {{name: frozen, image: {'a' * 64}}}\n")
    stranger = SigningKey.generate()
    strange = add_image(api.config, name="strange", key=stranger)
    add_image(api.config, name="arm", architecture="arm64")
    add_image(api.config, name="broken", salt="b")
    broken = next(one for one in api.store.images() if one.manifest.name == "broken")
    api.store.blob_path(broken.manifest.artifacts.initrd.sha256).unlink()
    place = f"{api.config.inventory / 'site.yaml'}:9"

    def refused(channel: str, image: object) -> tuple[int, str, str]:
        return error(api.put(f"/v1/channels/{channel}", {"image": image}))[:3]

    assert refused("nope", "arm") == (
        404,
        "no-such-channel",
        "the inventory declares no such channel; declared: stable, frozen",
    )
    assert refused("frozen", "arm") == (
        409,
        "channel-pinned",
        f"channel frozen is pinned to {'a' * 12} in {place}: edit it there",
    )
    assert refused("stable", "nothing") == (
        404,
        "no-such-image",
        "no image of the store has that name or digest; images: arm, broken, strange",
    )
    assert refused("stable", strange)[:2] == (422, "unknown-signer")
    assert refused("stable", "broken")[:2] == (502, "corrupt")
    assert refused("stable", "arm") == (
        422,
        "unfit-image",
        (
            "channel stable, 3 machines of no class (gpu-001, gpu-002, off-001): amd64, and arm is for arm64; "
            "give their profile a channel of their own architecture"
        ),
    )
    assert refused("stable", 7)[:2] == (400, "bad-request")
    assert refused("stable", "../../etc/passwd")[:2] == (400, "bad-request")
    assert api.store.channels() == {}
    forced = api.put("/v1/channels/stable", {"image": "arm", "force": True})
    assert (forced.status_code, forced.json["image_name"]) == (200, "arm")


def test_bodies_are_json_and_small(api: Api) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    plain = api.client.put("/v1/channels/stable", data="image=x", headers=headers)
    assert error(plain)[:2] == (415, "unsupported-media-type")
    broken = api.client.put("/v1/channels/stable", data="{", headers=headers, content_type="application/json")
    assert error(broken)[:2] == (400, "bad-request")
    large = api.put("/v1/channels/stable", {"image": "a" * 70_000})
    assert error(large)[:2] == (413, "request-entity-too-large")
    assert error(api.put("/v1/channels/stable", {"image": "tiny", "forced": True}))[0] == 400


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ('{"reason": "x", "dry_run": true, "dry_run": false}', "json", 'the body is an object with "dry_run" twice'),
        ("[" * 60_000, "json", "the body is nested too deep"),
        ('{"reason": "x", "seconds": ' + "9" * 5_000 + "}", "json", "the body is a number of 5000 digits"),
        (
            '{"reason": "x", "seconds": ' + "9" * 99 + "}",
            "json",
            "seconds: must be 31622400 at most",
        ),
        ('{"reason": "x", "dry_run": "true"}', "json", "dry_run: must be true or false"),
        ('{"reason": "x", "dry_run": 1}', "json", "dry_run: must be true or false"),
        ('{"reason": "x", "seconds": 90.0}', "json", "seconds: must be a whole number"),
        ('{"reason": "x", "seconds": "90"}', "json", "seconds: must be a whole number"),
        ('{"reason": "\\ud800"}', "json", "the body: Invalid JSON: "),
        ('{"reason": "x"}', "json; charset=utf-16", "Content-Type: JSON is UTF-8 alone"),
        ('{"reason": "x"}', "x+json", "The body has to be JSON, with Content-Type: application/json"),
    ],
)
def test_a_body_that_two_could_read_in_two_ways_is_refused(api: Api, body: str, kind: str, said: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    answer: Any = api.client.post(
        "/v1/machines/gpu-001/hold", data=body.encode(), content_type=f"application/{kind}", headers=headers
    )
    assert (answer.status_code, answer.json["detail"][: len(said)]) == (415 if kind == "x+json" else 400, said)
    assert api.get("/v1/intents").json["intents"] == []


def test_a_defect_beside_the_views_is_a_defect(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise RuntimeError("/etc/secret")

    monkeypatch.setattr(api.client.application.extensions["netboot"].idempotency, "keep", broken)
    headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": '"k"'}
    answer: Any = api.client.post("/v1/machines/gpu-001/hold", json={"reason": "x"}, headers=headers)
    said = answer.json
    assert (answer.status_code, said["code"], said["detail"]) == (500, "internal", "internal error")


def test_what_there_is_not(api: Api) -> None:
    assert error(api.get("/v2/machines"))[:2] == (404, "not-found")
    answer = api.client.delete("/v1/channels/stable", headers={"Authorization": f"Bearer {TOKEN}"})
    assert error(answer)[:2] == (405, "method-not-allowed")
    assert set(answer.headers["Allow"].replace(" ", "").split(",")) == {"GET", "HEAD", "OPTIONS", "PUT"}


def test_what_nobody_expected_tells_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("the secret of the house")

    monkeypatch.setattr(api.states, "discovered", fails)
    answer = api.get("/v1/discovered")
    assert error(answer) == (500, "internal", "internal error", "see the log of the service")
    assert "the secret of the house" in caplog.text


def with_an_image(api: Api) -> None:
    """So that its machines can boot."""
    api.store.set_channel("stable", add_image(api.config))
    api.publisher.step()


def test_readiness_in_order(api: Api) -> None:
    with_an_image(api)
    said = api.get("/readyz", None)
    assert said.status_code == 200
    assert (said.json["ready"], said.json["degraded"]) == (True, False)
    assert said.headers["Cache-Control"] == "no-store"
    assert said.json["details"]["snapshot"] == {"ok": True, "message": "in force", "machines": 3, "age_seconds": 0}


def test_a_newer_snapshot_that_cannot_be_read_leaves_the_service_ready_and_is_said(api: Api) -> None:
    assert api.get("/readyz", None).json["ready"]
    (api.config.data / "snapshot.json").write_bytes(b"{")
    readiness = api.get("/readyz", None)
    assert (readiness.status_code, readiness.json["ready"], readiness.json["degraded"]) == (200, True, True)
    snapshot = readiness.json["details"]["snapshot"]
    assert snapshot["ok"] is False
    assert snapshot["message"].endswith("; the one before stays in force")


def test_an_inventory_that_cannot_be_read_to_its_end_is_compared_with_nothing(api: Api) -> None:
    late = "its files are being read for 75 s, without an end"
    message = f"{late}; the one before stays in force"
    unread = InventoryStatus(ok=False, valid=False, message=message, remedy="see", late=late)
    api.say(publisher=PUBLISHER.model_copy(update={"inventory": unread}))
    readiness = api.get("/readyz", None).json
    assert (readiness["ready"], readiness["degraded"]) == (True, True)
    assert readiness["details"]["inventory"]["message"] == message
    assert "netboot_inventory_valid 0.0" in api.get("/metrics", None).text
    answer = api.get("/v1/inventory/diff")
    assert (answer.status_code, answer.json) == (
        503,
        {
            "type": "tag:netboot.dev,2026:problem/inventory-unread",
            "title": "the inventory cannot be read",
            "instance": answer.headers["X-Request-ID"],
            "status": 503,
            "code": "inventory-unread",
            "detail": f"the inventory cannot be compared: {late}",
            "remedy": "see `netboot doctor`",
        },
    )


STUCK = PUBLISHER.model_copy(update={"up_ms": UP_MS - 60_000})
FAULTY = InventoryStatus(ok=False, valid=False, message="2 faults", faults=("a", "b"), remedy="correct them")
DOWN = UP.model_copy(update={"ready": False})


@pytest.mark.parametrize(
    ("process", "status", "detail", "message", "code"),
    [
        (
            "supervisor",
            SUPERVISOR.model_copy(update={"state": "stopping"}),
            "processes",
            "the service is stopping",
            503,
        ),
        (
            "supervisor",
            SUPERVISOR.model_copy(update={"processes": {"boot-0": DOWN, "management": UP}}),
            "processes",
            "not ready: boot-0",
            200,
        ),
        ("publisher", STUCK, "publisher", "has said nothing for 60 s", 200),
        (
            "publisher",
            PUBLISHER.model_copy(update={"up_ms": UP_MS + 1}),
            "publisher",
            "has said nothing since the machine was started",
            200,
        ),
        (
            "projection",
            PROJECTION.model_copy(update={"up_ms": UP_MS - 10_001}),
            "projection",
            "has said nothing for 10 s",
            200,
        ),
        ("publisher", PUBLISHER.model_copy(update={"problem": "a defect"}), "publisher", "a defect", 200),
        ("projection", PROJECTION.model_copy(update={"problem": "a defect"}), "projection", "a defect", 200),
        ("publisher", PUBLISHER.model_copy(update={"inventory": FAULTY}), "inventory", "2 faults", 200),
        (
            "publisher",
            PUBLISHER.model_copy(update={"bundle": Condition(ok=False, message="no bundle")}),
            "bundle",
            "no bundle",
            200,
        ),
        (
            "projection",
            PROJECTION.model_copy(update={"lag_records": {"boot-0.db": 50_000}}),
            "journals",
            "50000 records wait to be taken over",
            200,
        ),
        (
            "projection",
            PROJECTION.model_copy(update={"problems": {"boot-0.db": "cannot be read"}}),
            "journals",
            "cannot be read",
            200,
        ),
        (
            "projection",
            PROJECTION.model_copy(update={"set_aside": {"boot-0.db": 2, "state.db": 1}}),
            "journals",
            "rows were set aside: boot-0.db 2, state.db 1",
            200,
        ),
    ],
)
def test_what_is_not_in_order_is_said(
    api: Api, process: str, status: Strict, detail: str, message: str, code: int
) -> None:
    api.say(**{process: status})
    answer = api.get("/readyz", None)
    assert answer.status_code == code
    assert answer.json["degraded"] is True
    assert (answer.json["details"][detail]["ok"], answer.json["details"][detail]["message"]) == (False, message)


def test_what_is_said_while_it_is_asked_is_not_of_before_the_machine_s_start(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = StatusFolder.read

    def later(folder: StatusFolder, process: str, model: type[Timed]) -> Timed | None:
        api.up_ms += 1
        said = read(folder, process, model)
        return said.model_copy(update={"up_ms": api.up_ms}) if isinstance(said, Timed) else said

    monkeypatch.setattr(StatusFolder, "read", later)
    processes = {"boot-0": UP, "management": UP, "nodes-default": UP}
    api.say(supervisor=SUPERVISOR.model_copy(update={"processes": processes}), nodes_default=NODES)
    answer = api.get("/readyz", None).json
    assert sorted(name for name, detail in answer["details"].items() if not detail["ok"]) == ["machines"]
    assert answer["details"]["nodes-default"]["message"] == "nodes are followed"


NODES = NodesStatus(at_ms=NOW, up_ms=UP_MS, ok=True, message="nodes are followed", unavailable=0, registered=2, ready=1)
HANGS = UP.model_copy(update={"ready": False, "problem": "nothing is heard of its main loop"})
FULL, FREE = "0 MiB free: what is to be written down soon cannot be", "free space on the file system of `data`"


@pytest.mark.parametrize("cause", ["full", "standing"])
def test_what_cannot_be_written_grows_old_and_nobody_is_taken_for_stuck(
    api: Api, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "monotonic_ms", lambda: 100_000)
    processes = {"boot-0": HANGS, "management": UP, "nodes-default": UP}
    api.say(
        supervisor=SUPERVISOR.model_copy(update={"uptime_ms": 40_000, "processes": processes}),
        publisher=STUCK,
        projection=PROJECTION.model_copy(update={"up_ms": UP_MS - 60_000}),
        nodes_default=NODES.model_copy(update={"up_ms": UP_MS - 60_000}),
    )
    fresh = api.get("/readyz", None).json
    assert (fresh["ready"], fresh["details"]["publisher"]["message"]) == (False, "has said nothing for 60 s")
    messages = {name: detail["message"] for name, detail in fresh["details"].items()}
    assert {name: message for name, message in messages.items() if message.startswith("last known")} == {
        "inventory": "last known: in force; publisher: has said nothing for 60 s",
        "images": "last known: all; publisher: has said nothing for 60 s",
        "bundle": "last known: fits; publisher: has said nothing for 60 s",
        "journals": "last known: taken over; projection: has said nothing for 60 s",
    }
    assert not any(fresh["details"][name]["ok"] for name in ("inventory", "images", "bundle", "journals"))
    if cause == "full":
        api.room, because, remedy = 0, FULL, FREE
    else:
        because, remedy = STANDING, "look at the disk of `data`"
        api.probe = Condition(ok=True, message=STANDING)
    said = api.get("/readyz", None).json
    words = f"what it said last is 60 s old, for nothing can be written: {because}"
    for name in ("processes", "publisher", "projection", "nodes-default"):
        detail = said["details"][name]
        assert (detail["ok"], detail["message"], detail["remedy"]) == (False, words, remedy)
    assert set(said["details"]["processes"]["processes"]) == set(processes)
    assert (said["ready"], said["degraded"]) == (True, True), "whether machines can boot, the boot servers say"


def test_what_was_never_written_on_a_full_disk_has_its_cause(api: Api) -> None:
    for path in (api.config.data / "status").iterdir():
        path.unlink()
    api.room = 0
    details = api.get("/readyz", None).json["details"]
    for name in ("processes", "publisher", "projection"):
        assert details[name] == {"ok": False, "message": f"what it says cannot be written: {FULL}", "remedy": FREE}


def test_the_inventorys_faults_stand_beside(api: Api) -> None:
    api.say(publisher=PUBLISHER.model_copy(update={"inventory": FAULTY}))
    assert api.get("/readyz", None).json["details"]["inventory"] == {
        "ok": False,
        "message": "2 faults",
        "remedy": "correct them",
        "valid": False,
        "lately": 0,
        "late": "",
        "faults": ["a", "b"],
        "left_out": 0,
        "pending": None,
    }


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file: Invalid JSON: EOF while parsing a value at line 1 column 0"),
        (PUBLISHER.model_dump_json().encode()[:-9], None),
        (b'{"at_ms":"1"}', None),
        (PUBLISHER.model_dump_json().replace('"valid"', '"usable"').encode(), "inventory.valid: Field required"),
        (PUBLISHER.model_dump_json().replace('{"at_ms"', '{"more":1,"at_ms"').encode(), None),
    ],
)
def test_a_status_that_is_torn_or_of_another_version_cannot_be_told(api: Api, content: bytes, why: str | None) -> None:
    file = api.config.data / "status" / "publisher.json"
    file.write_bytes(content)
    answer = api.get("/readyz", None)
    said = answer.json["details"]
    assert (answer.status_code, answer.json["degraded"], said["publisher"]["ok"]) == (200, True, False)
    assert said["publisher"]["message"].startswith(f"cannot tell: {file} is not what this version writes: {why or ''}")
    assert said["publisher"]["remedy"] == "restart the service, so that all of its processes are of one version"
    for name in ("inventory", "images", "bundle"):
        assert (said[name]["ok"], said[name]["message"]) == (False, "not known yet")
    assert "netboot_inventory_valid" not in api.get("/metrics", None).text


@pytest.mark.parametrize("process", ["supervisor", "projection", "nodes-default"])
def test_no_torn_file_of_any_process_is_taken_for_order(api: Api, process: str) -> None:
    with_an_image(api)
    api.say(
        supervisor=SUPERVISOR.model_copy(update={"processes": {"boot-0": UP, "nodes-default": UP}}), nodes_default=NODES
    )
    assert api.get("/readyz", None).json["degraded"] is False
    (api.config.data / "status" / f"{process}.json").write_bytes(b"{")
    answer = api.get("/readyz", None)
    assert (answer.status_code, answer.json["degraded"]) == (200, True)
    detail = answer.json["details"]["processes" if process == "supervisor" else process]
    assert "cannot tell: " in detail["message"]
    assert api.get("/metrics", None).status_code == 200


def test_without_the_provisioning_listener_it_is_not_ready(api: Api) -> None:
    api.probe = Condition(ok=False, message="127.0.0.1:8080 does not answer: timed out")
    answer = api.get("/readyz", None)
    assert answer.status_code == 503
    assert answer.json["details"]["provisioning"]["message"] == "127.0.0.1:8080 does not answer: timed out"


def test_metrics(api: Api) -> None:
    api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED)]))
    lines = api.get("/metrics", None).text.splitlines()
    for line in (
        "netboot_machines 3.0",
        'netboot_machines_by_state{state="Booted"} 1.0',
        "netboot_inventory_valid 1.0",
        'netboot_projection_lag_records{journal="boot-0.db"} 0.0',
        'netboot_process_ready{process="boot-0"} 1.0',
        'netboot_process_restarts_total{process="boot-0"} 0.0',
    ):
        assert line in lines
    api.say(publisher=PUBLISHER.model_copy(update={"inventory": FAULTY}))
    api.say(projection=PROJECTION.model_copy(update={"set_aside": {"state.db": 2}}))
    lines = api.get("/metrics", None).text.splitlines()
    assert "netboot_inventory_valid 0.0" in lines
    assert 'netboot_projection_set_aside_total{origin="state.db"} 2.0' in lines


def test_watching(api: Api) -> None:
    api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), script("gpu-002", 1)]))
    answer = api.get("/v1/boots/watch?since=0&machine=gpu-002")
    lines = iter(answer.response)
    first, beat = json.loads(next(lines)), json.loads(next(lines))
    assert (first["event"]["machine"], first["event"]["phase"]) == ("gpu-002", "ScriptServed")
    assert beat == {"heartbeat": rfc3339(NOW), "since": 2}
    api.states.take(Batch("boot-0.db", 1, 3, [event("gpu-002", 1, Phase.BOOTED)]))
    assert json.loads(next(lines))["event"]["phase"] == "Booted"
    api.stopping = True
    assert list(lines) == []
    answer.close()


def test_watching_as_server_sent_events_goes_on_where_it_was(api: Api) -> None:
    api.states.take(Batch("boot-0.db", 1, 3, [script("gpu-001", 1), script("gpu-002", 1), script("gpu-002", 2)]))
    accepts = {"Accept": "text/event-stream", **api.authorised}
    answer = api.client.get("/v1/boots/watch?since=0", headers=accepts)
    assert (answer.status_code, answer.content_type) == (200, "text/event-stream; charset=utf-8")
    lines: Any = iter(answer.response)
    first, second, third, beat = (next(lines).decode() for _ in range(4))
    assert first.startswith('data: {"event": {')
    assert second.startswith('data: {"event": {')
    assert third.startswith('id: 3\ndata: {"event": {')
    assert beat == f'id: 3\ndata: {{"heartbeat": "{rfc3339(NOW)}", "since": 3}}\n\n'
    assert [each[-2:] for each in (first, second, third)] == ["\n\n"] * 3
    answer.close()
    again = api.client.get("/v1/boots/watch?since=0", headers={**accepts, "Last-Event-ID": "2"})
    lines = iter(again.response)
    assert json.loads(next(lines).partition(b"data: ")[2])["event"]["id"] == 3
    again.close()
    for last in ("", "x", "9" * 19):
        said = error(api.client.get("/v1/boots/watch", headers={**accepts, "Last-Event-ID": last}))
        assert said[2] == "Last-Event-ID: is not the id of an event of this stream"
    of_machine = api.client.get("/v1/machines/gpu-001/events/watch", headers={**accepts, "Last-Event-ID": "x"})
    assert error(of_machine)[:2] == (400, "bad-request")


AFTER = "that place is after all that there is: the state was lost, or an older copy was restored"
BEFORE = "what came after that place is not kept any more"


@pytest.mark.parametrize(
    ("since", "gap", "on"), [(90, AFTER, 6), (2, BEFORE, 3), (3, None, 3), (6, None, 6), (0, None, 0)]
)
def test_who_watches_from_where_something_is_missing_is_told_and_goes_on(
    api: Api, monkeypatch: pytest.MonkeyPatch, since: int, gap: str | None, on: int
) -> None:
    """Of six entries the first three are not kept any more. 0: from the beginning of what is."""
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 0.1)
    api.states.take(Batch("boot-0.db", 1, 6, [script("gpu-001", number) for number in range(1, 7)]))
    del api.states.entries[:3]
    answer = api.get(f"/v1/boots/watch?since={since}")
    lines = map(json.loads, iter(answer.response))
    if gap is not None:
        assert next(lines) == {"gap": gap, "since": on}
    told = list(itertools.takewhile(lambda line: "heartbeat" not in line or line["since"] < 6, lines))
    answer.close()
    assert [line["event"]["id"] for line in told if "event" in line] == [n for n in (4, 5, 6) if n > on]


def test_who_watches_while_the_state_is_lost_is_told(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 0.0)
    api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-001", 1), script("gpu-002", 1)]))
    accepts = {"Accept": "text/event-stream", **api.authorised}
    answer = api.client.get("/v1/boots/watch?since=2", headers=accepts)
    lines: Any = iter(answer.response)
    assert b'"heartbeat"' in next(lines)
    lost = api.states.entries[1:]
    del api.states.entries[1:]
    assert next(lines).decode() == f'id: 1\ndata: {{"gap": "{AFTER}", "since": 1}}\n\n'
    api.states.entries += lost
    assert b'"event"' in next(line for line in lines if b"heartbeat" not in line)
    answer.close()


def test_watchers_are_bounded_and_give_their_places_back(api: Api) -> None:
    bob, carol = (given(api, name, Role.VIEWER) for name in ("bob", "carol"))
    watching = [api.get("/v1/boots/watch", token) for token in (TOKEN, bob)]
    assert error(api.get("/v1/boots/watch", carol)) == (503, "overloaded", "2 watch already", "try again")
    assert error(api.get("/v1/boots/watch?machine=nobody"))[0] == 404
    for one in watching:
        one.close()
        one.close()
    again = api.get("/v1/boots/watch", carol)
    assert again.status_code == 200
    again.close()


def test_nobody_has_more_than_half_of_the_places_for_watchers(tmp_path: Path) -> None:
    api = of_alice(Api(tmp_path, places=5))
    watching = [api.get("/v1/boots/watch") for _ in range(2)]
    said = error(api.get("/v1/boots/watch"))[1:3]
    assert said == ("overloaded", "you watch 2 times already, and more of 5 places nobody has")
    bob = given(api, "bob", Role.VIEWER)
    watching += [api.get("/v1/boots/watch", bob) for _ in range(2)]
    assert [each.status_code for each in watching] == [200] * 4
    watching[0].close()
    assert api.get("/v1/boots/watch").status_code == 200


def _lines_of(answer: Any, most: int = 50) -> int:
    """How many it still has, `most` where it has no end."""
    return sum(1 for _ in itertools.islice(answer.response, most))


def test_a_watch_ends_with_its_token(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 0.0)
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.0)
    token = given(api, "mallory", Role.VIEWER)
    watching, of_machine = api.get("/v1/boots/watch", token), api.get("/v1/machines/gpu-001/events/watch")
    assert (_lines_of(watching), _lines_of(of_machine)) == (50, 50)
    kept = api.config.management.tokens.read_bytes()
    access_tokens.change(api.config.management.tokens, lambda there: there.model_copy(update={"tokens": ()}))
    assert (_lines_of(watching), _lines_of(of_machine)) == (0, 50)
    for answer in (watching, of_machine):
        answer.close()
    api.config.management.tokens.write_bytes(kept)
    api.states.take(Batch("boot-0.db", 1, 3, [script("gpu-001", number) for number in (1, 2, 3)]))
    watching = api.get("/v1/boots/watch?since=0", token)
    assert _lines_of(watching, 1) == 1  # and there is more at once
    access_tokens.change(api.config.management.tokens, lambda there: there.model_copy(update={"tokens": ()}))
    assert _lines_of(watching) == 0


def test_a_watch_goes_on_for_a_minute_where_nobody_can_tell_whose_a_token_is(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 0.0)
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.0)
    watching = api.get("/v1/boots/watch", given(api, "bob", Role.VIEWER))
    api.config.management.tokens.write_text("{")
    assert _lines_of(watching) == 50
    monkeypatch.setattr(watch, "UNSURE_SECONDS", 0.0)
    assert _lines_of(watching) == 0


GUARDED = [route for route in ROUTES if route.guarded]


@pytest.mark.parametrize("route", GUARDED, ids=lambda route: f"{route.method} {route.path}")
def test_a_parameter_that_there_is_not_is_refused_everywhere(api: Api, route: Route) -> None:
    path = (
        re.sub(r"<int:\w+>", "1", route.path)
        .replace("<kind:kind>", "racks")
        .replace("<name>", "gpu-001")
        .replace("<", "")
        .replace(">", "")
    )
    body: Any = None if route.method in ("GET", "DELETE") else {}
    answer: Any = api.client.open(f"{path}?labelz=a", method=route.method, headers=api.authorised, json=body)
    assert (answer.status_code, answer.json["detail"].partition(";")[0]) == (400, "unknown parameters: labelz")


@pytest.mark.parametrize(
    ("path", "key", "name"), [("machines", "machines", "name"), ("enrolments", "enrolments", "machine")]
)
def test_lists_come_in_pages(api: Api, path: str, key: str, name: str) -> None:
    found = []
    query = "?limit=2"
    for wanted in (2, 1):
        answer = api.get(f"/v1/{key}{query}").json
        assert len(answer[key]) == wanted
        found += [each[name] for each in answer[key]]
        query = f"?limit=2&continue={answer['continue']}"
    assert (found, answer["continue"]) == (["gpu-001", "gpu-002", "off-001"], None)
    assert api.get(f"/v1/{key}").json["continue"] is None
    said = error(api.get(f"/v1/{key}?continue=nowhere"))
    assert said == (400, "bad-request", "continue: is not what an answer gave", "correct the request")


def test_a_parameter_is_given_once(api: Api) -> None:
    said = error(api.get("/v1/boots?limit=1&limit=2"))
    assert said == (400, "bad-request", "limit: is given more than once", "correct the request")


def test_the_document_is_the_one_that_the_command_prints(api: Api, run: Run) -> None:
    served = api.get("/v1/openapi.json")
    assert (served.status_code, served.json["openapi"]) == (200, "3.1.0")
    assert json.loads(run("api", "openapi").out) == served.json
    assert api.get("/v1/openapi.json", None).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/none", None, 404),
        ("PATCH", "/v1/boots", None, 405),
        ("POST", "/v1/freeze", {"reason": 1}, 400),
        ("POST", "/v1/freeze", "{", 400),
        ("POST", "/v1/freeze", "x" * 70_000, 413),
        ("POST", "/v1/freeze", "reason=x", 415),
    ],
)
def test_whatever_is_refused_is_a_problem_of_this_request(
    api: Api, method: str, path: str, body: object, status: int
) -> None:
    data = body if isinstance(body, str) else json.dumps(body)
    headers = {"X-Request-ID": "of-mine.1", **api.authorised}
    kind = "text/plain" if status == 415 else "application/json"
    answer = api.client.open(path, method=method, data=data, content_type=kind, headers=headers)
    assert (error(answer)[0], answer.get_json()["instance"]) == (status, "of-mine.1")


def test_a_defect_is_a_problem_and_tells_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_limit: int) -> None:
        raise RuntimeError("/etc/secret")

    monkeypatch.setattr(api.states, "discovered", broken)
    said = error(api.get("/v1/discovered"))
    assert said == (500, "internal", "internal error", "see the log of the service")


def test_every_route_says_what_it_answers(api: Api) -> None:
    for route in ROUTES:
        said = signature(route.view)
        assert said.answers or route.raw, f"{route.method} {route.path} returns no model"
        assert said.body or route.takes or route.method in ("GET", "DELETE"), f"{route.path} does not say what it takes"
    served = {
        (method, rule.rule)
        for rule in api.client.application.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert served == {(route.method, route.path) for route in ROUTES}


def test_a_netboot_that_does_not_know_its_version_has_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netboot.web.openapi.build", lambda: ("", "", "3.11"))
    assert document(ROUTES)["info"]["version"] == "unknown"


def test_the_document_is_closed_and_every_reference_in_it_leads_somewhere(api: Api) -> None:
    document = api.get("/v1/openapi.json").json
    schemas = document["components"]["schemas"]
    open_ones = {name for name, each in schemas.items() if each.get("additionalProperties") is True}
    assert open_ones == {"Detail"}, "a line of /readyz says more of itself"
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert '"#/$defs' not in json.dumps(document)
    assert referred == set(schemas)
    [required] = [
        (path, each["name"])
        for path, one in document["paths"].items()
        for each in one.get("get", {}).get("parameters", ())
        if each["in"] == "query" and each["required"]
    ]
    assert required == ("/v1/images/{digest}/diff", "with")
    operations = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(operations)) == len(operations)
