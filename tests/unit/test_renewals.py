"""A rollout that drains and reboots its machines by itself: what becomes of what it orders; and both processes that
take part, killed at each step."""

from pathlib import Path
from typing import Any, cast

import pytest

from images.errors import CorruptError
from netboot.clock import SystemClock
from netboot.controllers.renewals import OrderedRenewals
from netboot.join.node_drains import ORDER
from netboot.lifecycle.drains import Reserved, State
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.renewals import Ledger
from netboot.lifecycle.rollout import MemberState, Renewal, RolloutState
from netboot.lifecycle.rollout_orders import paused, resumed, undone
from netboot.lifecycle.state import Batch
from netboot.machines.maintenance import Freeze
from tests.drain_world import BUDGET
from tests.drains import START, MemoryDrains, drain
from tests.intents import MemoryIntents
from tests.records import boot_id, event, script
from tests.renewal_world import TICK, Site
from tests.rollouts import NEW, OLD, rollout
from tests.states import MemoryStates

S = MemberState
MINUTES = 60 // TICK


def begun(folder: Path, count: int = 2, kill: tuple[int, bool] | None = None, **strategy: object) -> Site:
    site = Site(folder, count, kill)
    site.start(**{"canary": 2, "max_unavailable": "2", "bake": 0, "deadline": 120, **strategy})
    return site


def run(site: Site, ticks: int) -> None:
    """Until it is paused, or has ended and nothing is left of it."""
    for _ in range(ticks):
        site.tick()
        if site.rollout().state is not RolloutState.RUNNING and not site.traces():
            return


def states(site: Site) -> dict[str, S]:
    return {name: each.state for name, each in site.store.members(1).items()}


def test_machines_are_drained_and_rebooted_in_their_turn_and_nothing_is_left_on_them(tmp_path: Path) -> None:
    site = begun(tmp_path, 4)
    for _ in range(3):
        site.tick()
    first = sorted(site.wanted)
    assert len(first) == 2
    (one, _) = site.wanted.values()
    assert (one.owner, one.who, one.reason) == (
        "rollout/1",
        "rollout 1 of channel stable",
        f"to image next {NEW[:12]}",
    )
    assert (one.what, one.boot, one.deadline_ms - one.since_ms) == ("reboot", site.boot_of(one.machine), 120_000)
    run(site, 5 * MINUTES)
    assert (site.rollout().state, site.rollout().why) == (RolloutState.COMPLETE, "4 done")
    assert site.image == dict.fromkeys(site.names, NEW)
    assert sorted(name for name, _ in site.reboots) == site.names
    assert site.most_out <= 2
    site.close()


def steps_of(folder: Path) -> int:
    site = begun(folder)
    run(site, 3 * MINUTES)
    site.close()
    return site.steps


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_at_any_step_of_a_rollout_each_machine_reboots_once_and_no_slot_is_kept(
    tmp_path: Path, before: bool
) -> None:
    (tmp_path / "whole").mkdir()
    for step in range(1, steps_of(tmp_path / "whole") + 1):
        (tmp_path / str(step)).mkdir()
        site = begun(tmp_path / str(step), kill=(step, before))
        run(site, 4 * MINUTES)
        assert site.steps >= step
        assert (site.rollout().state, site.rollout().why) == (RolloutState.COMPLETE, "2 done"), step
        assert sorted(name for name, _ in site.reboots) == site.names, step
        assert site.traces() == [], step
        site.close()


def test_who_is_not_drained_in_time_is_let_go_and_skipped_and_two_of_them_stop_it(tmp_path: Path) -> None:
    site = begun(tmp_path, 4)
    site.refuses = set(site.names)
    run(site, 4 * MINUTES)
    assert site.rollout().state is RolloutState.PAUSED
    words = f"it was not drained by its deadline: default/{{0}} are left; default/{{0}} may not go now: {BUDGET}"
    first = next(name for name, state in states(site).items() if state is S.SKIPPED)
    assert site.rollout().why == f"2 machines were not rebooted, and 2 stop it; {first}: {words.format(first)}"
    assert (site.reboots, site.traces(), site.image) == ([], [], dict.fromkeys(site.names, OLD))
    site.refuses = set()
    site.store.change(1, resumed, lambda *_: None)
    run(site, 4 * MINUTES)
    assert (site.rollout().state, site.rollout().why) == (RolloutState.COMPLETE, "2 done, 2 skipped")
    site.close()


