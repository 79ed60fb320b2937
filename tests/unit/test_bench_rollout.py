"""The bench's part `rollout`: which Nodes it counts as out of service, which machines come back, and what it says.

A control plane is not started.
"""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench import kubelets, rebooting
from bench.counted import Etcd
from bench.members import Member
from bench.rebooting import Machines
from bench.rolling import Rolled, Rolling, described, verdicts
from bench.spans import Span
from bench.watched import Watched, serves
from images.node.orders.order import DRAIN, DRAINED, ORDER

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def node(name: str, ready: str = "True", taints: tuple[str, ...] = (), order: Mapping[str, Any] | None = None) -> Any:
    listed = [{"key": key, "effect": "NoSchedule", "value": DRAINED} for key in taints]
    metadata = {"name": name, "annotations": {ORDER: json.dumps(order)} if order else {}}
    return {
        "metadata": metadata,
        "spec": {"taints": listed} if listed else {},
        "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]},
    }


@pytest.mark.parametrize(
    ("one", "does"),
    [
        (node("a"), True),
        (node("a", taints=("example.com/dedicated",)), True),
        (node("a", taints=("example.com/dedicated", DRAIN)), False),
        (node("a", taints=("netboot.dev/unchecked",)), False),
        (node("a", ready="Unknown"), False),
        (node("a", ready="False"), False),
        ({"metadata": {"name": "a"}, "spec": {}}, False),
    ],
)
def test_in_service_is_a_ready_node_without_a_taint_of_ours(one: Any, does: bool) -> None:
    assert serves(one) is does


def test_the_most_that_were_out_at_once_are_kept_and_a_deleted_node_is_out() -> None:
    seen = Watched([node("a"), node("b"), node("c", ready="Unknown")])
    assert (seen.out, seen.most) == (1, 1)
    for kind, one in [
        ("MODIFIED", node("a", taints=(DRAIN,))),
        ("DELETED", node("b")),
        ("ADDED", node("b")),
        ("MODIFIED", node("a")),
        ("MODIFIED", node("c")),
    ]:
        seen.take({"type": kind, "object": one})
    assert (seen.out, seen.most, seen.problem) == (0, 3, "")
    seen.take({"type": "ERROR", "object": {"message": "too old resource version"}})
    assert seen.problem == "too old resource version"


class Kubelet(SimpleNamespace):
    """As `bench.kubelets.Kubelet`, with a Node to look at."""

    def node(self) -> Any:
        return self.own

    def come_back(self, pair: Path) -> None:
        self.off, self.own = False, node(self.name)
        self.did.append(("back", pair.name))

    def say(self, status: str) -> None:
        self.did.append(("says", status))


