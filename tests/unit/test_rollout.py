"""Rollouts, as tables and by the story: canaries, verdicts, budgets, deadlines, pause and undo."""

import itertools
from collections.abc import Mapping
from pathlib import Path

import pytest

from images.values.strict import FaultsError
from netboot.lifecycle.errors import RolloutRefusedError
from netboot.lifecycle.rollout import Assigned, Member, MemberState, RolloutState, assignments, images, target
from netboot.lifecycle.rollout_orders import cancelled, paused, resumed, undone
from netboot.machines.inventory import load_inventory
from netboot.machines.strategy import Strategy
from netboot.machines.values import Channel
from tests.rollouts import NEW, OLD, OTHER, Fleet, Simulated, fleet, proved, rollout

S = MemberState
SHARES = "must be a number of machines, like 3, or a share of them, like 5%"


def state(world: Fleet) -> RolloutState:
    return world.rollout.state


def racks(world: Fleet, names: list[str]) -> set[str]:
    return {world.members[name].rack for name in names}


def test_canaries_are_drawn_in_two_racks_and_everybody_else_keeps_what_it_has() -> None:
    world = fleet()
    world.look()
    assert len(world.assigned) == 2
    assert len(racks(world, world.assigned)) == 2
    assert {target(world.rollout, world.members[name]) for name in world.assigned} == {NEW}
    others = [each for each in world.members.values() if each.state is S.WAITING]
    assert len(others) == 38
    assert {target(world.rollout, each) for each in others} == {OLD}
    world.look(100_000)
    assert len(world.assigned) == 2, "with `on_next_boot` somebody else reboots them: nobody is late"


