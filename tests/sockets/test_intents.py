"""`netboot machine hold|unhold|quarantine|readmit|holds` against the API: what they print, and their exit status."""

import logging
import time
from pathlib import Path
from typing import Any

import pytest

from netboot.clock import rfc3339
from netboot.config_replicas import Replicas
from netboot.join.enrolment import Act, Import, Retire
from netboot.lifecycle.intents import LONGEST_MS, PutOn
from netboot.lifecycle.transitions import Mark
from tests import commands
from tests.commands import Run
from tests.sockets.api import NOW, Api


def said(run: Run, *arguments: str) -> str:
    return commands.said(run, "machine", *arguments)


def test_a_hold_from_its_reason_to_its_end(api: Api, run: Run) -> None:
    assert said(run, "holds") == "no machine is held, in quarantine or accepted\n"
    assert said(run, "hold", "gpu-001", "--reason", "DIMM 4", "--until", "48h") == (
        "gpu-001 is held until 2023-11-16 22:15:00Z. Its Node, and that of each boot to come, has "
        "netboot.dev/held=Held:NoSchedule: no new Pods; those that run there run on.\n"
    )
    assert said(run, "hold", "gpu-001", "--reason", "DIMM 7", "--until", "2023-11-15T02:15+02:00") == (
        "gpu-001 is held already: since 2023-11-14 22:15:00Z by alice, until 2023-11-16 22:15:00Z: DIMM 4\n"
    )
    assert said(run, "hold", "gpu-001", "--reason", "no spare") == (
        "gpu-001 is held until it is taken off: since 2023-11-14 22:15:00Z by alice: DIMM 4\n"
    )
    assert "held            since 2023-11-14 22:15:00Z by alice: DIMM 4\n" in said(run, "show", "gpu-001")
    [row] = said(run, "holds").splitlines()[1:]
    assert row.split()[:2] == ["gpu-001", "held"]
    assert row.endswith("alice  DIMM 4")
    assert said(run, "unhold", "gpu-001", "--reason", "replaced") == (
        "gpu-001 is held no more. Its Node loses the taint netboot.dev/held. "
        "It was held since 2023-11-14 22:15:00Z by alice: DIMM 4\n"
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
        "gpu-001 is in quarantine until it is taken off. Its Node has "
        "netboot.dev/held=Quarantined:NoSchedule, and from its next boot on it gets no token, so no Node of it "
        "registers; Pods that run there run on.\n"
    )
    assert said(run, "quarantine", "gpu-001", "--reason", "again") == (
        "gpu-001 is in quarantine already: since 2023-11-14 22:15:00Z by alice: unknown USB device\n"
    )
    assert run("machine", "readmit", "gpu-001").status == 2
    assert said(run, "readmit", "gpu-001", "--reason", "it was the KVM") == (
        "gpu-001 is in quarantine no more. It may join again, as before. It was in quarantine since 2023-11-14 "
        "22:15:00Z by alice: unknown USB device\n"
    )
    assert said(run, "readmit", "gpu-001", "--reason", "again") == "gpu-001 is not in quarantine\n"
    assert api.intents.all(NOW) == []


def test_what_a_node_shows_where_both_are_on_a_machine(api: Api, run: Run) -> None:
    api.intents.order("gpu-001", PutOn(Mark.QUARANTINED, "breach"), "bob", NOW)
    assert said(run, "hold", "gpu-001", "--reason", "DIMM 4") == (
        "gpu-001 is held until it is taken off. Its Node has netboot.dev/held=Quarantined:NoSchedule; once it is "
        "readmitted, Held.\n"
    )
    assert said(run, "unhold", "gpu-001", "--dry-run").startswith(
        "gpu-001 would be held no more. Its Node keeps the taint netboot.dev/held, for it is in quarantine. "
    )
    assert said(run, "readmit", "gpu-001", "--reason", "found").startswith(
        "gpu-001 is in quarantine no more. It may join again; its Node has netboot.dev/held=Held:NoSchedule, for it is "
    )