def test_who_does_not_take_the_order_is_skipped_and_who_is_told_and_does_not_come_has_failed(tmp_path: Path) -> None:
    site = begun(tmp_path, 6, canary=3, max_unavailable="3")
    site.tick()
    site.tick()
    deaf, lost, _ = sorted(site.wanted)
    site.deaf = {deaf}
    while lost not in site.back:
        site.tick()
    site.back[lost] += 3_600_000
    run(site, 15 * MINUTES)
    members = site.store.members(1)
    assert members[deaf].state is S.SKIPPED
    assert members[deaf].why.startswith("it did not take the order to reboot: ")
    assert (members[lost].state, members[lost].why) == (S.FAILED, "it was not back in service in time")
    assert site.traces() == [lost, lost], "who is on its way keeps its slot until it is back"
    assert site.rollout().state is RolloutState.COMPLETE
    site.back[lost] = site.now
    run(site, MINUTES)
    assert (site.traces(), site.image[lost]) == ([], OLD)
    site.close()


def test_frozen_who_is_being_drained_is_rebooted_and_nobody_else_begins(tmp_path: Path) -> None:
    site = begun(tmp_path, 4)
    site.tick()
    site.refuses = set(site.names)
    site.tick()
    drained = sorted(site.wanted)
    site.freeze = Freeze(who="alice", reason="power work", since_ms=0, until_ms=None)
    for _ in range(4):
        site.tick()
    assert sorted(site.wanted) == drained
    site.refuses = set()
    for _ in range(3 * MINUTES):
        site.tick()
    assert sorted(name for name, state in states(site).items() if state is S.DONE) == drained
    assert [site.rollout().why, site.wanted] == ["nothing begins: frozen by alice: power work", {}]
    site.freeze = None
    run(site, 4 * MINUTES)
    assert site.rollout().why == "4 done"
    site.close()


def test_frozen_before_it_is_ordered_a_turn_is_taken_back(tmp_path: Path) -> None:
    site = begun(tmp_path)
    site.tick()
    assert set(states(site).values()) == {S.ASSIGNED}
    site.freeze = Freeze(who="alice", reason="power work", since_ms=0, until_ms=None)
    site.tick()
    assert (set(states(site).values()), site.wanted) == ({S.WAITING}, {})
    site.close()


def test_while_nobody_can_see_nothing_is_ordered(tmp_path: Path) -> None:
    site = begun(tmp_path)
    site.tick()
    site.seeing = False
    for _ in range(3):
        site.tick()
    assert (site.wanted, set(states(site).values())) == ({}, {S.ASSIGNED})
    site.seeing = True
    run(site, 4 * MINUTES)
    assert site.rollout().why == "2 done"
    site.close()


@pytest.mark.parametrize("act", ["pause", "undo"])
def test_paused_or_undone_who_is_being_drained_is_let_go_and_may_be_ordered_again(tmp_path: Path, act: str) -> None:
    site = begun(tmp_path, 4)
    site.refuses = set(site.names)
    for _ in range(4):
        site.tick()
    drained = sorted(site.wanted)
    orders = {"pause": lambda rollout, members: paused(rollout, members, "alice"), "undo": undone}
    site.store.change(1, orders[act], lambda *_: None)
    run(site, MINUTES)
    assert (site.traces(), site.reboots) == ([], [])
    assert {one.end for name in drained for one in site.drains.of(name, 5)} == {"withdrawn"}
    site.refuses = set()
    if act == "undo":
        assert site.rollout().state is RolloutState.UNDONE
    else:
        site.store.change(1, resumed, lambda *_: None)
        run(site, 5 * MINUTES)
        assert site.rollout().why == "4 done"
    site.close()


def test_what_is_not_known_of_a_rollout_lets_nobody_go(tmp_path: Path) -> None:
    site = begun(tmp_path)
    site.refuses = set(site.names)
    for _ in range(4):
        site.tick()
    standing = site.wanted
    rollouts: Any = site.controllers._rollouts
    channel, rollouts._channel = rollouts._channel, broken
    site.now += 5000
    site.controllers.step()
    assert site.controllers.status().problem == "rollout 1 of channel stable: its file says nothing"
    assert site.wanted == standing
    rollouts._channel = channel
    site.close()