def test_canaries_are_of_different_classes_where_they_can_be() -> None:
    world = fleet(12, 4, canary=4, max_unavailable="4")
    for number, (name, each) in enumerate(world.members.items()):
        world.members[name] = each.model_copy(update={"class_name": "gpu" if number // 4 else "cpu"})
    world.look()
    assert racks(world, world.assigned) == {"r0", "r1", "r2", "r3"}
    assert {world.members[name].class_name for name in world.assigned} == {"gpu", "cpu"}


def test_the_others_turn_comes_when_the_canaries_have_been_in_service_for_the_whole_bake() -> None:
    world = fleet()
    world.look()
    first, second = world.assigned
    world.reboot(first)
    world.look(600)
    world.reboot(second)
    world.look(57)
    assert world.assigned == [], "the bake counts from the last of them"
    assert not world.rollout.rolling
    world.look(3)
    assert world.rollout.rolling
    assert len(world.assigned) == 2, "5 % of 40"


def test_a_canary_that_leaves_service_while_it_bakes_begins_it_anew() -> None:
    world = fleet()
    world.look()
    first, second = world.assigned
    world.reboot(first)
    world.reboot(second)
    world.look(50)
    world.leave(first)
    world.look(5)
    assert world.members[first].state is S.OUT
    world.machines[first].up = True
    world.look(5)
    world.look(59)
    assert not world.rollout.rolling
    world.look(1)
    assert world.rollout.rolling


def test_never_more_than_the_budget_are_out_and_a_machine_that_is_out_anyway_fills_a_place() -> None:
    world = proved(count=40, max_unavailable="3")
    assert len(world.assigned) == 3
    world.reboot(world.assigned[0])
    assert len(world.assigned) == 3, "the next one's turn came"
    waiting = world.of_state(S.WAITING)
    world.leave(waiting[0])
    world.leave(waiting[1])
    world.reboot(world.assigned[0])
    world.reboot(world.assigned[0])
    assert len(world.assigned) == 1, "two others are out: one more may be"


def test_an_undo_that_reboots_machines_keeps_to_the_budget_too() -> None:
    world = proved(count=40, max_unavailable="3", on_next_boot=False)
    for name in world.assigned:
        world.reboot(name)
    assert len(world.of_state(S.DONE)) == 5
    world.rollout, world.members = undone(world.rollout, world.members)
    world.look()
    assert len(world.of_state(S.ASSIGNED, S.OUT)) == 3


def test_a_share_is_of_the_machines_that_have_not_left() -> None:
    world = fleet(count=40, max_unavailable="10%")
    for name in list(world.machines)[:20]:
        world.machines[name].gone = "it is disabled"
    world.look()
    for name in world.assigned:
        world.reboot(name)
    world.look(60)
    assert len(world.assigned) == 2


def test_a_canary_that_is_wanted_still_is_tried_before_the_others() -> None:
    world = fleet(count=4, racks=2, canary=3, max_unavailable="4")
    for name in ("m0002", "m0003"):
        world.leave(name)
    world.look()
    for name in world.assigned:
        world.reboot(name)
    world.look(30)
    world.machines["m0002"].up = True
    world.look(40)
    assert (world.assigned, world.rollout.rolling) == (["m0002"], False)


def test_a_bake_that_is_longer_than_the_deadline_is_waited_for() -> None:
    world = fleet(bake=1500)
    world.look()
    for name in world.assigned:
        world.reboot(name)
    world.look(700)
    world.look(700)
    assert (state(world), world.rollout.rolling) == (RolloutState.RUNNING, False)
    world.look(100)
    assert world.rollout.rolling


def test_what_it_waited_for_before_a_freeze_does_not_count_after_it() -> None:
    world = proved(max_unavailable="2")
    for name in world.assigned:
        world.reboot(name)
    for name in [*world.assigned, *world.of_state(S.WAITING)[:2]]:
        world.machines[name].held, world.machines[name].up = "it is held", False
    world.look(1)
    world.look(700)
    assert (world.assigned, world.rollout.blocked is None) == ([], False)
    world.look(500)
    world.withheld = "nothing begins: frozen by bob: power work"
    world.look(500)
    world.withheld = ""
    world.look(1)
    assert state(world) is RolloutState.RUNNING
    world.look(600)
    assert state(world) is RolloutState.PAUSED


def test_who_is_rebooted_by_somebody_is_waited_for_without_end() -> None:
    world = fleet()
    world.look()
    first = world.assigned
    for _ in range(3):
        world.look(600)
    assert (world.assigned, state(world)) == (first, RolloutState.RUNNING)


def test_whoever_was_skipped_boots_the_channel_s_image_in_the_end_and_what_it_had_is_kept() -> None:
    ended = rollout().model_copy(update={"state": RolloutState.COMPLETE})
    skipped = {"m": Member(machine="m", previous=OTHER, state=S.SKIPPED)}
    assert assignments(ended, skipped) == {}
    assert images(ended, skipped) == {OLD, NEW, OTHER}


def test_when_all_machines_have_left_it_is_cancelled() -> None:
    world = fleet(count=4)
    for machine in world.machines.values():
        machine.gone = "it uses channel next now"
    world.look()
    assert state(world) is RolloutState.CANCELLED


def test_an_undo_goes_on_whatever_fails_to_come_back() -> None:
    world = proved(max_unavailable="3")
    for name in world.assigned:
        world.reboot(name)
    world.rollout, world.members = undone(world.rollout, world.members)
    world.look()
    failing = world.assigned[:3]
    for name in failing * 2:
        world.reboot(name, OTHER)
    assert (world.of_state(S.FAILED), state(world)) == (failing, RolloutState.RUNNING)


def test_where_all_canaries_are_in_one_rack_another_is_drawn_when_a_second_one_is_back() -> None:
    world = fleet(count=6, racks=2, max_unavailable="6")
    for name in ("m0001", "m0003", "m0005"):
        world.leave(name)
    world.look()
    assert (len(world.assigned), racks(world, world.assigned)) == (2, {"r0"})
    for name in world.assigned:
        world.reboot(name)
    world.look(60)
    assert (world.assigned, world.rollout.rolling) == ([], False)
    for name in ("m0001", "m0003", "m0005"):
        world.machines[name].up = True
    world.look()
    assert (len(world.assigned), racks(world, world.assigned)) == (1, {"r1"})


def test_of_one_rack_no_more_than_its_share_are_out() -> None:
    world = proved(count=40, max_unavailable="8", per_rack=1)
    assert len(world.assigned) == 4
    assert len(racks(world, world.assigned)) == 4
    world.leave(world.assigned[0])
    world.look()
    assert len(world.of_state(S.ASSIGNED, S.OUT)) == 4


def test_who_is_not_back_by_the_deadline_has_failed_and_boots_what_it_had() -> None:
    world = proved(max_unavailable="3")
    name = world.assigned[0]
    world.leave(name)
    world.look(1)
    world.look(599)
    assert world.members[name].state is S.OUT
    world.look(1)
    assert (world.members[name].state, world.members[name].why) == (S.FAILED, "it was not back in service in time")
    assert target(world.rollout, world.members[name]) == OLD
    assert len(world.assigned) == 2, "it fills its place until it is back"
    world.come(name)
    world.look()
    assert len(world.assigned) == 3


def test_who_comes_in_late_with_the_image_counts_after_all() -> None:
    world = proved(max_unavailable="3")
    name = world.assigned[0]
    world.leave(name)
    world.look(1)
    world.look(600)
    world.come(name, NEW)
    world.look()
    assert world.members[name].state is S.DONE


def test_who_returns_on_another_image_is_tried_once_more_and_then_given_up() -> None:
    world = proved(max_unavailable="3")
    name = world.assigned[0]
    world.reboot(name, OLD)
    assert (world.members[name].state, world.members[name].tries) == (S.ASSIGNED, 1)
    world.reboot(name, OTHER)
    assert (world.members[name].state, world.members[name].why) == (
        S.FAILED,
        "it came back with image cccccccccccc, twice",
    )


def test_what_is_past_alters_nothing_and_who_is_out_is_not_waited_for_for_ever() -> None:
    world = proved(max_unavailable="3", bake=0)
    done, out, turn = world.assigned
    world.reboot(done)
    world.leave(out)
    world.look(1)
    before = dict(world.members)
    states = {done: S.DONE, out: S.OUT, turn: S.ASSIGNED}
    assert {name: before[name].state for name in states} == states
    assert [before[name].last_boot for name in states] == ["boot-2", "boot-1", "boot-1"]
    known = {name: world.machines[name] for name in states}
    for up, image in itertools.product((True, False), (OLD, NEW)):
        world.machines |= {name: Simulated(image, 0, up, past=True) for name in states}
        world.look(1)
        assert all(world.members[name] is before[name] for name in states)
    world.look(600)
    assert [world.members[name].state for name in states] == [S.DONE, S.SKIPPED, S.ASSIGNED]
    assert world.members[out].why == "no boot since boot-1 is known"
    world.machines |= known
    world.reboot(done, OTHER)
    world.reboot(turn, OTHER)
    assert [world.members[name].state for name in (done, turn)] == [S.ASSIGNED, S.ASSIGNED], "these are news"
    world.machines[done] = Simulated(gone="it is retired", past=True)
    world.look()
    assert world.members[done].state is S.LEFT


@pytest.mark.parametrize("known", [True, False])
def test_whose_order_comes_to_nothing_fills_no_place_whatever_is_known_of_it(known: bool) -> None:
    """Where nothing new is heard of a machine, or nothing at all."""
    world = proved(on_next_boot=False, max_unavailable="3")
    refused, slow, other = world.assigned
    for name in (refused, slow, other):
        world.machines[name] = Simulated(OLD, 0, past=known, known=known)
    before = dict(world.members)
    world.look(599)
    assert all(world.members[name] is before[name] for name in (refused, slow, other))
    world.refused = {refused: "its Pods may not be evicted: budget web"}
    world.look(1)
    said = world.members[refused]
    assert (said.state, said.why, said.undone) == (S.SKIPPED, "its Pods may not be evicted: budget web", True)
    assert (world.members[slow].state, world.members[slow].tries) == (S.ASSIGNED, 1)
    world.look(600)
    assert (world.members[slow].state, world.members[slow].why) == (S.SKIPPED, "it was not rebooted in time, twice")


def test_who_was_only_unreachable_for_a_moment_waits_for_its_reboot_still() -> None:
    world = proved(max_unavailable="3")
    name = world.assigned[0]
    world.leave(name)
    world.look(1)
    world.machines[name].up = True
    world.look(1)
    assert (world.members[name].state, world.members[name].tries) == (S.ASSIGNED, 0)


def test_one_canary_that_fails_is_replaced_and_two_in_two_racks_are_a_verdict() -> None:
    world = fleet(max_unavailable="4")
    world.look()
    first, second = world.assigned
    world.leave(first)
    world.look(1)
    world.look(600)
    assert world.members[first].state is S.FAILED
    assert state(world) is RolloutState.RUNNING
    third = next(name for name in world.assigned if name != second)
    assert world.members[third].rack != world.members[second].rack
    world.leave(second)
    world.look(1)
    world.look(600)
    assert state(world) is RolloutState.PAUSED
    assert world.rollout.why == (
        f"2 canaries in 2 racks failed, which is the image's fault; {min(first, second)}: "
        "it was not back in service in time"
    )
    assert world.assigned == [], "who was not rebooted boots what it had"


def test_two_canaries_of_one_rack_are_no_verdict() -> None:
    world = fleet(40, 2, canary=3, max_unavailable="6")
    world.look()
    by_rack: dict[str, list[str]] = {}
    for name in world.assigned:
        by_rack.setdefault(world.members[name].rack, []).append(name)
    for name in max(by_rack.values(), key=len):
        world.leave(name)
    world.look(1)
    world.look(600)
    assert len(world.of_state(S.FAILED)) == 2
    assert state(world) is RolloutState.RUNNING


def test_where_there_is_one_rack_one_machine_at_a_time_and_the_first_failure_stops_it() -> None:
    world = fleet(40, 1, unproven=True, max_unavailable="50%")
    world.look()
    assert len(world.assigned) == 1
    world.reboot(world.assigned[0])
    assert len(world.assigned) == 1
    world.reboot(world.assigned[0])
    world.look(60)
    assert world.rollout.rolling
    name = world.assigned[0]
    assert len(world.assigned) == 1
    world.leave(name)
    world.look(1)
    world.look(600)
    assert world.rollout.why == (
        f"one machine failed, and without a second rack one stops it: {name}: it was not back in service in time"
    )


def test_too_many_failures_pause_it_and_an_operator_lets_it_go_on() -> None:
    world = proved(max_unavailable="3")
    for name in world.assigned:
        world.leave(name)
    world.look(1)
    world.look(600)
    assert state(world) is RolloutState.PAUSED
    assert world.rollout.why.startswith("3 machines failed, and 3 stop it; ")
    world.look(10_000)
    assert world.assigned == []
    for name in world.of_state(S.FAILED):
        world.come(name)
    world.rollout, world.members = resumed(world.rollout, world.members)
    world.look()
    assert state(world) is RolloutState.RUNNING
    assert len(world.assigned) == 3


def test_where_the_budget_is_filled_by_others_it_waits_and_then_says_so() -> None:
    world = proved(max_unavailable="3")
    for name in world.assigned:
        world.reboot(name)
    gone = world.of_state(S.WAITING)[:3]
    for name in gone:
        world.leave(name)
    for name in world.assigned:
        world.reboot(name)
    world.look(599)
    assert state(world) is RolloutState.RUNNING
    world.look(1)
    assert state(world) is RolloutState.PAUSED
    said = ", ".join(f"{name} (by itself)" for name in gone)
    assert world.rollout.why == f"no more than 3 machines may be out of service, and 3 are: {said}"


def test_a_canary_is_not_wanted_of_a_rack_that_has_no_room() -> None:
    world = fleet(40, 4, per_rack=1, max_unavailable="8")
    full = {name for name, each in world.members.items() if each.rack in ("r0", "r1")}
    for rack in ("r0", "r1"):
        world.leave(next(name for name in sorted(full) if world.members[name].rack == rack))
    world.look()
    assert racks(world, world.assigned) == {"r2", "r3"}


def test_where_each_rack_has_as_many_out_as_may_be_it_says_so() -> None:
    world = proved(count=40, max_unavailable="8", per_rack=1)
    for rack in ("r0", "r1", "r2", "r3"):
        world.leave(next(name for name in world.of_state(S.WAITING) if world.members[name].rack == rack))
    while world.assigned:
        world.reboot(world.assigned[0])
    world.look(600)
    away = next(name for name, each in world.machines.items() if not each.up)
    rack = world.members[away].rack
    assert world.rollout.why == (
        f"no more than 1 machine of rack {rack} may be out of service, and 1 is: {away} (by itself)"
    )


def test_it_is_complete_when_each_is_in_service_with_the_image_or_out_for_reasons_of_its_own() -> None:
    world = proved(max_unavailable="30")
    away = world.of_state(S.WAITING, S.ASSIGNED)[-1]
    left = world.of_state(S.WAITING, S.ASSIGNED)[0]
    world.machines[left].gone = "it is retired"
    if world.members[away].state is S.WAITING:
        world.leave(away)
    while world.assigned:
        world.reboot(world.assigned[0])
    world.look()
    assert state(world) is RolloutState.COMPLETE
    assert world.members[left].state is S.LEFT
    assert assignments(world.rollout, world.members) == {}, "the channel says it now"


def test_a_machine_that_is_back_after_it_left_is_taken_too() -> None:
    """Out of the inventory by a fault, or by a rename that deletes first; also where its turn had come."""
    world = proved(max_unavailable="30")
    away = [world.assigned[0], world.of_state(S.WAITING)[0]] if world.of_state(S.WAITING) else world.assigned[:2]
    for name in away:
        world.machines[name].gone = "the inventory no longer has it"
    world.look()
    assert [world.members[name].state for name in away] == [S.LEFT, S.LEFT]
    assert not assignments(world.rollout, world.members).keys() & set(away)
    for name in away:
        world.machines[name].gone = ""
    world.look()
    assert {world.members[name].state for name in away} <= {S.WAITING, S.ASSIGNED}
    assert assignments(world.rollout, world.members).keys() >= set(away)
    while world.assigned:
        world.reboot(world.assigned[0])
    assert (state(world), world.rollout.why) == (RolloutState.COMPLETE, "40 done")


def test_a_machine_that_failed_keeps_what_it_had_after_the_end() -> None:
    world = proved(max_unavailable="30")
    bad = world.assigned[0]
    world.leave(bad)
    world.look(1)
    world.look(600)
    for name in [name for name in world.members if name != bad]:
        if world.members[name].state is S.ASSIGNED:
            world.reboot(name)
    while world.assigned:
        world.reboot(world.assigned[0])
    assert state(world) is RolloutState.COMPLETE
    assert world.rollout.why == "39 done, 1 failed"
    assert assignments(world.rollout, world.members) == {bad: Assigned("stable", OLD, 7)}
    assert images(world.rollout, world.members) == {OLD, NEW}


def test_undo_assigns_everybody_what_it_had_at_once_and_ends_when_all_run_it() -> None:
    world = proved(max_unavailable="3")
    changed = world.of_state(S.DONE)
    world.rollout, world.members = undone(world.rollout, world.members)
    assert {each.image for each in assignments(world.rollout, world.members).values()} == {OLD}
    world.look()
    assert world.assigned == changed, "they run the other image, and somebody reboots them"
    for name in changed:
        world.reboot(name)
    assert state(world) is RolloutState.UNDONE
    assert assignments(world.rollout, world.members) == {}


def test_a_pause_takes_back_what_has_not_begun_and_says_the_same_when_asked_again() -> None:
    world = proved(max_unavailable="3")
    world.leave(world.assigned[0])
    world.look(1)
    halted, members = paused(world.rollout, world.members, "alice")
    assert (halted.state, halted.why) == (RolloutState.PAUSED, "paused by alice")
    assert [each.state for each in members.values()].count(S.ASSIGNED) == 0
    assert [each.state for each in members.values()].count(S.OUT) == 1
    assert paused(halted, members, "bob") == (halted, members)
    going, _ = resumed(halted, members)
    assert going.state is RolloutState.RUNNING
    assert resumed(going, members) == (going, members)


@pytest.mark.parametrize("image", [None, OTHER])
def test_who_comes_back_without_the_image_during_a_pause_waits_and_boots_what_it_had(image: str | None) -> None:
    world = proved(max_unavailable="3")
    name = world.assigned[0]
    world.leave(name)
    world.look(1)
    world.rollout, world.members = paused(world.rollout, world.members, "alice")
    if image is None:
        world.machines[name].up = True
    else:
        world.come(name, image)
    world.look(1)
    assert world.members[name].state is S.WAITING
    assert target(world.rollout, world.members[name]) == OLD


def test_what_has_ended_takes_no_orders() -> None:
    ended = rollout().model_copy(update={"state": RolloutState.COMPLETE})
    members: Mapping[str, Member] = {}
    with pytest.raises(RolloutRefusedError, match=r"^rollout 7 is complete: nothing is under way$"):
        paused(ended, dict(members), "alice")
    with pytest.raises(RolloutRefusedError, match="start one with the image before it, aaaaaaaaaaaa"):
        undone(ended, dict(members))
    assert assignments(cancelled(rollout(), "by alice", 5), fleet().members) == {}


def test_while_nobody_can_see_nobody_is_late_and_nobody_s_turn_comes() -> None:
    world = proved(max_unavailable="3")
    name = world.assigned[0]
    world.leave(name)
    world.look(1)
    world.seeing = False
    world.rollout = world.rollout.model_copy(update={"clock_ms": world.rollout.clock_ms + 10**9})
    world.look()
    assert world.members[name].state is S.OUT, "whatever the clock says"
    world.come(name)
    world.look()
    assert world.members[name].state is S.DONE, "what is seen counts"
    assert len(world.assigned) == 2
    world.seeing = True
    world.look()
    assert len(world.assigned) == 3


def test_what_nothing_is_known_of_alters_nothing_and_fills_a_place() -> None:
    world = proved(max_unavailable="3")
    known = world.members.copy()
    for each in world.machines.values():
        each.known = False
    world.look(100_000)
    assert world.members == known


@pytest.mark.parametrize(
    ("held", "expected"),
    [("it is held", (S.SKIPPED, "it is held")), ("", (S.FAILED, "it was not back in service in time"))],
)
def test_a_machine_that_somebody_holds_says_nothing_of_the_image(held: str, expected: tuple[S, str]) -> None:
    world = proved(max_unavailable="3")
    name = world.assigned[0]
    world.leave(name)
    world.machines[name].held = held
    world.look(1)
    world.look(600)
    assert (world.members[name].state, world.members[name].why) == expected


def test_where_machines_are_renewed_one_that_is_not_is_skipped() -> None:
    world = proved(max_unavailable="3", on_next_boot=False)
    refused, slow, _ = world.assigned
    world.refused = {refused: "its Pods may not be evicted: budget web"}
    world.look(1)
    assert world.members[refused].why == "its Pods may not be evicted: budget web"
    assert world.members[refused].state is S.SKIPPED
    assert target(world.rollout, world.members[refused]) == OLD
    world.look(600)
    assert (world.members[slow].state, world.members[slow].tries) == (S.ASSIGNED, 1)
    world.look(600)
    assert (world.members[slow].state, world.members[slow].why) == (S.SKIPPED, "it was not rebooted in time, twice")


def test_an_obstacle_pauses_it() -> None:
    world = proved()
    world.obstacle = "the image cannot be used: it is damaged"
    world.look()
    assert (world.rollout.state, world.rollout.why) == (RolloutState.PAUSED, world.obstacle)


def test_who_has_the_image_already_counts_at_once() -> None:
    world = fleet(4, 2)
    for each in world.machines.values():
        each.image = NEW
    world.look()
    assert len(world.of_state(S.DONE)) == 4
    world.look(60)
    assert state(world) is RolloutState.COMPLETE


@pytest.mark.parametrize(
    ("share", "of", "most"),
    [("5%", 437, 21), ("5%", 19, 1), ("1%", 5000, 50), ("100%", 7, 7), ("3", 2, 3), ("3", 500, 3)],
)
def test_a_share_is_rounded_down_and_at_least_one(share: str, of: int, most: int) -> None:
    assert Strategy(max_unavailable=share).budget(of) == most


@pytest.mark.parametrize("share", ["0%", "101%", "0", "-1", "5 %", "", "many", "1.5", True, None])
def test_what_is_no_share(share: object) -> None:
    with pytest.raises(ValueError, match=SHARES):
        Strategy.model_validate({"max_unavailable": share})


def test_an_inventory_keeps_a_channel_s_strategy_and_one_without_is_written_as_before(tmp_path: Path) -> None:
    said = "{canary: 3, max_unavailable: 2%, per_rack: 2, bake: 2h, deadline: 45m}"
    (tmp_path / "site.yaml").write_text(f"channels: [{{name: a, strategy: {said}}}, {{name: b}}]\nmachines: []\n")
    first, second = load_inventory(tmp_path).channels
    expected = Strategy(canary=3, max_unavailable="2%", per_rack=2, bake=7200, deadline=2700)
    assert (first.strategy, second.strategy) == (expected, None)
    assert "strategy" not in second.model_dump_json()
    assert Channel.model_validate_json(first.model_dump_json()) == first


@pytest.mark.parametrize(
    ("said", "key", "words"),
    [
        ("{canary: 1}", "canary", "must be 2 at least"),
        ("{deadline: 30s}", "deadline", "must be 60 at least"),
        ("{bake: soon}", "bake", "a whole number and s, m or h, like 90s, 30m or 2h"),
        (
            "{max_unavailable: 0%}",
            "max_unavailable",
            "must be a number of machines, like 3, or a share of them, like 5%",
        ),
        ("{bake: true}", "bake", "must be a whole number"),
        ("{per_rack: true}", "per_rack", "must be a whole number"),
        ("{canary: 2.0}", "canary", "must be a whole number"),
        ("{canaries: 3}", "canaries", "unknown key; did you mean 'canary'?"),
    ],
)
def test_a_strategy_with_faults(tmp_path: Path, said: str, key: str, words: str) -> None:
    (tmp_path / "site.yaml").write_text(f"machines: []\nchannels:\n- name: a\n  strategy: {said}\n")
    with pytest.raises(FaultsError) as raised:
        load_inventory(tmp_path)
    assert str(raised.value) == f"{tmp_path / 'site.yaml'}:4: channels[0].strategy.{key}: {words}"


def test_while_nothing_may_begin_nobodys_turn_comes_and_who_is_on_the_way_is_counted() -> None:
    world = proved()
    world.look()
    first, *others = world.assigned
    world.leave(first)
    world.look(1)
    world.withheld = "nothing begins: frozen by alice: power work"
    world.come(first)
    for name in others:
        world.reboot(name)
    world.look(100_000)
    assert (state(world), world.rollout.why) == (RolloutState.RUNNING, world.withheld), "and it is not blocked"
    assert world.members[first].state is S.DONE
    assert world.assigned == []
    world.withheld = ""
    world.look()
    assert len(world.assigned) == 2
    assert (state(world), world.rollout.why) == (RolloutState.RUNNING, "")


def test_undone_while_nothing_may_begin_machines_boot_what_they_had_and_none_is_named_to_be_rebooted() -> None:
    world = proved()
    world.withheld = "nothing begins: frozen by alice: power work"
    world.rollout, world.members = undone(world.rollout, world.members)
    world.look(100_000)
    assert {target(world.rollout, each) for each in world.members.values()} == {OLD}
    assert (state(world), world.assigned) == (RolloutState.RUNNING, [])
    world.withheld = ""
    world.look()
    assert len(world.assigned) == 2