@pytest.mark.parametrize(
    ("until", "words"),
    [
        ("0001-01-01", "give a moment of these years"),
        ("2024-03-31T02:30", "there is no such time here, for clocks are put forward over it: give another"),
    ],
)
def test_a_moment_that_there_is_not_is_no_end(
    api: Api, run: Run, monkeypatch: pytest.MonkeyPatch, until: str, words: str
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    ran = run("machine", "hold", "gpu-001", "--reason", "x", "--until", until)
    assert (ran.status, ran.err.splitlines()[-1]) == (2, f"Error: Invalid value for '--until': {words}")
    assert api.intents.all(NOW) == []


def test_a_dry_run_says_what_would_be_and_does_nothing(api: Api, run: Run) -> None:
    assert said(run, "hold", "gpu-001", "--reason", "DIMM 4", "--dry-run") == (
        "gpu-001 would be held until it is taken off. Its Node, and that of each boot to come, has "
        "netboot.dev/held=Held:NoSchedule: no new Pods; those that run there run on.\n"
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
        "since": rfc3339(NOW),
        "until": rfc3339(NOW + 7_200_000),
        "object": None,
    }
    assert answer == {
        "machine": "gpu-001",
        "act": "hold",
        "did": "put-on",
        "dry_run": False,
        "concerned": [held],
        "consequence": "its Node, and that of each boot to come, has netboot.dev/held=Held:NoSchedule: no new Pods; "
        "those that run there run on",
        "intents": [held],
    }
    assert run("machine", "holds", "-o", "json").json == {"intents": [held], "continue": None}
    assert api.get("/v1/machines/gpu-001").json["intents"] == [held]


def test_what_rollouts_put_on_people_take_off_and_see(api: Api, run: Run) -> None:
    api.intents.order("gpu-001", PutOn(Mark.HELD, "came back on 5f2c41d0", None, "rollout/7"), "rollout 7", NOW)
    said(run, "hold", "gpu-001", "--reason", "DIMM 4")
    assert said(run, "unhold", "gpu-001").endswith(
        "It was held since 2023-11-14 22:15:00Z by alice: DIMM 4; and since 2023-11-14 22:15:00Z by rollout 7: came "
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
            (
                f"Error: {retired}\n"
                "Remedy: see how it stands, with `netboot machine show`, and ask again once that is done\n"
            ),
        )
    assert (
        "Invalid value for '--until': give a duration from now like"
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
        "remedy": "restore data/intents.db from a backup, or remove it and restart the service: docs/acts.md",
    }
    api.intents.broken = False
    api.intents.order("gpu-001", PutOn(Mark.HELD, "x"), "bob", NOW)
    api.intents.order("gpu-001", PutOn(Mark.QUARANTINED, "x"), "bob", NOW)
    assert api.get("/readyz").json["details"]["intents"]["message"] == "machines held or in quarantine: 1"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "reason: this key is required"),
        ({"reason": " "}, "reason: must not be empty"),
        ({"reason": "x", "seconds": 59}, "seconds: "),
        ({"reason": "x", "seconds": 60, "until": rfc3339(NOW + 1)}, "seconds and until are two ends: give one"),
        ({"reason": "x", "until": rfc3339(NOW)}, "until: the end must be in the future, and within 366 days"),
        ({"reason": "x", "until": rfc3339(NOW + LONGEST_MS + 1)}, "until: the end must be in the future"),
        ({"reason": "x", "dry-run": True}, "dry-run: "),
    ],
)
def test_bodies(api: Api, body: Any, message: str) -> None:
    answer = api.post("/v1/machines/gpu-001/hold", body)
    assert answer.status_code == 400
    assert message in answer.json["detail"]
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


