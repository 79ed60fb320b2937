"""`netboot machine drain|reboot|undrain|drains` against the API: what they print, and their exit status."""

import logging
from pathlib import Path

import pytest

from netboot.lifecycle.drains import DrainsStatus, State
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.lifecycle.transitions import Mark
from tests import commands
from tests.commands import Run
from tests.records import boot_id, event, script
from tests.sites import INVENTORY
from tests.sockets.api import NOW, Api, of_alice

BOOT = boot_id("gpu-001", 1)
RACKED = INVENTORY.replace("profile: compute}", "profile: compute, rack: a}") + "racks:\n  - {name: a}\n"


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """gpu-001 has a Node; gpu-002 has none, and is of the same rack."""
    made = of_alice(Api(tmp_path, inventory=RACKED))
    node = "node gpu-001 uid 1"
    made.states.take(
        Batch(
            "join-0.db",
            1,
            3,
            [
                script("gpu-001", 1),
                event("gpu-001", 1, Phase.ATTESTED),
                event("gpu-001", 1, Phase.NODE_REGISTERED, 700, node),
            ],
        )
    )
    made.say(**{"drains-default": DrainsStatus(at_ms=NOW)})
    return made


def said(run: Run, *arguments: str) -> str:
    return commands.said(run, "machine", *arguments)


def test_a_drain_from_its_reason_to_its_end(api: Api, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert said(run, "drains") == "no machine is to be drained or rebooted\n"
    assert said(run, "drain", "gpu-001", "--reason", "DIMM 4", "--deadline", "2h") == (
        "gpu-001 is to be drained by 2023-11-15 00:15:00Z: `netboot machine drains` says how far it is.\n"
    )
    (one,) = api.drains.standing()
    assert (one.boot, one.who, one.deadline_ms, one.bare, one.local) == (BOOT, "alice", NOW + 7_200_000, False, False)
    assert said(run, "drain", "gpu-001", "--reason", "again") == (
        "gpu-001 is to be drained already: since 2023-11-14 22:15:00Z by alice: DIMM 4\n"
    )
    state = State(id=one.id, state="draining", words="default/db are left", since_ms=NOW)
    api.say(**{"drains-default": DrainsStatus(at_ms=NOW, drains={"gpu-001": state})})
    [row] = said(run, "drains").splitlines()[1:]
    assert row.split()[:3] == ["gpu-001", "drain", "draining"]
    assert row.endswith("2023-11-15 00:15:00Z  alice  default/db are left")
    shown = said(run, "show", "gpu-001")
    assert "drain           draining: default/db are left (since 2023-11-14 22:15:00Z by alice: DIMM 4)\n" in shown
    assert said(run, "undrain", "gpu-001", "--reason", "replaced") == (
        "gpu-001 is drained no more. It was to be drained since 2023-11-14 22:15:00Z by alice: DIMM 4\n"
    )
    assert said(run, "undrain", "gpu-001") == "gpu-001 is not to be drained\n"
    ended = "drain           taken off 2023-11-14 22:15:00Z: by alice: replaced (ordered since 2023-11-14 22:15:00Z by "
    assert f"{ended}alice: DIMM 4)\n" in said(run, "show", "gpu-001")
    fields = [record.__dict__["fields"] for record in caplog.records if record.getMessage() == "audit"]
    assert [(one["act"], one["operator"], one["machine"], one["changed"]) for one in fields] == [
        ("drain", "alice", "gpu-001", True),
        ("drain", "alice", "gpu-001", False),
        ("undrain", "alice", "gpu-001", True),
        ("undrain", "alice", "gpu-001", False),
    ]
    _, record = api.get("/v1/audit?limit=2").json["audit"]
    stood = record["before"], record["after"]
    assert [(each["reason"], each["end"]) for each in stood] == [("DIMM 4", None), ("DIMM 4", "taken-off")]


def test_a_reboot_takes_a_drain_over_and_a_dry_run_does_nothing(api: Api, run: Run) -> None:
    would = (
        "gpu-001 would be drained and rebooted by 2023-11-14 22:45:00Z: `netboot machine drains` says how far it is.\n"
    )
    assert said(run, "reboot", "gpu-001", "--reason", "x", "--dry-run") == would
    assert api.drains.standing() == []
    said(run, "drain", "gpu-001", "--reason", "DIMM 4")
    assert said(run, "reboot", "gpu-001", "--reason", "image", "--allow-bare", "--allow-local-data") == would.replace(
        "would be", "is to be"
    )
    (one,) = api.drains.standing()
    assert (one.what, one.reason, one.bare, one.local) == ("reboot", "image", True, True)
    assert said(run, "drain", "gpu-001", "--reason", "y") == (
        "gpu-001 is to be drained and rebooted already: since 2023-11-14 22:15:00Z by alice: image\n"
    )
    assert said(run, "undrain", "gpu-001", "--dry-run").startswith("gpu-001 would be drained no more. It was to be ")
    assert [each["end"] for each in api.get("/v1/machines/gpu-001/drains").json["drains"]] == [None, "replaced"]


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (
            ("drain", "gpu-002", "--reason", "x"),
            4,
            "gpu-002 has no Node in its current boot: see `netboot machine",
        ),
        (("reboot", "nobody", "--reason", "x"), 3, "the inventory has no machine of that name"),
        (("undrain", "nobody"), 3, "the inventory has no machine of that name"),
        (("drain", "gpu-001"), 2, "--reason"),
        (("drain", "gpu-001", "--reason", "x", "--deadline", "59s"), 2, "from 1m to 24h"),
    ],
)
def test_what_cannot_be_ordered(run: Run, arguments: tuple[str, ...], status: int, words: str) -> None:
    ran = run("machine", *arguments)
    assert ran.status == status, ran
    assert words in ran.err


def test_where_it_cannot_be_told_nothing_is_ordered_and_a_silent_collector_is_named(api: Api, run: Run) -> None:
    said(run, "drain", "gpu-001", "--reason", "DIMM 4")
    api.say(**{"drains-default": DrainsStatus(at_ms=NOW - 121_000, problem="the apiserver is gone")})
    ran = run("machine", "drains")
    assert ran.err.splitlines() == [
        "nodes-default has not said for a while how far it is",
        "cluster default: the apiserver is gone",
    ]
    assert ran.out.splitlines()[1].endswith("nobody has said yet how far it is")
    (api.config.data / "intents.db").unlink()
    for arguments in (("drains",), ("drain", "gpu-001", "--reason", "x"), ("undrain", "gpu-001")):
        assert run("machine", *arguments).status == 5, arguments
    assert "drained         it cannot be told whether it is to be drained: see `netboot doctor`" in said(
        run, "show", "gpu-001"
    )


def test_an_order_says_who_is_out_already_and_waits_for_nobody(api: Api, run: Run) -> None:
    api.intents.order("gpu-002", PutOn(Mark.HELD, "DIMM 4"), "bob", NOW)
    ordered = "gpu-001 would be drained by 2023-11-14 22:45:00Z: `netboot machine drains` says how far it is.\n"
    around = (
        "Of rack a 1 more machine is out of service: gpu-002 (by bob).\n"
        "In all 1 more machine is held, in quarantine, or to be drained.\n"
    )
    assert said(run, "drain", "gpu-001", "--reason", "x", "--dry-run") == ordered + around
    assert said(run, "drain", "gpu-001", "--reason", "x") == ordered.replace("would be", "is to be") + around
