"""`netboot remedies` and `explain` against the API and against a running service: what they print, and their exit
status."""

import json
import logging
from pathlib import Path

import pytest

from netboot.lifecycle.known import Node, NodeWord
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.remedies import RemediesStatus, Standing, Taking
from tests.commands import Run, said
from tests.processes import wait_for
from tests.records import START
from tests.remedies import remedy
from tests.sockets.api import NOW, Api
from tests.sockets.proven import CLASSED, MAC, in_cluster, joined, node, reported

EVIDENCE = {
    "boot": {"image": "a" * 64, "phases": ["Attested 22:13", "Ready 22:14"], "failures": []},
    "conditions": [{"type": "Healthy", "status": "False"}],
    "health": [{"name": "gpu-count", "status": "fail", "summary": "7 of 8\x1b[31m"}],
    "crash": "Kernel panic\x1b[0m\n",
}


def standing(what: str = "reboot", left: int = 61, words: str = "") -> Standing:
    return Standing(
        machine="gpu-001",
        reason=Reason.CHECKS_FAILED,
        since_ms=START,
        message="a check failed",
        what=what,
        left_seconds=left,
        words=words,
    )


def say(api: Api, *machines: Standing, at_ms: int = NOW) -> None:
    api.say(remedies=RemediesStatus(at_ms=at_ms, ailing=len(machines), machines=machines))


def test_status_says_who_is_not_well_and_what_comes_next(api: Api, run: Run) -> None:
    ran = run("remedies", "status")
    assert (ran.status, ran.err) == (0, "the controllers have not said for a while how machines are\n")
    say(api)
    assert said(run, "remedies", "status") == (
        "Remedies may begin, where a class says so.\nno machine is known not to be well\n"
    )
    api.say(remedies=RemediesStatus(at_ms=NOW, unseen="the lifecycle loop is silent"))
    assert run("remedies", "status").err == "the lifecycle loop is silent\n"
    assert "the lifecycle loop is silent, so it may not be as it is said here" in run("explain", "gpu-001").out
    assert "netboot_remedies_ailing_machines" not in api.get("/metrics").text
    say(api, standing())
    assert said(run, "remedies", "status").splitlines() == [
        "Remedies may begin, where a class says so.",
        "machine  is            since                 next          withheld",
        "gpu-001  ChecksFailed  2023-11-14 22:13:20Z  reboot in 2m          ",
    ]
    say(api, standing(left=0, words="frozen by bob: audit"))
    api.remedies.note(remedy(id=0, outcome="withheld", words="frozen by bob: audit", drain=""))
    api.remedies.take(lambda _: Taking(remedy(id=0, drain=""), json.dumps(EVIDENCE)), NOW)
    assert [line.rstrip() for line in said(run, "remedies", "status").splitlines()[2:]] == [
        "gpu-001  ChecksFailed  2023-11-14 22:13:20Z  reboot  frozen by bob: audit",
        "",
        "number  when                  machine  what    for           came to",
        "2       2023-11-14 22:13:20Z  gpu-001  reboot  ChecksFailed",
        "1       2023-11-14 22:13:20Z  gpu-001  reboot  ChecksFailed  withheld: frozen by bob: audit",
    ]
    shown = json.loads(said(run, "remedies", "status", "--output", "json"))
    assert (shown["machines"][0]["what"], [each["id"] for each in shown["remedies"]]) == ("reboot", [2, 1])
    say(api, at_ms=NOW - 60_001)
    assert run("remedies", "status").err == "the controllers have not said for a while how machines are\n"


