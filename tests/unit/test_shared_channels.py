"""Where channels point, at two replicas: two stores of images, and the objects of one API server."""

from pathlib import Path
from shutil import copytree
from typing import NamedTuple

import pytest

from images.store.store import Store
from images.values.types import NAME
from netboot.config import Config
from netboot.join.errors import ClusterUnavailableError
from netboot.lifecycle.assignment_objects import AssignmentObject, assignment_object, kept_object, spec_of
from netboot.lifecycle.rollout import Rollout
from netboot.machines.resources import Resource
from netboot.stores.image_repository import StoreImageRepository, open_image_repository
from netboot.stores.known_orders import LATE_MS
from netboot.stores.rollouts import make
from netboot.stores.shared_channels import TRIES, SharedChannels
from tests.assignment_objects import MemoryAssignments
from tests.order_objects import AWAY
from tests.rollouts import rollout
from tests.sites import add_image, make_site

NOW = 1_767_225_600_000 + 10 * LATE_MS
SINCE = "2026-01-01T00:00:00Z"
ALONE = "channel stable points to {} at this replica alone, and to {} elsewhere: set it again"


class Replica(NamedTuple):
    config: Config
    repository: StoreImageRepository
    channels: SharedChannels

    @property
    def stable(self) -> str | None:
        return self.repository.channel("stable")


def replica(folder: Path, objects: MemoryAssignments) -> Replica:
    folder.mkdir()
    config = make_site(folder)
    config.data.mkdir()
    make(config.data / "rollouts.db").close()
    repository = open_image_repository(config)
    channels = SharedChannels(config.data / "rollouts.db", objects, repository, lambda: NOW)
    return Replica(config, repository, channels)


@pytest.fixture
def objects() -> MemoryAssignments:
    return MemoryAssignments()


@pytest.fixture
def alpha(tmp_path: Path, objects: MemoryAssignments) -> Replica:
    return replica(tmp_path / "alpha", objects)


@pytest.fixture
def beta(tmp_path: Path, objects: MemoryAssignments) -> Replica:
    return replica(tmp_path / "beta", objects)


def image(*replicas: Replica, salt: str = "") -> str:
    """One that all of them have, by the key of the first."""
    for each in replicas[1:]:
        copytree(replicas[0].config.keys, each.config.keys, dirs_exist_ok=True)
    [digest] = {add_image(each.config, salt=salt) for each in replicas}
    return digest


def test_what_is_set_at_one_replica_is_so_at_all(alpha: Replica, beta: Replica, objects: MemoryAssignments) -> None:
    first, second = image(alpha, beta), image(alpha, beta, salt="2")
    assert alpha.channels.point("stable", first, "alice\n") is None
    assert (alpha.stable, beta.stable) == (first, None)
    assert objects.specs["stable"] == spec_of(first, "tiny", "alice ", NOW)
    assert beta.channels.follow(objects.all(), NOW) == []
    assert beta.stable == first
    assert beta.channels.point("stable", second, "rollout 7") == first
    assert alpha.channels.follow(objects.all(), NOW) == []
    assert (alpha.stable, beta.stable) == (second, second)
    assert alpha.channels.follow(objects.all(), NOW) == []
    assert objects.specs["stable"].who == "rollout 7"


def test_what_is_set_to_what_it_is_is_set_all_the_same(alpha: Replica, objects: MemoryAssignments) -> None:
    """By that a rollout, elsewhere, that is about to be complete knows it."""
    first = image(alpha)
    alpha.channels.point("stable", first, "alice")
    assert alpha.channels.point("stable", first, "bob") == first
    assert (objects.objects["stable"].generation, objects.specs["stable"].who) == (2, "bob")


def test_an_image_that_is_not_here_yet_is_waited_for(alpha: Replica, beta: Replica, objects: MemoryAssignments) -> None:
    first = image(alpha, beta)
    second = image(alpha, salt="2")
    for digest in (first, second):
        alpha.channels.point("stable", digest, "alice")
        said = beta.channels.follow(objects.all(), NOW)
    assert (said, beta.stable) == ([f"channel stable stays as it is: image {second[:12]} is not here yet"], first)
    add_image(beta.config, salt="2")
    assert beta.channels.follow(objects.all(), NOW) == []
    assert beta.stable == second


