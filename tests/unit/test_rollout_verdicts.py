"""What a rollout thinks of an image, and of machines that leave service again, whatever its budget is."""

import pytest

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.rollout import Fact, MemberState, RolloutState, target
from netboot.lifecycle.rollout_facts import facts_of
from netboot.lifecycle.rollout_member import due, turn_came
from netboot.lifecycle.rollout_orders import resumed, undone
from netboot.lifecycle.snapshot import Assignment, Snapshot
from netboot.machines.values import Channel, Inventory, Machine, Profile
from tests.rollouts import NEW, OLD, Fleet, fleet, proved

S = MemberState
FROZEN = "nothing begins: frozen by bob: power work"


def fail(world: Fleet, names: list[str]) -> None:
    """They leave service, and are not back in time."""
    for name in names:
        world.leave(name)
    world.look(1)
    world.look(600)


def crash(world: Fleet, name: str, after: int = 0) -> None:
    """It panics after so many seconds in service, and comes up with the image that it is assigned."""
    world.look(after)
    world.reboot(name)


@pytest.mark.parametrize(("count", "budget"), [(40, "100%"), (4, "3")])
def test_an_image_that_is_bad_behind_the_canaries_is_stopped_whatever_the_budget(count: int, budget: str) -> None:
    world = proved(count=count, racks=2, max_unavailable=budget)
    behind = len(world.assigned)
    assert behind == count - 2
    fail(world, world.assigned)
    assert world.rollout.state is RolloutState.PAUSED
    assert world.rollout.why.startswith(
        f"{behind} machines failed after the canaries, and 0 came into service with it; "
    )


def test_one_that_fails_stops_nothing_though_no_more_than_one_may_be_out() -> None:
    world = fleet(max_unavailable="1")
    for _ in range(2):
        world.look()
        world.reboot(world.assigned[0])
    world.look(60)
    [name] = world.assigned
    fail(world, [name])
    world.come(name)
    world.look(1)
    assert (world.rollout.state, world.of_state(S.FAILED)) == (RolloutState.RUNNING, [name])
    fail(world, world.assigned)
    assert world.rollout.state is RolloutState.PAUSED
    assert world.rollout.why.startswith("2 machines failed, and 2 stop it; ")


def test_as_many_that_fail_as_come_into_service_behind_the_canaries_stop_it() -> None:
    world = proved(count=40, max_unavailable="100%")
    first, second, third, *others = world.assigned
    for name in (first, second, third):
        world.reboot(name)
    fail(world, others[:2])
    assert world.rollout.state is RolloutState.RUNNING, "two of five"
    fail(world, others[2:3])
    assert world.rollout.why.startswith("3 machines failed after the canaries, and 3 came into service with it; ")


def test_with_more_failed_than_in_service_it_is_never_complete_whoever_lets_it_go_on() -> None:
    world = proved(count=6, racks=2, max_unavailable="100%")
    fail(world, world.assigned)
    world.rollout, world.members = resumed(world.rollout, world.members)
    world.look()
    assert (world.rollout.state, world.rollout.why) == (
        RolloutState.PAUSED,
        "4 machines failed, and 2 are in service with it: undo it",
    )
    for name in world.of_state(S.FAILED)[:1]:
        world.come(name, NEW)
    world.look()
    world.rollout, world.members = resumed(world.rollout, world.members)
    world.look()
    assert (world.rollout.state, world.rollout.why) == (RolloutState.COMPLETE, "3 done, 3 failed")


def test_a_machine_that_ran_the_image_for_long_enough_and_loses_power_is_skipped_and_keeps_it() -> None:
    world = proved(max_unavailable="4")
    for _ in range(2):
        for name in world.assigned:
            world.reboot(name)
    world.look(60)
    dark = world.of_state(S.DONE)[:4]
    fail(world, dark)
    assert [world.members[name].state for name in dark] == [S.SKIPPED] * 4
    assert {target(world.rollout, world.members[name]) for name in dark} == {NEW}
    assert world.members[dark[0]].why == "it left service after it had run the image for long enough"
    assert world.rollout.state is RolloutState.RUNNING
    world.come(dark[0])
    world.look()
    assert world.members[dark[0]].state is S.DONE
    world.rollout, world.members = undone(world.rollout, world.members)
    assert {target(world.rollout, each) for each in world.members.values()} == {OLD}


def test_one_that_leaves_service_while_canaries_would_bake_still_fails() -> None:
    world = proved(max_unavailable="4")
    name = world.assigned[0]
    world.reboot(name)
    world.look(50)
    fail(world, [name])
    assert world.members[name].state is S.FAILED


def test_canaries_that_begin_one_boot_after_the_other_are_a_verdict() -> None:
    world = fleet()
    world.look()
    for name in world.assigned:
        world.reboot(name)
    first, second = world.of_state(S.DONE)
    for _ in range(2):
        crash(world, first, 50)
        crash(world, second)
    assert (world.rollout.rolling, world.rollout.state) == (False, RolloutState.RUNNING)
    crash(world, first, 50)
    crash(world, second)
    assert world.rollout.why == (
        f"2 canaries in 2 racks failed, which is the image's fault; {first}: it began 3 more boots since it came into "
        "service with it"
    )
    assert target(world.rollout, world.members[first]) == OLD
    before = world.members
    world.look(10)
    assert world.members == before, "that it is in service again does not count"
    crash(world, first)
    assert world.machines[first].image == OLD