def test_a_machine_is_accepted_until_an_end_and_no_more(api: Api, run: Run) -> None:
    opens = (
        "Until then its gate opens, and stays open, in spite of its checks, with each boot of it that proved itself; "
        "where that alone keeps it open, its Node has the label netboot.dev/accepted=true.\n"
    )
    assert "Missing option '--until'" in refusal(run, "accept", "gpu-001", "--reason", "fan 3")[1]
    assert said(run, "accept", "gpu-001", "--reason", "fan 3", "--until", "48h", "--dry-run") == (
        f"gpu-001 would be accepted until 2023-11-16 22:15:00Z. {opens}"
    )
    assert said(run, "accept", "gpu-001", "--reason", "fan 3", "--until", "48h") == (
        f"gpu-001 is accepted until 2023-11-16 22:15:00Z. {opens}"
    )
    assert said(run, "accept", "gpu-001", "--reason", "fan 4", "--until", "1h") == (
        "gpu-001 is accepted already: since 2023-11-14 22:15:00Z by alice, until 2023-11-16 22:15:00Z: fan 3\n"
    )
    said(run, "hold", "gpu-001", "--reason", "DIMM 4")
    shown = said(run, "show", "gpu-001")
    assert "held            since 2023-11-14 22:15:00Z by alice: DIMM 4\n" in shown
    assert "accepted        since 2023-11-14 22:15:00Z by alice, until 2023-11-16 22:15:00Z: fan 3\n" in shown
    assert [row.split()[:2] for row in said(run, "holds").splitlines()[1:]] == [
        ["gpu-001", "held"],
        ["gpu-001", "accepted"],
    ]
    assert said(run, "unaccept", "gpu-001", "--reason", "replaced") == (
        "gpu-001 is accepted no more. Its gate is as its node says: where that alone would not have opened it, it "
        "closes. It was accepted since 2023-11-14 22:15:00Z by alice, until 2023-11-16 22:15:00Z: fan 3\n"
    )
    assert said(run, "unaccept", "gpu-001") == "gpu-001 is not accepted\n"
    assert [one.mark for one in api.intents.all(NOW)] == [Mark.HELD]
    history = api.get("/v1/machines/gpu-001/intents").json["history"]
    assert [(one["mark"], one["act"], one["reason"]) for one in history] == [
        ("Accepted", "taken-off", "replaced"),
        ("Held", "put-on", "DIMM 4"),
        ("Accepted", "put-on", "fan 3"),
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"seconds": 60}, "reason: this key is required"),
        ({"reason": "x"}, "seconds or until: an acceptance has an end"),
        ({"reason": "x", "seconds": 31 * 86_400}, "seconds: the end must be in the future, and within 30 days"),
        (
            {"reason": "x", "until": rfc3339(NOW + 31 * 86_400_000)},
            "until: the end must be in the future, and within 30",
        ),
        ({"reason": "x", "until": rfc3339(NOW)}, "until: the end must be in the future, and within 30 days"),
    ],
)
def test_an_acceptance_has_a_reason_and_an_end_that_is_near(api: Api, body: Any, message: str) -> None:
    answer = api.post("/v1/machines/gpu-001/accept", body)
    assert answer.status_code == 400
    assert message in answer.json["detail"]
    assert api.intents.all(NOW) == []


def test_acceptances_are_audited_and_count_as_no_hold(api: Api, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "netboot.audit")
    assert api.post("/v1/machines/gpu-001/accept", {"reason": "fan 3", "seconds": 60}).status_code == 200
    assert api.post("/v1/machines/gpu-001/unaccept", {}).status_code == 200
    fields = [record.fields for record in caplog.records]  # type: ignore[attr-defined] # ours
    assert [(one["act"], one["operator"], one["reason"], one["until_ms"]) for one in fields] == [
        ("accept", "alice", "fan 3", NOW + 60_000),
        ("unaccept", "alice", "", None),
    ]
    assert api.post("/v1/machines/gpu-001/accept", {"reason": "fan 3", "seconds": 60}).status_code == 200
    assert api.get("/readyz").json["details"]["intents"]["message"] == "machines held or in quarantine: 0"
    api.register.apply([("gpu-002", Import("a1" * 32)), ("gpu-002", Retire())], Act("bob"), NOW)
    assert refusal(run, "accept", "gpu-002", "--reason", "x", "--until", "1h")[0] == 4


@pytest.mark.parametrize(
    ("act", "how"),
    [
        (
            "hold",
            "put it on as a Hold object (docs/custom-resources.md), which all replicas know: machine gpu-001",
        ),
        ("quarantine", "hold it by a Hold object, which all replicas know, and retire it where it must not join"),
        ("accept", "say in the inventory what its class's gate requires"),
    ],
)
def test_of_several_replicas_none_puts_on_what_it_alone_would_know(tmp_path: Path, act: str, how: str) -> None:
    api = Api(tmp_path, replicas=Replicas())
    answer = api.post(f"/v1/machines/gpu-001/{act}", {"reason": "DIMM 4", "seconds": 3600})
    assert answer.status_code == 409
    words = f"`{act}` is known to this replica alone, and another that leads would undo it: {how}"
    assert answer.json["detail"] == words
    assert api.get("/v1/intents").json["intents"] == []