def test_an_image_that_nobody_here_trusts_is_not_taken(
    alpha: Replica, beta: Replica, objects: MemoryAssignments
) -> None:
    digest = image(alpha)
    [other] = {add_image(beta.config)}
    assert digest == other
    alpha.channels.point("stable", digest, "alice")
    for name in beta.config.keys.glob("*.pub"):
        name.unlink()
    [said] = beta.channels.follow(objects.all(), NOW)
    assert said.startswith("channel stable stays as it is: ")
    assert beta.stable is None


def test_with_the_api_server_away_nothing_is_set_and_what_is_set_here_alone_stays_and_is_said(
    alpha: Replica, beta: Replica, objects: MemoryAssignments
) -> None:
    first, second = image(alpha, beta), image(alpha, beta, salt="2")
    alpha.channels.point("stable", first, "alice")
    beta.channels.follow(objects.all(), NOW)
    objects.away = True
    with pytest.raises(ClusterUnavailableError, match=AWAY):
        beta.channels.point("stable", second, "bob")
    assert beta.stable == first
    beta.repository.point("stable", second)
    assert beta.channels.follow(objects.all(), NOW) == [ALONE.format(second[:12], first[:12])]
    assert beta.channels.follow(objects.all(), NOW + 2 * LATE_MS) == [ALONE.format(second[:12], first[:12])]
    assert beta.stable == second
    objects.away = False
    beta.channels.point("stable", second, "bob")
    assert beta.channels.follow(objects.all(), NOW) == []
    alpha.channels.follow(objects.all(), NOW)
    assert alpha.stable == second


def test_a_list_of_a_moment_before_takes_nothing_back_and_a_restore_does(
    alpha: Replica, objects: MemoryAssignments
) -> None:
    first, second = image(alpha), image(alpha, salt="2")
    alpha.channels.point("stable", first, "alice")
    before = objects.all()
    alpha.channels.point("stable", second, "alice")
    assert alpha.channels.follow(before, NOW + LATE_MS - 1) == []
    assert alpha.stable == second
    assert alpha.channels.follow(before, NOW + LATE_MS) == []
    assert alpha.stable == first


def test_an_object_that_is_gone_leaves_the_channel_as_it_is(alpha: Replica, objects: MemoryAssignments) -> None:
    first = image(alpha)
    alpha.channels.point("stable", first, "alice")
    assert alpha.channels.follow([], NOW + LATE_MS) == []
    assert alpha.stable == first


def test_of_two_that_set_one_at_the_same_moment_the_last_is_so_everywhere(
    alpha: Replica, beta: Replica, objects: MemoryAssignments
) -> None:
    first, second = image(alpha, beta), image(alpha, beta, salt="2")

    def meanwhile() -> None:
        objects.before_write = lambda: None
        beta.channels.point("stable", second, "bob")

    objects.before_write = meanwhile
    alpha.channels.point("stable", first, "alice")
    beta.channels.follow(objects.all(), NOW)
    assert (alpha.stable, beta.stable) == (first, first)


def test_what_others_set_all_the_time_is_said(alpha: Replica, objects: MemoryAssignments) -> None:
    first, tried = image(alpha), list[int]()

    def meanwhile() -> None:
        tried.append(1)
        objects.objects["stable"] = AssignmentObject("stable", "u", len(tried), f"v-{len(tried)}", "0" * 64)

    objects.before_write = meanwhile
    words = r"^channel stable is set by others all the time: try again$"
    with pytest.raises(ClusterUnavailableError, match=words):
        alpha.channels.point("stable", first, "alice")
    assert (len(tried), alpha.stable) == (TRIES, None)


def test_what_was_written_and_not_answered_is_asked_and_was_done(alpha: Replica, objects: MemoryAssignments) -> None:
    first = image(alpha)
    objects.unheard = True
    alpha.channels.point("stable", first, "alice")
    assert alpha.stable == first


