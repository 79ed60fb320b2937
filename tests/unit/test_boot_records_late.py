"""What is written down of boots where things come late, or in another order, or not at all: each boot is still counted
once, and by what is true of it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from netboot.controllers import boot_records
from netboot.controllers.boot_records import AT_MOST_MS
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import Reason
from netboot.stores.proofkey import rotate, signing_key
from tests.boot_world import MINUTE, World, ready
from tests.records import START, boot_id, event, script
from tests.states import MemoryStates

ONCE = {("Ready", "hgx"): (1, 20_000, 16_000), ("InService", "hgx"): (1, 25_000, 16_000)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.history.close()


def in_service(world: World, after_ms: int = 25_000) -> None:
    world.now = START + after_ms
    world.judge(Reason.IN_SERVICE, 0)


def moments(world: World, number: int = 0) -> str:
    found = world.shown.proof(boot_id("gpu-001", number))
    return found.proof if found is not None else ""


def test_a_boot_that_is_judged_before_it_is_begun_is_counted_without_a_restart(world: World) -> None:
    world.look()
    world.states.take(world.batch(*ready()))  # its name waits behind others
    in_service(world)
    world.look()
    world.records.told({"gpu-001"})
    world.step()
    assert (world.counted(), world.history.under_way()) == (ONCE, [])


def test_of_a_new_machine_the_latest_boot_alone_is_counted_also_where_it_was_judged_first(world: World) -> None:
    world.look()
    for number in (0, 60, 120):
        world.states.take(world.batch(*ready(number)))
    world.judge(Reason.IN_SERVICE, 120)
    world.look()
    world.records.told({"gpu-001"})
    world.step()
    assert world.counted()["Ready", "hgx"] == (1, 20_000, 16_000)


def test_a_report_that_comes_after_the_controllers_were_away_is_waited_for(world: World) -> None:
    world.caught_up = False
    world.now = START + 400_000
    served, started, *rest = ready()
    world.take(served, *(each.model_copy(update={"uptime_ms": None}) for each in rest))
    world.look()
    world.pass_time(0.5)
    world.take(started)
    world.caught_up = True
    world.step(MINUTE)
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)}


def test_who_is_new_does_not_wait_for_all_that_are_under_way(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot_records, "MOST", 1)
    for number in range(150):
        name = f"m{number:03}"
        world.take(script(name, 0), event(name, 0, Phase.ATTESTED, 15_000))
    for _ in range(400):
        world.look()
        world.pass_time(0.5)
    world.take(*ready(3_000))
    for _ in range(20):
        world.look()
        world.pass_time(0.5)
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)}


def test_after_a_start_who_is_new_comes_before_all_that_were_there(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        world.take(*ready(machine=f"m{number:03}"))
    monkeypatch.setattr(boot_records, "MOST", 1)
    monkeypatch.setattr(boot_records, "MOST_MACHINES", 4)
    world.restart()
    for _ in range(12):
        world.look()
    world.take(*ready())
    for _ in range(16):
        world.look()
        world.pass_time(0.5)
    assert ("Ready", "hgx") in world.counted()


def test_machines_in_service_are_counted_and_proven_where_history_is_new(world: World) -> None:
    world.take(*ready())
    in_service(world)
    world.step()
    world.history.close()
    for file in world.root.glob("history.db*"):
        file.unlink()
    world.start()
    world.step(3_600.0)
    assert (world.counted(), world.history.under_way()) == (ONCE, [])
    assert '"InService":1700000025000' in moments(world)


def test_a_history_that_is_removed_while_it_is_in_use_is_begun_anew(world: World) -> None:
    world.take(*ready())
    world.take(*ready(machine="gpu-002"))
    in_service(world)
    world.step()
    for file in world.root.glob("history.db*"):
        file.unlink()
    world.take(*ready(600))
    world.look()
    assert world.records.problem == f"{world.root}/history.db was removed or replaced while it was in use"
    world.step()
    world.step()
    assert world.counted()["Ready", "hgx"][0] == 1
    assert world.counted()["Ready", ""][0] == 1, "of which nothing came since"


def test_a_boot_that_is_over_waits_for_journals_too(world: World) -> None:
    world.take(*ready())
    in_service(world)
    world.step()
    world.caught_up = False
    for number in (60, 600):
        world.take(*ready(number)[:3])
    world.look()
    world.pass_time(0.5)
    world.look()
    assert moments(world, 60) == ""
    world.take(ready(60)[3], ready(600)[3])
    world.caught_up = True
    world.step(5.0)
    assert world.counted()["Ready", "hgx"][0] == 3
    assert '"Ready":1700000080000' in moments(world, 60)


def test_a_state_that_was_lost_is_no_reason_to_forget_or_to_count_twice(world: World) -> None:
    world.take(*ready())
    in_service(world)
    world.step()
    before = world.shown.transitions("gpu-001", None, 9)
    world.states, world.taken = MemoryStates(), 0
    world.restart()
    world.look()
    world.caught_up = False
    world.take(*ready(machine="gpu-002"))
    world.look()
    world.caught_up = True
    world.take(*ready())
    world.step()
    world.restart()
    world.step()
    assert before != []
    both = ONCE | {("Ready", ""): (1, 20_000, 16_000)}
    assert (world.counted(), world.shown.transitions("gpu-001", None, 9)) == (both, before)


def test_machines_of_which_the_state_has_nothing_any_more_are_forgotten(world: World) -> None:
    world.take(*ready())
    world.take(*ready(machine="gpu-002"))
    world.step()
    del world.states.traces[boot_id("gpu-002", 0)]
    world.restart()
    world.step()
    assert world.history.machines() == {"gpu-001"}


def test_what_a_crash_kept_from_being_forgotten_is_forgotten_at_the_next_start(world: World) -> None:
    in_service(world)
    world.judge(Reason.IN_SERVICE, 0, "gpu-002")
    world.look()
    assert world.history.judged() == {"gpu-001", "gpu-002"}
    world.noticed.keep((), ["gpu-002"], {})
    world.restart()
    world.look()
    assert world.history.judged() == {"gpu-001"}


@pytest.mark.parametrize("gated", [False, True])
def test_who_came_into_service_while_nobody_looked_is_not_counted_as_such(world: World, *, gated: bool) -> None:
    """The controllers were away for an hour, in which the machine became Ready, and perhaps came into service."""
    world.take(*ready())
    world.now = START + 3_600_000
    world.restart()
    world.watched = gated
    if gated:
        world.judge(Reason.HEALTH_GATED, 0)
        world.step()
    world.judge(Reason.IN_SERVICE, 0)
    world.step()
    counted = {("InService", "hgx"): (1, 3_600_000, 16_000)} if gated else {}
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)} | counted
    assert '"InService":1700003600000' in moments(world), "when it was first seen"


def test_who_was_in_service_before_the_boot_began_is_not_counted_by_that(world: World) -> None:
    """It was rebooted while nobody looked: the condition is as it was, and its moment is the boot's before."""
    world.take(*ready())
    in_service(world)
    world.step()
    world.take(*ready(600))
    world.now = START + 900_000
    condition = world.noticed.judged(["gpu-001"])["gpu-001"]
    world.noticed.keep([condition.model_copy(update={"boot": boot_id("gpu-001", 600)})], (), {})
    world.step()
    assert world.counted() == ONCE | {("Ready", "hgx"): (2, 40_000, 32_000)}
    assert '"InService":1700000900000' in moments(world, 600)


