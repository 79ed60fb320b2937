"""Rollouts of two channels whose machines share racks, and machines of neither: no rack has more out than may be."""

from pathlib import Path

import pytest

from netboot.controllers.rollouts import UNJUDGED
from netboot.lifecycle.intents import PutOn, TakeOff
from netboot.lifecycle.rollout import Member, RolloutState
from netboot.lifecycle.rollout_store import Note
from netboot.lifecycle.transitions import Mark
from netboot.machines.values import Channel, Profile
from tests.rollout_world import World
from tests.rollouts import OLD, rollout


class Two(World):
    """Sixteen machines in four racks; each second one of channel edge."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 16, 4, lambda _machine, _image: True, minutes=3, tick=60)
        machines = tuple(
            machine.model_copy(update={"profile": "q", "cluster": "other"} if number % 2 else {"profile": "p"})
            for number, machine in enumerate(self.inventory.machines)
        )
        profiles = (*self.inventory.profiles, Profile(name="q", channel="edge"))
        channels = (*self.inventory.channels, Channel(name="edge"))
        said = {"machines": machines, "profiles": profiles, "channels": channels}
        self.inventory = self.inventory.model_copy(update=said)
        self.snapshot = self._publish()

    def begin(self, channel: str) -> None:
        profile = {"stable": "p", "edge": "q"}[channel]
        members = {
            each.name: Member(machine=each.name, rack=each.rack or "", previous=OLD)
            for each in self.inventory.machines
            if each.profile == profile
        }
        begun = rollout(on_next_boot=False, max_unavailable="100%", per_rack=1, bake=0, deadline=1200)
        self.store.start(begun.model_copy(update={"channel": channel}), members, Note(1, "alice", "start"))

    def most_out_of_a_rack(self) -> int:
        racks = [self.rack[name] for name in self.names if not self.up[name] or name in self.wanted]
        return max(map(racks.count, racks), default=0)

    def states(self) -> list[RolloutState]:
        return [each.rollout.state for each in self.store.listed(2)]


@pytest.fixture
def world(tmp_path: Path) -> Two:
    return Two(tmp_path)


def test_one_of_two_that_stands_still_is_no_reason_to_let_another_replica_lead(world: Two) -> None:
    world.begin("stable")
    world.begin("edge")
    world.unseen = ("nodes/other/",)
    world.controller.step()
    said = [world.store.rollout(number).why for number in (1, 2)]
    assert (world.controller.unable, said) == ("", ["", "it stands still: nodes/other cannot be looked at"])
    world.seeing = False
    world.controller.step()
    assert world.controller.unable == "it stands still: reports cannot be looked at"


def test_two_rollouts_of_two_channels_take_one_of_a_rack_together(world: Two) -> None:
    world.begin("stable")
    world.begin("edge")
    both = False
    for look in range(120):
        world.tick()
        if look % 7 == 3:
            world.again()  # it remembers nothing
        assert world.most_out_of_a_rack() <= 1
        both = both or len({drain.owner for drain in world.wanted.values()}) == 2
        if set(world.states()) == {RolloutState.COMPLETE}:
            break
    assert both
    assert world.states() == [RolloutState.COMPLETE, RolloutState.COMPLETE]
    world.close()


def test_a_machine_of_another_channel_that_is_out_fills_the_place_of_its_rack(world: Two) -> None:
    world.neighbours = {"m0001", "m0005", "m0009"}
    world.intents.order("m0013", PutOn(Mark.HELD, "DIMM 4"), "bob", world.now_ms())
    world.begin("stable")
    world.tick()
    assert (world.wanted, world.rollout().why) == (
        {},
        "no more than 1 machine of rack r0 may be out of service, and 1 is: m0001 (by itself)",
    )
    world.intents.order("m0013", TakeOff(Mark.HELD, ""), "bob", world.now_ms())
    world.neighbours.discard("m0005")
    world.tick()
    world.tick()
    assert sorted(world.rack[name] or "" for name in world.wanted) == ["r1", "r3"]
    world.close()


def test_before_all_machines_were_judged_nobody_s_turn_comes_where_racks_have_a_budget(world: Two) -> None:
    world.controller._out = lambda: None
    world.begin("stable")
    world.tick()
    assert (world.rollout().why, world.wanted) == (UNJUDGED, {})
    world.close()


def test_before_all_machines_were_judged_no_rollout_undoes_itself(tmp_path: Path) -> None:
    world = World(tmp_path, 8, 2, lambda _machine, image: image == OLD, minutes=2)
    world.start(canary=2, max_unavailable="2", bake="10m", deadline="5m", auto_undo=True)
    while len(world.back) < 2:
        world.tick()
    judged = world.controller._out
    world.controller._out = lambda: None
    for _ in range(60):
        world.tick()
    assert (world.rollout().why, world.rollout().undoing) == (UNJUDGED, False)
    world.controller._out = judged
    for _ in range(60):
        world.tick()
    assert (world.rollout().state, bool(world.rollout().verdict)) == (RolloutState.UNDONE, True)
    world.close()
