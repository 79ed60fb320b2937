"""Whose a Node is, for a replica that learnt of the boot from the object of its machine."""

from itertools import permutations

import pytest

from netboot.controllers.nodes.attribution import registered
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.object_boots import boot_told
from netboot.lifecycle.object_shared import learnt
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.registrations import node_detail
from netboot.lifecycle.trace import Trace, apply
from tests.records import START, boot_id, certified, event, script
from tests.replicas import NAME, Site
from tests.states import MemoryStates
from tests.unit.test_gating import CLOSED, REGISTERED, Stage, of

UID = "11111111-2222-3333-4444-555555555555"


def seen(after_ms: int, uid: str = UID, name: str = NAME) -> EventRecord:
    """A node collector saw the Node."""
    return event(NAME, 1, Phase.NODE_REGISTERED, after_ms, node_detail(name, uid))


def test_each_replica_knows_the_node_whichever_of_them_saw_it_first() -> None:
    """All see it, each by its own clock, or one alone does while the others are away."""
    for after_ms in ((900, 940, 870), (900, None, None), (None, 940, None)):
        site = Site(3)
        site.replicas[0].told(script(NAME, 1))
        site.replicas[0].told(event(NAME, 1, Phase.ATTESTED, 500))
        site.heal()
        for replica, each in zip(site.replicas, after_ms, strict=True):
            if each is not None:
                replica.told(seen(each), "nodes-default.db")
        site.heal()
        for replica in site.replicas:
            trace = replica.states.boot(boot_id(NAME, 1))
            assert trace is not None
            assert registered(UID, trace)
            found = trace.phase(Phase.NODE_REGISTERED)
            assert found is not None
            assert found.at_ms == START + 1_000 + min(each for each in after_ms if each is not None)
        (told,) = site.status["boots"]
        assert [step["node"] for step in told["steps"] if "node" in step] == [UID]


def test_which_node_is_the_same_in_whatever_order_it_is_told() -> None:
    told = [seen(900), seen(870, name=""), seen(860).model_copy(update={"detail": "", "peer": ""}), seen(950, "other")]
    found = set[Trace]()
    for order in permutations(told):
        trace = None
        for each in order:
            trace = apply(trace, each)
        assert trace is not None
        (reached,) = trace.reached
        assert (reached.at_ms, reached.detail) == (START + 1_860, f"node {NAME} uid {UID}")
        assert apply(trace, told[2]) == trace
        found.add(trace)
    assert len(found) == 1


@pytest.mark.parametrize(
    "detail", ["node gpu-001 uid a b", f"node gpu-001 uid {'a' * 65}", "node gpu-001 uid a_b", "x"]
)
def test_what_is_no_uid_of_an_api_server_is_told_to_nobody(detail: str) -> None:
    trace = apply(apply(None, script(NAME, 1)), seen(900).model_copy(update={"detail": detail}))
    told = boot_told(trace, 7)
    assert told is not None
    assert {step.node for step in told.steps} == {""}


def test_a_leader_that_learnt_the_boot_opens_and_closes_its_gate_as_the_one_that_saw_it() -> None:
    saw, learned = Stage(), Stage()
    told = boot_told(saw.states.traces[boot_id("n-1", 1)], 7)
    assert told is not None
    learned.states = MemoryStates()
    learned.start()
    learned._taken = 0
    status = {"boots": [told.model_dump(mode="json")]}
    learned.know(certified("n-1", 1, of("n-1")), *learnt("n-1", status, START))
    for stage in (saw, learned):
        stage.step()
        assert stage.taints() == [REGISTERED]
        stage.say("n-1")
        stage.step()
        assert stage.taints() == [], "it is healthy, by a report of this boot"
        stage.say("n-1", "False")
        stage.step(60.0)
        assert stage.taints() == [CLOSED]
