"""What is written down of a boot once it has proven itself, and when: each boot is counted once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netboot.controllers.boot_records import AT_MOST_MS, LATE_SECONDS
from netboot.lifecycle.decided import Inputs
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.proof import ProofOfBoot, verified
from netboot.lifecycle.published import View
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.snapshot import Assignment, ImageFacts, Snapshot
from netboot.machines.values import Machine
from tests.boot_world import MINUTE, World, ready, snapshot
from tests.records import START, boot_id, checked, event


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.history.close()


def decided_by(world: World, machine: str = "gpu-001") -> str:
    view = View.of(world.snapshot)
    found = view.index.named(machine)
    assert found is not None
    return Inputs(view).digest(found, next(iter(world.snapshot.images.values())))


def test_a_boot_is_counted_as_ready_and_later_as_in_service_and_once_each(world: World) -> None:
    world.take(*ready())
    world.step()
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)}
    world.now = START + 25_000
    world.judge(Reason.HEALTH_GATED, 0)
    world.step(3.0)
    world.judge(Reason.IN_SERVICE, 0)
    world.step()
    both = {("Ready", "hgx"): (1, 20_000, 16_000), ("InService", "hgx"): (1, 28_000, 16_000)}
    assert world.counted() == both
    for _ in range(3):
        world.judge(Reason.NODE_NOT_READY, 0)
        world.step(5.0)
        world.judge(Reason.IN_SERVICE, 0)
        world.take(event("gpu-001", 0, Phase.READY, 20_000))
        world.step(5.0)
    assert (world.counted(), world.history.under_way()) == (both, [])
    assert world.phases() == {("Kernel", "hgx"): (1, 4_000), ("Ready", "hgx"): (1, 8_000)}


def test_a_restart_in_between_counts_nothing_twice_and_forgets_nothing(world: World) -> None:
    world.take(*ready()[:3])
    world.step()
    world.restart()
    world.take(ready()[3])
    world.step()
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)}
    world.restart()
    world.step()
    world.now += 25_000
    world.judge(Reason.IN_SERVICE, 0)
    world.step()
    assert {key: count for key, (count, _, _) in world.counted().items()} == {
        ("Ready", "hgx"): 1,
        ("InService", "hgx"): 1,
    }


def test_what_was_judged_just_before_a_crash_is_found_after_it(world: World) -> None:
    world.take(*ready())
    world.step()
    world.now = START + 30_000
    world.judge(Reason.IN_SERVICE, 0)
    world.now += 3_600_000
    world.restart()
    world.step()
    assert world.counted()["InService", "hgx"] == (1, 30_000, 16_000), "since when it was so, not since it is found"


def test_a_boot_waits_for_journals_that_are_not_read_to_their_end_but_not_for_ever(world: World) -> None:
    world.caught_up = False
    world.take(*ready())
    world.look()
    world.pass_time(LATE_SECONDS - 1)
    world.look()
    assert world.counted() == {}
    world.pass_time(1)
    world.look()
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 16_000)}


def test_a_boot_after_which_another_proved_itself_is_over_and_machines_without_a_class_are_counted(
    world: World,
) -> None:
    world.take(*ready(machine="gpu-002"))
    world.step()
    world.take(*ready(1, machine="gpu-002"))
    world.step()
    assert world.counted() == {("Ready", ""): (2, 40_000, 32_000)}
    assert [each.boot for each in world.history.under_way()] == [boot_id("gpu-002", 1)]
    world.step(AT_MOST_MS / 1000 + 60)
    assert world.history.under_way() == []


def test_a_disk_that_refuses_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise StateUnavailableError("no space left")

    world.take(*ready())
    for method in ("begin", "note", "count", "prove"):
        if method == "note":
            world.judge(Reason.IN_SERVICE, 0)
        elif method == "count":
            world.look()
            world.pass_time(MINUTE)
        with monkeypatch.context() as patched:
            patched.setattr(world.history, method, refused)
            world.look()
            assert world.records.problem == "no space left"
    world.step()
    assert proof(world, 0) is not None
    assert {key: count for key, (count, _, _) in world.counted().items()} == {
        ("Ready", "hgx"): 1,
        ("InService", "hgx"): 1,
    }


def test_what_was_decided_for_a_proven_boot_is_kept_once_in_its_own_words(world: World) -> None:
    digest = decided_by(world)
    for number in (0, 1):
        served, *rest = ready(number)
        world.take(served.model_copy(update={"decision": digest}), *rest)
        world.step()
    kept = world.shown.decided(digest)
    assert kept is not None
    assert kept.because == (
        "machine gpu-001 (inventory)",
        "profile compute uses channel stable",
        f"channel stable is image tiny {kept.image[:12]}",
    )
    assert set(kept.inputs) == {"machine", "image", "profile", "class", "service"}
    assert (kept.digest, world.shown.decided("0" * 16)) == (digest, None)
    assert world.history.undecided([digest, "0" * 16]) == {"0" * 16}


def test_a_decision_by_the_snapshot_before_is_kept_and_one_by_an_older_is_not(world: World) -> None:
    digest, old = decided_by(world), world.snapshot
    for number, arguments in enumerate((("quiet",), ("debug",))):
        world.step()
        world.snapshot = snapshot(*arguments)
        world.step()
        assert decided_by(world) != digest
        if number == 0:
            served, *rest = ready(0, "gpu-002")
            of_other = served.model_copy(update={"decision": Inputs(View.of(old)).digest(*other(old))})
            world.take(of_other, *rest)
            world.step()
            assert world.shown.decided(of_other.decision) is not None
    served, *rest = ready()
    world.take(served.model_copy(update={"decision": digest}), *rest)
    world.step()
    assert world.shown.decided(digest) is None
    assert world.shown.decided(decided_by(world)) is None, "no boot was by that"


def test_what_a_rollout_assigned_is_part_of_what_was_decided_from(world: World) -> None:
    by_channel, image = decided_by(world), next(iter(world.snapshot.images))
    assignment = Assignment(image=image, rollout=7)
    world.snapshot = world.snapshot.model_copy(update={"assigned": {"gpu-001": assignment}})
    world.step()
    served, *rest = ready()
    world.take(served.model_copy(update={"decision": decided_by(world)}), *rest)
    world.step()
    assert decided_by(world) != by_channel
    kept = world.shown.decided(decided_by(world))
    assert kept is not None
    assert kept.because[-1] == f"rollout 7 of channel stable assigned image tiny {image[:12]}"
    assert "assignment" in kept.inputs


def other(old: Snapshot) -> tuple[Machine, ImageFacts]:
    """The second machine, and the image."""
    return old.inventory.machines[1], next(iter(old.images.values()))


def proof(world: World, number: int) -> ProofOfBoot | None:
    found = world.shown.proof(boot_id("gpu-001", number))
    assert world.key is not None
    return verified(found, [world.key.public])[0] if found is not None else None


def test_a_boot_is_proven_once_it_is_in_service_and_what_comes_later_alters_nothing(world: World) -> None:
    world.take(*ready(), checked("gpu-001", 0, "warn"))
    world.step()
    assert proof(world, 0) is None
    world.now = START + 25_000
    world.judge(Reason.IN_SERVICE, 0)
    world.step()
    made = proof(world, 0)
    assert made is not None
    assert (made.boot, made.made_ms, made.moments["InService"]) == (
        boot_id("gpu-001", 0),
        START + 25_000,
        START + 25_000,
    )
    assert made.checks is not None
    assert made.checks.checks == {"cpus": "warn"}
    world.take(checked("gpu-001", 0, "fail", 900_000))
    world.judge(Reason.NODE_NOT_READY, 0)
    world.step(100.0)
    assert proof(world, 0) == made


def test_a_boot_that_never_came_into_service_is_proven_when_it_is_over(world: World) -> None:
    world.take(*ready()[:3])
    world.step()
    assert proof(world, 0) is None
    world.take(*ready(1))
    world.step()
    over = proof(world, 0)
    assert over is not None
    assert "Ready" not in over.moments


def test_a_key_that_cannot_be_read_is_waited_for_and_without_one_nothing_is_proven(world: World) -> None:
    world.take(*ready())
    world.key_problem = "others can read the key of proofs"
    world.judge(Reason.IN_SERVICE, 0)
    world.records.step()
    world.seconds += 60
    world.records.step()
    assert world.records.problem == "others can read the key of proofs"
    assert world.counted()["InService", "hgx"][0] == 1, "what is counted waits for no key"
    world.key_problem = ""
    world.step(60.0)
    assert proof(world, 0) is not None
    key, world.key = world.key, None
    world.take(*ready(1))
    world.judge(Reason.IN_SERVICE, 1)
    world.step(60.0)
    world.key = key
    assert (proof(world, 1), world.counted()["InService", "hgx"][0]) == (None, 2)


def test_a_report_that_the_projection_reads_a_second_after_the_ready_node_is_counted_too(world: World) -> None:
    served, started, attested, up = ready()
    world.take(served, started, attested, up)
    world.look()
    assert world.counted() == {}
    world.take(event("gpu-001", 0, Phase.BOOTED, 10_000), event("gpu-001", 0, Phase.JOINING, 11_000))
    world.step(3.0)
    assert world.counted() == {("Ready", "hgx"): (1, 20_000, 6_000 + 5_000)}
