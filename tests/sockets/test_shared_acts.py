"""Rollouts and channels that replicas share: what the API and the command line say of them, against the API."""

from dataclasses import replace
from pathlib import Path

import pytest

from netboot.lifecycle.rollout import Member, MemberState, Rollout
from netboot.lifecycle.rollout_orders import paused
from netboot.lifecycle.rollout_specs import RolloutSpec
from netboot.lifecycle.rollout_store import Note
from netboot.stores.rollouts import make
from netboot.stores.shared_rollouts import SharedRollouts
from netboot.web.dependencies import Dependencies
from tests.commands import Run
from tests.order_objects import AWAY
from tests.rollout_objects import MemoryRolloutObjects
from tests.rollouts import rollout
from tests.sites import KUBELET, add_image
from tests.sockets.api import Api, Fixed

UNREAD = "what other replicas did about rollouts, has not been read yet: see `resources` and `rollouts` of "


class Site(Api):
    """Two images; the channel is the first."""

    rollouts: SharedRollouts

    def __init__(self, root: Path) -> None:
        self.objects = MemoryRolloutObjects()
        super().__init__(root)
        self.old, self.new = add_image(self.config), add_image(self.config, name="next", salt="2", documents=KUBELET)
        self.store.set_channel("stable", self.old)
        assert self.publisher.step()

    def _dependencies(self) -> Dependencies:
        shared = SharedRollouts(self.config.data / "rollouts.db", self.objects, self.repository, dict, Fixed().now_ms)
        self.rollouts = shared
        return replace(
            super()._dependencies(),
            repository_writer=shared,
            points_to=shared.channel,
            point_alone=shared.alone,
        )

    @property
    def stable(self) -> str | None:
        return self.repository.channel("stable")

    @property
    def said(self) -> RolloutSpec:
        spec = self.objects.objects["stable"].spec
        assert spec is not None
        return spec


@pytest.fixture
def api(tmp_path: Path) -> Site:
    return Site(tmp_path)


def member(api: Site) -> Member:
    """Which has its image by now."""
    return Member(machine="gpu-001", previous=api.old, state=MemberState.DONE)


def ongoing(api: Site) -> Rollout:
    return rollout().model_copy(update={"image": api.new, "base": api.old})


def begun(api: Site) -> None:
    """A rollout of one machine."""
    api.rollouts.start(ongoing(api), {"gpu-001": member(api)}, Note(1, "alice", "start"))


def test_a_channel_that_is_set_is_an_object_and_says_by_whom(api: Site, run: Run) -> None:
    assert run("channel", "set", "stable", "next").status == 0
    assert (api.said.image, api.said.image_name, api.said.who) == (api.new, "next", "token 9d913f87")
    assert api.stable == api.new


def test_a_rollout_that_is_ended_by_that_is_said_and_over_for_all(api: Site, run: Run) -> None:
    begun(api)
    ran = run("channel", "set", "stable", "next")
    assert (ran.status, api.stable) == (4, api.old), "a rollout is under way"
    ran = run("channel", "set", "stable", "next", "--force")
    assert (ran.status, api.stable) == (0, api.new)
    assert "rollout 1 is cancelled: it assigns nothing any more" in ran.out
    assert api.said.rollout is not None
    assert (api.said.rollout.state, api.said.rollout.released) == ("cancelled", True)


def test_who_has_not_heard_of_a_pause_yet_resumes_what_was_paused(api: Site, tmp_path: Path) -> None:
    begun(api)
    make(tmp_path / "elsewhere.db").close()
    elsewhere = SharedRollouts(tmp_path / "elsewhere.db", api.objects, api.repository, dict, Fixed().now_ms)
    elsewhere.refresh()
    elsewhere.change(1, lambda was, those: paused(was, those, "bob"), lambda *_: None)
    answer = api.post("/v1/rollouts/1/resume", {}).json
    assert (answer["did"], answer["state"]) == (True, "running")
    assert api.said.rollout is not None
    assert api.said.rollout.state == "running"


def test_who_has_not_heard_of_a_rollout_yet_looks_before_setting_its_channel(api: Site, tmp_path: Path) -> None:
    make(tmp_path / "elsewhere.db").close()
    elsewhere = SharedRollouts(tmp_path / "elsewhere.db", api.objects, api.repository, dict, Fixed().now_ms)
    elsewhere.start(ongoing(api), {"gpu-001": member(api)}, Note(1, "bob", "start"))
    assert api.put("/v1/channels/stable", {"image": "next"}).status_code == 409
    answer = api.put("/v1/channels/stable", {"image": "next", "force": True}).json
    assert (answer["ended_rollouts"], answer["alone"]) == ([1], False)


def test_with_the_api_server_away_a_channel_is_set_at_this_replica_by_force_alone(api: Site, run: Run) -> None:
    begun(api)
    api.objects.away = True
    ran = run("channel", "set", "stable", "next", "--force", "--reason", "the control plane does not come up")
    assert (ran.status, api.stable) == (0, api.new)
    assert ran.err.splitlines()[-1] == (
        "other replicas could not be told where channel stable points, and go on as before: set it there likewise, and "
        "once more when the API server answers"
    )
    assert "rollout 1 is cancelled: it assigns nothing any more" in ran.out
    assert (api.rollouts.under_way(), api.rollouts.assigned()) == ([], {})
    answer = api.put("/v1/channels/stable", {"image": "tiny", "force": True}).json
    assert (answer["alone"], answer["assignments_kept"], answer["ended_rollouts"]) == (True, False, [])
    api.objects.away = False
    assert api.put("/v1/channels/stable", {"image": "next"}).status_code == 409, "it goes on elsewhere"
    answer = api.put("/v1/channels/stable", {"image": "next", "force": True}).json
    assert (answer["alone"], answer["assignments_kept"], answer["ended_rollouts"]) == (False, False, [1])
    assert (api.said.image, api.stable) == (api.new, api.new)
    assert api.rollouts.behind() == f"{UNREAD}`netboot doctor`", "and no more than that"
    assert api.said.rollout is not None
    assert (api.said.rollout.state, api.said.rollout.why) == ("cancelled", "channel set by token 9d913f87")


def test_with_the_api_server_away_nothing_begins_and_nothing_is_set(api: Site) -> None:
    api.objects.away = True
    answer = api.put("/v1/channels/stable", {"image": "next"})
    assert (answer.status_code, answer.json["detail"], api.stable) == (503, AWAY, api.old)
    assert api.objects.objects == {}
