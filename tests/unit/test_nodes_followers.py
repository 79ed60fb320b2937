"""Node collectors of which one leads: who follows sees and judges the same, and changes nothing."""

from dataclasses import replace

import pytest

from netboot.controllers.nodes.drainer import Drainer
from netboot.controllers.nodes.telling import Teller
from netboot.join.errors import NotLeadingError
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.reasons import Reason
from tests.drain_world import FOREIGN, World, pod
from tests.records import START
from tests.remedies import remedy
from tests.unit.test_gating import REGISTERED
from tests.unit.test_gating import Stage as Gates
from tests.unit.test_telling import Stage as Events
from tests.unit.test_telling import found

ELSEWHERE = "the replica that leads carries out the orders that were given to itself (docs/ha.md)"


class Led(Gates):
    """A gate's controller that leads, or not."""

    leads = False

    def start(self) -> None:
        super().start()
        self.gate._leads = lambda: self.leads


def test_a_follower_opens_no_gate_and_the_leader_that_it_becomes_opens_it_at_once() -> None:
    stage = Led()
    stage.say("n-1")
    for _ in range(20):
        stage.step()
    assert stage.taints() == [REGISTERED]
    assert not [call for call in stage.cluster.calls if call.startswith("nodes.taint")]
    assert stage.gate.status().gates == {"open": 0, "shut": 1, "closed": 0}
    stage.leads = True
    stage.step()
    assert stage.taints() == []


def test_a_leader_that_ceases_to_be_one_before_the_write_has_no_trouble_to_tell() -> None:
    stage = Gates()

    def another() -> None:
        raise NotLeadingError("another replica leads")

    stage.cluster.before["nodes.taint"] = another
    stage.say("n-1")
    stage.step()
    assert stage.taints() == [REGISTERED]
    stage.step(6.0)
    assert stage.taints() == []


def test_a_follower_tells_no_events_nor_later_what_another_has_told() -> None:
    stage, leads, another = Events(), False, True
    stage.teller = Teller(
        lambda: stage,
        lambda: stage.found,
        lambda: {"gpu-001": ("node-1", "uid-1")},
        lambda: START,
        stage.news,
        lambda: stage.seconds,
        lambda: leads,
        lambda: another,
    )
    stage.becomes(found(Reason.BOOTING))
    stage.taken = [remedy("gpu-001")]
    assert stage.becomes(found(Reason.STUCK)) == []
    leads = True
    assert stage.becomes(found(Reason.STUCK)) == []
    assert stage.becomes(found(Reason.BOOTING)) == [("Booted", "Booting")]
    leads = another = False
    assert stage.becomes(found(Reason.STUCK)) == []
    leads = True  # nobody has told it
    assert stage.becomes(found(Reason.STUCK)) == [("Booted", "Stuck")]


def test_a_follower_says_that_orders_of_its_own_wait() -> None:
    world = World(pod("a"))
    drainer = replace(world.started(), leads=lambda: False, given=lambda _machine: [])
    drainer.step()
    assert world.said.problem == ""
    world.order()
    with pytest.raises(CannotTellError) as caught:
        drainer.step()
    assert str(caught.value) == world.said.problem == f"1 orders wait: {ELSEWHERE}"
    assert (world.evicted, world.value()) == ([], None)


def test_a_leader_leaves_a_node_alone_that_another_replica_drains() -> None:
    world = World(pod("a"))
    world.drainer = giver = replicated(world)
    given = world.order()
    world.run(1)
    assert world.value() == "Draining"
    assert world.node_ is not None
    assert world.node_.annotations["netboot.dev/drain-order"] == given.id
    other = replace(giver, orders=list, given=lambda _machine: ["order-7"], _under={})
    with pytest.raises(CannotTellError) as caught:
        other.step()
    assert str(caught.value) == f"n-1 is being drained by an order that this replica does not have: {ELSEWHERE}"
    assert world.value() == "Draining"
    replace(world.started(), orders=list).step()  # were it the only one
    assert world.node_.taints == (FOREIGN,)


def test_who_gave_an_order_takes_it_back_where_it_has_ended_and_none_that_it_never_gave() -> None:
    world = World(pod("a"))
    world.drainer = replicated(world)
    given = world.order()
    world.run(1)
    assert world.value() == "Draining"
    world.drains.finish(given.id, "taken-off", "by alice", START)
    world.drainer = replicated(world)  # it remembers nothing
    world.run(1)
    assert world.node_ is not None
    assert (world.node_.taints, world.node_.annotations) == ((FOREIGN,), {})
    taint = {"key": "netboot.dev/drain", "value": "Draining", "effect": "NoSchedule"}
    world.alter(taints=(FOREIGN, taint), annotations={"netboot.dev/drain-order": "another-s"})
    with pytest.raises(CannotTellError):
        world.drainer.step()
    assert world.value() == "Draining"


def replicated(world: World) -> Drainer:
    """One of several, which leads."""
    return replace(world.started(), given=lambda machine: [each.id for each in world.drains.of(machine, 99)])
