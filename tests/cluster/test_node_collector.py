"""The node collector under its own account, against a real apiserver: which Node counts for which boot."""

import time
from pathlib import Path

import pytest

from lab.kube.accounts import Admin
from netboot.clock import SystemClock
from netboot.controllers.nodes.collector import Collector
from netboot.kube.connection import connect
from netboot.kube.nodes import KubeNodes
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.machines.values import Machine, Match
from netboot.status import up_ms
from tests.kube_world import NODES, RealWorld
from tests.processes import wait_for
from tests.records import event
from tests.states import MemoryStates
from tests.unit.test_node_collector import Journal, NoGate

pytestmark = pytest.mark.cluster
MACHINES = {name: Machine(name=name, match=Match(serial=name), profile="compute") for name in ("before", "after")}


def test_a_node_that_was_there_before_the_boot_attested_does_not_count(
    accounts: dict[str, Path], world: RealWorld, as_admin: Admin
) -> None:
    states, connection = MemoryStates(), connect(accounts["nodes"])
    journal, now = Journal(states), time.time_ns() // 1_000_000
    collector = Collector(
        lambda: KubeNodes(connection), lambda: MACHINES, states, journal, NoGate(), SystemClock(), up_ms
    )
    world.make_node("before", ready=True)
    attested = [
        event("before", 1, Phase.ATTESTED).model_copy(update={"at_ms": now + 60_000}),
        event("after", 1, Phase.ATTESTED).model_copy(update={"at_ms": now}),
    ]
    states.take(Batch("join-0.db", 1, 2, attested))
    collector.start()
    try:
        wait_for(lambda: collector.status().ready == 1)
        world.make_node("after")
        wait_for(lambda: [one.phase for one in journal.records] == [Phase.NODE_REGISTERED])
        world.make_node("after", ready=True)
        wait_for(lambda: [one.phase for one in journal.records] == [Phase.NODE_REGISTERED, Phase.READY])
    finally:
        collector.stop()
    uid = as_admin("GET", f"{NODES}/after").json()["metadata"]["uid"]
    assert {(one.machine, one.detail) for one in journal.records} == {("after", f"node after uid {uid}")}
