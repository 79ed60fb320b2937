"""Rollouts of whole fleets, at the ports: what a bad image harms, what 2 % of failures cost, a controller that is
killed at every step. `pytest -s` prints what docs/rollouts.md has."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from images.errors import CorruptError
from netboot.lifecycle import seen_time
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.rollout import Member, MemberState, RolloutState
from netboot.lifecycle.rollout_orders import undone
from netboot.lifecycle.rollout_store import Note
from netboot.machines.maintenance import Freeze, Signal
from netboot.machines.values import Channel
from tests.rollout_world import TICK, World
from tests.rollouts import NEW, OLD, OTHER, rollout

HOURS = 3600 // TICK


def unlucky(percent: int) -> Callable[[str, str], bool]:
    """So many machines, always the same, do not come up with the new image."""

    def good(name: str, image: str) -> bool:
        lot = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
        return image == OLD or lot % 100 >= percent

    return good


def run(world: World, hours: int) -> float:
    """Until it has ended or is paused; seconds of a look, in the mean."""
    for tick in range(1, hours * 3600 // world.tick_seconds + 1):
        world.tick()
        if world.rollout().state is not RolloutState.RUNNING:
            return world.looked / tick
    raise AssertionError(f"after {hours} h: {world.rollout()}")


def say(world: World, what: str, look: float) -> None:
    states = [each.state for each in world.store.members(1).values()]
    counts = ", ".join(f"{states.count(state)} {state}" for state in MemberState if states.count(state))
    print(
        f"\n{what}: {world.rollout().state} after {world.now / 3_600_000:.1f} h: {counts}; "
        f"at most {world.most_out} out, {world.most_of_rack} of a rack; {len(world.harmed)} harmed; "
        f"{look * 1000:.0f} ms a look"
    )


@pytest.fixture(autouse=True)
def _a_look_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sparser than the service's, so that hours pass quickly: what lies between two counts all the same."""
    monkeypatch.setattr(seen_time, "LONGEST_STEP_MS", 60_000)


@pytest.mark.parametrize(("count", "budget"), [(437, 21)])
def test_a_fleet_comes_through_two_percent_of_failures_within_its_budget(
    tmp_path: Path, count: int, budget: int
) -> None:
    world = World(tmp_path, count, 8, unlucky(2), minutes=8, tick=60)
    world.start(canary=2, max_unavailable="5%", per_rack=2, bake="30m", deadline="30m")
    look = run(world, 48)
    say(world, f"{count} machines, 2 % fail", look)
    assert world.rollout().state is RolloutState.COMPLETE, world.rollout().why
    assert world.most_out <= budget
    assert world.most_of_rack <= 2
    states = [each.state for each in world.store.members(1).values()]
    assert states.count(MemberState.DONE) + states.count(MemberState.FAILED) == count
    assert states.count(MemberState.FAILED) == len(world.harmed)
    assert (world.channel, world.pointed) == (NEW, 1)
    kept = {name: said.image for name, said in world.store.assigned().items()}
    assert kept == dict.fromkeys(world.harmed, OLD), "who failed keeps what it had"
    world.close()


def test_a_bad_image_harms_the_canaries_alone(tmp_path: Path) -> None:
    world = World(tmp_path, 437, 8, unlucky(100), minutes=8, tick=60)
    world.start(canary=2, max_unavailable="5%", per_rack=2, bake="30m", deadline="30m")
    look = run(world, 12)
    say(world, "437 machines, a bad image", look)
    assert world.rollout().why.startswith("2 canaries in 2 racks failed, which is the image's fault; m")
    assert len(world.harmed) == 2
    assert world.channel == OLD
    world.close()


def test_an_image_that_is_bad_for_all_but_the_canaries_harms_one_batch_more(tmp_path: Path) -> None:
    world = World(tmp_path, 437, 8, unlucky(0), minutes=8, tick=60)
    world.start(canary=2, max_unavailable="5%", per_rack=2, bake="30m", deadline="30m")
    while not world.rollout().rolling:
        world.tick()
    world.good = unlucky(100)
    look = run(world, 12)
    say(world, "437 machines, bad after the canaries", look)
    assert world.rollout().state is RolloutState.PAUSED
    assert len(world.harmed) <= 21
    assert world.most_out <= 21
    world.close()