def test_an_object_that_cannot_be_read_changes_nothing(alpha: Replica, objects: MemoryAssignments) -> None:
    first = image(alpha)
    alpha.channels.point("stable", first, "alice")
    bad = [
        assignment_object("stable", "u", 9, {"image": "x", "who": "alice", "since": SINCE}),
        assignment_object("Stable!", "u", 9, {"image": first, "who": "alice", "since": SINCE}),
        kept_object(Resource(kind="assignment", name="a", shown="assignment/a", spec=None, refused="is too large")),
    ]
    assert [each.fault for each in bad] == [
        "assignment/stable: spec.image: must be a SHA-256 digest: 64 lower-case hexadecimal characters",
        f"assignment/Stable!: metadata.name: {NAME.message}",
        "assignment/a: spec: is too large",
    ]
    assert alpha.channels.follow(bad, NOW + LATE_MS) == [each.fault for each in bad]
    assert alpha.stable == first


def test_a_busy_store_is_tried_again(alpha: Replica, beta: Replica, objects: MemoryAssignments) -> None:
    first = image(alpha, beta)
    alpha.channels.point("stable", first, "alice")
    with Store(beta.config.store).writing():
        [said] = beta.channels.follow(objects.all(), NOW)
    assert said.startswith("channel stable stays as it is: ")
    assert beta.channels.follow(objects.all(), NOW) == []
    assert beta.stable == first


MEANWHILE = r"^channel stable was set, or the rollout ended, meanwhile$"


def ongoing(base: str, image: str) -> Rollout:
    return rollout().model_copy(update={"base": base, "image": image, "number": 7})


@pytest.mark.parametrize("known", [True, False])
def test_a_rollout_that_is_complete_moves_its_channel(alpha: Replica, objects: MemoryAssignments, known: bool) -> None:
    first, second = image(alpha), image(alpha, salt="2")
    if known:
        alpha.channels.point("stable", first, "alice")
    else:
        alpha.repository.point("stable", first)
    for _ in range(2):  # it was killed before that could be written of the rollout
        alpha.channels.complete(ongoing(first, second), lambda: True)
    assert (alpha.stable, objects.specs["stable"].who, objects.objects["stable"].image) == (second, "rollout 7", second)


def test_a_rollout_that_somebody_has_ended_moves_no_channel(alpha: Replica, objects: MemoryAssignments) -> None:
    first, second = image(alpha), image(alpha, salt="2")
    alpha.channels.point("stable", first, "alice")
    with pytest.raises(ClusterUnavailableError, match=MEANWHILE):
        alpha.channels.complete(ongoing(first, second), lambda: False)
    assert (alpha.stable, objects.objects["stable"].image) == (first, first)


@pytest.mark.parametrize("back", [True, False])
def test_of_a_person_and_a_rollout_that_set_a_channel_at_the_same_moment_the_person_is_right(
    alpha: Replica, beta: Replica, objects: MemoryAssignments, back: bool
) -> None:
    """Who sets it ends the rollout first, and may set it to what it is."""
    first, second, third = (image(alpha, beta, salt=salt) for salt in ("", "2", "3"))
    alpha.channels.point("stable", first, "alice")
    wanted = first if back else third

    def asked() -> bool:  # it is ended, and set, right after that was read
        beta.channels.point("stable", wanted, "bob")
        return True

    with pytest.raises(ClusterUnavailableError, match=MEANWHILE):
        alpha.channels.complete(ongoing(first, second), asked)
    with pytest.raises(ClusterUnavailableError, match=MEANWHILE):
        alpha.channels.complete(ongoing(first, second), lambda: False)
    assert objects.objects["stable"].image == wanted
    alpha.channels.follow(objects.all(), NOW)
    assert alpha.stable == wanted


def test_a_channel_that_was_moved_elsewhere_is_left(alpha: Replica, objects: MemoryAssignments) -> None:
    first, second, third = (image(alpha, salt=salt) for salt in ("", "2", "3"))
    alpha.channels.point("stable", third, "alice")
    with pytest.raises(ClusterUnavailableError, match=MEANWHILE):
        alpha.channels.complete(ongoing(first, second), lambda: True)
    assert objects.objects["stable"].image == third


def test_whether_a_write_was_done_that_was_not_answered_is_asked(alpha: Replica, objects: MemoryAssignments) -> None:
    first, second = image(alpha), image(alpha, salt="2")
    alpha.channels.point("stable", first, "alice")

    def lost() -> None:
        objects.before_write = lambda: None
        raise ClusterUnavailableError(AWAY)

    for digest in (first, second):
        objects.before_write = lost
        with pytest.raises(ClusterUnavailableError, match=AWAY):
            alpha.channels.point("stable", digest, "alice")
    assert objects.objects["stable"].generation == 1
