"""Nodes of machines that were retired go, by uid, with the issuer's account, before a real control plane."""

import time
from pathlib import Path

import pytest

from netboot.join.departed import clear_departed
from netboot.join.left_nodes import RETIRED_MS
from netboot.join.ports import MARK
from netboot.kube.clusters import reach
from netboot.processes.join import left_nodes
from netboot.stores.live import LiveView
from tests.cluster.threats.live_site import NODES, LiveSite
from tests.cluster.threats.test_drains import REGISTERED, Kubelet, chassis_boot, order
from tests.processes import wait_for

pytestmark = pytest.mark.cluster


def clear(site: LiveSite, later_ms: int) -> None:
    """What join does each minute, so much later."""
    config = site.service.config
    access, _ = reach("default", config.clusters["default"])
    inventory = LiveView(config.data / "snapshot.json").view().snapshot.inventory
    clear_departed(access, lambda: inventory, left_nodes(config), time.time_ns() // 1_000_000 + later_ms)


def uid(site: LiveSite, name: str) -> str | None:
    answer = site.admin("GET", f"{NODES}/{name}")
    return str(answer.json()["metadata"]["uid"]) if answer.status_code == 200 else None


def gone_quiet(site: LiveSite, machine: Kubelet) -> None:
    """Its heartbeats are late: Kubernetes does not know how it is."""
    wait_for(lambda: "NodeRegistered" in site.phases(chassis_boot(site, machine.name)), 180)
    unknown = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    machine.ask("PATCH", f"{NODES}/{machine.name}/status", {"status": {"conditions": [unknown]}}, 200)


def test_a_retired_machine_s_node_goes_a_late_one_s_and_another_of_its_name_stay(
    site: LiveSite, tmp_path: Path
) -> None:
    retired, late, again = (Kubelet(site, site.fresh(), tmp_path / name) for name in ("retired", "late", "again"))
    for machine in (retired, late, again):
        gone_quiet(site, machine)
    for machine in (retired, again):
        order(site, "retire", machine.name, "--reason", "sold")
    assert site.admin("DELETE", f"{NODES}/{again.name}").status_code == 200
    made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": again.name, "labels": MARK}}
    assert site.admin("POST", NODES, made | {"spec": {"taints": [REGISTERED]}}).status_code == 201
    before = {machine.name: uid(site, machine.name) for machine in (late, again)}
    clear(site, 0)
    assert uid(site, retired.name) is not None, "its certificates are good for a while"
    clear(site, RETIRED_MS)
    assert uid(site, retired.name) is None
    assert {name: uid(site, name) for name in before} == before
