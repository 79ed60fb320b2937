"""The bench's part `lifecycle`: whose writes it counts, and what it says of them. A control plane is not started."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import bench.__main__ as program
from bench.counted import Audit, Etcd
from bench.lifecycle import Lifecycle, described
from bench.serving import BenchError
from bench.spans import Span


def event(user: str, verb: str, resource: str, code: int = 200, subresource: str = "") -> dict[str, Any]:
    of = {"resource": resource} | ({"subresource": subresource} if subresource else {})
    return {"user": {"username": user}, "verb": verb, "objectRef": of, "responseStatus": {"code": code}}


def test_what_was_written_since_by_whom(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    before = json.dumps(event("system:node:n-1", "create", "nodes", 201)) + "\n"
    log.write_text(before)
    cluster: Any = SimpleNamespace(folder=tmp_path)
    audit = Audit(cluster)
    assert audit.writes() == {}
    ours = "system:serviceaccount:netboot:netboot-nodes"
    events = [
        event("system:node:n-1", "patch", "nodes", 200, "status"),
        event("system:node:n-2", "patch", "nodes", 200, "status"),
        event("system:node:n-2", "patch", "leases"),
        event("system:bootstrap:4imqa1", "create", "certificatesigningrequests", 201),
        event("system:node:n-2", "get", "nodes"),
        event(ours, "patch", "nodes"),
        event(ours, "patch", "nodes", 409),
        event(ours, "create", "events", 201),
        event(ours, "create", "selfsubjectaccessreviews", 201),
        event("system:serviceaccount:kube-system:node-controller", "patch", "nodes"),
        event("system:apiserver", "update", "endpointslices"),
        event("admin", "delete", "nodes"),
    ]
    lines = "".join(f"{json.dumps(each)}\n" for each in events)
    log.write_text(before + lines + '{"user": {"userna')
    assert audit.writes() == {
        "nodes: patch nodes/status": 2,
        "nodes: patch leases": 1,
        "nodes: create certificatesigningrequests": 1,
        "netboot's nodes: patch nodes": 1,
        "netboot's nodes: create events": 1,
        "Kubernetes: patch nodes": 1,
        "Kubernetes: update endpointslices": 1,
        "admin: delete nodes": 1,
    }
    log.write_text(before + lines + json.dumps(event(ours, "patch", "nodes")) + "\n")
    assert audit.writes() == {"netboot's nodes: patch nodes": 1}, "what was written in part is read when it is whole"


def test_a_log_that_was_rotated_is_counted_by_nobody(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text("")
    cluster: Any = SimpleNamespace(folder=tmp_path)
    audit = Audit(cluster)
    log.rename(tmp_path / "audit-2026-11-25.log")
    log.write_text(json.dumps(event("system:node:n-1", "create", "nodes", 201)) + "\n")
    with pytest.raises(BenchError, match=r"^audit\.log was rotated while its lines were counted$"):
        audit.writes()


def span(name: str, writes: Mapping[str, int]) -> Span:
    return Span(name, 10.0, dict(writes), Etcd(40, 20_480, 40_960), {"etcd": 1.26, "netboot's boot": 0.04})


def test_it_is_said_per_second_and_leases_are_the_kubelets_own() -> None:
    one = span("x", {"netboot's nodes: patch nodes": 3, "nodes: patch leases": 20, "nodes: patch nodes/status": 5})
    assert described(Lifecycle(20, [one], 2)) == (
        "20 Nodes against a real control plane; kubelets are simulated\n"
        "x: 10.0 s; writes: 3 of netboot's accounts (0.30/s), 5 of nodes but for Leases (0.50/s); "
        "etcd: 40 puts, 20 KiB sent to it, 40 KiB to the disk; CPU seconds: etcd 1.3\n"
        "    netboot's nodes: patch nodes: 3\n"
        "    nodes: patch leases: 20\n"
        "    nodes: patch nodes/status: 5\n"
        "closed in the end, by the budget: 2"
    )


@pytest.mark.parametrize(
    ("argv", "nodes"), [([], 437), (["--quick"], 8), (["--quick", "--nodes", "20"], 20), (["--nodes", "5000"], 5000)]
)
def test_how_many_nodes(monkeypatch: pytest.MonkeyPatch, argv: list[str], nodes: int) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--only", "lifecycle", *argv])
    assert program._options().nodes == nodes