def fleet(monkeypatch: pytest.MonkeyPatch, nodes: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Joined machines, each in boot "1", and which of them have joined since."""
    rejoined = list[str]()

    def booted(before: Any, _port: int, _identities: Any) -> list[Any]:
        return [replace(one, boot=str(int(one.boot) + 1)) for one in before]

    def join(members: Any, _door: Any, _pairs: Any) -> None:
        rejoined.extend(f"{one.name} {one.boot}" for one in members)

    monkeypatch.setattr(rebooting, "booted", booted)
    each = [Kubelet(name=name, off=False, own=one, did=[]) for name, one in nodes.items()]
    machines = [Member(name, "127.0.0.1", b"", b"", boot="1") for name in nodes]
    world = SimpleNamespace(site=SimpleNamespace(port=0, machines=list(nodes)), door=None)
    simulated = SimpleNamespace(each=each, check=lambda: None)
    processes = SimpleNamespace(join=join)
    return SimpleNamespace(
        world=world, fleet=machines, simulated=simulated, processes=processes, pairs=Path("pairs")
    ), rejoined


def ordered(name: str, boot: str = "1", taints: tuple[str, ...] = (DRAIN,)) -> Any:
    order = {"machine": name, "boot": boot, "slot": "s", "what": "reboot", "expires": int(time.time()) + 60}
    return node(name, taints=taints, order=order)


def test_who_is_ordered_reboots_and_comes_back_but_for_those_that_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {
        "a": ordered("a"),
        "b": node("b"),
        "c": ordered("c"),
        "d": ordered("d", boot="0"),
        "e": ordered("e", taints=()),
    }
    joined, rejoined = fleet(monkeypatch, nodes)
    machines, asked = Machines(joined, 0.0), list[tuple[int, int]]()

    def lost(number: int, before: int) -> bool:
        asked.append((number, before))
        return number == 2

    machines.look(lost)
    assert (asked, rejoined, machines.rebooted, machines.lost) == ([(0, 0), (2, 1)], ["a 2"], 2, {"c"})
    assert [(one.off, one.did) for one in joined.simulated.each[:3]] == [
        (False, [("back", "a.pem"), ("says", "pass")]),
        (False, []),
        (True, []),
    ]
    joined.simulated.each[2].own = ordered("c", boot="2")
    machines.look(lost)
    assert machines.rebooted == 2, "who is off looks for nothing"
    machines.begin()
    machines.switch_on()
    assert (rejoined, machines.lost, machines.rebooted) == (["a 2", "c 3"], set(), 0)
    assert not joined.simulated.each[2].off


def test_a_machine_looks_at_its_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    joined, rejoined = fleet(monkeypatch, {"a": node("a")})
    machines = Machines(joined, 0.0)
    machines._every = 3600.0
    machines.look(lambda _, __: False)
    joined.simulated.each[0].own = ordered("a")
    machines.look(lambda _, __: False)
    assert rejoined == []


def rolled(state: str, most: int, lost: int) -> Rolled:
    writes = {"netboot's nodes: patch nodes": 8, "netboot's issuer: update leases": 6, "nodes: create nodes": 2}
    span = Span("some are lost", 10.0, writes, Etcd(40, 20_480, 40_960), {"etcd": 1.26})
    return Rolled(state, "2 done, 1 failed", 8.4, {"failed": 1, "done": 2}, 3, most, 4, lost, span)


def test_what_is_said_of_a_rollout() -> None:
    assert described(Rolling(20, [rolled("complete", 2, 1)])) == (
        "rollouts of 20 Nodes on a real control plane; kubelets and reboots are simulated\n"
        "some are lost: 10.0 s; writes: 8 of netboot's accounts (0.80/s), 2 of nodes but for Leases (0.20/s); "
        "etcd: 40 puts, 20 KiB sent to it, 40 KiB to the disk; CPU seconds: etcd 1.3\n"
        "    netboot's issuer: update leases: 6\n"
        "    netboot's nodes: patch nodes: 8\n"
        "    nodes: create nodes: 2\n"
        "    complete after 8 s (2 done, 1 failed): 2 done, 1 failed; at most 2 Nodes out of service at once, 3 "
        "allowed; 4 rebooted, 1 of them did not come back; writes of netboot's accounts, Leases too: 14 "
        "(3.5 for each of these)"
    )


def test_budgets_are_judged_and_of_one_that_is_paused_what_it_harmed() -> None:
    found = verdicts(Rolling(20, [rolled("complete", 3, 1), rolled("paused", 4, 5), rolled("paused", 3, 6)]))
    assert [(one.what.partition(",")[0], one.value, one.target, one.reached) for one in found] == [
        ("out of service at once", 3, 3, True),
        ("out of service at once", 4, 3, False),
        ("did not come back", 5, 5, True),
        ("out of service at once", 3, 3, True),
        ("did not come back", 6, 5, False),
    ]


class Session:
    """As the API server's that takes everything; what it was asked."""

    def __init__(self, name: str) -> None:
        self.name, self.asked, self.twice = name, list[str](), threading.Event()

    def request(self, method: str, url: str, **_: Any) -> Any:
        self.asked.append(f"{method} {url}")
        if self.asked.count(f"PATCH {LEASES}/{self.name}") == 2:
            self.twice.set()
        return SimpleNamespace(ok=True, json=dict)


def test_leases_are_renewed_of_those_that_have_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubelets, "RENEW_SECONDS", 0.01)
    on, off = Session("node-1"), Session("node-2")
    each: Any = [kubelets.Kubelet(one.name, one, "", "X509SHA256=00") for one in (off, on)]  # type: ignore[arg-type]
    each[1].register()
    monkeypatch.setattr(kubelets, "THREADS", 1)
    simulated = kubelets.Kubelets(each)
    simulated.start()
    assert on.twice.wait(180)
    simulated.stop()
    assert on.asked[:3] == ["POST /api/v1/nodes", "PATCH /api/v1/nodes/node-1/status", f"POST {LEASES}"]
    assert off.asked == []
