"""Rollouts and channels that replicas share: what the API and the command line say of them, against the API."""

from dataclasses import replace
from pathlib import Path

import pytest

from netboot.lifecycle.rollout import Member, MemberState, RolloutState
from netboot.lifecycle.rollout_store import Note
from netboot.stores.rollouts_here import RolloutsHere
from netboot.stores.shared_channels import SharedChannels
from netboot.stores.shared_rollouts import SharedRollouts
from netboot.web.dependencies import Dependencies
from tests.assignment_objects import MemoryAssignments
from tests.commands import Run
from tests.order_objects import AWAY
from tests.rollout_objects import MemoryRolloutObjects
from tests.rollouts import rollout
from tests.sites import KUBELET, add_image
from tests.sockets.api import Api, Fixed


class Site(Api):
    """Two images; the channel is the first."""

    def __init__(self, root: Path) -> None:
        self.assignments, self.objects = MemoryAssignments(), MemoryRolloutObjects()
        super().__init__(root)
        self.old, self.new = add_image(self.config), add_image(self.config, name="next", salt="2", documents=KUBELET)
        self.store.set_channel("stable", self.old)
        assert self.publisher.step()

    def _dependencies(self) -> Dependencies:
        path, now_ms = self.config.data / "rollouts.db", Fixed().now_ms
        self.rollouts = SharedRollouts(path, self.objects, self.repository.channel, now_ms)
        return replace(
            super()._dependencies(),
            repository_writer=SharedChannels(path, self.assignments, self.repository, now_ms),
            rollouts_here=RolloutsHere(path, now_ms),
        )

    @property
    def stable(self) -> str | None:
        return self.repository.channel("stable")

    def away(self) -> None:
        """The API server."""
        self.objects.away = self.assignments.away = True


@pytest.fixture
def api(tmp_path: Path) -> Site:
    return Site(tmp_path)


def begun(api: Site) -> None:
    """A rollout of one machine, which has its image by now."""
    member = Member(machine="gpu-001", previous=api.old, state=MemberState.DONE)
    begun = rollout().model_copy(update={"image": api.new, "base": api.old})
    api.rollouts.start(begun, {"gpu-001": member}, Note(1, "alice", "start"))


def test_a_channel_that_is_set_is_an_object_and_says_by_whom(api: Site, run: Run) -> None:
    assert run("channel", "set", "stable", "next").status == 0
    said = api.assignments.specs["stable"]
    assert (said.image, said.image_name, said.who, api.stable) == (api.new, "next", "token 9d913f87", api.new)


def test_with_the_api_server_away_a_channel_is_set_at_this_replica_by_force_alone(api: Site, run: Run) -> None:
    begun(api)
    api.away()
    ran = run("channel", "set", "stable", "next")
    assert (ran.status, api.stable) == (4, api.old), "a rollout is under way"
    ran = run("channel", "set", "stable", "next", "--force", "--reason", "the control plane does not come up")
    assert (ran.status, api.stable) == (0, api.new)
    assert ran.err.splitlines()[-1] == (
        "other replicas could not be told where channel stable points, and go on as before: set it there likewise, and "
        "once more when the API server answers"
    )
    assert "rollout 1 is cancelled: it assigns nothing any more" in ran.out
    assert (api.rollouts.under_way(), api.rollouts.assigned()) == ([], {})
    assert api.put("/v1/channels/stable", {"image": "tiny", "force": True}).json["alone"] is True
    api.objects.away = api.assignments.away = False
    answer = api.put("/v1/channels/stable", {"image": "next"}).json
    assert (answer["alone"], answer["assignments_kept"]) == (False, False)
    assert api.assignments.specs["stable"].image == api.new
    there = api.objects.objects[1].said
    assert there is not None
    assert (there.rollout.state, there.released) == (RolloutState.CANCELLED, True)


def test_with_the_api_server_away_nothing_begins_and_nothing_is_set(api: Site) -> None:
    api.away()
    answer = api.put("/v1/channels/stable", {"image": "next"})
    assert (answer.status_code, answer.json["detail"], api.stable) == (503, AWAY, api.old)
    assert api.assignments.specs == {}