def broken(_name: str) -> str:
    raise CorruptError("its file says nothing")


def test_an_operator_s_order_fills_a_place_at_once_and_a_turn_that_has_no_room_any_more_is_taken_back(
    tmp_path: Path,
) -> None:
    site = begun(tmp_path, 4)
    site.tick()
    turn = sorted(name for name, state in states(site).items() if state is S.ASSIGNED)
    other = next(name for name in site.names if name not in turn)
    site.order(other, "drain")
    site.tick()
    assert len(site.wanted) == 2
    assert site.wanted[other].owner == "operator"
    assert list(states(site).values()).count(S.ASSIGNED) == 1
    site.undrain(other)
    run(site, 6 * MINUTES)
    assert site.rollout().why == "4 done"
    site.close()


def test_an_order_that_came_between_the_count_and_the_reservation_keeps_it_from_being_written(tmp_path: Path) -> None:
    site = begun(tmp_path, 4)
    site.tick()
    renewals: Any = cast("Any", site.controllers._rollouts)._renewals
    ledger, other = renewals.ledger, next(name for name, state in states(site).items() if state is S.WAITING)

    def meanwhile() -> object:
        before = ledger()
        site.order(other, "drain")
        return before

    renewals.ledger = meanwhile
    site.tick()
    assert list(site.wanted) == [other]
    renewals.ledger = ledger
    site.tick()
    assert len(site.wanted) == 2
    site.close()


@pytest.mark.parametrize("what", ["drain", "reboot"])
def test_on_a_machine_that_a_person_has_ordered_a_rollout_orders_nothing(tmp_path: Path, what: str) -> None:
    """A reboot by a person is as good as one of its own; what a person drains stays drained."""
    site = begun(tmp_path)
    site.tick()
    name = site.names[0]
    mine = site.order(name, what)
    run(site, 3 * MINUTES)
    assert [one.owner for one in site.drains.of(name, 9)] == ["operator"]
    assert (site.image[name], mine is not None) == (NEW if what == "reboot" else OLD, True)
    assert states(site)[name] is (S.DONE if what == "reboot" else S.SKIPPED)
    site.close()


def test_a_person_s_drain_takes_a_rollout_s_reboot_over_also_where_the_machine_was_told(tmp_path: Path) -> None:
    site = begun(tmp_path)
    site.deaf = set(site.names)
    name = site.names[0]
    while ORDER not in site.nodes[name].annotations:
        site.tick()
    site.order(name, "drain")
    site.tick()
    assert (site.value(name), ORDER in site.nodes[name].annotations) == ("Drained", False)
    site.deaf = set()
    run(site, 3 * MINUTES)
    assert [reboot[0] for reboot in site.reboots] == [site.names[1]]
    assert [one.end for one in site.drains.of(name, 9)] == [None, "replaced"]
    site.close()


def test_a_person_takes_a_rollout_s_order_off_and_it_leaves_the_machine_alone(tmp_path: Path) -> None:
    site = begun(tmp_path)
    site.refuses = set(site.names)
    name = site.names[0]
    while name not in site.wanted:
        site.tick()
    site.undrain(name)
    site.refuses = set()
    run(site, 5 * MINUTES)
    member = site.store.members(1)[name]
    assert (member.state, member.why) == (S.SKIPPED, "its order was taken off by alice")
    assert [one.end for one in site.drains.of(name, 9)] == ["taken-off"]
    site.close()


def test_who_is_held_while_it_is_drained_is_let_go_and_who_was_told_goes(tmp_path: Path) -> None:
    site = begun(tmp_path)
    held, told = site.names
    site.refuses = {held}
    while not site.reboots:
        site.tick()
    for name in (held, told):
        site.hold(name)
    site.order(held, "drain", bare=True)
    run(site, 2)
    assert [one.end for one in site.drains.of(held, 9)] == [None, "replaced"], "a person's drain stays"
    site.undrain(held)
    site.refuses = set()
    run(site, 5 * MINUTES)
    assert site.reboots == [(told, site.drains.of(told, 1)[0].id)]
    assert (site.drains.of(told, 1)[0].end, site.store.members(1)[held].why) == ("rebooted", "it is held")
    site.close()


