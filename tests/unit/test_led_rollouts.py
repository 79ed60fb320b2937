"""Rollouts, where replicas share them: one drives them, and the others say what became of them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from netboot.controllers.led_rollouts import LedRollouts
from netboot.lifecycle.rollout import MemberState
from netboot.status.leading import LeaderStatus
from tests.rollout_world import TICK, World
from tests.rollouts import NEW, OLD


class Election:
    """What the elector says and hears."""

    def __init__(self) -> None:
        self.led, self.vacant, self.problem = True, 0.0, ""
        self.heard = list[str]()

    def leads(self) -> bool:
        return self.led

    def can(self, problem: str) -> None:
        self.heard.append(problem)

    def status(self) -> LeaderStatus:
        return LeaderStatus(
            replica="alpha",
            leads=self.led,
            leader="" if self.vacant else "alpha_1",
            epoch=3,
            since_ms=0,
            vacant_seconds=self.vacant,
            problem=self.problem,
        )


@pytest.fixture
def election() -> Any:
    return Election()


@pytest.fixture
def world(tmp_path: Path, election: Any) -> Iterator[World]:
    """Of four machines, in a rack each; a reboot takes no time."""
    world = World(tmp_path, 4, 1, lambda _machine, _image: True, 0)
    world.controller = cast("Any", LedRollouts(world.controller, election, 30.0))
    world.start(max_unavailable=1)
    yield world
    world.close()


def states(world: World) -> Counter[MemberState]:
    return Counter(each.state for each in world.store.members(1).values())


def test_who_leads_drives_and_others_say_what_became_of_them(world: World, election: Election) -> None:
    election.led = False
    for _ in range(3):
        world.tick()
    assert (states(world), world.wanted) == ({MemberState.WAITING: 4}, {})
    [said] = world.controller.status().rollouts
    assert (said.number, said.state, said.machines["waiting"], said.machines["done"]) == (1, "running", 4, 0)
    assert world.controller.status().leader == election.status()
    election.led = True
    while world.rollout().under_way:
        world.tick()
    assert (states(world), world.channel) == ({MemberState.DONE: 4}, NEW)
    world.tick()
    assert world.controller.status().rollouts == ()
    assert set(election.heard) == {""}


def test_time_in_which_another_one_led_does_not_count_twice(world: World, election: Election) -> None:
    world.seeing = True
    for _ in range(3):
        world.tick()
    election.led = False
    before = world.rollout().clock_ms
    for _ in range(100):
        world.tick()
    assert world.rollout().clock_ms == before
    election.led = True
    for _ in range(2):
        world.tick()
    assert world.rollout().clock_ms <= before + 3 * TICK * 1000


def test_what_was_refused_is_asked_anew_by_who_led_in_between_and_leads_again(world: World, election: Election) -> None:
    world.unknown = set(world.names)
    for _ in range(2):  # what is assigned is published in between
        world.tick()
    assert (states(world), world.wanted) == ({MemberState.ASSIGNED: 1, MemberState.WAITING: 3}, {}), "nobody reboots it"
    election.led = False
    world.tick()
    world.unknown.clear()
    election.led = True
    world.tick()
    assert states(world) == {MemberState.ASSIGNED: 1, MemberState.WAITING: 3}
    assert len(world.wanted) == 1


def test_what_keeps_one_from_driving_any_the_elector_hears_and_what_is_wrong_with_one_it_does_not(
    world: World, election: Election, tmp_path: Path
) -> None:
    world.snapshot = world.snapshot.model_copy(update={"unusable_images": {NEW: "damaged"}})
    world.controller.step()
    assert world.rollout().why != "the image cannot be used: damaged", "it is being fetched"
    world.unusable[NEW] = "damaged"
    world.controller.step()
    assert (world.rollout().why, election.heard) == ("the image cannot be used: damaged", ["", ""])
    (tmp_path / "rollouts.db").rename(tmp_path / "away")
    for led in (True, False):
        election.led = led
        world.controller.step()
        words = f"{tmp_path}/rollouts.db cannot be used: it is not there; rollouts stand still"
        assert (election.heard[-1], world.controller.status().problem) == (words, words)
    (tmp_path / "away").rename(tmp_path / "rollouts.db")
    world.controller.step()
    assert (election.heard[-1], world.controller.status().problem) == ("", "")


@pytest.mark.parametrize(
    ("vacant", "problem", "words"),
    [
        (29.0, "", ""),
        (31.0, "", "nobody has led for 31 s"),
        (31.0, "401 Unauthorized", "nobody has led for 31 s: 401 Unauthorized"),
        (1.0, "403 Forbidden", "who leads cannot be told: 403 Forbidden"),
    ],
)
def test_that_nobody_leads_is_said(world: World, election: Election, vacant: float, problem: str, words: str) -> None:
    election.led, election.vacant, election.problem = False, vacant, problem
    world.controller.step()
    assert world.controller.status().problem == words


def test_who_has_not_heard_of_others_for_long_drives_nothing_and_lets_another_lead(
    world: World, election: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.store, "behind", lambda: "what other replicas did has not been read yet")
    world.controller.step()
    assert states(world) == {MemberState.WAITING: 4}
    assert election.heard == ["what other replicas did has not been read yet"]
    election.led = False
    world.controller.step()
    assert (election.heard[-1], world.controller.status().problem) == (
        "what other replicas did has not been read yet",
    ) * 2


def test_who_begins_to_lead_looks_first_at_what_others_did(
    world: World, election: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed = list[int]()
    monkeypatch.setattr(world.store, "refresh", lambda: refreshed.append(world.now))
    for led in (True, True, False, False, True):
        election.led = led
        world.tick()
    assert refreshed == [TICK * 1000, 5 * TICK * 1000]


def test_who_does_not_know_one_of_them_lets_another_lead_and_drives_the_others_until_then(
    world: World, election: Election, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.store, "hidden", lambda: ["channel other stays as it is: image 0123 is not here yet"])
    world.tick()
    assert election.heard == ["channel other stays as it is: image 0123 is not here yet"]
    assert states(world)[MemberState.WAITING] == 3
    election.led = False
    world.tick()
    assert election.heard[-1] == "channel other stays as it is: image 0123 is not here yet", "who follows says so, too"


def test_who_drives_it_next_and_has_heard_less_of_its_machines_takes_nothing_back(world: World) -> None:
    while states(world)[MemberState.DONE] < 2:
        world.tick()
    members = world.store.members(1)
    done = [name for name, each in members.items() if each.state is MemberState.DONE]
    assert {each.last_boot for each in members.values() if each.machine in done} == {f"{name} 2" for name in done}
    heard = {name: (world.boot[name], world.image[name]) for name in done}
    for name in done:
        world.boot[name], world.image[name] = 1, OLD
    world.again().step()
    assert {name: world.store.members(1)[name] for name in done} == {name: members[name] for name in done}
    for name, (boot, image) in heard.items():
        world.boot[name], world.image[name] = boot, image
    while world.rollout().under_way:
        world.tick()
    assert states(world) == {MemberState.DONE: 4}
    assert {each.tries for each in world.store.members(1).values()} == {0}