def test_one_is_shown_with_what_was_at_hand_and_nothing_that_moves_a_terminal(api: Api, run: Run) -> None:
    api.remedies.take(lambda _: Taking(remedy(id=0, drain=""), json.dumps(EVIDENCE)), NOW)
    assert said(run, "remedies", "show", "1").splitlines() == [
        "1 · 2023-11-14 22:13:20Z: reboot of gpu-001, for ChecksFailed: a check failed",
        "",
        "boot:",
        "  failures:",
        f"  image: {'a' * 64}",
        "  phases:",
        "    1: Attested 22:13",
        "    2: Ready 22:14",
        "",
        "conditions:",
        "  1:",
        "    status: False",
        "    type: Healthy",
        "",
        "health:",
        "  1:",
        "    name: gpu-count",
        "    status: fail",
        "    summary: 7 of 8?[31m",
        "",
        "crash:",
        "Kernel panic?[0m",
        "",
    ]
    assert json.loads(said(run, "remedies", "show", "1", "-o", "json"))["evidence"] == EVIDENCE
    ran = run("remedies", "show", "2")
    assert (ran.status, ran.err.splitlines()[0]) == (3, "Error: there is no remedy 2")


def test_from_pause_to_resume(api: Api, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    say(api)
    assert said(run, "remedies", "resume", "--reason", "x") == "remedies are not paused\n"
    since = "since 2023-11-14 22:15:00Z by alice: power work"
    assert said(run, "remedies", "pause", "--reason", "power work") == f"remedies are paused: {since}\n"
    assert said(run, "remedies", "pause", "--reason", "too") == f"remedies are paused already: {since}\n"
    assert said(run, "remedies", "status").splitlines()[0] == (
        f"Remedies are paused: {since}. `netboot remedies resume --reason …` lets them begin again."
    )
    assert said(run, "remedies", "resume", "--reason", "done") == "remedies may begin again\n"
    audit = [record.fields for record in caplog.records if record.name == "netboot.audit"]  # type: ignore[attr-defined]
    assert [(each["act"], each["operator"], each["reason"], each["changed"]) for each in audit] == [
        ("remedies-resume", "alice", "x", False),
        ("remedies-pause", "alice", "power work", True),
        ("remedies-pause", "alice", "too", False),
        ("remedies-resume", "alice", "done", True),
    ]
    assert run("remedies", "pause").status == 2
    assert api.post("/v1/remedies/pause", {"reason": "two\nlines"}).status_code == 400
    assert api.post("/v1/remedies/pause", {"reason": "x"}, token=None).status_code == 401


def test_explain_says_what_was_taken_or_withheld(api: Api, run: Run) -> None:
    say(api, standing(words="frozen by bob: audit", left=0))
    api.remedies.take(lambda _: Taking(remedy(id=0, drain=""), ""), NOW)
    explained = run("explain", "gpu-001").out
    assert "  not well       ChecksFailed since 2023-11-14 22:13:20Z: a check failed\n" in explained
    assert "  remedy         next: reboot; frozen by bob: audit\n" in explained
    assert (
        "  remedy         1 · 2023-11-14 22:13:20Z: reboot of gpu-001, for ChecksFailed: a check failed\n" in explained
    )
    assert "not well" not in run("explain", "gpu-002").out
    (api.config.data / "intents.db").unlink()
    assert "remedies       it cannot be told what was done about it" in run("explain", "gpu-001").out


def test_a_running_service_tells_who_is_not_well_by_what_its_node_says(tmp_path: Path) -> None:
    """From the Node to the command line; the wait of ten minutes, and what comes then, are in tests/unit."""
    acting = CLASSED.replace("{name: hgx}", "{name: hgx, remedies: {act: true, wait: 10m}}")
    with in_cluster(tmp_path / "site", acting) as service:
        boot = service.boot(MAC)
        reported(service, boot)
        joined(service, boot, tmp_path)
        node(service, Node.GATED, NodeWord(failed=boot))
        (shown,) = wait_for(lambda: service.api("/v1/remedies")["machines"])
        assert (shown["machine"], shown["reason"], shown["what"]) == ("gpu-001", "ChecksFailed", "reboot")
        assert 0 < shown["left_seconds"] <= 600
        wait_for(lambda: "netboot_remedies_ailing_machines 1.0" in service.text("/metrics"))

        def now() -> object:
            return service.api("/v1/machines/gpu-001/explain")["remedies"]["now"]

        # what is left of its wait is told anew every five seconds, so it may be between two questions
        wait_for(lambda: [now()] == service.api("/v1/remedies")["machines"])
        node(service, Node.IN_SERVICE)
        wait_for(lambda: not service.api("/v1/remedies")["machines"])
