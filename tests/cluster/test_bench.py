"""The bench's part `join` runs, whole and small, and leaves nothing behind."""

import json
import subprocess
import sys

import pytest

from tests.tools.test_bench import ROOT, folders, left_over

pytestmark = pytest.mark.cluster
QUICK = (sys.executable, "-m", "bench", "--quick", "--only", "join", "--nodes", "5", "--output", "json")


def test_a_quick_bench_of_join_has_a_certificate_for_every_machine_and_leaves_nothing() -> None:
    before = folders()
    done = subprocess.run(QUICK, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["join"]
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
    assert "machines started at once" in done.stderr
    assert folders() == before
    assert left_over() == []