def test_a_boot_is_counted_by_the_class_that_its_script_was_served_by(world: World) -> None:
    served, *rest = ready()
    for machine, name, words in (("gpu-001", "dgx", "0" * 16), ("gpu-002", None, "0" * 16), ("gpu-003", "hgx", None)):
        of_class = {"machine": machine, "boot": boot_id(machine, 0), "class_name": name, "arguments": words}
        named = {"machine": machine, "boot": boot_id(machine, 0)}
        world.take(served.model_copy(update=of_class), *(each.model_copy(update=named) for each in rest))
    world.step()
    assert {hardware for _, hardware in world.counted()} == {"dgx", ""}


def test_a_key_that_cannot_be_read_keeps_nothing_from_being_counted_and_is_tried_again(world: World) -> None:
    world.key_problem = "others can read the key"
    world.take(*ready())
    in_service(world)
    for _ in range(3):
        world.look()
        world.pass_time(MINUTE)
    world.take(*ready(0, "gpu-002"))
    world.look()
    world.pass_time(MINUTE)
    world.look()
    assert world.counted() == ONCE | {("Ready", ""): (1, 20_000, 16_000)}
    assert world.records.problem == "others can read the key"
    world.key_problem = ""
    world.judge(Reason.IN_SERVICE, 0, "gpu-002")
    for _ in range(2):
        world.look()
    assert moments(world) != "", "at once, for another could be proven"
    assert (world.records.problem, world.history.under_way()) == ("", [])


