"""Machines of a control plane in a rollout: kept unless they are named, then last, singly, and never without a majority
of the others."""

from pathlib import Path

import pytest

from netboot.lifecycle.control_planes import ControlNode
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.intents import PutOn
from netboot.lifecycle.rollout import MemberState, RolloutState, Stage, assignments
from netboot.lifecycle.rollout_batch import NO_MORE, UNNAMED
from netboot.lifecycle.rollout_orders import undone
from netboot.lifecycle.transitions import Mark
from tests.rollout_world import World
from tests.rollouts import NEW, OLD, OTHER, Fleet, fleet

S = MemberState
CONTROL = ("m0001", "m0004", "m0009")
MAJORITY = "without it 1 of its control plane's Nodes would be Ready, and 2 of 3 are a majority"


def site(folder: Path, count: int = 12, named: tuple[str, ...] = CONTROL) -> World:
    """Twelve machines in three racks, three of a control plane, by their Nodes' labels."""
    world = World(folder, count, 4, lambda _machine, _image: True, 3)
    world.shown = dict.fromkeys(CONTROL, ControlNode(ready=True))
    world.named = named
    return world


def run(world: World, ticks: int = 3_000) -> None:
    for _ in range(ticks):
        if world.rollout().state is not RolloutState.RUNNING:
            return
        out = [name for name in CONTROL if not world.up[name]]
        assert len(out) <= 1, "never two of them"
        world.tick()


def rolled(count: int = 12) -> Fleet:
    """All but three, which are of a control plane, are in service with the image."""
    world = fleet(count, 3, max_unavailable="100%")
    world.rollout = world.rollout.model_copy(update={"rolling": True})
    world.of_control_plane(*CONTROL)
    for name in world.members.keys() - set(CONTROL):
        world.members[name] = world.members[name].model_copy(update={"state": S.DONE})
        world.machines[name].image = NEW
    return world


def test_unless_they_are_named_they_keep_what_they_have_also_in_the_next_rollout(tmp_path: Path) -> None:
    world = site(tmp_path, named=())
    begun = world.start(bake=60, max_unavailable="3")
    kept = [name for name, each in world.store.members(begun.number).items() if each.state is S.KEPT]
    assert sorted(kept) == list(CONTROL)
    run(world)
    assert (world.rollout().state, world.rollout().why) == (RolloutState.COMPLETE, "9 done, 3 kept")
    assert {name for name, image in world.image.items() if image == OLD} == set(CONTROL)
    assert {name: each.image for name, each in world.store.assigned().items()} == dict.fromkeys(CONTROL, OLD)
    with pytest.raises(RolloutRefusedError, match=r"kept on another: m0001, m0004, m0009: --control-plane names one"):
        world.start()
    world.named = CONTROL
    world.start(bake=60, max_unavailable="3")
    run(world)
    assert world.rollout().state is RolloutState.COMPLETE
    assert set(world.image.values()) == {NEW}
    world.close()


def test_named_they_go_behind_all_others_and_one_at_a_time(tmp_path: Path) -> None:
    world, gone = site(tmp_path), list[str]()
    world.start(bake=60, max_unavailable="100%")
    for _ in range(2_000):
        gone += [name for name in world.names if not world.up[name] and name not in gone]
        assert sum(not world.up[name] for name in CONTROL) <= 1
        world.tick()
    assert world.rollout().state is RolloutState.COMPLETE
    assert (len(gone), set(gone[-3:])) == (12, set(CONTROL))
    world.close()


FIVE = dict.fromkeys((*CONTROL, "x", "y"), ControlNode(ready=False))


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (None, NO_MORE),
        (FIVE, "without it 2 of its control plane's Nodes would be Ready, and 3 of 5 are a majority"),
    ],
)
def test_where_it_cannot_be_told_or_there_is_no_majority_no_turn_comes_and_it_says_so(
    shown: dict[str, ControlNode] | None, said: str, tmp_path: Path
) -> None:
    world = site(tmp_path)
    world.start(bake=60, max_unavailable="100%", deadline=600)
    world.shown = shown
    run(world)
    why = world.rollout().why.partition(" may not go: ")[2]
    assert (world.rollout().state, why) == (RolloutState.PAUSED, said)
    assert {name for name, image in world.image.items() if image == OLD} == set(CONTROL)
    world.close()


def test_nobody_goes_beside_one_that_somebody_holds(tmp_path: Path) -> None:
    world = site(tmp_path)
    world.start(bake=60, max_unavailable="100%", deadline=600)
    world.intents.order("m0004", PutOn(Mark.HELD, "DIMM 4"), "bob", world.now_ms())
    run(world)
    said = "m0001 may not go: m0004, of the same control plane, is out of service (by bob)"
    assert (world.rollout().state, world.rollout().why) == (RolloutState.PAUSED, said)
    world.close()


