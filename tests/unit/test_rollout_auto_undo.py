"""A rollout that undoes itself: by which verdicts, by nothing else, in one transaction, and only once."""

import logging
from pathlib import Path

import pytest

from netboot.lifecycle.remedies import Pause
from netboot.lifecycle.remedy_policy import fleet_wide
from netboot.lifecycle.rollout import MemberState, Rollout, RolloutState, target
from netboot.lifecycle.rollout_orders import paused, resumed, undone
from netboot.lifecycle.rollout_undo import brought_back, no_way_back
from netboot.machines.maintenance import Freeze
from tests.renewal_world import TICK, Site
from tests.rollout_world import World
from tests.rollouts import OLD, OTHER, Fleet, fleet, proved

S = MemberState
ONE_RACK = "; it does not undo itself: machines of one rack are no verdict on an image"
LATE = "it was not back in service in time"
CAUSE = (
    "remedies are paused by netboot: a, b, c in 2 racks are not well for one reason, NodeNotReady, within ten minutes"
)


REVOKED = "it is revoked at this site"
ANOTHER = "`netboot channel set stable IMAGE --force` gives all of them another one"


def fail(world: Fleet, names: list[str]) -> None:
    """They leave service, and are not back in time."""
    for name in names:
        world.leave(name)
    world.look(1)
    world.look(600)


def how(world: Fleet) -> tuple[RolloutState, bool]:
    return world.rollout.state, world.rollout.undoing


def test_two_canaries_in_two_racks_undo_it_as_an_operator_would() -> None:
    world = fleet(auto_undo=True)
    world.look()
    canaries = world.assigned
    for name in canaries:
        world.leave(name)
    world.look(1)
    before = world.rollout.model_copy(update={"clock_ms": 601_000}), dict(world.members)
    world.look(600)
    verdict = f"2 canaries in 2 racks failed, which is the image's fault; {canaries[0]}: {LATE}"
    assert (how(world), world.rollout.verdict, world.rollout.why) == ((RolloutState.RUNNING, True), verdict, "")
    by_hand, members = undone(*before)
    assert (world.rollout, world.members) == (by_hand.model_copy(update={"verdict": verdict}), members)
    for name in canaries:
        world.come(name)
    world.look(1)
    assert (world.rollout.state, world.rollout.why) == (RolloutState.UNDONE, "40 done")


def test_those_that_run_it_are_brought_back_within_the_budget_when_a_batch_fails() -> None:
    world = proved(max_unavailable="3", auto_undo=True, on_next_boot=False)
    for _ in range(3):
        world.reboot(world.assigned[0])
    served = world.of_state(S.DONE)
    fail(world, world.assigned)
    assert world.rollout.verdict.startswith("3 machines failed, and 3 stop it; ")
    assert {target(world.rollout, each) for each in world.members.values()} == {OLD}
    for name in world.of_state(S.OUT):
        world.come(name)
    world.look(1)
    assert (len(world.assigned), set(world.assigned) <= set(served)) == (3, True)
    while world.assigned:
        world.reboot(world.assigned[0])
    assert (world.rollout.state, {each.image for each in world.machines.values()}) == (RolloutState.UNDONE, {OLD})


def test_what_fails_in_one_rack_is_no_verdict_and_pauses_it() -> None:
    world = proved(max_unavailable="100%", auto_undo=True)
    rack = [name for name in world.assigned if world.members[name].rack == "r0"]
    for name in set(world.assigned) - set(rack):
        world.reboot(name)
    world.rollout = world.rollout.model_copy(
        update={"strategy": world.rollout.strategy.model_copy(update={"max_unavailable": "2"})}
    )
    fail(world, rack)
    assert how(world) == (RolloutState.PAUSED, False)
    assert world.rollout.why == f"{len(rack)} machines failed, and 2 stop it; {rack[0]}: {LATE}{ONE_RACK}"


@pytest.mark.parametrize(("served", "undoing"), [(18, True), (19, False)])
def test_a_few_that_break_by_themselves_take_nothing_back_from_many(served: int, undoing: bool) -> None:
    world = proved(count=200, racks=200, max_unavailable="2", auto_undo=True)
    while len(world.of_state(S.DONE)) < served:
        world.reboot(world.assigned[0])
    fail(world, world.assigned[:1])
    world.come(world.of_state(S.FAILED)[0])
    world.look(1)
    fail(world, world.assigned[:1])
    words = "2 of 21 are no verdict on an image, for machines break by themselves"
    assert how(world) == ((RolloutState.RUNNING, True) if undoing else (RolloutState.PAUSED, False))
    assert undoing or world.rollout.why.endswith(f"; it does not undo itself: {words}")