class KilledError(Exception):
    """As SIGKILL: nothing after it runs."""


@pytest.mark.parametrize("where", ["before", "while the channel is moved", "before it is written"])
def test_a_controller_that_is_killed_over_and_over_comes_to_the_same(tmp_path: Path, where: str) -> None:
    """After every second look; nobody sees meanwhile, so all of it takes longer."""
    ends = []
    for every in (0, 3):
        (tmp_path / str(every)).mkdir()
        world = World(tmp_path / str(every), 24, 4, unlucky(0), minutes=8, tick=10)
        world.start(canary=2, max_unavailable="4", bake="5m", deadline="30m")
        for number in range(6 * HOURS):
            if every and number % every == 0:
                kill(world, where)
            world.tick()
            if world.rollout().state is not RolloutState.RUNNING:
                break
        assert world.most_out <= 4
        assert max(world.boot.values()) == 2, "nobody is rebooted twice"
        members = {name: each.state for name, each in world.store.members(1).items()}
        ends.append((world.rollout().state, world.channel, members))
        world.close()
    assert ends[0] == ends[1]
    assert ends[0][:2] == (RolloutState.COMPLETE, NEW)


def kill(world: World, where: str) -> None:
    """A look that ends there, and another program after it."""
    controller, change = world.controller, world.store.change

    def killed(*_: object) -> None:
        raise KilledError

    if where == "while the channel is moved":
        controller._complete = killed
    elif where == "before it is written":
        controller._store = Cut(world.store)  # type: ignore[assignment]
    if where != "before":
        with suppress(KilledError):
            controller.step()
    assert world.store.change == change
    world.again()


class Cut:
    """A store whose writes are cut off when all was computed."""

    def __init__(self, store: object) -> None:
        self.store = store

    def __getattr__(self, name: str) -> object:
        if name != "change":
            return getattr(self.store, name)

        def change(number: int, change: Callable[..., object], note: Callable[..., object]) -> object:
            def cut(*now: object) -> object:
                change(*now)
                raise KilledError

            return self.store.change(number, cut, note)  # type: ignore[attr-defined]

        return change


def test_nobody_is_rebooted_before_what_it_is_assigned_is_published(tmp_path: Path) -> None:
    world = World(tmp_path, 24, 4, unlucky(0), minutes=8)
    world.start(canary=2, max_unavailable="4", bake="10m", deadline="30m")
    world.snapshot = world._publish()
    assert {said.image for said in world.snapshot.assigned.values()} == {OLD}
    world.controller.step()
    assert [said.image for said in world.store.assigned().values()].count(NEW) == 2
    assert world.wanted == {}, "boot servers have another image for them"
    world.snapshot = world._publish()
    world.controller.step()
    assert len(world.wanted) == 2
    world.close()


def test_while_the_lifecycle_cannot_see_nobody_is_late_and_nobody_s_turn_comes(tmp_path: Path) -> None:
    world = World(tmp_path, 24, 4, unlucky(100), minutes=8, tick=60)
    world.start(canary=2, max_unavailable="4", bake="10m", deadline="30m")
    for _ in range(3):
        world.tick()
    world.seeing = False
    for _ in range(180):
        world.tick()
    assert world.rollout().why == "it stands still: reports cannot be looked at"
    members = world.store.members(1).values()
    assert [each.state for each in members].count(MemberState.OUT) == 2
    assert world.rollout().state is RolloutState.RUNNING
    world.seeing = True
    run(world, 1)
    assert world.rollout().state is RolloutState.PAUSED
    world.close()


def test_a_store_that_cannot_be_read_is_a_problem_that_goes(tmp_path: Path) -> None:
    world = World(tmp_path, 24, 4, unlucky(0), minutes=8)
    world.close()
    (tmp_path / "rollouts.db").rename(tmp_path / "aside.db")
    world.controller.step()
    said = f"{tmp_path / 'rollouts.db'} cannot be used: it is not there; rollouts stand still"
    assert world.controller.status().problem == said
    with pytest.raises(StateUnavailableError, match="it is not there"):
        world.store.under_way()
    (tmp_path / "aside.db").rename(tmp_path / "rollouts.db")
    world.controller.step()
    assert world.controller.status().problem == ""


