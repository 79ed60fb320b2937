"""What a machine reported of its hardware, as operators see it: the API, the command line, metrics."""

import json
from pathlib import Path

import pytest

from netboot.clock import rfc3339
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.health import STALE_MS
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from tests.commands import Run
from tests.records import START, boot_id, checked, event, script
from tests.sites import INVENTORY
from tests.sockets.api import NOW, Api

SITE = INVENTORY.replace("kernel_arguments: [quiet]}", "kernel_arguments: [quiet], health: {gpus: 8, cpus: 64}}")
BOOT = boot_id("gpu-001", 1)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path, inventory=SITE)


@pytest.fixture
def run(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr("netboot.cli.times.time", lambda: NOW / 1000)
    return run


def report(api: Api, status: str = "fail", after_ms: int = 600) -> None:
    records: list[AnyRecord] = [
        script("gpu-001", 1),
        event("gpu-001", 1, Phase.BOOTED),
        checked("gpu-001", 1, status, after_ms, name="gpu-count"),
    ]
    last = api.states.cursor("boot-0.db")[1] + len(records)
    api.states.take(Batch("boot-0.db", 1, last, records))


def test_the_report_of_the_current_boot(api: Api) -> None:
    path = "/v1/machines/gpu-001/health"
    assert api.get(path).json == {"machine": "gpu-001", "expected": {"gpus": 8, "cpus": 64}, "checked": None}
    report(api)
    found = api.get(path).json["checked"]
    check = {"name": "gpu-count", "status": "fail", "severity": "major", "summary": "it is fail", "remedy": ""}
    assert found == {
        "boot": BOOT,
        "at": rfc3339(START + 1_600),
        "source": "reported",
        "peer": "192.0.2.7",
        "status": "fail",
        "stale": False,
        "report": {
            "schema": 1,
            "machine": "gpu-001",
            "mac": None,
            "taken_at": rfc3339(START),
            "uptime_ms": 0,
            "expected": [],
            "checks": [{**check, "ms": 3, "facts": {}}],
        },
    }
    assert api.get("/v1/machines/gpu-001").json["checked"] == found
    assert api.get("/v1/machines/gpu-001/explain").json["checked"] == found
    assert api.get(f"/v1/boots/{BOOT}").json["checked"] == found
    listed = {one["name"]: one["checked"] for one in api.get("/v1/machines").json["machines"]}
    assert listed == {
        "gpu-001": {"status": "fail", "at": rfc3339(START + 1_600), "stale": False},
        "gpu-002": None,
        "off-001": None,
    }


def test_a_machine_that_there_is_not(api: Api) -> None:
    answer = api.get("/v1/machines/gpu-01/health")
    assert (answer.status_code, answer.json["code"]) == (404, "no-such-machine")
    assert api.get("/v1/machines/gpu-001/health?x=1").status_code == 400
    assert api.get("/v1/machines/gpu-001/health", token=None).status_code == 401


def test_a_report_grows_stale(api: Api, run: Run) -> None:
    at = NOW - STALE_MS - START - 1_000
    report(api, "pass", at)
    assert api.get("/v1/machines/gpu-001/health").json["checked"]["stale"] is False
    report(api, "pass", at - 1)
    assert api.get("/v1/machines/gpu-001/health").json["checked"]["stale"] is True
    assert run("machine", "health", "gpu-001").out.startswith(
        "machine gpu-001   pass, reported 20 min ago, too long ago to tell anything of now\n"
    )
    assert " pass (stale) " in run("machine", "list").out


def metric(api: Api) -> dict[str, float]:
    lines = [line for line in api.get("/metrics").text.splitlines() if line.startswith("netboot_machines_by_health{")]
    return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines}


def test_machines_are_counted_by_their_worst_check(api: Api) -> None:
    counts = {"pass": 0, "warn": 0, "fail": 0, "unknown": 0, "stale": 0, "none": 3}
    assert metric(api) == counts, "those that never booted are there"
    api.states.take(Batch("boot-1.db", 1, 1, [event("gpu-002", 1, Phase.BOOTED)]))
    report(api, "fail")
    assert metric(api) == {**counts, "fail": 1, "none": 2}


def test_commands_before_any_report(run: Run) -> None:
    assert run("machine", "health", "gpu-001") == (
        0,
        "machine gpu-001   no health report of its current boot\nexpected: cpus 64, gpus 8\n\nno checks yet\n",
        "",
    )
    status, _, said = run("machine", "health", "gpu-01")
    assert status == 3
    assert "did you mean gpu-001?" in said


def test_commands_show_what_is_not_in_order(api: Api, run: Run) -> None:
    report(api)
    out = run("machine", "health", "gpu-001", "--facts").out.splitlines()
    assert out[0] == "machine gpu-001   fail, reported 98 s ago"
    assert out[3].split() == ["check", "status", "severity", "what", "was", "found", "what", "to", "do"]
    assert out[4].split() == ["gpu-count", "fail", "major", "it", "is", "fail"]
    assert json.loads(run("machine", "health", "gpu-001", "--output", "json").out)["checked"]["status"] == "fail"
    assert (
        "health          fail, reported 98 s ago\n                fail (major): gpu-count: it is fail\n"
        in run("machine", "show", "gpu-001").out
    )
    assert (
        "  health         fail, reported 98 s ago\n                 fail (major): gpu-count: it is fail\n"
        in run("explain", "gpu-001").out
    )
    assert "\nhealth fail, reported 98 s ago\n" in run("boot", "show", BOOT).out
    (row,) = [line for line in run("machine", "list").out.splitlines() if line.startswith("gpu-001")]
    assert " fail " in row