def test_a_channel_of_a_control_plane_alone_goes_one_by_one_canaries_too() -> None:
    world = fleet(3, 3, max_unavailable="100%")
    world.of_control_plane("m0000", "m0001", "m0002")
    order = []
    for _ in range(3):
        world.look(60)
        (name,) = world.assigned
        order.append(name)
        world.reboot(name)
        world.look(60)
    world.look(60)
    assert (sorted(order), world.rollout.state) == (["m0000", "m0001", "m0002"], RolloutState.COMPLETE)


def test_the_next_one_waits_until_the_one_before_is_in_service_again() -> None:
    world = rolled()
    world.look(1)
    (first,) = world.assigned
    world.leave(first)
    world.look(1)
    assert (world.assigned, world.of_state(S.OUT), world.rollout.why) == ([], [first], "")
    world.come(first)
    world.look(1)
    assert len(world.assigned) == 1
    assert world.assigned != [first]


def test_one_whose_turn_came_waits_again_where_the_others_fall_also_while_it_is_drained() -> None:
    world = rolled()
    world.look(1)
    (first,) = world.assigned
    world.control = dict.fromkeys(CONTROL, MAJORITY)
    world.seeing = False  # though its machines cannot be seen now
    world.look(1)
    assert world.assigned == []
    world.seeing = True
    world.look(1)
    assert world.rollout.why == f"m0001 may not go: {MAJORITY}"
    world.look(600)
    world.look(600)
    assert world.rollout.state is RolloutState.PAUSED
    assert first in world.of_state(S.WAITING)


def test_of_two_whose_turn_it_is_the_one_that_is_drained_goes_on() -> None:
    """As after an undo, of two that failed."""
    world = rolled()
    for name in CONTROL[:2]:
        world.members[name] = world.members[name].model_copy(update={"state": S.ASSIGNED, "boot": "boot-1"})
    facts = world.facts()
    batch_facts = {**facts, CONTROL[1]: facts[CONTROL[1]]._replace(up=False, stage=Stage.DRAINING)}
    world.facts = lambda: batch_facts  # type: ignore[method-assign]
    world.look(1)
    assert world.assigned == [CONTROL[1]]


def test_one_that_fails_stops_it() -> None:
    world = rolled()
    world.look(1)
    (first,) = world.assigned
    world.leave(first)
    world.look(1)
    world.look(600)
    assert world.rollout.state is RolloutState.PAUSED
    assert world.rollout.why == (
        f"a machine of a control plane failed, and one stops it; {first}: it was not back in service in time"
    )


def test_an_undo_brings_them_back_one_at_a_time_and_leaves_those_that_were_kept() -> None:
    world = rolled()
    for name in CONTROL[:2]:
        world.members[name] = world.members[name].model_copy(update={"state": S.DONE})
        world.machines[name].image = NEW
    kept = world.members[CONTROL[2]].model_copy(update={"state": S.KEPT, "previous": OTHER, "named": False})
    world.members[CONTROL[2]], world.machines[CONTROL[2]].image = kept, OTHER
    world.rollout, world.members = undone(world.rollout, world.members)
    for _ in range(6):
        world.look(1)
        assert len(set(world.assigned) & set(CONTROL)) <= 1
        for name in world.assigned:
            world.reboot(name)
    assert (world.rollout.state, world.of_state(S.KEPT)) == (RolloutState.UNDONE, [CONTROL[2]])
    assert {name: each.image for name, each in assignments(world.rollout, world.members).items()} == {CONTROL[2]: OTHER}


def test_where_all_others_leave_those_that_were_kept_keep_what_they_had() -> None:
    world = fleet(2, 2)
    update = {"state": S.KEPT, "previous": OTHER}
    world.members["m0001"] = world.members["m0001"].model_copy(update=update)
    world.machines["m0000"].gone = "it is retired"
    world.look(1)
    assert (world.rollout.state, world.rollout.why) == (RolloutState.UNDONE, "1 kept, 1 left")
    assert assignments(world.rollout, world.members)["m0001"].image == OTHER


def test_one_that_turns_out_to_be_of_a_control_plane_is_kept() -> None:
    world = fleet(6, 3)
    world.look(1)
    first = world.assigned[0]
    world.control = {first: ""}
    world.look(1)
    assert world.members[first].model_copy(update={"since": 0}).model_dump()["state"] == S.KEPT
    assert world.members[first].why == UNNAMED
    assert assignments(world.rollout, world.members)[first].image == OLD


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (("m0099",), "m0099 is no machine of channel stable that can boot"),
        (("m0000",), "m0000 is of no control plane: neither the inventory"),
    ],
)
def test_a_name_that_is_of_no_control_plane_is_refused(named: tuple[str, ...], said: str, tmp_path: Path) -> None:
    world = site(tmp_path, named=named)
    with pytest.raises(RolloutRefusedError, match=said):
        world.start()
    world.close()


def test_a_channel_of_which_nobody_is_named_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path, 2, 1, lambda _machine, _image: True, 3)
    world.shown = dict.fromkeys(world.names, ControlNode(ready=True))
    with pytest.raises(RolloutRefusedError, match="that can boot are of a control plane"):
        world.start()
    world.close()
