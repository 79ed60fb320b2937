"""What is known of machines for their objects: of a real snapshot and conditions, and whatever becomes another."""

import pytest

from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.events import AnyRecord
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.status import FRESH_MS
from netboot.status.controllers import LifecycleStatus, ProjectionStatus
from netboot.stores.conditions import SqliteConditions
from netboot.stores.object_facts import ObjectFacts
from netboot.stores.status import StatusFolder
from tests.records import boot_id, event, script
from tests.sites import add_image
from tests.sockets.api import Api
from tests.states import MemoryStates
from tests.unit.test_object_status import judged

NAME = "gpu-001"


@pytest.fixture
def api(tmp_path_factory: pytest.TempPathFactory) -> Api:
    return Api(tmp_path_factory.mktemp("facts"))


@pytest.fixture
def known(api: Api) -> ObjectFacts:
    return facts_of(api, api.states)


def facts_of(api: Api, states: MemoryStates) -> ObjectFacts:
    data = api.config.data
    return ObjectFacts(api.live, states, SqliteConditions(data / "conditions.db"), StatusFolder(data / "status"))


def took(api: Api, number: int, *phases: Phase) -> None:
    records: list[AnyRecord] = [
        script(NAME, number),
        *(event(NAME, number, phase, 500 + at) for at, phase in enumerate(phases)),
    ]
    api.states.take(Batch("boot-0.db", 1, number, records))


def test_what_became_another_is_said_once(api: Api, known: ObjectFacts) -> None:
    assert known.changed() is None, "of what was before nothing is known"
    assert known.changed() == set()
    took(api, 1, Phase.INITRD_STARTED)
    assert known.changed() == {NAME}
    api.kept.keep([judged()], (), {})
    assert known.changed() == {NAME}
    api.kept.keep([], [NAME], {})
    assert known.changed() == {NAME}
    api.store.set_channel("stable", add_image(api.config))
    api.publisher.step()
    assert known.changed() == {NAME, "gpu-002"}, "a machine that is disabled is served nothing, before and after"
    assert known.changed() == set()


def test_of_a_state_that_was_lost_anything_may_be_another(api: Api, known: ObjectFacts) -> None:
    took(api, 1, Phase.INITRD_STARTED)
    known.changed()
    lost = facts_of(api, MemoryStates())
    lost.changed()
    lost._place = 1_000
    assert lost.changed() is None
    assert lost.changed() is None
    assert lost.changed() == set()


def test_what_was_found_is_said_also_where_what_came_after_could_not_be_read(
    api: Api, known: ObjectFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    known.changed()
    api.kept.keep([judged()], (), {})
    with monkeypatch.context() as patched:

        def refuses(*_: object) -> None:
            raise StateUnavailableError("state.db cannot be read")

        patched.setattr(api.states, "feed", refuses)
        with pytest.raises(StateUnavailableError):
            known.changed()
    assert known.changed() == {NAME}


def test_what_is_known_of_a_machine(api: Api, known: ObjectFacts) -> None:
    image = add_image(api.config)
    api.store.set_channel("stable", image)
    api.publisher.step()
    api.kept.keep([judged()], (), {})
    for number in range(1, 9):
        took(api, number, Phase.INITRD_STARTED, Phase.ATTESTED)
    took(api, 9, Phase.INITRD_STARTED)
    facts = known.facts([NAME, "off-001", "nobody"])
    assert facts["nobody"] is None
    here, off = facts[NAME], facts["off-001"]
    assert here is not None
    assert off is not None
    assert [each.boot for each in here.boots] == [boot_id(NAME, number) for number in (9, 8, 7, 6, 5, 4)]
    assert (here.in_force, here.judged, off.in_force, off.boots, off.judged) == (image, judged(), "", (), None)
    profile = here.profile
    assert profile is not None
    assert (profile.name, here.of_class) == (here.machine.profile, None)


def test_who_looks_at_machines_all_the_time_says_so(api: Api, known: ObjectFacts) -> None:
    projection = ProjectionStatus(at_ms=0, taken=0, set_aside={}, replaced={}, lag_records={}, problems={})
    lifecycle = LifecycleStatus(at_ms=0, conditions=(), overdue={}, waiting=0, unseen=())
    api.say(projection=projection, lifecycle=lifecycle)
    assert known.of_now()
    for other in (
        lifecycle.model_copy(update={"up_ms": lifecycle.up_ms - FRESH_MS - 1}),
        lifecycle.model_copy(update={"unseen": ("cluster/gpu",)}),
        lifecycle.model_copy(update={"behind_seconds": 301.0}),
        lifecycle.model_copy(update={"problem": "state.db cannot be read"}),
    ):
        api.say(lifecycle=other)
        assert not known.of_now()
