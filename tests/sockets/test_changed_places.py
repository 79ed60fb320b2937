"""Several things of different values at once: two that change places, in metrics or on the page, are seen."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from netboot.boot.metrics import Counters
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.state import Batch
from netboot.status.controllers import RolloutStatus
from netboot.status.nodes import NodesStatus
from netboot.web.page.words import spaced, without_words
from tests.browser.world import World
from tests.records import event, script
from tests.sites import TOKEN
from tests.sockets.api import HERE, LIFECYCLE, NOW, ROLLOUTS, SUPERVISOR, UP, Api

INVENTORY = """\
machines:
  - {name: gpu-001, match: {serial: S1}, profile: compute, class: h100, rack: r1}
  - {name: gpu-002, match: {serial: S2}, profile: infer, class: h200, rack: r2, cluster: west}
profiles:
  - {name: compute, channel: stable}
  - {name: infer, channel: stable}
channels:
  - {name: stable}
classes:
  - {name: h100}
  - {name: h200}
racks:
  - {name: r1}
  - {name: r2}
"""


@pytest.fixture
def lines(tmp_path: Path) -> list[str]:
    """What `/metrics` says where each number is another."""
    api = Api(tmp_path, inventory=INVENTORY)
    api.states.take(Batch("boot-0.db", 1, 2, [script("gpu-002", 1), event("gpu-002", 1, Phase.BOOTED)]))
    common = {"at_ms": NOW, "ok": True, "message": "in order", "unavailable": 0}
    east = NodesStatus(**common, registered=61, ready=59, gates={"open": 53, "shut": 47}, gates_moved={"opened": 43})
    west = NodesStatus(**common, registered=41, ready=37, gates={"open": 31, "shut": 29}, gates_moved={"opened": 23})
    first, second = Counters(bytes_sent=2), Counters(bytes_sent=3)
    for counters, times in ((first, 5), (second, 7)):
        counters.scripts.update({"boot": times, "unknown": times * 11})
    api.say(
        supervisor=SUPERVISOR.model_copy(
            update={"processes": dict.fromkeys(("boot-0", "boot-1", "nodes-east", "nodes-west"), UP)}
        ),
        lifecycle=LIFECYCLE.model_copy(
            update={
                "conditions": (
                    (ConditionType.BOOTED, Reason.STUCK, 2),
                    (ConditionType.BOOTED, Reason.FAILED, 3),
                    (ConditionType.JOINED, Reason.STUCK, 5),
                ),
                "overdue": {"InitrdStarted": 7, "Switched": 11},
                "waiting": 13,
                "unseen": ("a", "b"),
                "behind_seconds": 17.0,
                "long_gated": 19,
                "unhealthy": 23,
            }
        ),
        rollouts=ROLLOUTS.model_copy(
            update={
                "rollouts": (
                    RolloutStatus(
                        number=7, channel="stable", state="running", undoing=False, machines={"done": 2, "failed": 3}
                    ),
                    RolloutStatus(
                        number=8, channel="canary", state="paused", undoing=False, machines={"done": 5, "failed": 11}
                    ),
                ),
                "undone": 13,
            }
        ),
        boot_0=first.status(NOW, open_connections=17, journal_lag=19),
        boot_1=second.status(NOW, open_connections=23, journal_lag=29),
        nodes_east=east,
        nodes_west=west,
    )
    return [line for line in api.get("/metrics", None).text.splitlines() if not line.startswith("#")]


def of(lines: list[str], *names: str) -> dict[str, float]:
    """Series of these metrics that are not 0."""
    told = (line.rpartition(" ") for line in lines if re.split(r"[{ ]", line)[0].removeprefix("netboot_") in names)
    return {series.removeprefix("netboot_"): float(value) for series, _, value in told if float(value)}


def test_each_metric_has_its_own_number(lines: list[str]) -> None:
    assert of(lines, "machine_conditions", "boots_overdue") == {
        'machine_conditions{condition="Booted",reason="Stuck",status="False"}': 2,
        'machine_conditions{condition="Booted",reason="Failed",status="False"}': 3,
        'machine_conditions{condition="Joined",reason="Stuck",status="False"}': 5,
        'boots_overdue{phase="InitrdStarted"}': 7,
        'boots_overdue{phase="Switched"}': 11,
    }
    lifecycle = ("waiting_machines", "unseen_places", "behind_seconds")
    assert of(lines, *(f"lifecycle_{name}" for name in lifecycle), "machines_long_gated", "machines_unhealthy") == {
        "lifecycle_waiting_machines": 13,
        "lifecycle_unseen_places": 2,
        "lifecycle_behind_seconds": 17,
        "machines_long_gated": 19,
        "machines_unhealthy": 23,
    }
    assert of(lines, "rollouts", "rollout_machines", "rollouts_auto_undone_total") == {
        'rollouts{state="paused"}': 1,
        'rollouts{state="running"}': 1,
        'rollout_machines{channel="stable",rollout="7",state="done"}': 2,
        'rollout_machines{channel="stable",rollout="7",state="failed"}': 3,
        'rollout_machines{channel="canary",rollout="8",state="done"}': 5,
        'rollout_machines{channel="canary",rollout="8",state="failed"}': 11,
        "rollouts_auto_undone_total": 13,
    }


def test_boot_servers_are_added_up_each_label_by_itself(lines: list[str]) -> None:
    names = ("scripts_total", "sent_bytes_total", "open_connections", "journal_lag_records")
    assert of(lines, *names) == {
        'scripts_total{outcome="boot"}': 12,
        'scripts_total{outcome="unknown"}': 132,
        "sent_bytes_total": 5,
        "open_connections": 40,
        "journal_lag_records": 48,
    }


def test_each_cluster_has_its_own_nodes(lines: list[str]) -> None:
    assert of(lines, "nodes", "gate_nodes", "gate_moves_total") == {
        'nodes{cluster="east",state="registered"}': 61,
        'nodes{cluster="east",state="ready"}': 59,
        'gate_nodes{cluster="east",state="open"}': 53,
        'gate_nodes{cluster="east",state="shut"}': 47,
        'gate_moves_total{cluster="east",move="opened"}': 43,
        'nodes{cluster="west",state="registered"}': 41,
        'nodes{cluster="west",state="ready"}': 37,
        'gate_nodes{cluster="west",state="open"}': 31,
        'gate_nodes{cluster="west",state="shut"}': 29,
        'gate_moves_total{cluster="west",move="opened"}': 23,
    }


def test_each_machine_is_told_with_its_own_labels(lines: list[str]) -> None:
    told = [line for line in lines if line.startswith("netboot_machine_info{")]
    image = re.findall(r'image="([0-9a-f]{12})"', told[1])[0]
    assert [line.removeprefix("netboot_machine_info") for line in told] == [
        '{class="h100",cluster="default",image="",machine="gpu-001",profile="compute",rack="r1"} 1.0',
        f'{{class="h200",cluster="west",image="{image}",machine="gpu-002",profile="infer",rack="r2"}} 1.0',
    ]


def test_each_row_of_the_page_s_list_is_of_its_machine(tmp_path: Path) -> None:
    world = World(tmp_path)
    client = world.api.client.application.test_client()
    assert client.post("/page/login", data={"token": TOKEN}, headers={"Origin": HERE}).status_code == 303
    told = {each["name"]: each for each in world.api.get("/v1/fleet/machines?limit=50").json["machines"]}
    rows = re.findall(r'<tr id="row-[^"]+"><th scope="row">.*?</tr>', client.get("/page/machines").text, re.DOTALL)
    shown = dict(map(_cells, rows))
    assert len({(each["status"], each["rack"], each["reason"], each["step"]) for each in told.values()}) > 5
    assert shown == {
        name: (stands(each), spaced(each["reason"]), spaced(each["step"]) or "–", each["said"], without_words(each))
        for name, each in told.items()
    }


def stands(machine: dict[str, Any]) -> str:
    """Where, as the list has it."""
    unit = machine["position"]
    return f"{machine['rack']} U{unit}" if unit else str(machine["rack"])


def _cells(row: str) -> tuple[str, tuple[Any, ...]]:
    texts = [
        unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)
    ]
    said = re.findall(r'<q class="heard">([^<]*)</q>', row) or [""]
    rest = re.findall(r'class="clip" title="([^"]*)"', row, re.DOTALL)
    return texts[0], (texts[2], texts[3], texts[5], unescape(said[0]), unescape(rest[0]))
