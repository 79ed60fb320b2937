"""`netboot machine hold|unhold|quarantine|readmit|holds` against the API: what they print, and their exit status."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netboot.join.enrolment import Act, Import, Retire
from netboot.lifecycle.intents import LONGEST_MS, PutOn
from netboot.lifecycle.transitions import Mark
from tests.commands import Run
from tests.sites import TOKEN
from tests.sockets.api import NOW, Api
from tests.sockets.served import runner, served


@pytest.fixture
def api(tmp_path: Path) -> Api:
    made = Api(tmp_path)
    made.config.management.token_file.write_text(f"# alice\n{TOKEN}\n")
    return made


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    with served(api) as address:
        yield runner(address, api, capsys, monkeypatch)


def said(run: Run, *arguments: str) -> str:
    ran = run("machine", *arguments)
    assert (ran.status, ran.err) == (0, "")
    return ran.out


def test_a_hold_from_its_reason_to_its_end(api: Api, run: Run) -> None:
    assert said(run, "holds") == "no machine is held or in quarantine\n"
    assert said(run, "hold", "gpu-001", "--reason", "DIMM 4", "--until", "48h") == (
        "gpu-001 is held until 2023-11-16 22:15:00. From its next boot on its Node registers with "
        "netboot.dev/held=Held:NoSchedule; a Node that it has now is left as it is.\n"
    )
    assert said(run, "hold", "gpu-001", "--reason", "DIMM 7", "--until", "2023-11-15T02:15+02:00") == (
        "gpu-001 is held already: since 2023-11-14 22:15:00 by alice, until 2023-11-16 22:15:00: DIMM 4\n"
    )
    assert said(run, "hold", "gpu-001", "--reason", "no spare") == (
        "gpu-001 is held until it is taken off: since 2023-11-14 22:15:00 by alice: DIMM 4\n"
    )
    assert "held            since 2023-11-14 22:15:00 by alice: DIMM 4\n" in said(run, "show", "gpu-001")
    [row] = said(run, "holds").splitlines()[1:]
    assert row.split()[:2] == ["gpu-001", "held"]
    assert row.endswith("alice  DIMM 4")
    assert said(run, "unhold", "gpu-001", "--reason", "replaced") == (
        "gpu-001 is held no more. Its next boot's Node registers without netboot.dev/held; one that has the taint "
        "keeps it until then. It was held since 2023-11-14 22:15:00 by alice: DIMM 4\n"
    )
    assert said(run, "unhold", "gpu-001") == "gpu-001 is not held\n"
    history = api.get("/v1/machines/gpu-001/intents").json["history"]
    assert [(one["act"], one["who"], one["reason"]) for one in history] == [
        ("taken-off", "alice", "replaced"),
        ("extended", "alice", "no spare"),
        ("put-on", "alice", "DIMM 4"),
    ]


def test_quarantine_and_back(api: Api, run: Run) -> None:
    assert said(run, "quarantine", "gpu-001", "--reason", "unknown USB device") == (
        "gpu-001 is in quarantine until it is taken off. From its next boot on it gets no token, so no Node of it "
        "registers; a Node that it has now is left as it is.\n"
    )
    assert said(run, "quarantine", "gpu-001", "--reason", "again") == (
        "gpu-001 is in quarantine already: since 2023-11-14 22:15:00 by alice: unknown USB device\n"
    )
    assert run("machine", "readmit", "gpu-001").status == 2
    assert said(run, "readmit", "gpu-001", "--reason", "it was the KVM") == (
        "gpu-001 is in quarantine no more. It may join again, as before. It was in quarantine since 2023-11-14 "
        "22:15:00 by alice: unknown USB device\n"
    )
    assert said(run, "readmit", "gpu-001", "--reason", "again") == "gpu-001 is not in quarantine\n"
    assert api.intents.all(NOW) == []


def test_a_dry_run_says_what_would_be_and_does_nothing(api: Api, run: Run) -> None:
    assert said(run, "hold", "gpu-001", "--reason", "DIMM 4", "--dry-run") == (
        "gpu-001 would be held until it is taken off. From its next boot on its Node registers with "
        "netboot.dev/held=Held:NoSchedule; a Node that it has now is left as it is.\n"
    )
    assert said(run, "quarantine", "gpu-001", "--reason", "x", "--dry-run").startswith("gpu-001 would be in quarantine")
    assert (api.intents.all(NOW), api.intents.history(None, 9)) == ([], [])
    api.intents.order("gpu-001", PutOn(Mark.HELD, "DIMM 4"), "bob", NOW)
    assert said(run, "unhold", "gpu-001", "--dry-run").startswith("gpu-001 would be held no more.")
    assert len(api.intents.all(NOW)) == 1


def test_who_reads_json_gets_what_the_api_said(api: Api, run: Run) -> None:
    answer = run("machine", "hold", "gpu-001", "--reason", " DIMM 4 ", "--until", "2h", "-o", "json").json
    held = {
        "machine": "gpu-001",
        "mark": "Held",
        "owner": "operator",
        "who": "alice",
        "reason": "DIMM 4",
        "since_ms": NOW,
        "until_ms": NOW + 7_200_000,
    }
    assert answer == {
        "machine": "gpu-001",
        "act": "hold",
        "did": "put-on",
        "dry_run": False,
        "concerned": [held],
        "consequence": "from its next boot on its Node registers with netboot.dev/held=Held:NoSchedule; a Node that it "
        "has now is left as it is",
        "intents": [held],
    }
    assert run("machine", "holds", "-o", "json").json == {"intents": [held]}
    assert api.get("/v1/machines/gpu-001").json["intents"] == [held]


def test_what_rollouts_put_on_people_take_off_and_see(api: Api, run: Run) -> None:
    api.intents.order("gpu-001", PutOn(Mark.HELD, "came back on 5f2c41d0", None, "rollout/7"), "rollout 7", NOW)
    said(run, "hold", "gpu-001", "--reason", "DIMM 4")
    assert said(run, "unhold", "gpu-001").endswith(
        "It was held since 2023-11-14 22:15:00 by alice: DIMM 4; and since 2023-11-14 22:15:00 by rollout 7: came "
        "back on 5f2c41d0\n"
    )
    assert api.intents.all(NOW) == []


def refusal(run: Run, *arguments: str) -> tuple[int, str]:
    ran = run("machine", *arguments)
    assert ran.out == ""
    return ran.status, ran.err


def test_what_cannot_be_is_refused_in_words(api: Api, run: Run) -> None:
    assert refusal(run, "hold", "gpu-01", "--reason", "x") == (
        3,
        "Error: the inventory has no machine of that name; did you mean gpu-001?\nRemedy: see `netboot machine list`\n",
    )
    assert refusal(run, "readmit", "nobody", "--reason", "x")[0] == 3
    api.register.apply([("gpu-001", Import("a1" * 32)), ("gpu-001", Retire())], Act("bob"), NOW)
    retired = "gpu-001 is retired, and joins nothing: `netboot machine approve gpu-001` brings it back first"
    for act in ("hold", "quarantine"):
        assert refusal(run, act, "gpu-001", "--reason", "x") == (
            4,
            f"Error: {retired}\nRemedy: do what the message says first\n",
        )
    assert refusal(run, "hold", "gpu-002", "--reason", "x", "--until", "2023-11-14T22:14:59")[1] == (
        "Error: until_ms: the end must be in the future, and within 366 days\nRemedy: correct the request\n"
    )
    assert (
        "Invalid value for '--until': a duration from now like"
        in refusal(run, "hold", "gpu-002", "--reason", "x", "--until", "soon")[1]
    )
    assert "Missing option '--reason'" in refusal(run, "hold", "gpu-002")[1]
    assert api.intents.all(NOW) == []


def test_a_machine_that_left_the_inventory_can_be_let_go(api: Api, run: Run) -> None:
    api.intents.order("old-009", PutOn(Mark.QUARANTINED, "stolen"), "bob", NOW)
    assert refusal(run, "hold", "old-009", "--reason", "x")[0] == 3
    assert said(run, "readmit", "old-009", "--reason", "found").startswith("old-009 is in quarantine no more.")
    assert refusal(run, "readmit", "old-009", "--reason", "found")[0] == 3


def test_nothing_is_said_of_nobody_where_it_cannot_be_told(api: Api, run: Run) -> None:
    api.intents.broken = True
    assert refusal(run, "holds")[0] == 5
    assert refusal(run, "hold", "gpu-001", "--reason", "x")[0] == 5
    shown = said(run, "show", "gpu-001")
    assert "held            it cannot be told whether it is held or in quarantine: see `netboot doctor`\n" in shown
    detail = api.get("/readyz").json["details"]["intents"]
    assert detail == {
        "ok": False,
        "message": "data/intents.db cannot be used: it is not there; what is held cannot be told",
        "remedy": "restore data/intents.db from a backup, or restart the service, which makes it anew: docs/acts.md",
    }
    api.intents.broken = False
    api.intents.order("gpu-001", PutOn(Mark.HELD, "x"), "bob", NOW)
    api.intents.order("gpu-001", PutOn(Mark.QUARANTINED, "x"), "bob", NOW)
    assert api.get("/readyz").json["details"]["intents"]["message"] == "machines held or in quarantine: 1"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "reason: Field required"),
        ({"reason": " "}, "reason: String should have at least 1 character"),
        ({"reason": "x", "seconds": 59}, "seconds: "),
        ({"reason": "x", "seconds": 60, "until_ms": NOW + 1}, "seconds and until_ms are two ends: give one"),
        ({"reason": "x", "until_ms": NOW}, "until_ms: the end must be in the future, and within 366 days"),
        ({"reason": "x", "until_ms": NOW + LONGEST_MS + 1}, "until_ms: the end must be in the future"),
        ({"reason": "x", "dry-run": True}, "dry-run: "),
    ],
)
def test_bodies(api: Api, body: Any, message: str) -> None:
    answer = api.post("/v1/machines/gpu-001/hold", body)
    assert answer.status_code == 400
    assert message in answer.json["error"]["message"]
    assert api.intents.all(NOW) == []


def test_acts_are_audited_and_dry_runs_are_none(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "netboot.audit")
    for body in ({"reason": "DIMM 4", "dry_run": True}, {"reason": "DIMM 4", "seconds": 60}, {"reason": "DIMM 4"}):
        assert api.post("/v1/machines/gpu-001/hold", body).status_code == 200
    assert api.post("/v1/machines/gpu-001/unhold", {}).status_code == 200
    fields = [record.fields for record in caplog.records]  # type: ignore[attr-defined] # ours
    shown = ("act", "operator", "machine", "reason", "until_ms", "changed")
    assert [tuple(one[name] for name in shown) for one in fields] == [
        ("hold", "alice", "gpu-001", "DIMM 4", NOW + 60_000, True),
        ("hold", "alice", "gpu-001", "DIMM 4", None, True),
        ("unhold", "alice", "gpu-001", "", None, True),
    ]