def test_in_one_rack_the_first_failure_pauses_it() -> None:
    world = Fleet.of(fleet(auto_undo=True).rollout.model_copy(update={"unproven": True}), 4, lambda _: "r0")
    world.look()
    [name] = world.assigned
    fail(world, [name])
    words = f"one machine failed, and without a second rack one stops it: {name}: {LATE}{ONE_RACK}"
    assert (how(world), world.rollout.why) == ((RolloutState.PAUSED, False), words)


@pytest.mark.parametrize("let", [False, True])
def test_when_it_is_through_and_more_failed_than_run_it_it_is_undone_unless_an_operator_let_it_go_on(let: bool) -> None:
    world = proved(count=5, racks=2, max_unavailable="100%", auto_undo=True)
    for name in world.assigned:  # two canaries of one rack, and one behind them in the other
        each = world.members[name]
        failed = {"state": S.FAILED, "why": LATE, "canary": each.rack == "r0"}
        world.members[name] = each.model_copy(update=failed)
    if let:
        world.rollout, world.members = resumed(*paused(world.rollout, world.members, "alice"))
    world.look()
    said = "3 machines failed, and 2 are in service with it"
    if let:
        assert (how(world), world.rollout.why) == ((RolloutState.PAUSED, False), f"{said}: undo it")
    else:
        assert (how(world), world.rollout.verdict) == ((RolloutState.RUNNING, True), said)


@pytest.mark.parametrize(
    "changed",
    [
        {"obstacle": "the image cannot be used: it is revoked"},
        {"obstacle": f"channel stable was moved to {OTHER[:12]} meanwhile"},
        {"seeing": False},
        {"kept": CAUSE},
    ],
)
def test_nothing_else_undoes_it(changed: dict[str, object]) -> None:
    world = fleet(auto_undo=True)
    world.look()
    for name in world.assigned:
        world.leave(name)
    world.look(1)
    for name, value in changed.items():
        setattr(world, name, value)
    world.look(600)
    assert (world.rollout.undoing, world.rollout.verdict) == (False, "")
    if "kept" in changed:
        assert world.rollout.why.endswith(f"; it does not undo itself: {CAUSE}")


def test_neither_orders_that_come_to_nothing_nor_a_pause_nor_a_freeze_undo_it() -> None:
    vain = fleet(auto_undo=True)
    vain.look()
    vain.refused = dict.fromkeys(vain.assigned, "its Pods may not be evicted")
    vain.look(1)
    assert (how(vain), vain.rollout.why.split(";")[0]) == (
        (RolloutState.PAUSED, False),
        "2 machines were not rebooted, and 2 stop it",
    )
    halted = fleet(auto_undo=True)
    halted.look()
    for name in halted.assigned:
        halted.leave(name)
    halted.look(1)
    halted.rollout, halted.members = paused(halted.rollout, halted.members, "alice")
    halted.look(600)
    assert (how(halted), len(halted.of_state(S.FAILED))) == ((RolloutState.PAUSED, False), 2)
    halted.rollout, halted.members = resumed(halted.rollout, halted.members)
    halted.withheld = "nothing begins: frozen by bob: power work"
    halted.look(600)
    assert how(halted) == (RolloutState.RUNNING, False), "what failed until then was accepted"


def test_an_undo_of_its_own_does_not_undo_itself_and_pauses_where_machines_do_not_come_back() -> None:
    world = proved(max_unavailable="3", auto_undo=True, on_next_boot=False)
    for _ in range(3):
        world.reboot(world.assigned[0])
    fail(world, world.assigned)
    world.look(600)
    assert len(world.of_state(S.FAILED)) == 3, "who was away when it began says nothing of the way back"
    assert how(world) == (RolloutState.RUNNING, True)
    for name in world.of_state(S.FAILED):
        world.come(name)
    world.look(1)
    verdict, lost = world.rollout.verdict, world.assigned
    fail(world, lost)
    assert how(world) == (RolloutState.PAUSED, True)
    assert world.rollout.why == f"3 machines did not come back from the undo, and 3 stop it; {lost[0]}: {LATE}"
    assert world.rollout.verdict == verdict
    world.rollout, world.members = undone(world.rollout, world.members)
    world.look(1)
    assert how(world) == (RolloutState.RUNNING, True), "an operator lets it go on"


