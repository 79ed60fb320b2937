"""The bench's parts that need a control plane run, whole and small, and leave nothing behind."""

import json
import subprocess
import sys
from typing import Any

import pytest

from bench.early import REPORTED
from bench.storm import PHASES
from tests.tools.test_bench import ROOT, folders, nothing_is_left

pytestmark = pytest.mark.cluster
QUICK = (sys.executable, "-m", "bench", "--quick", "--output", "json")


def measured(part: str, nodes: int) -> tuple[Any, str]:
    """What a part found, and what it told on the way; it leaves nothing."""
    before, argv = folders(), [*QUICK, "--only", part, "--nodes", str(nodes)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert folders() == before
    nothing_is_left()
    return json.loads(done.stdout)[part], done.stderr


def test_a_quick_bench_of_join_has_a_certificate_for_every_machine_and_leaves_nothing() -> None:
    found, told = measured("join", 5)
    [fleet] = found["fleets"]
    assert len(fleet["joined"]["machines"]) == 5
    for one in fleet["joined"]["machines"]:
        assert set(one["seconds"]) == {"hello", "attest", "CSR → certificate"}
        assert one["end"] > one["start"] > 0
    assert len({one["address"] for one in fleet["joined"]["machines"]}) == 5
    assert fleet["fsyncs"]["count"] > 0, "etcd syncs its log to the disk"
    assert {"kube-apiserver", "etcd", "netboot's join", "netboot's approver", "the machines"} <= set(fleet["cpu"])
    assert found["pairs"][0]["paired"]["pairs"] > 0
    assert found["pairs"][0]["cpu"] > 0
    assert found["issued"][0]["tokens"] > 0
    assert "--cluster-signing-duration=24h" in found["flags"]
    assert "--kube-api-qps=20 (default)" in found["flags"]
    assert "machines started at once" in told


def test_forty_machines_boot_at_once_by_three_replicas_which_all_know_all_of_it_in_fewer_writes_than_phases() -> None:
    found, _ = measured("storm", 40)
    assert (found["machines"], found["lost"]) == (40, 0)
    assert 40 <= found["status_writes"] < 40 * len(PHASES)
    assert len(found["script_ms"]) == 40
    assert len(found["event_ms"]) == 40 * len(REPORTED)