def test_a_rollout_s_order_is_taken_back_from_who_is_held_meanwhile(tmp_path: Path) -> None:
    site = begun(tmp_path)
    site.refuses = set(site.names)
    run(site, 4)
    assert site.wanted.keys() == set(site.names)
    site.hold(site.names[0])
    run(site, 1)
    (ended,) = site.drains.of(site.names[0], 9)
    assert (ended.end, ended.words) == ("withdrawn", "it is held, by alice: DIMM 4")
    assert site.wanted.keys() == {site.names[1]}
    site.refuses = set()
    run(site, 5 * MINUTES)
    assert {name for name, _ in site.reboots} == {site.names[1]}
    assert site.value(site.names[0]) is None
    assert site.store.members(1)[site.names[0]].why == "it is held"
    site.close()


def test_an_order_of_a_machine_that_is_retired_or_gone_ends(tmp_path: Path) -> None:
    site = begun(tmp_path, 4)
    retired, gone = site.names[:2]
    for name in (retired, gone):
        site.order(name, "drain")
    site.tick()
    site.retired.add(retired)
    machines = tuple(machine for machine in site.inventory.machines if machine.name != gone)
    site.inventory = site.inventory.model_copy(update={"machines": machines})
    site.snapshot = site._publish()
    site.tick()
    said = {name: (one.end, one.words) for name in (retired, gone) for one in site.drains.of(name, 1)}
    assert said == {
        retired: ("undone", "it is retired"),
        gone: ("undone", "the inventory no longer has it"),
    }
    site.close()


def test_a_machine_that_cannot_be_ordered_is_skipped_and_says_why(tmp_path: Path) -> None:
    site = begun(tmp_path)
    renewals: Any = cast("Any", site.controllers._rollouts)._renewals
    renewals._joins = lambda _machine: False
    for _ in range(3):
        site.tick()
    whys = {each.why for each in site.store.members(1).values()}
    assert whys == {
        f"{name} joins no cluster, so nothing can be drained, and nobody there takes an order" for name in site.names
    }
    site.close()


def test_an_order_is_of_the_strategy_and_of_a_day_at_most(tmp_path: Path) -> None:
    site = begun(tmp_path, allow_bare=True, allow_local_data=True, deadline=48 * 3600)
    site.tick()
    site.tick()
    order = site.drains.standing()[0]
    assert (order.bare, order.local, order.deadline_ms - order.since_ms) == (True, True, 24 * 3_600_000)
    site.close()


def test_an_order_is_for_the_boot_that_the_rollout_counted_and_for_no_later_one() -> None:
    drains, states = MemoryDrains(), MemoryStates()
    later, node = boot_id("n-1", 2), "node n-1 uid 1"
    records: list[AnyRecord] = [
        script("n-1", 2),
        event("n-1", 2, Phase.ATTESTED),
        event("n-1", 2, Phase.NODE_REGISTERED, 700, node),
    ]
    states.take(Batch("any.db", 1, 3, records))
    renewals = OrderedRenewals(drains, MemoryIntents(), tuple, states.machines, lambda _machine: True, SystemClock())
    earlier = {"n-1": Renewal(rollout(), boot_id("n-1", 1), may_begin=True)}
    assert renewals.want(earlier, Ledger(), ()) == {}
    assert drains.standing() == [], "it was rebooted meanwhile"
    renewals.want({"n-1": Renewal(rollout(), later, may_begin=True)}, Ledger(), ())
    [order] = drains.standing()
    assert order.boot == later
    renewals.want(earlier, Ledger({"n-1": Reserved(order, told=False)}), ())
    assert drains.of("n-1", 1)[0].end == "withdrawn"


@pytest.mark.parametrize(("said", "ends"), [(None, False), ("drained", True), ("ordered", False)])
def test_a_rollout_withdraws_what_another_replica_carries_out_by_what_is_said_there(
    said: str | None, ends: bool
) -> None:
    drains = MemoryDrains()
    renewals = OrderedRenewals(drains, MemoryIntents(), tuple, lambda _names: {}, lambda _machine: True, SystemClock())
    drains.order(drain("n-1", "1", "reboot", owner="rollout/7"))
    if said is not None:
        drains.states["n-1"] = State.model_validate({"id": "1", "state": said, "words": "", "since_ms": START})
    renewals.want({}, renewals.ledger(), ())
    assert (drains.standing() == []) is ends