def test_an_operator_s_undo_goes_on_whatever_fails_also_where_it_would_undo_itself() -> None:
    world = proved(max_unavailable="3", auto_undo=True, on_next_boot=False)
    for _ in range(3):
        world.reboot(world.assigned[0])
    world.rollout, world.members = undone(world.rollout, world.members)
    world.look()
    fail(world, world.assigned)
    assert (how(world), world.rollout.verdict) == ((RolloutState.RUNNING, True), "")


def test_it_is_written_as_it_was_where_nobody_asked_for_it() -> None:
    """So that a netboot of before reads it."""
    said = fleet().rollout.model_dump_json()
    assert "auto_undo" not in said
    assert "verdict" not in said
    asked = fleet(auto_undo=True).rollout.model_copy(update={"verdict": "x"})
    assert Rollout.model_validate_json(asked.model_dump_json()) == asked


def test_what_keeps_it_is_a_cause_of_the_fleet_and_no_pause_of_remedies_by_a_person() -> None:
    found = Pause(stands=True, who="netboot", reason=CAUSE.removeprefix("remedies are paused by netboot: "), since_ms=1)
    assert fleet_wide(found) == CAUSE
    others = [found.model_copy(update=each) for each in ({"who": "alice"}, {"stands": False})]
    assert [fleet_wide(each) for each in (None, *others)] == ["", "", ""]


# -- by its controller, over the file


def bad(folder: Path) -> World:
    world = World(folder, 24, 4, lambda _machine, image: image == OLD, minutes=2)
    world.start(canary=2, max_unavailable="4", bake="10m", deadline="5m", auto_undo=True)
    return world


def until(world: World, *, undoing: bool) -> None:
    for _ in range(60):
        world.tick()
        if world.rollout().undoing is undoing and (undoing or world.rollout().state is not RolloutState.RUNNING):
            return


