"""`netboot freeze|unfreeze` against the API: what they print, and their exit status."""

import logging
import time
from pathlib import Path

import pytest

from netboot.clock import rfc3339
from tests.commands import Run, said
from tests.sites import INVENTORY
from tests.sockets.api import NOW, Api, of_alice
from tests.sockets.served import runner, served

WINDOWS = """\
maintenance:
  - {name: nights, days: [Mon, Tue], start: "22:00", end: "04:00", time_zone: Europe/Berlin}
  - {name: always-open, start: "00:00", end: "00:00"}
"""


ANY_TIME = (
    "no maintenance window is declared\n"
    "What acts by itself may begin: no maintenance window is declared: at any time.\n"
)


def test_from_freeze_to_unfreeze(api: Api, run: Run) -> None:
    assert said(run, "freeze", "status") == ANY_TIME
    assert said(run, "freeze", "--reason", "power work", "--until", "8h", "--dry-run") == (
        "the fleet would be frozen until 2023-11-15 06:15:00Z: nothing that acts by itself begins anything\n"
    )
    assert said(run, "freeze", "status") == ANY_TIME
    assert said(run, "freeze", "--reason", "power work", "--until", "8h") == (
        "the fleet is frozen until 2023-11-15 06:15:00Z: nothing that acts by itself begins anything\n"
    )
    assert said(run, "freeze", "--reason", "mine", "--until", "1h") == (
        "the fleet is frozen already: since 2023-11-14 22:15:00Z by alice, until 2023-11-15 06:15:00Z: power work\n"
    )
    assert said(run, "freeze", "--reason", "it takes longer") == (
        "the fleet is frozen until `netboot unfreeze`: nothing that acts by itself begins anything\n"
    )
    assert said(run, "freeze", "status").endswith("What acts by itself may not begin: frozen by alice: power work.\n")
    assert said(run, "unfreeze", "--dry-run").startswith("the fleet would be frozen no more.")
    assert said(run, "unfreeze") == (
        "the fleet is frozen no more. It was frozen since 2023-11-14 22:15:00Z by alice: power work\n"
    )
    assert said(run, "unfreeze") == "it is not frozen\n"
    assert said(run, "freeze", "status") == ANY_TIME


def test_what_json_has(api: Api, run: Run) -> None:
    answer = run("freeze", "--reason", "x", "--until", "1h", "-o", "json").json
    freeze = {"who": "alice", "reason": "x", "since": rfc3339(NOW), "until": rfc3339(NOW + 3_600_000)}
    assert answer == {
        "did": "put-on",
        "dry_run": False,
        "concerned": freeze,
        "may_act": {"may": False, "reason": "frozen by alice: x", "until": rfc3339(NOW + 3_600_000)},
        "signal": None,
        "windows": [],
    }
    assert run("freeze", "status", "-o", "json").json == {**answer, "did": "", "concerned": None}


def test_usage(api: Api, run: Run) -> None:
    assert "say why, with --reason" in run("freeze").err
    assert "status takes neither" in run("freeze", "status", "--reason", "x").err
    assert run("freeze", "stats", "--reason", "x").status == 2


def test_windows_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    api = of_alice(Api(tmp_path, inventory=INVENTORY + WINDOWS))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    with served(api) as address:
        out = said(runner(address, api, capsys, monkeypatch), "freeze", "status")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[1:] == [
        "nights Mon, Tue 22:00 04:00 Europe/Berlin open until 2023-11-15 03:00:00Z",
        "always-open Mon, Tue, Wed, Thu, Fri, Sat, Sun 00:00 00:00 UTC open until 2023-11-15 00:00:00Z",
        "What acts by itself may begin: maintenance window nights is open, until 2023-11-15 03:00:00Z.",
    ]


def test_where_it_cannot_be_told_it_is_said(api: Api, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    (api.config.data / "intents.db").unlink()
    assert said(run, "freeze", "status").splitlines()[-1] == (
        "What acts by itself may not begin: whether the fleet is frozen cannot be told: "
        f"{api.config.data}/intents.db cannot be used: it is not there; what is held cannot be told."
    )
    assert run("freeze", "--reason", "x").status == 5
    assert not (api.config.data / "intents.db").exists()


def test_it_is_audited(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "netboot.audit")
    for path, body in (("freeze", {"reason": "x", "dry_run": True}), ("freeze", {"reason": "x"}), ("unfreeze", {})):
        assert api.post(f"/v1/{path}", body).status_code == 200
    fields = [record.fields for record in caplog.records]  # type: ignore[attr-defined] # ours
    assert [(one["act"], one["operator"], one["changed"]) for one in fields] == [
        ("freeze", "alice", True),
        ("unfreeze", "alice", True),
    ]