def test_a_freeze_a_signal_and_a_file_that_cannot_be_read_keep_turns_from_coming(tmp_path: Path) -> None:
    world = World(tmp_path, 16, 8, unlucky(0), minutes=8, tick=60)
    world.freeze = Freeze(who="alice", reason="power work", since_ms=0, until_ms=world.now_ms() + 7_200_000)
    world.start(canary=2, max_unavailable="2", bake="30m", deadline="30m")
    for _ in range(119):
        world.tick()
    assert (world.rollout().why, world.wanted) == ("nothing begins: frozen by alice: power work", {})
    world.freezes_lost = True
    world.tick()
    world.tick()
    why = "nothing begins: whether the fleet is frozen cannot be told: intents.db is torn"
    assert (world.rollout().why, world.rollout().state, world.most_out) == (why, RolloutState.RUNNING, 0)
    world.freezes_lost = False
    world.signal = Signal(may=False, reason="whether https://change.example lets anything begin cannot be told")
    world.tick()
    world.tick()
    assert (world.rollout().why, world.most_out) == (f"nothing begins: {world.signal.reason}", 0)
    world.signal = Signal(may=True, reason="https://change.example lets things begin")
    run(world, 12)
    assert world.rollout().state is RolloutState.COMPLETE
    world.close()


def declare(world: World, *channels: Channel) -> None:
    """Another inventory is in force."""
    world.inventory = world.inventory.model_copy(update={"channels": channels})
    world.snapshot = world._publish()


def test_what_cannot_be_told_of_one_channel_keeps_no_other_s_rollout_from_going_on(tmp_path: Path) -> None:
    world = World(tmp_path, 24, 4, unlucky(0), minutes=8)
    broken = rollout(on_next_boot=False).model_copy(update={"channel": "broken"})
    world.store.start(broken, {"m0000": Member(machine="m0000", previous=OLD)}, Note(1, "alice", "start"))
    world.start(canary=2, max_unavailable="4", bake="10m", deadline="30m")
    declare(world, Channel(name="broken"), Channel(name="stable"))

    def channel(name: str) -> str:
        if name == "broken":
            raise CorruptError("its file says nothing")
        return world.channel

    world.controller._channel = channel
    world.controller.step()
    world.snapshot = world._publish()
    world.controller.step()
    status = world.controller.status()
    assert status.problem == "rollout 1 of channel broken: its file says nothing"
    assert [each.number for each in status.rollouts] == [2]
    assert [drain.owner for drain in world.wanted.values()] == ["rollout/2", "rollout/2"]
    world.close()


def test_a_channel_that_is_pinned_pauses_its_rollout_and_its_undoing(tmp_path: Path) -> None:
    world = World(tmp_path, 24, 4, unlucky(0), minutes=8)
    world.start(canary=2, max_unavailable="4", bake="10m", deadline="30m")
    world.tick()
    declare(world, Channel(name="stable", image=OTHER))
    world.controller.step()
    said = "channel stable is pinned to cccccccccccc in the inventory now"
    assert (world.rollout().state, world.rollout().why) == (RolloutState.PAUSED, said)
    world.store.change(1, undone, lambda *_: None)
    world.controller.step()
    assert (world.rollout().state, world.rollout().undoing, world.rollout().why) == (RolloutState.PAUSED, True, said)
    world.close()


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (None, "the lifecycle loop is silent"),
        ({"up_ms": -20_000}, "the lifecycle loop is silent"),
        ({"problem": "state.db is torn"}, "the lifecycle loop says: state.db is torn"),
        ({"waiting": 101}, "more than 100 machines wait to be judged"),
        ({"unseen": ("nodes/default/", "nodes/elsewhere/")}, "nodes/default cannot be looked at"),
    ],
)
def test_why_it_stands_still_is_said(tmp_path: Path, changed: dict[str, object] | None, why: str) -> None:
    world = World(tmp_path, 24, 4, unlucky(0), minutes=8)
    world.start(canary=2, max_unavailable="4", bake="10m", deadline="30m")
    said = world.lifecycle()
    world.controller._lifecycle = lambda: None if changed is None else said.model_copy(update=changed)
    world.controller.step()
    assert (world.rollout().why, world.wanted) == (f"it stands still: {why}", {})
    world.close()
