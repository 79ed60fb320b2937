"""Machines that run something else than they would boot now, one thing at a time."""

from typing import Any

import pytest

from netboot.lifecycle.conditions import MachineCondition
from netboot.lifecycle.decided import arguments_digest
from netboot.lifecycle.drift import Drift, drifts
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.published import View
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.snapshot import Assignment, Snapshot
from netboot.lifecycle.state import MachineState
from netboot.lifecycle.trace import apply
from netboot.machines.classes import Class
from netboot.machines.values import Channel, Inventory, Machine, Profile
from tests.records import START, event, script
from tests.rollout_world import facts
from tests.rollouts import NEW, OLD

WORDS = ("quiet",)


def view(**changed: Any) -> View:
    machine = {"name": "gpu-001", "match": {"serial": "S1"}, "profile": "node", "class": "hgx"}
    return View.of(
        Snapshot(
            site="test",
            published_ms=1,
            inventory=Inventory(
                machines=(Machine.model_validate(machine | changed.pop("machine", {})),),
                profiles=(
                    Profile(name="node", channel="stable", kernel_arguments=WORDS),
                    Profile(name="other", channel="stable", kernel_arguments=changed.pop("words", WORDS)),
                ),
                channels=(Channel(name="stable"),),
                classes=(Class(name="hgx"), Class(name="cpu")),
            ),
            channels={"stable": OLD},
            unusable={},
            images={OLD: facts(OLD), NEW: facts(NEW)},
            url="http://192.0.2.1",
            origins=(),
        ).model_copy(update=changed)
    )


def state(**changed: object) -> dict[str, MachineState]:
    words = (*view().kernel_arguments(view().snapshot.inventory.machines[0], facts(OLD)),)
    said = {"image": OLD, "profile": "node", "class_name": "hgx", "arguments": arguments_digest(words)} | changed
    record = script("gpu-001", 1).model_copy(update=said)
    trace = apply(apply(None, record), event("gpu-001", 1, Phase.BOOTED))
    return {"gpu-001": MachineState(machine="gpu-001", current=trace)}


def found(view_: View, states: dict[str, MachineState], **conditions: Any) -> list[tuple[str, str, str, str]]:
    told = drifts(view_, states, conditions).drift
    return [(each.what, each.runs, each.wanted, each.why) for each in told]


def test_a_machine_that_runs_what_it_would_boot_does_not_drift() -> None:
    told = drifts(view(), state(), {})
    assert (told.machines, told.drift, told.untold) == (1, (), ())


def test_another_image_and_by_whose_word_and_since_when() -> None:
    condition = MachineCondition.of(ConditionType.UP_TO_DATE, Reason.OTHER_IMAGE, "", START + 9_000)
    moved = view(channels={"stable": NEW})
    (one,) = drifts(moved, state(), {"gpu-001": (condition,)}).drift
    assert one == Drift(
        machine="gpu-001",
        what="image",
        runs=OLD[:12],
        wanted=NEW[:12],
        why=f"channel stable is image next {NEW[:12]} now",
        boot=one.boot,
        since_ms=START + 9_000,
    )
    assigned = view(assigned={"gpu-001": Assignment(image=NEW, rollout=7)})
    assert found(assigned, state()) == [
        ("image", OLD[:12], NEW[:12], f"rollout 7 of channel stable assigned image next {NEW[:12]}")
    ]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"machine": {"profile": "other"}}, [("profile", "node", "other", "the inventory says profile other now")]),
        ({"machine": {"class": "cpu"}}, [("class", "hgx", "cpu", "the inventory says class cpu now")]),
    ],
)
def test_another_profile_or_class(changed: dict[str, Any], expected: list[tuple[str, str, str, str]]) -> None:
    assert found(view(**changed), state()) == expected


def test_other_kernel_arguments_of_the_same_image() -> None:
    (profile, arguments) = found(view(machine={"profile": "other"}, words=("debug",)), state())
    assert profile[0] == "profile"
    assert arguments[0] == "arguments"
    assert arguments[3].startswith("its profile, class or image says others now: ")
    assert "debug" in arguments[3]
    other = found(view(machine={"profile": "other"}, words=("debug",), channels={"stable": NEW}), state())
    assert [each[0] for each in other] == ["image", "profile"], "another image has arguments of its own"


def test_what_was_recorded_before_is_not_compared_and_what_is_not_known_is_said() -> None:
    assert found(view(machine={"class": "cpu"}), state(arguments=None, class_name=None)) == []
    trace = apply(None, event("gpu-001", 1, Phase.BOOTED))
    told = drifts(view(), {"gpu-001": MachineState(machine="gpu-001", current=trace)}, {})
    assert (told.machines, told.drift, told.untold) == (1, (), ("gpu-001",))
    assert drifts(view(), {}, {}).machines == 0