def test_what_was_counted_with_the_image_does_not_count_on_the_way_back() -> None:
    world = fleet(bake=600)
    world.look()
    for name in world.assigned:
        world.reboot(name)
    first, second = world.of_state(S.DONE)
    crash(world, first)
    crash(world, first)
    assert world.members[first].again == 2
    world.leave(first)
    world.look(1)
    world.rollout, world.members = undone(world.rollout, world.members)
    world.look(1)
    world.come(first)
    world.reboot(second)
    assert {name: world.machines[name].image for name in (first, second)} == {first: OLD, second: OLD}
    assert (world.rollout.state, world.rollout.why) == (RolloutState.UNDONE, "40 done")


def test_a_boot_that_nobody_saw_it_leave_service_for_counts_too_and_a_moment_s_absence_does_not() -> None:
    world = fleet(bake=600)
    world.look()
    for name in world.assigned:
        world.reboot(name)
    first, second = world.of_state(S.DONE)
    for _ in range(5):
        world.leave(first)
        world.look(1)
        world.machines[first].up = True
        world.look(1)
    assert (world.members[first].state, world.members[first].again) == (S.DONE, 0)
    world.come(second)
    world.look(1)
    assert (world.members[second].again, world.members[second].since) == (1, world.rollout.clock_ms)


def test_a_machine_of_which_no_boot_is_known_any_more_says_nothing_of_the_image() -> None:
    world = proved(max_unavailable="4")
    name, other = world.assigned[:2]
    world.leave(name)
    world.look(1)
    world.machines[name].known = world.machines[other].known = False
    world.look(600)
    assert (world.members[name].state, world.members[name].why) == (S.SKIPPED, "no boot of it is known any more")
    assert world.members[other].state is S.ASSIGNED
    world.machines[name].known = True
    world.come(name, NEW)
    world.look()
    assert world.members[name].state is S.DONE


def judged(boot: str, *, up: bool) -> Judged:
    reason = Reason.IN_SERVICE if up else Reason.NOT_JOINED
    service = MachineCondition.of(ConditionType.IN_SERVICE, reason, "", 1)
    return Judged(machine="m", conditions=(service,), timers={}, boot=boot, image=NEW if boot else "")


def test_where_the_state_is_lost_nothing_is_known_of_a_machine() -> None:
    """Its Node may be Ready still; `NotJoined` is all that conditions can say then."""
    machine = Machine.model_validate({"name": "m", "match": {"serial": "S1"}, "profile": "p"})
    inventory = Inventory(
        machines=(machine,), profiles=(Profile(name="p", channel="stable"),), channels=(Channel(name="stable"),)
    )
    snapshot = Snapshot(
        site="test",
        published_ms=1,
        inventory=inventory,
        channels={},
        unusable={},
        images={},
        url="http://192.0.2.1",
        origins=(),
    )
    assert facts_of(snapshot, "stable", ["m"], {"m": judged("", up=False)}, {}) == {}
    assert facts_of(snapshot, "stable", ["m"], {"m": judged("b1", up=True)}, {}) == {"m": Fact(True, NEW, "b1")}


def test_who_fills_the_budget_and_is_not_known_is_said() -> None:
    world = proved(max_unavailable="3")
    gone = world.of_state(S.WAITING)[:3]
    for name in gone:
        world.machines[name].known = False
    while world.assigned:
        world.reboot(world.assigned[0])
    world.look(600)
    assert world.rollout.why == (
        "no more than 3 machines may be out of service, and 3 are: "
        f"{', '.join(f'{name} (by itself)' for name in gone)}; of these no boot is known: {', '.join(gone)}"
    )


def test_when_the_second_rack_leaves_before_the_image_is_proved_one_machine_at_a_time_goes_on() -> None:
    world = fleet(8, 2, max_unavailable="4")
    world.look()
    for name, each in world.members.items():
        world.machines[name].gone = "it is retired" if each.rack == "r1" else ""
    world.look(1)
    assert world.rollout.unproven
    for _ in range(4):
        for name in world.assigned:
            world.reboot(name)
        world.look(60)
    assert (world.rollout.state, world.rollout.why) == (RolloutState.COMPLETE, "4 done, 4 left")


def test_a_rack_that_leaves_once_the_image_is_proved_changes_nothing() -> None:
    world = proved(count=8, racks=2, max_unavailable="2")
    for name, each in world.members.items():
        world.machines[name].gone = "it is retired" if each.rack == "r1" else ""
    world.look(1)
    assert not world.rollout.unproven


def test_a_freeze_in_the_middle_takes_back_what_was_not_rebooted_and_lets_it_go_on_by_itself() -> None:
    world = proved(max_unavailable="3")
    away, *waiting = world.assigned
    world.leave(away)
    world.look(1)
    world.withheld = FROZEN
    world.look(1)
    assert (world.rollout.why, world.assigned, world.of_state(S.OUT)) == (FROZEN, [], [away])
    assert {target(world.rollout, world.members[name]) for name in waiting} == {OLD}
    world.withheld = ""
    world.look(1)
    assert (world.rollout.why, world.assigned) == ("", waiting)


def test_where_nobody_can_see_its_status_says_why_and_forgets_what_it_said_before() -> None:
    world = proved(max_unavailable="3")
    world.withheld = FROZEN
    world.look(1)
    world.seeing, world.withheld, world.unseen = False, "", "it stands still: reports cannot be looked at"
    world.look(1)
    assert (world.rollout.why, world.rollout.state) == (world.unseen, RolloutState.RUNNING)
    world.seeing = True
    world.look(1)
    assert world.rollout.why == ""


def test_who_is_to_be_rebooted_is_named_once_boot_servers_know_it() -> None:
    world = proved(max_unavailable="3")
    first, second, third = world.assigned
    published = {first: Assignment(image=NEW, rollout=7), second: Assignment(image=OLD, rollout=7)}
    assert due(world.rollout, turn_came(world.members), published) == [first]
    assert due(world.rollout, turn_came(world.members), {third: published[first]}) == [third]
