"""A remedy's order, from the loop that gives it to a Node of a real API server, by clocks that a test moves: a running
service waits ten minutes at least before it acts."""

from pathlib import Path

import pytest

from images.node.orders.order import Here, Verdict, judged
from lab.kube.accounts import Admin
from netboot.controllers.nodes.drainer import Drainer
from netboot.controllers.nodes.proven_boots import ProvenBoots
from netboot.lifecycle.drains import DrainsStatus
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.machines.values import Machine, Match
from tests.kube_world import NODES, RealWorld
from tests.records import boot_id, event, script
from tests.remedy_world import World
from tests.states import MemoryStates

pytestmark = pytest.mark.cluster
NAME = "m001"
MACHINE = Machine(name=NAME, match=Match(serial=NAME), profile="compute")


def test_a_remedy_drains_a_node_and_tells_its_machine_to_reboot(
    world: RealWorld, as_admin: Admin, tmp_path: Path
) -> None:
    fleet, states, said = World(tmp_path), MemoryStates(), list[DrainsStatus]()
    world.make_node(NAME, ready=True)
    uid = as_admin("GET", f"{NODES}/{NAME}").json()["metadata"]["uid"]
    registered = event(NAME, 1, Phase.NODE_REGISTERED, 700, f"node {NAME} uid {uid}")
    states.take(Batch("any.db", 1, 3, [script(NAME, 1), event(NAME, 1, Phase.ATTESTED), registered]))
    drainer = Drainer(
        connect=lambda: world.drains,
        orders=fleet.drains.standing,
        machines=lambda: {NAME: MACHINE},
        classes=dict,
        marked=tuple,
        boots=ProvenBoots(states),
        say=said.append,
        lacks=lambda: "",
        now_ms=fleet.now_ms,
        monotonic=lambda: fleet.up / 1000,
    )

    def run(minutes: float) -> None:
        """A step of each, ten seconds at a time."""
        for _ in range(round(minutes * 6)):
            fleet.run(1 / 6)
            drainer.step()

    def told(boot: int) -> Verdict | None:
        """What the machine makes of its Node in that boot."""
        return judged(as_admin("GET", f"{NODES}/{NAME}").json(), Here(NAME, boot_id(NAME, boot), fleet.now_ms() / 1000))

    fleet.ill(NAME)
    run(30)
    assert (fleet.done(), told(1)) == ([], None)
    run(1)
    (order,) = fleet.drains.standing()
    assert (fleet.done(), order.owner) == ([(NAME, "reboot")], "remedy/1")
    assert said[-1].drains[NAME].state == "ordered"
    assert told(1) == Verdict(order.id, "")
    other = told(2)
    assert other is not None
    assert other.dead == f"order {order.id} is for boot {boot_id(NAME, 1)}, and this is boot {boot_id(NAME, 2)}"