def test_it_says_so_in_its_history_the_audit_and_its_status(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = bad(tmp_path)
    with caplog.at_level(logging.INFO):
        until(world, undoing=True)
    verdict = world.rollout().verdict
    assert verdict.startswith("2 canaries in 2 racks failed, which is the image's fault; ")
    assert [(one.who, one.act, one.said) for one in world.store.history(1, 1)] == [("netboot", "auto-undo", verdict)]
    [line] = [record for record in caplog.records if record.name == "netboot.audit"]
    assert line.__dict__["fields"] == {
        "act": "rollout-auto-undo",
        "operator": "netboot",
        "rollout": 1,
        "channel": "stable",
        "reason": verdict,
    }
    status = world.controller.status()
    assert (status.undone, status.rollouts[0].undoing) == (1, True)
    caplog.clear()
    world.again()  # it may have been killed before it said anything
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            world.tick()
    said = [record.__dict__["fields"] for record in caplog.records if record.name == "netboot.audit"]
    assert (said, world.controller.status().undone) == ([line.__dict__["fields"]], 1)
    until(world, undoing=False)
    for _ in range(60):
        world.tick()
    assert (world.rollout().state, set(world.image.values())) == (RolloutState.UNDONE, {OLD})
    assert [one.act for one in world.store.history(1, 9)] == ["undone", "auto-undo", "start"]
    world.close()


def test_it_is_paused_where_there_is_no_way_back_and_where_a_cause_of_the_fleet_stands(tmp_path: Path) -> None:
    for number, (unusable, cause, words) in enumerate(
        [
            (
                {OLD: REVOKED},
                "",
                f"machines would have to go back to image {OLD[:12]}, which cannot be used: {REVOKED}; {ANOTHER}",
            ),
            ({}, CAUSE, CAUSE),
        ]
    ):
        (tmp_path / str(number)).mkdir()
        world = bad(tmp_path / str(number))
        world.unusable.update(unusable)
        world.cause = cause
        for _ in range(60):
            world.tick()
        assert (world.rollout().state, world.rollout().undoing) == (RolloutState.PAUSED, False)
        assert world.rollout().why.endswith(f"; it does not undo itself: {words}")
        assert world.controller.status().undone == 0
        world.close()


@pytest.mark.parametrize("by_hand", [True, False])
def test_it_is_paused_where_what_they_go_back_to_cannot_be_used_any_more(tmp_path: Path, by_hand: bool) -> None:
    """Else those that work are drained, one after the other, and do not boot."""
    world = World(tmp_path, 12, 3, lambda _machine, _image: True, minutes=2)
    world.start(canary=2, max_unavailable="4", bake="1m", deadline="5m", auto_undo=True)
    while world.rollout().state is RolloutState.RUNNING and len(set(world.image.values())) < 2:
        world.tick()
    verdict = "" if by_hand else "2 canaries failed"
    world.store.change(1, lambda begun, members: brought_back(begun, members, verdict), lambda *_: None)
    while not world.wanted:
        world.tick()
    world.unusable[OLD] = REVOKED
    for _ in range(30):
        world.tick()
    why = f"machines would have to go back to image {OLD[:12]}, which cannot be used: {REVOKED}; {ANOTHER}"
    assert (world.rollout().state, world.rollout().why) == (RolloutState.PAUSED, why)
    assert (world.wanted, world.back) == ({}, {}), "who was drained for it is let go"
    world.unusable.clear()
    world.store.change(1, resumed, lambda *_: None)
    for _ in range(60):
        world.tick()
    assert (world.rollout().state, set(world.image.values())) == (RolloutState.UNDONE, {OLD})
    world.close()


def test_who_is_back_needs_no_way_back() -> None:
    world = fleet(2)
    world.rollout, world.members = undone(world.rollout, world.members)
    why = f"machines would have to go back to image {OLD[:12]}, which cannot be used: {REVOKED}; {ANOTHER}"
    assert no_way_back(world.rollout, world.members, {OLD: REVOKED}.get) == why
    world.look()
    assert (len(world.of_state(S.DONE)), no_way_back(world.rollout, world.members, {OLD: REVOKED}.get)) == (2, "")


def test_in_a_freeze_everybody_boots_what_it_had_and_nobody_is_rebooted(tmp_path: Path) -> None:
    world = bad(tmp_path)
    while len(world.back) < 2:
        world.tick()
    world.freeze = Freeze(who="alice", reason="power work", since_ms=0, until_ms=None)
    until(world, undoing=True)
    assert {each.image for each in world.store.assigned().values()} == {OLD}
    assert world.wanted.keys() <= world.back.keys()
    world.close()


def whole(folder: Path, kill: tuple[int, bool] | None = None) -> tuple[Site, int]:
    """Two machines run what is bad for the two behind them; with the step at which it undid itself."""
    site = Site(folder, 4, kill)
    site.start(canary=2, max_unavailable="2", bake=0, deadline=60, auto_undo=True)
    step = 0
    for _ in range(600 // TICK):
        site.tick()
        rollout = site.rollout()
        step = step or (site.steps if rollout.undoing else 0)
        hang(site, undoing=rollout.undoing)
        if rollout.state is not RolloutState.RUNNING and not site.traces():
            break
    return site, step


def hang(site: Site, *, undoing: bool) -> None:
    """Who boots the image behind the canaries hangs, and is reset once it is to go back."""
    for name, each in site.store.members(1).items():
        if each.state is S.OUT and not each.canary and name in site.back:
            site.back[name] = site.now + TICK * 1000 * (1 if undoing else 100)


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_killed_where_it_undoes_itself_everybody_is_back_on_what_it_had(tmp_path: Path, before: bool) -> None:
    (tmp_path / "whole").mkdir()
    site, undo = whole(tmp_path / "whole")
    site.close()
    for step in range(undo - 3, undo + 3):
        (tmp_path / str(step)).mkdir()
        site, _ = whole(tmp_path / str(step), (step, before))
        assert site.steps > step
        assert (site.rollout().state, site.rollout().why) == (RolloutState.UNDONE, "4 done"), step
        assert (site.image, site.traces()) == (dict.fromkeys(site.names, OLD), []), step
        acts = [one.act for one in site.store.history(1, 9)]
        assert acts == ["undone", "auto-undo", "the canaries are in service", "start"], step
        assert len(site.reboots) == len(set(site.reboots)), step
        said = {one.reason for name in site.names for one in site.drains.of(name, 1)}
        assert "back to the image before it, for the rollout undoes itself" in said
        site.close()