def test_a_key_that_is_gone_is_no_site_without_one(world: World) -> None:
    path, folder = world.root / "proof.key", world.root / "proofs"
    world.sign = lambda: signing_key(path, world.history.has_proofs)  # type: ignore[method-assign]
    world.start()
    world.take(*ready())
    in_service(world)
    world.step()
    assert (moments(world), world.history.under_way()) == ("", []), "it never had one"
    rotate(path, folder)
    world.take(*ready(60))
    world.judge(Reason.IN_SERVICE, 60)
    world.step()
    assert moments(world, 60) != ""
    path.unlink()
    world.take(*ready(120))
    world.judge(Reason.IN_SERVICE, 120)
    for _ in range(2):
        world.look()
        world.pass_time(MINUTE)
    gone = f"the key of proofs {path} is gone: put it back, or make another by `netboot key proofs rotate`"
    assert world.records.problem == gone
    rotate(path, folder)
    world.step(600.0)
    assert moments(world, 120) != ""


def test_counts_that_are_damaged_begin_anew_and_keep_no_others_from_being_shown(world: World) -> None:
    world.take(*ready())
    world.take(*ready(machine="gpu-002"))
    world.step()
    with closing(sqlite3.connect(world.root / "history.db")) as db:
        db.execute("UPDATE durations SET body = '{' WHERE hardware = 'hgx'")
        db.commit()
    assert world.counted() == {("Ready", ""): (1, 20_000, 16_000)}
    world.take(*ready(600))
    world.step()
    assert world.counted() == {("Ready", ""): (1, 20_000, 16_000), ("Ready", "hgx"): (1, 20_000, 16_000)}


def test_what_takes_long_is_heard_of_meanwhile(world: World) -> None:
    """500 machines at once: nothing of it takes longer than fifty looks at a boot."""
    heard: list[int] = []
    asked = 0
    traces = world.states.boot

    def counted(boot: str) -> Any:
        nonlocal asked
        asked += 1
        return traces(boot)

    world.states.boot = counted  # type: ignore[method-assign]
    for number in range(200):
        name = f"m{number:03}"
        world.take(*ready(machine=name))
        world.judge(Reason.IN_SERVICE, 0, name)
    for _ in range(2):
        world.records.step(lambda: heard.append(asked))
        world.pass_time(MINUTE)
    assert asked > 500
    assert max(after - before for before, after in zip([0, *heard], [*heard, asked], strict=True)) <= 50


def test_a_boot_of_which_nothing_comes_any_more_is_over_after_a_week(world: World) -> None:
    world.take(*ready()[:3])
    world.step()
    world.pass_time(AT_MOST_MS / 1000 + MINUTE)
    world.step()
    assert world.history.under_way() == []
    assert moments(world) != ""
