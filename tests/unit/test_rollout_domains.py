"""Machines of one accelerator domain go together: canaries, batches, who has no room, who is held; by tables."""

import pytest

from netboot.lifecycle.rollout import MemberState, RolloutState
from tests.rollouts import Fleet, fleet

S = MemberState
FOUR = ["x", "x", "x", "x"]


def of_four(**changed: object) -> Fleet:
    """Ten machines of which the first four, in two racks, are one domain; the canaries are through."""
    world = fleet(10, 2, max_unavailable="4", **changed)
    world.of_domains(FOUR)
    world.rollout = world.rollout.model_copy(update={"rolling": True})
    return world


def test_a_turn_is_of_the_whole_domain_or_of_none_of_it() -> None:
    world = of_four()
    turns = []
    for _ in range(12):
        world.look(1)
        turns.append(world.assigned)
        for name in world.assigned:
            world.reboot(name)
    of_domain = [each for each in turns if set(each) & {"m0000", "m0001", "m0002", "m0003"}]
    assert of_domain == [["m0000", "m0001", "m0002", "m0003"]], "all places were free for it, once"
    assert world.rollout.why == "10 done"


def test_where_there_is_no_room_for_all_of_it_none_goes_and_who_fits_does() -> None:
    world = of_four()
    world.leave("m0009")
    world.look(1)
    assert len(world.assigned) == 3
    assert not set(world.assigned) & {"m0000", "m0001", "m0002", "m0003"}


def test_it_waits_in_words_for_who_is_in_its_way() -> None:
    world = of_four()
    for name in world.members:
        if name > "m0003":
            world.members[name] = world.members[name].model_copy(update={"state": S.DONE})
            world.machines[name].image = world.rollout.image
    world.leave("m0009")
    world.members["m0009"] = world.members["m0009"].model_copy(update={"state": S.WAITING})
    world.look(1)
    assert world.assigned == []
    together = "the 4 machines of accelerator domain x go together"
    assert world.rollout.why == (
        f"no more than 4 machines may be out of service, and 1 is: m0009 (by itself); {together}"
    )
    world.come("m0009", world.rollout.image)
    world.look(1)
    assert world.assigned == ["m0000", "m0001", "m0002", "m0003"]


@pytest.mark.parametrize("per_rack", [1, 2])
def test_of_a_rack_no_more_go_than_may(per_rack: int) -> None:
    world = of_four(per_rack=per_rack)
    for _ in range(12):
        world.look(1)
        for name in world.assigned:
            world.reboot(name)
    done = set(world.of_state(S.DONE))
    assert ({"m0000", "m0001", "m0002", "m0003"} <= done) == (per_rack == 2), "two of it are in each rack"


def test_who_is_held_is_no_obstacle_and_goes_by_itself_when_it_is_released() -> None:
    world = of_four()
    world.by["m0001"] = "by bob"
    while "m0000" not in world.assigned:
        world.look(1)
        for name in set(world.assigned) - {"m0000", "m0002", "m0003"}:
            world.reboot(name)
    assert {"m0000", "m0002", "m0003"} <= set(world.assigned)
    assert "m0001" in world.of_state(S.WAITING)
    world.by.clear()
    world.look(1)
    assert "m0001" in world.assigned


def test_who_is_taken_back_before_it_was_ordered_is_taken_back_with_its_domain() -> None:
    world = fleet(10, 2, max_unavailable="4", on_next_boot=False)
    world.of_domains(["x"] * 4 + ["y"] * 6)
    world.rollout = world.rollout.model_copy(update={"rolling": True})
    world.look(1)
    assert world.assigned == ["m0000", "m0001", "m0002", "m0003"]
    world.leave("m0009")
    world.look(1)
    assert world.assigned == []


@pytest.mark.parametrize("number", range(1, 6))
def test_canaries_are_whole_domains_the_smallest_first(number: int) -> None:
    world = fleet(10, 2, max_unavailable="8", on_next_boot=False)
    world.of_domains(["x", "y", "x", "y", "x", "y", "", "z", "z", "z"])
    world.rollout = world.rollout.model_copy(update={"number": number})
    world.look(1)
    one_of_r1 = (["m0001", "m0003", "m0005", "m0006"], ["m0006", "m0007", "m0008", "m0009"])
    assert world.assigned in one_of_r1, "the only one of r0 that goes by itself, then whom the lot names"


def test_a_domain_over_two_racks_proves_the_second_one() -> None:
    """Else nothing could: its machines are all that the second rack has."""
    world = Fleet.of(fleet(1, 1, max_unavailable="4").rollout, 6, lambda number: "r1" if number > 4 else "r0")
    world.of_domains(["", "", "", "", "x", "x"])
    for name in ("m0000", "m0001"):
        done = {"state": S.DONE, "canary": True, "served": "boot-1"}
        world.members[name] = world.members[name].model_copy(update=done)
        world.machines[name].image = world.rollout.image
    world.look(1)
    assert world.assigned == ["m0004", "m0005"], "one of them is in the rack of the others"


def test_a_domain_is_as_many_canaries_as_it_has_machines() -> None:
    world = fleet(6, 2, max_unavailable="100%")
    world.of_domains(["x", "x", "y", "y", "z", "z"])
    world.look(1)
    assert len(world.assigned) == 2


def test_a_domain_that_has_no_room_since_others_left_stops_it_in_words() -> None:
    world = fleet(10, 2, max_unavailable="40%")
    world.of_domains(FOUR)
    world.rollout = world.rollout.model_copy(update={"rolling": True})
    for name in sorted(world.members)[4:]:
        world.machines[name].gone = "it is retired"
    world.look(1)
    words = (
        "no more than 1 machine may be out of service; the 4 machines of accelerator domain x go together: "
        "`netboot channel set stable IMAGE --force` ends this rollout, for another one"
    )
    assert (world.assigned, world.rollout.why) == ([], words)
    world.look(600)
    assert (world.rollout.state, world.rollout.why) == (RolloutState.PAUSED, words)


def test_without_a_second_rack_one_domain_goes_at_a_time() -> None:
    world = fleet(8, 1, unproven=True, max_unavailable="4")
    world.of_domains(["x", "x", "x", "y", "y", "y"])
    turns = []
    while world.rollout.under_way:
        world.look(30)
        turns.append(len(world.assigned))
        for name in world.assigned:
            world.reboot(name)
    assert sorted(filter(None, turns)) == [1, 1, 3, 3]
