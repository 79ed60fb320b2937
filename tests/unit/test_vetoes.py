"""Pods that are not to be disrupted put a drain off: where their class says so, for so long, and no budget is passed
over after that."""

import pytest

from netboot.machines.classes import Vetoes
from tests.drain_world import BUDGET, World, pod
from tests.drains import MINUTE, START
from tests.records import boot_id

VETOES = Vetoes(namespaces=("training", "lab"), max_wait=600)
JOB = pod("job-0", "Job", namespace="training", veto=True)
WORDS = "training/job-0 may not be disrupted (netboot.dev/do-not-disrupt) until 2026-01-01T00:10:00Z"


def world_of(*pods: object, vetoes: Vetoes | None = VETOES) -> World:
    world = World(pod("a"), JOB, *pods)  # type: ignore[arg-type] # Pods
    world.vetoes = vetoes
    return world


def said(world: World) -> tuple[str, str]:
    state = world.said.drains["n-1"]
    return state.state, state.words


def test_while_a_pod_vetoes_nothing_is_evicted_and_until_when_is_said() -> None:
    world = world_of()
    world.order("reboot")
    world.run(595)
    assert (world.evicted, world.value(), said(world)) == ([], "Draining", ("draining", WORDS))
    world.run(60)
    assert sorted(world.evicted) == ["a", "job-0"]
    assert world.reboots == [boot_id("n-1", 1)]


def test_after_that_budgets_are_respected_as_ever() -> None:
    world = world_of()
    world.refuses = {"job-0"}
    world.order()
    world.run(700)
    assert "job-0" in world.pods_
    assert said(world) == ("draining", f"training/job-0 are left; training/job-0 may not go now: {BUDGET}")
    assert world.value() == "Draining"


def test_it_ends_with_its_pod_or_with_its_annotation() -> None:
    for pods in ({}, {"job-0": JOB._replace(veto=False)}, {"job-0": JOB._replace(over=True)}):
        world = world_of()
        world.order()
        world.run(30)
        assert world.evicted == []
        world.pods_ = {"a": pod("a"), **pods}
        world.run(30)
        assert world.value() == "Drained"
        assert "a" in world.evicted


@pytest.mark.parametrize(
    ("job", "vetoes"),
    [
        (JOB, None),
        (JOB, Vetoes(namespaces=("lab",), max_wait=600)),
        (JOB._replace(namespace="training-2"), VETOES),
        (JOB._replace(leaving=True), VETOES),
        (JOB._replace(mirror=True), VETOES),
        (JOB._replace(owner="DaemonSet"), VETOES),
    ],
)
def test_where_its_class_does_not_say_so_no_pod_vetoes(job: object, vetoes: Vetoes | None) -> None:
    world = world_of(vetoes=vetoes)
    world.pods_["job-0"] = job  # type: ignore[assignment] # a Pod
    world.order()
    world.run(30)
    assert "a" in world.evicted
    assert world.value() == "Drained"


def test_a_deadline_before_its_end_undoes_the_drain_and_says_who_vetoed() -> None:
    world = world_of(pod("job-1", "Job", namespace="lab", veto=True))
    world.order(deadline_ms=START + 5 * MINUTE)
    world.run(310)
    assert (world.evicted, world.value(), world.last().end) == ([], None, "undone")
    two = "lab/job-1 and 1 more may not be disrupted (netboot.dev/do-not-disrupt) until 2026-01-01T00:10:00Z"
    assert world.last().words == f"it was not drained by its deadline: {two}"


def test_what_would_be_lost_is_said_first() -> None:
    world = world_of(pod("bare", ""))
    world.order()
    world.run(30)
    assert said(world)[1].startswith("default/bare have no controller")


def test_in_a_later_boot_it_is_counted_from_when_its_node_was_made() -> None:
    world = world_of()
    world.order()
    world.run(605)
    assert world.evicted
    world.boot = 2
    world.register()
    world.pods_["job-0"], world.evicted = JOB, []
    world.run(590)
    assert world.evicted == []
    world.run(30)
    assert "job-0" in world.evicted


def test_killed_at_any_call_it_evicts_nobody_before_its_time() -> None:
    for call in range(1, 40):
        world = World(pod("a"), JOB, kill=(call, call % 2 == 0))
        world.vetoes = VETOES
        world.order()
        world.run(595)
        assert (world.evicted, world.value()) == ([], "Draining"), call
