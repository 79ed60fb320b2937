"""Who writes how machines are into their objects: what is refused, older, written by others, or not known any more."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from netboot.controllers.known_until import RENEW_SECONDS
from netboot.controllers.overwritten import LASTS_SECONDS, MANY
from netboot.controllers.shipper import LATE_SECONDS, ShipperController
from netboot.join.errors import ClusterUnavailableError, ConflictError, InvalidError
from netboot.lifecycle.object_events import ObjectEvent
from netboot.lifecycle.objects import MachineObject, ObjectSeen
from netboot.lifecycle.phases import Phase
from netboot.machines.classes import Class
from netboot.machines.inventory import completed
from netboot.machines.resources import declared_as
from netboot.machines.values import Profile
from tests.unit.test_object_status import READY
from tests.unit.test_shipper import SPEC, World, phase, world

__all__ = ["world"]
MANY_SECONDS = 1200.0


def observed(world: World) -> set[int | None]:
    return {each.get("observedGeneration") for each in world.there["gpu-001"].status["conditions"]}


def again(world: World) -> None:
    """The process is started again."""
    world.controller = ShipperController(world, lambda: world, world, lambda: world.now)
    world.controller._api = world
    world.lists()


def test_six_that_are_refused_hold_up_nobody() -> None:
    world = World()
    names = [f"gpu-{number:03}" for number in range(40)]
    for name in names:
        world.object_of(name)
        world.says(name)
    for name in names[:6]:
        world.refuses[name] = InvalidError("422 Invalid: a policy")
    world.lists()
    assert set(world.passes(3)) == set(names)
    for name in names:
        world.says(name, *READY)
    assert set(names[6:]) <= set(world.passes(3))
    said = world.controller.status()
    assert (said.ok, said.behind, said.refused, said.a_second) == (False, 0, 6, 45.0)
    assert said.message == (
        "status of machine/gpu-000 is refused: 422 Invalid: a policy; "
        "status of machine/gpu-001 is refused: 422 Invalid: a policy; "
        "status of machine/gpu-002 is refused: 422 Invalid: a policy; and of 3 more"
    )
    world.refuses = {}
    assert set(world.passes(30)) == set(names[:6])
    assert world.controller.status().ok


def test_one_that_is_refused_is_tried_ever_more_rarely_whatever_becomes_of_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.passes(10)
    world.refuses["gpu-001"] = InvalidError("422 Invalid: too long")
    began = len(world.writes)
    for number in range(200):
        world.says("gpu-001", *READY, number=number + 1)
        world.passes(MANY_SECONDS / 200)
    tried = [at for at, _ in world.writes[began:]]
    pauses = [second - first for first, second in itertools.pairwise(tried)]
    assert 5 <= pauses[0] <= 11
    assert 10 <= pauses[1] <= 21
    assert all(150 <= each <= 301 for each in pauses[5:])
    assert world.controller.status().message == "status of machine/gpu-001 is refused: 422 Invalid: too long"
    world.refuses["gpu-001"] = InvalidError("422 Invalid: a policy")
    world.passes(301)
    del world.refuses["gpu-001"]
    assert world.passes(301) == ["gpu-001"]
    assert world.controller.status().ok
    assert [each.getMessage() for each in caplog.records if "machine/" in each.getMessage()] == [
        "status of machine/gpu-001 is refused: 422 Invalid: too long",
        "status of machine/gpu-001 is refused: 422 Invalid: a policy",
        "status of machine/gpu-001 is taken",
    ]


def test_who_answers_that_there_is_no_such_thing_has_taken_nothing(world: World) -> None:
    world.passes(10)
    world.refuses["gpu-001"] = ConflictError('404 NotFound: machines.netboot.dev "gpu-001" not found')
    world.says("gpu-001", *READY)
    assert world.passes(4) == ["gpu-001"]
    assert world.controller.status().ok
    assert len(world.passes(60)) in (2, 3)
    said = world.controller.status()
    assert (said.ok, said.written, said.refused, said.behind) == (False, 1, 1, 0)
    assert said.message == (
        'status of machine/gpu-001 is refused: 404 NotFound: machines.netboot.dev "gpu-001" not found'
    )
    del world.refuses["gpu-001"]
    assert world.passes(301) == ["gpu-001"]
    assert phase(world) == "Ready"


def test_one_of_which_the_answer_is_not_understood_holds_up_no_other_and_is_named(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.object_of("gpu-002")
    world.lists()
    world.refuses["gpu-001"] = KeyError("metadata")
    world.says("gpu-001", *READY)
    world.says("gpu-002", *READY)
    tried = world.passes(60)
    assert tried.count("gpu-002") == 1
    assert tried.count("gpu-001") < 6
    said = world.controller.status()
    assert (said.ok, said.refused, said.behind) == (False, 1, 0)
    assert said.message == "status of machine/gpu-001 is refused: no answer that is understood: a defect; see the log"
    assert [record.getMessage() for record in caplog.records if record.exc_info] == [
        "status of machine/gpu-001 is refused: no answer that is understood: a defect; see the log"
    ]
    del world.refuses["gpu-001"]
    assert "gpu-001" in world.passes(301)
    assert world.controller.status().ok


def test_one_that_fails_by_itself_pauses_all_ever_more_rarely(world: World) -> None:
    world.object_of("gpu-002")
    world.lists()
    world.refuses["gpu-001"] = ClusterUnavailableError("500: failed calling webhook")
    world.says("gpu-001", *READY)
    began = len(world.writes)
    for number in range(60):
        world.says("gpu-002", *READY, number=number + 1)
        world.passes(10)
    tried = [name for _, name in world.writes[began:]]
    assert tried.count("gpu-001") < 40
    assert tried.count("gpu-002") > 55


def test_an_event_that_is_refused_slows_nothing_and_holds_up_no_other(world: World) -> None:
    world.passes(10)
    tell = world.tell

    def refuses(event: ObjectEvent) -> str:
        if event.reason == "Booting":
            raise InvalidError("422 Invalid: a policy")
        return tell(event)

    world.tell = refuses  # type: ignore[method-assign]
    world.says("gpu-001", *READY)
    world.passes(2)
    said = world.controller.status()
    assert (world.told, said.events_dropped, said.events_waiting, said.a_second) == (["gpu-001 Ready"], 1, 0, 45.0)


def test_a_spec_is_in_force_also_by_what_its_profile_and_its_class_say(world: World) -> None:
    spec = {**SPEC, "class": "arm"}
    facts, machine = world.known["gpu-001"], declared_as("gpu-001", spec)
    assert facts is not None
    assert machine is not None
    profile = Profile.model_validate({"name": "compute", "channel": "stable", "pcrs": {"11": ["0" * 64]}})
    arm = Class(name="arm", architecture="arm64")
    machine = completed(machine, profile, arm)
    assert (machine.architecture, bool(machine.pcrs)) == ("arm64", True)
    world.known["gpu-001"] = facts._replace(machine=machine, profile=profile, of_class=arm)
    world.changes("gpu-001", spec=spec, generation=2)
    world.lists()
    world.passes(10)
    assert observed(world) == {2}


def test_after_a_start_a_condition_of_before_is_not_of_the_spec_of_now(world: World) -> None:
    world.passes(10)
    world.changes("gpu-001", spec={**SPEC, "enabled": False}, generation=2)
    again(world)
    world.passes(10)
    assert observed(world) == {1}
    said = world.there["gpu-001"].status
    world.changes("gpu-001", status={**said, "conditions": [{**said["conditions"][0], "observedGeneration": 2}]})
    again(world)
    world.passes(10)
    assert observed(world) == {0}, "what somebody wrote there is not believed"
    world.changes("gpu-001", spec=SPEC, generation=3)
    world.lists()
    world.passes(10)
    assert observed(world) == {3}


def test_after_a_restore_of_etcd_what_is_listed_counts_whatever_its_version(world: World) -> None:
    before = world.there["gpu-001"]
    world.says("gpu-001", *READY)
    world.passes(10)
    assert phase(world) == "Ready"
    world.there["gpu-001"], world.version = before._replace(version="1"), 1
    world.lists()
    assert world.passes(10) == ["gpu-001"]
    assert phase(world) == "Ready"


def test_a_watch_is_believed_again_as_soon_as_it_brought_what_was_written(world: World) -> None:
    before, world.echoes = world.there["gpu-001"], False
    world.says("gpu-001", *READY)
    world.passes(10)
    ours = world.there["gpu-001"]
    for each in (before, ours):
        world.controller.take(ObjectSeen(each, there=True))
    assert world.passes(10) == []
    world.controller.take(ObjectSeen(world.changes("gpu-001", status={}), there=True))
    assert world.passes(10) == ["gpu-001"]


def rivals(world: World, theirs: Mapping[str, Any]) -> None:
    """Somebody writes `theirs` over all that is written, and the watch brings both before the answer comes."""
    write = world.write

    def overwritten(machine: MachineObject, status: Mapping[str, Any]) -> MachineObject:
        after = write(machine, status)
        world.controller.take(ObjectSeen(world.changes(machine.name, status=theirs), there=True))
        return after

    world.write = overwritten  # type: ignore[method-assign]


def test_two_services_do_not_write_against_each_other_as_fast_as_they_can(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.passes(10)
    theirs = world.there["gpu-001"].status
    own = world.write
    rivals(world, theirs)
    world.says("gpu-001", *READY)
    written = world.passes(900)
    assert MANY + 13 <= len(written) <= MANY + 16
    said = world.controller.status()
    assert (said.ok, said.overwritten) == (False, 1)
    assert said.message == "status of machine/gpu-001 is overwritten: by netboot-shipper"
    world.write = own  # type: ignore[method-assign]
    world.passes(LASTS_SECONDS + 61)
    assert (world.controller.status().ok, phase(world)) == (True, "Ready")
    world.says("gpu-001", *READY, number=2)
    assert len(world.passes(1)) == 1
    assert [each.getMessage() for each in caplog.records if "machine/" in each.getMessage()] == [
        "status of machine/gpu-001 is overwritten: by netboot-shipper",
        "status of machine/gpu-001 is overwritten no more",
    ]


def test_fields_that_others_add_are_theirs(world: World) -> None:
    world.passes(10)
    for number in range(20):
        status = {**world.there["gpu-001"].status, "theirs": number}
        world.controller.take(ObjectSeen(world.changes("gpu-001", status=status), there=True))
        world.passes(10)
    assert world.controller.status().ok


def test_a_lease_says_until_when_all_is_known(world: World) -> None:
    world.passes(150)
    pauses = [second - first for first, second in itertools.pairwise(world.renewed)]
    assert all(RENEW_SECONDS <= each <= RENEW_SECONDS + 1 for each in pauses)
    assert len(world.renewed) in (10, 11)
    world.looked_at = False
    world.passes(RENEW_SECONDS)
    kept = len(world.renewed)
    world.passes(60)
    assert len(world.renewed) == kept
    world.looked_at = True
    world.passes(RENEW_SECONDS + 1)
    assert len(world.renewed) > kept
    world.controller._reflector.problem = "away"
    kept = len(world.renewed)
    world.passes(60)
    assert len(world.renewed) == kept
    world.controller._reflector.problem = None
    world.unreadable = {"gpu-001"}
    world.says("gpu-001", Phase.ATTESTED)
    world.passes(LATE_SECONDS + RENEW_SECONDS)
    kept = len(world.renewed)
    world.passes(60)
    assert len(world.renewed) == kept, "one is late"


def test_that_the_lease_cannot_be_renewed_is_said(world: World) -> None:
    world.passes(10)
    world.problem = ClusterUnavailableError("the namespace netboot has no Lease netboot-shipper")
    world.passes(RENEW_SECONDS)
    assert world.controller.status().message == (
        "until when it is known cannot be said: the namespace netboot has no Lease netboot-shipper"
    )
    world.problem = None
    world.passes(RENEW_SECONDS + 1)
    assert world.controller.status().ok
