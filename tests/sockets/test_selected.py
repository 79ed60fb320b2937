"""Machines by selectors, and lists in pages: `limit` and `continue` of machines, boots, events and those discovered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from tests.commands import Run, said
from tests.records import event, script, sighted
from tests.sites import INVENTORY
from tests.sockets.api import NOW, Api

LABELLED = INVENTORY.replace("serial: S2}", "serial: S2}, node: {labels: {gpu: h100}}")


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path, inventory=LABELLED)


def names(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json["machines"]]


def pages(api: Api, path: str, kind: str, limit: int) -> list[list[Any]]:
    found, after = list[list[Any]](), ""
    while True:
        answer = api.get(f"{path}{'&' if '?' in path else '?'}limit={limit}{after}").json
        found.append(answer[kind])
        if answer["continue"] is None:
            return found
        after = f"&continue={answer['continue']}"


def flat(found: Sequence[list[Any]]) -> list[Any]:
    return [each for page in found for each in page]


def test_machines_are_selected_by_labels_and_by_fields(api: Api) -> None:
    everybody = names(api.get("/v1/machines"))
    assert names(api.get("/v1/machines?selector=gpu%3Dh100")) == ["gpu-002"]
    rest = [name for name in everybody if name != "gpu-002"]
    assert names(api.get("/v1/machines?selector=gpu%20notin%20(h100)")) == rest
    assert names(api.get("/v1/machines?fieldSelector=enabled%3Dfalse")) == ["off-001"]
    assert names(api.get("/v1/machines?selector=!gpu&fieldSelector=name%3Dgpu-002")) == []
    assert [len(page) for page in pages(api, "/v1/machines?selector=!gpu", "machines", 1)] == [1] * len(rest)


def test_the_command_line_selects(api: Api, run: Run) -> None:
    listed = said(run, "machine", "list", "-l", "gpu=h100", "--field-selector", "profile=compute").splitlines()
    assert [line.split()[0] for line in listed] == ["machine", "gpu-002"]
    assert said(run, "machine", "list", "-l", "gpu=none") == "no machine is selected\n"
    assert said(run, "machine", "list", "-l", "gpu=h100", "-o", "name") == "gpu-002\n"
    assert said(run, "machine", "enrolments", "-l", "gpu=h100", "-o", "name") in ("gpu-002\n", "")
    assert said(run, "machine", "holds", "-l", "gpu=h100", "-o", "jsonpath=$.intents") == "[]\n"
    assert run("machine", "drains", "-l", "gpu=h100", "-o", "jsonpath=$.drains").out == "[]\n"
    assert said(run, "boot", "list", "-l", "gpu=h100", "-o", "jsonpath=$.boots") == "[]\n"
    wide, table = (
        said(run, "machine", "list", "-l", "gpu=h100", "-o", form).splitlines() for form in ("wide", "table")
    )
    assert wide[0].split()[-7:] == ["class", "rack", "unit", "architecture", "recognised", "by", "boot"]
    assert table[0].split()[-2:] == ["last", "asked"]
    ran = run("machine", "list", "-l", "gpu in ()")
    assert (ran.status, "cannot be read from 'gpu in ()' on" in ran.err) == (2, True)
    ran = run("machine", "list", "--field-selector", "color=red")
    assert (ran.status, "there is no field color" in ran.err) == (2, True)


def test_what_is_no_selector_is_said_by_its_name(api: Api) -> None:
    for name, text, words in (
        ("selector", "gpu in ()", "cannot be read from 'gpu in ()' on: key, !key, key=value, key in (a,b)"),
        ("fieldSelector", "rack", "rack: a field is selected by = or !="),
    ):
        answer = api.client.get("/v1/machines", query_string={name: text}, headers=api.authorised).get_json()
        assert (answer["status"], answer["field"], answer["detail"]) == (400, name, f"{name}: {words}")


def test_boots_and_who_was_discovered_come_in_pages(api: Api) -> None:
    api.states.take(Batch("boot-0.db", 1, 9, [script(f"gpu-00{1 + n % 2}", n) for n in range(1, 6)]))
    whole = api.get("/v1/boots").json
    assert (len(whole["boots"]), whole["continue"]) == (5, None)
    found = pages(api, "/v1/boots", "boots", 2)
    assert ([len(page) for page in found], flat(found)) == ([2, 2, 1], whole["boots"])
    mine = [each for each in whole["boots"] if each["machine"] == "gpu-002"]
    assert flat(pages(api, "/v1/boots?machine=gpu-002", "boots", 1)) == mine
    macs = [f"52:54:00:00:09:0{number}" for number in range(5)]
    api.states.take(Batch("boot-0.db", 1, 19, [sighted(mac, NOW) for mac in macs]))
    found = pages(api, "/v1/discovered", "discovered", 2)
    assert [[each["mac"] for each in page] for page in found] == [macs[:2:-1], macs[2:0:-1], macs[:1]]


def test_events_come_in_pages_from_the_latest_back(api: Api) -> None:
    records = [script("gpu-001", 1)]
    records += [event("gpu-001", 1, phase) for phase in (Phase.BOOTED, Phase.ATTESTED, Phase.FAILED)]  # type: ignore[misc]
    api.states.take(Batch("boot-0.db", 1, 9, records))
    whole = api.get("/v1/machines/gpu-001/events").json
    assert (len(whole["events"]) > 3, whole["continue"]) == (True, None)
    for limit in (1, 2, 3):
        found = pages(api, "/v1/machines/gpu-001/events", "events", limit)
        assert flat(found[::-1]) == whole["events"], limit


@pytest.mark.parametrize("path", ["/v1/boots", "/v1/discovered", "/v1/machines/gpu-001/events"])
def test_what_no_answer_gave_to_go_on_with_is_refused(api: Api, path: str) -> None:
    for bad in ("x", "YQ==", "MS4", "MS4xLjE="):
        answer = api.get(f"{path}?continue={bad}")
        assert (answer.status_code, answer.json["field"]) == (400, "continue"), bad
