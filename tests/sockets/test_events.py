"""What happened to a machine, as one timeline: by the API, and by a running service to its end."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netboot.clock import rfc3339
from netboot.join.enrolment import Act, Import
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.known import Node
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.state import Batch
from netboot.stores import history_writer
from tests.processes import environment, wait_for
from tests.records import START, boot_id, event, found_crash, script
from tests.sockets.api import Api
from tests.sockets.proven import MAC, in_cluster, joined, node, reason, reported
from tests.sockets.service import COMMAND, Service

BOOT = boot_id("gpu-001", 1)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return Api(tmp_path)


def judged(why: Reason, machine: str = "gpu-001") -> Judged:
    condition = MachineCondition.of(ConditionType.HEALTHY, why, f"said {why}", START)
    return Judged(machine=machine, conditions=(condition,), timers={})


def brief(events: list[dict[str, Any]]) -> list[tuple[str, str, str, str]]:
    return [(each["kind"], each["what"], each["said_by"], each["detail"]) for each in events]


def happened(api: Api) -> None:
    """To gpu-001 something of each kind, and to another machine too."""
    failed = event("gpu-001", 1, Phase.FAILED, 3_000, "no link")
    records: list[AnyRecord] = [
        script("gpu-001", 1),
        event("gpu-001", 1, Phase.BOOTED, 2_000),
        failed,
        found_crash("gpu-001", 1),
    ]
    api.states.take(Batch("boot-0.db", 1, 5, [*records, event("gpu-002", 1, Phase.BOOTED)]))
    api.history.note([(judged(Reason.CHECKS_PASSED), START + 5_000), (judged(Reason.NO_REPORT, "gpu-002"), START)])
    api.history.note([(judged(Reason.CHECKS_FAILED), START + 6_000)])
    api.register.apply([("gpu-001", Import("b2" * 32))], Act("alice", "from a list"), START + 7_000)
    api.enrolments.alert("gpu-001", "other-key", "another key in the same boot", START + 8_000)


def test_all_that_is_kept_of_a_machine_in_the_order_of_moments(api: Api) -> None:
    happened(api)
    listed = api.get("/v1/machines/gpu-001/events").json["events"]
    assert brief(listed) == [
        ("phase", "ScriptServed", "served", ""),
        ("crash", "Crashed", "reported", "a kernel of it had crashed: `netboot boot show` has the end of its log"),
        ("phase", "Booted", "reported", ""),
        ("phase", "Failed", "reported", "no link"),
        ("condition", "Healthy=True", "ChecksPassed", "said ChecksPassed"),
        ("condition", "Healthy=False", "ChecksFailed", "said ChecksFailed"),
        ("enrolment", "imported", "alice", "from a list"),
        ("alert", "other-key", "netboot", "another key in the same boot"),
    ]
    assert [each["at"] for each in listed] == sorted(each["at"] for each in listed)
    assert listed[2] == {
        "at": rfc3339(START + 3_000),
        "kind": "phase",
        "what": "Booted",
        "said_by": "reported",
        "detail": "",
        "boot": BOOT,
        "uptime_ms": 2_000,
    }
    assert brief(api.get("/v1/machines/gpu-001/events?limit=1").json["events"]) == brief(listed)[-1:]
    assert api.get("/v1/machines/gpu-404/events").status_code == 404


def test_watching_goes_on_where_the_list_ended_and_tells_of_this_machine_alone(api: Api) -> None:
    happened(api)
    since = api.get("/v1/machines/gpu-001/events").json["since"]
    answer = api.get(f"/v1/machines/gpu-001/events/watch?since={since}")
    lines = map(json.loads, answer.response)
    assert next(lines)["since"] == since
    told = (line["event"] for line in lines if "heartbeat" not in line)  # of which another comes every five seconds
    api.states.take(Batch("boot-0.db", 1, 7, [event("gpu-002", 1, Phase.JOINING), event("gpu-001", 1, Phase.JOINING)]))
    assert brief([next(told)]) == [("phase", "Joining", "reported", "")]
    api.history.note([(judged(Reason.CHECKS_WARN), START + 9_000)])
    assert brief([next(told)])[0][:2] == ("condition", "Healthy=True")
    api.enrolments.alert("gpu-001", "other-key", "once more", START + 9_500)
    assert brief([next(told)]) == [("alert", "other-key", "netboot", "once more")]
    api.stopping = True
    answer.close()
    api.stopping = False
    answer = api.get("/v1/machines/gpu-001/events/watch?since=0.0.0.0")
    all_of_it = [
        json.loads(line)["event"] for line, _ in zip(answer.response, range(10), strict=False) if b'"event"' in line
    ]
    assert len(all_of_it) == 9, "from the beginning: everything, once"
    answer.close()


def test_what_cannot_be_read_hides_nothing_else_and_is_said(api: Api, tmp_path: Path) -> None:
    happened(api)
    api.history.close()
    [history] = tmp_path.rglob("history.db")
    history.write_bytes(b"no database, as long as a page of one" * 200)
    listed = api.get("/v1/machines/gpu-001/events").json
    assert {each["kind"] for each in listed["events"]} == {"phase", "crash", "enrolment", "alert"}
    [problem] = listed["problems"]
    assert problem.endswith("history.db cannot be read: file is not a database")
    assert listed["since"].split(".")[1] == "-"
    answer = api.get(f"/v1/machines/gpu-001/events/watch?since={listed['since']}")
    assert json.loads(next(iter(answer.response)))["problem"] == problem
    answer.close()
    history.unlink()
    api.history.note([(judged(Reason.CHECKS_WARN), START + 9_000)])
    answer = api.get(f"/v1/machines/gpu-001/events/watch?since={listed['since']}")
    assert "problem" not in json.loads(next(iter(answer.response)))
    answer.close()


def test_who_watches_from_longer_ago_than_is_kept_is_told_of_the_gap(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_writer, "TRANSITIONS_IN_ALL", 2)
    happened(api)
    since = api.get("/v1/machines/gpu-001/events").json["since"]
    for number, why in enumerate((Reason.CHECKS_PASSED, Reason.CHECKS_WARN, Reason.CHECKS_PASSED)):
        api.history.note([(judged(why), START + 20_000 + number)])
    answer = api.get(f"/v1/machines/gpu-001/events/watch?since={since}")
    lines = [json.loads(line) for line, _ in zip(answer.response, range(4), strict=False)]
    answer.close()
    assert brief([line["event"] for line in lines if "event" in line]) == [
        ("gap", "Gap", "netboot", "changes of conditions before this may not be kept any more"),
        ("condition", "Healthy=True", "ChecksWarn", "said ChecksWarn"),
        ("condition", "Healthy=True", "ChecksPassed", "said ChecksPassed"),
    ]


def test_a_gap_comes_before_what_is_told_after_it(api: Api) -> None:
    """The state was lost; conditions were not, and what they say happened long before the gap was found."""
    happened(api)
    answer = api.get("/v1/machines/gpu-001/events/watch?since=90.0.0.0")
    lines = [json.loads(line) for line, _ in zip(answer.response, range(3), strict=False)]
    answer.close()
    assert [line["event"]["kind"] for line in lines] == ["gap", "condition", "condition"]
    assert lines[0]["event"]["detail"].startswith("phases: that place is after all that there is")


@pytest.mark.parametrize("since", ["", "1", "1.2.3", "1.2.3.x", "1.2.3.-4", "1.2.3.4.5", "1.2.3." + "9" * 40])
def test_a_place_that_nobody_gave_out_is_refused(api: Api, since: str) -> None:
    answer = api.get(f"/v1/machines/gpu-001/events/watch?since={since}")
    assert answer.status_code == 400
    assert answer.json["detail"] == "since must be what an earlier answer gave as `since`"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with in_cluster(tmp_path / "site") as running:
        yield running


def test_a_boot_as_it_happens_and_where_its_time_went(service: Service, tmp_path: Path) -> None:
    command = [*COMMAND, "machine", "events", "gpu-001", "--follow"]
    env = {**environment(), "NETBOOT_CONFIG": str(service.file), "PYTHONUNBUFFERED": "1"}
    with (tmp_path / "events").open("w") as out, subprocess.Popen(command, stdout=out, env=env) as following:
        boot = service.boot(MAC)
        reported(service, boot)
        joined(service, boot, tmp_path)
        node(service, Node.IN_SERVICE)
        wait_for(lambda: reason(service, "InService") == "InService")

        def kinds() -> list[list[str]]:
            return [line.split()[1:4] for line in (tmp_path / "events").read_text().splitlines()]

        wait_for(lambda: ["condition", "InService=True", "InService"] in kinds())
        following.terminate()
    phases = [what for kind, what, _ in kinds() if kind == "phase"]
    assert set(phases) >= {"ScriptServed", "InitrdStarted", "Booted", "Attested", "Ready"}
    shown = json.loads(service.netboot("boot", "show", boot, "--output", "json").stdout)
    assert shown["spans"][-1]["until"] == "InService"
    assert shown["in_service_at"] is not None
    drawn = service.netboot("boot", "show", boot, "--waterfall").stdout
    assert "from the start of the kernel to InService:" in drawn
    assert "Switched" in drawn
    table = service.netboot("machine", "events", "gpu-001").stdout
    assert table.splitlines()[0].split() == ["time", "kind", "what", "by", "detail"]
    listed = json.loads(service.netboot("machine", "events", "gpu-001", "--output", "json").stdout)["events"]
    assert {"phase", "condition"} == {each["kind"] for each in listed}


def test_who_watches_from_beyond_what_there_is_is_told_that_it_was_lost(api: Api) -> None:
    happened(api)
    feed, transition, *others = map(int, api.get("/v1/machines/gpu-001/events").json["since"].split("."))
    ahead = ".".join(map(str, (feed + 70, transition + 70, *others)))
    answer = api.get(f"/v1/machines/gpu-001/events/watch?since={ahead}")
    lines = [json.loads(line) for line, _ in zip(answer.response, range(3), strict=False)]
    answer.close()
    assert [line["event"]["detail"] for line in lines[:2]] == [
        "phases: that place is after all that there is: the state was lost, or an older copy was restored",
        "changes of conditions may be missing: their history was lost, or an older copy was restored",
    ]
    assert lines[2]["since"] == ".".join(map(str, (feed, transition, *others))), "and goes on from what there is"
