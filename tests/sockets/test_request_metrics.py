"""How many requests were answered with which status, and how long that took: by route, each once, as a metric."""

import re
import subprocess
from pathlib import Path

import pytest

from netboot.web.metrics import exposition
from netboot.web.request_metrics import Asked, Requests
from tests.sites import TOKEN
from tests.sockets.api import HERE, Api


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def counted(api: Api) -> dict[tuple[str, str, str], float]:
    found = re.findall(
        r'^netboot_management_requests_total\{code="(\d+)",method="(\w*)",route="([^"]*)"\} ([\d.]+)$',
        api.get("/metrics", None).text,
        re.MULTILINE,
    )
    return {(method, route, code): float(count) for code, method, route, count in found if route != "/metrics"}


def test_each_answer_is_counted_by_its_route_and_status(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, hold = "/v1/machines/gpu-001", {"reason": "x"}
    assert api.get(machine).status_code == 200
    assert api.get("/v1/machines/gpu-002").status_code == 200
    assert api.get("/v1/machines/none").status_code == 404
    assert api.post(f"{machine}/hold", hold).status_code == 200
    changed = api.client.post(f"{machine}/hold", json=hold, headers=api.authorised | {"If-Match": '"x"'})
    assert changed.status_code == 412
    assert api.post("/v1/channels/stable", {}).status_code == 405
    assert api.client.open("/no/such/path", method="MADEUP").status_code == 404
    monkeypatch.setattr(api.states, "boots", None)  # a defect
    assert api.get(machine).status_code == 500
    assert counted(api) == {
        ("", "", "404"): 1,
        ("", "", "405"): 1,
        ("GET", "/v1/machines/<name>", "200"): 2,
        ("GET", "/v1/machines/<name>", "404"): 1,
        ("GET", "/v1/machines/<name>", "500"): 1,
        ("POST", "/v1/machines/<name>/hold", "200"): 1,
        ("POST", "/v1/machines/<name>/hold", "412"): 1,
    }


def test_a_route_is_written_as_the_document_writes_it(api: Api) -> None:
    """In metrics, in the audit and in its log: no converter of the program's."""
    assert api.post("/v1/rollouts/7/pause", {}).status_code == 404
    assert api.get("/v1/inventory/racks/r9").status_code == 404
    path, headers = "/v1/inventory/racks/r9", api.authorised | {"If-None-Match": "*"}
    assert api.client.put(path, json={"declared": {"name": "r9"}}, headers=headers).status_code == 409
    pause, rack = "/v1/rollouts/<number>/pause", "/v1/inventory/<kind>/<name>"
    assert counted(api) == {("POST", pause, "404"): 1, ("GET", rack, "404"): 1, ("PUT", rack, "409"): 1}
    assert f'netboot_management_refused_total{{code="404",route="{pause}"}} 1.0' in api.get("/metrics", None).text
    assert [each["act"] for each in api.get("/v1/audit").json["audit"]] == [f"PUT {rack}", f"POST {pause}"]


def test_what_the_page_asks_of_the_api_is_not_counted_again(api: Api) -> None:
    client = api.client.application.test_client()
    assert client.post("/page/login", data={"token": TOKEN}, headers={"Origin": HERE}).status_code == 303
    assert client.get("/page/machines/gpu-001").status_code == 200
    assert counted(api) == {("POST", "/page/login", "303"): 1, ("GET", "/page/machines/<name>", "200"): 1}


def test_how_long_they_took_is_a_histogram_of_seconds() -> None:
    requests, listed = Requests(), Asked("GET", "/v1/machines")
    for seconds in (0.004, 0.25, 0.3, 60.0):
        requests.count(listed, 200, seconds)
    text = exposition(requests).decode()
    of = 'netboot_management_request_duration_seconds_bucket{{le="{}",method="GET",route="/v1/machines"}} {}\n'
    bounds = {"0.01": 1, "0.1": 1, "0.25": 2, "0.5": 3, "10.0": 3, "+Inf": 4}
    assert all(of.format(bound, float(count)) in text for bound, count in bounds.items()), text
    assert 'netboot_management_request_duration_seconds_count{method="GET",route="/v1/machines"} 4.0\n' in text
    assert 'netboot_management_request_duration_seconds_sum{method="GET",route="/v1/machines"} 60.554\n' in text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_request_s_time_is_until_its_answer_begins(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter((10.0, 12.0, 20.0, 20.5))
    monkeypatch.setattr(api.client.application.extensions["netboot.requests"], "now", lambda: next(clock))
    assert api.get("/v1/channels").status_code == 200
    text = api.get("/metrics", None).text
    assert 'request_duration_seconds_sum{method="GET",route="/v1/channels"} 2.0\n' in text
