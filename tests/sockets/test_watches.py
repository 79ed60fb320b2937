"""Watching the fleet, a rollout, drains, who was discovered, the audit: what is now, and each time it is otherwise."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netboot.lifecycle.roles import Role
from netboot.lifecycle.state import Batch
from netboot.web import changes, watch
from tests.browser.world import World
from tests.records import sighted
from tests.sockets.api import NOW, Api, given

KINDS = ("fleet", "rollouts/1", "drains", "discovered")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(watch, "HEARTBEAT_SECONDS", 0.0)
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0.0)


def lines(answer: Any) -> Iterator[Any]:
    assert answer.status_code == 200, answer.text
    return map(json.loads, answer.response)


@pytest.mark.parametrize("kind", KINDS)
def test_one_is_told_how_it_is_and_goes_on_from_there_without_a_gap(world: World, kind: str) -> None:
    answer = world.api.get(f"/v1/{kind}/watch")
    first, beat, another = (next(lines(answer)) for _ in range(3))
    answer.close()
    shown = world.api.get(f"/v1/{kind}?members=false" if "rollouts" in kind else f"/v1/{kind}").json
    assert {name: value for name, value in first["event"].items() if name != "at"} == {
        name: value for name, value in shown.items() if name in first["event"] and name != "at"
    }
    assert set(shown) - set(first["event"]) <= {"members", "by_rack", "history"}
    assert (len(beat["since"]), "heartbeat" in another, another["since"]) == (32, True, beat["since"])
    again = world.api.get(f"/v1/{kind}/watch?since={beat['since']}")
    assert "heartbeat" in next(lines(again)), "nothing is otherwise, so nothing is told"
    again.close()
    headers = {**world.api.authorised, "Accept": "text/event-stream", "Last-Event-ID": beat["since"]}
    events: Any = world.api.client.get(f"/v1/{kind}/watch", headers=headers)
    assert next(iter(events.response)).startswith(f'id: {beat["since"]}\ndata: {{"heartbeat"'.encode())
    events.close()
    headers["Last-Event-ID"] = "17"
    refused = world.api.client.get(f"/v1/{kind}/watch", headers=headers).get_json()
    assert (refused["status"], refused["field"]) == (400, "Last-Event-ID")
    assert world.api.get(f"/v1/{kind}/watch?since=17").status_code == 400


def test_a_change_is_told_and_who_only_asks_again_is_none(tmp_path: Path) -> None:
    api = Api(tmp_path)
    answer = api.get("/v1/discovered/watch")
    told = lines(answer)
    assert next(told)["event"]["discovered"] == []
    assert "heartbeat" in next(told)
    api.states.take(Batch("boot-0.db", 1, 2, [sighted("52:54:00:00:00:09", NOW)]))
    assert [each["key"] for each in next(told)["event"]["discovered"]] == ["52:54:00:00:00:09"]
    assert "heartbeat" in next(told)
    api.states.take(Batch("boot-0.db", 1, 3, [sighted("52:54:00:00:00:09", NOW + 9)]))
    assert "heartbeat" in next(told)
    answer.close()


def test_what_is_not_there_is_said_by_a_status_and_gives_its_place_back(world: World) -> None:
    for _ in range(20):
        assert world.api.get("/v1/rollouts/99/watch").status_code == 404
    assert world.api.get("/v1/fleet/watch", None).status_code == 401


def test_acts_and_refusals_come_as_they_are_written(tmp_path: Path) -> None:
    api = Api(tmp_path)
    viewer = {"Authorization": f"Bearer {given(api, 'carol', Role.VIEWER)}"}
    assert api.post("/v1/machines/gpu-001/hold", {"reason": "DIMM 4"}).status_code == 200
    answer = api.get("/v1/audit/watch")
    told = lines(answer)
    assert next(told) | {"heartbeat": ""} == {"heartbeat": "", "since": 1}, "from now on"
    api.client.post("/v1/machines/gpu-001/hold", json={"reason": "x"}, headers=viewer)
    assert api.post("/v1/machines/gpu-001/unhold", {}).status_code == 200
    events = [line["event"] for _, line in zip(range(6), told, strict=False) if "event" in line]
    assert [(each["id"], each["who"], each["result"]) for each in events] == [
        (2, "carol", "not-allowed"),
        (3, "token 9d913f87", "done"),
    ]
    answer.close()
    newest = api.get("/v1/audit?limit=1").json["audit"]
    assert events[-1] == newest[0]
    headers = {**api.authorised, "Accept": "text/event-stream", "Last-Event-ID": "2"}
    answer = api.client.get("/v1/audit/watch?since=0", headers=headers)  # where a browser began
    assert b'"id": 3,' in next(iter(answer.response))
    answer.close()
    answer = api.get("/v1/audit/watch?since=9")
    told = lines(answer)
    assert next(told) == {"gap": "that place is after all that there is: the audit was lost, or is older", "since": 3}
    answer.close()


def test_records_that_are_not_kept_any_more_are_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netboot.stores.audit.KEPT", {False: 1, True: 1})
    api = Api(tmp_path)
    for reason in "abc":
        assert api.post("/v1/machines/gpu-001/hold", {"reason": reason}).status_code == 200
    answer = api.get("/v1/audit/watch?since=1")
    told = lines(answer)
    assert next(told) == {"gap": "what came after that place is not kept any more", "since": 2}
    assert next(line for line in told if "event" in line)["event"]["reason"] == "c"
    answer.close()
    answer = api.get("/v1/audit/watch?since=0")
    assert next(lines(answer))["event"]["reason"] == "c", "all that is kept, and no gap"
    answer.close()
