"""Rollouts that replicas share: two stores over the same objects, and who brings to one what the other did."""

import base64
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from netboot.join.errors import ClusterUnavailableError
from netboot.lifecycle.errors import NoSuchRolloutError, RolloutRefusedError
from netboot.lifecycle.packed_members import LARGEST, UnreadableError, packed, unpacked
from netboot.lifecycle.rollout import Assigned, Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_counts import counted
from netboot.lifecycle.rollout_objects import (
    RolloutObject,
    RolloutSaid,
    kept_object,
    rollout_object,
    spec_of,
)
from netboot.lifecycle.rollout_orders import cancelled
from netboot.lifecycle.rollout_store import Members, Note
from netboot.stores.known_orders import LATE_MS, UNTOLD_SECONDS
from netboot.stores.known_rollouts import OBJECTS
from netboot.stores.rollouts import SqliteRollouts, make
from netboot.stores.rollouts_here import RolloutsHere
from netboot.stores.shared_rollouts import TRIES, SharedRollouts
from tests.order_objects import AWAY
from tests.rollout_objects import MemoryRolloutObjects
from tests.rollouts import NEW, OLD, rollout

START = 1_767_225_600_000
NOW = START + 10 * LATE_MS
"""When these write."""
NOTE = Note(START, "alice", "start", "CVE")
CHANNELS: dict[str, str] = {}
"""Where they point, at whichever replica; nowhere."""


def members(*names: str, state: MemberState = MemberState.WAITING) -> Members:
    return {name: Member(machine=name, previous=OLD, state=state) for name in names}


def store(folder: Path, objects: MemoryRolloutObjects) -> SharedRollouts:
    folder.mkdir()
    make(folder / "rollouts.db").close()
    return SharedRollouts(folder / "rollouts.db", objects, CHANNELS.get, lambda: NOW)


@pytest.fixture
def objects() -> MemoryRolloutObjects:
    return MemoryRolloutObjects()


@pytest.fixture
def alpha(tmp_path: Path, objects: MemoryRolloutObjects) -> SharedRollouts:
    return store(tmp_path / "alpha", objects)


@pytest.fixture
def beta(tmp_path: Path, objects: MemoryRolloutObjects) -> SharedRollouts:
    return store(tmp_path / "beta", objects)


def of(channel: str) -> Rollout:
    return rollout().model_copy(update={"channel": channel, "started_ms": START})


def moved(state: MemberState, *names: str) -> Callable[[Rollout, Members], tuple[Rollout, Members]]:
    def change(begun: Rollout, those: Members) -> tuple[Rollout, Members]:
        return begun, those | {name: those[name].model_copy(update={"state": state}) for name in names}

    return change


def ended(state: RolloutState) -> Callable[[Rollout, Members], tuple[Rollout, Members]]:
    return lambda begun, those: (begun.model_copy(update={"state": state, "ended_ms": NOW}), those)


def follows(at: SharedRollouts, objects: MemoryRolloutObjects, as_of_ms: int = NOW + LATE_MS) -> None:
    at.follow([kept_object(each) for each in objects.kept()], as_of_ms)


def test_a_rollout_is_the_same_as_an_object_and_back() -> None:
    begun = of("stable").model_copy(
        update={
            "number": 7,
            "verdict": "too many failed",
            "blocked": 5,
            "clock_ms": 9,
            "reason": "CVE",
            "undoing": True,
        }
    )
    those = members("a", "b", state=MemberState.DONE)
    those["a"] = those["a"].model_copy(update={"rack": "R1", "position": 4, "boot": "x", "proved": True})
    said = RolloutSaid(begun, those, (NOTE,), released=True)
    spec = spec_of(said)
    assert (spec.done, spec.of) == (2, 2)
    found = rollout_object("7", "u", 3, spec.model_dump(mode="json", exclude_none=True), "v")
    assert found == RolloutObject(7, "u", 3, "v", said)


@pytest.mark.parametrize("name", ["0", "07", "7a", "-7", "٧", "1" * 16, ""])
def test_an_object_by_a_name_that_is_no_number_is_no_rollout(name: str) -> None:
    spec = spec_of(RolloutSaid(of("stable"), members("a"))).model_dump(mode="json", exclude_none=True)
    found = rollout_object(name, "u", 1, spec)
    assert (found.said, found.fault) == (None, f"rollout/{name}: metadata.name: must be a number")


def bombed(size: int) -> str:
    return base64.b64encode(zlib.compress(b"[" + b" " * size + b"]")).decode()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("?", "is not base64 of what zlib compressed: "),
        (base64.b64encode(b"no zlib").decode(), "is not base64 of what zlib compressed: "),
        (base64.b64encode(b"x").decode(), "is cut off, longer than it may be, or has more"),
        (base64.b64encode(zlib.compress(b"[]")[:-1]).decode(), "is cut off, longer than it may be, or has more"),
        (base64.b64encode(zlib.compress(b"[]") + b"x").decode(), "is cut off, longer than it may be, or has more"),
        (bombed(70 << 20), "is cut off, longer than it may be, or has more"),
        (base64.b64encode(zlib.compress(b'[{"machine": 1}]')).decode(), r"^0\.machine: "),
        (packed([*members("a").values(), *members("a").values()]), "has a machine twice"),
    ],
)
def test_machines_that_cannot_be_read(value: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        unpacked(value)


def test_a_rollout_of_more_machines_than_an_object_holds_is_refused(alpha: SharedRollouts) -> None:
    """Each with a boot of its own, which nothing compresses."""
    rng = random.Random(1)
    many = {
        f"m-{number}": Member(machine=f"m-{number}", previous=OLD, boot=f"{rng.getrandbits(192):048x}")
        for number in range(60_000)
    }
    with pytest.raises(RolloutRefusedError, match=r"^60,000 machines are more than a rollout can have: use several"):
        alpha.start(of("stable"), many, NOTE)
    assert len(packed(list(many.values())[:10_000])) < LARGEST


def test_what_one_began_another_has_and_changes_and_the_first_goes_on_from_there(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    begun = alpha.start(of("stable"), members("a", "b"), NOTE)
    follows(beta, objects)
    assert (beta.under_way(), beta.members(1)) == ([begun], members("a", "b"))
    assert beta.assigned() == {"a": Assigned("stable", OLD, 1), "b": Assigned("stable", OLD, 1)}
    assert beta.history(1, 9) == alpha.history(1, 9)
    beta.change(1, moved(MemberState.DONE, "a"), lambda *_: Note(START + 5, "netboot", "looked"))
    assert alpha.members(1) == members("a", "b"), "it was not told yet"
    alpha.change(1, moved(MemberState.ASSIGNED, "b"), lambda *_: None)
    both = members("a", state=MemberState.DONE) | members("b", state=MemberState.ASSIGNED)
    assert alpha.members(1) == both
    assert [each.act for each in alpha.history(1, 9)] == ["looked", "start"]
    follows(beta, objects)
    assert (beta.members(1), beta.listed(9)[0].counts) == (both, counted(both))
    assert [each.act for each in beta.history(1, 9)] == ["looked", "start"]


def test_who_goes_on_by_what_it_wrote_itself_asks_nothing(alpha: SharedRollouts, objects: MemoryRolloutObjects) -> None:
    alpha.start(of("stable"), members("a"), NOTE)
    asked = objects.asked
    alpha.change(1, lambda begun, those: (begun, those), lambda *_: None)
    assert objects.asked == asked
    alpha.change(1, moved(MemberState.DONE, "a"), lambda *_: None)
    assert objects.asked == asked + 1


def test_what_is_so_now_is_read(alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects) -> None:
    begun = alpha.start(of("stable"), members("a"), NOTE)
    alpha.change(1, moved(MemberState.DONE, "a"), lambda *_: None)
    assert (beta.now(1), beta.under_way()) == (begun, [])
    beta.refresh()
    assert beta.members(1) == members("a", state=MemberState.DONE)
    assert beta.behind() == ""
    with pytest.raises(NoSuchRolloutError):
        beta.now(2)


def test_of_two_that_begin_in_one_channel_at_the_same_moment_the_first_goes_on(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    def first() -> None:
        objects.before_write = lambda: None
        beta.start(of("stable"), members("b"), NOTE)

    objects.before_write = first
    with pytest.raises(RolloutRefusedError, match=r"^rollout 1 of channel stable is running: one"):
        alpha.start(of("stable"), members("a"), NOTE)
    assert list(objects.objects) == [1]
    assert (alpha.under_way(), [each.number for each in beta.under_way()]) == ([], [1])


def test_two_that_begin_in_two_channels_at_the_same_moment_have_two_numbers(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    def first() -> None:
        objects.before_write = lambda: None
        beta.start(of("other"), members("b"), NOTE)

    objects.before_write = first
    assert alpha.start(of("stable"), members("a"), NOTE).number == 2
    follows(alpha, objects)
    assert {each.number: each.channel for each in alpha.under_way()} == {1: "other", 2: "stable"}


def test_one_that_began_beside_another_and_was_left_there_is_nobodys_and_is_deleted(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    """Its replica was killed before it looked."""
    alpha.start(of("stable"), members("a"), NOTE)
    objects.write(2, spec_of(RolloutSaid(of("stable").model_copy(update={"number": 2}), members("a"))), None)
    follows(beta, objects)
    assert [each.number for each in beta.under_way()] == [1]
    beta.tidy(objects.all())
    assert list(objects.objects) == [1]


def test_of_ended_ones_the_last_stay_as_objects_and_those_of_a_channel_that_have_a_say(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    for number in range(1, OBJECTS + 5):
        assert alpha.start(of("other" if number == 1 else "stable"), members("a"), NOTE).number == number
        alpha.change(number, ended(RolloutState.UNDONE), lambda *_: None)
    alpha.tidy(objects.all())
    assert list(objects.objects) == [1, *range(4, OBJECTS + 5)]
    follows(alpha, objects)
    assert len(alpha.listed(99)) == OBJECTS + 4, "they are known where they were"
    follows(beta, objects)
    assert alpha.start(of("stable"), members("a"), NOTE).number == OBJECTS + 5


def test_who_was_away_while_a_rollout_ended_and_another_began_knows_that(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    alpha.start(of("stable"), members("a"), NOTE)
    follows(beta, objects)
    alpha.change(1, ended(RolloutState.COMPLETE), lambda *_: None)
    alpha.start(of("stable"), members("a"), NOTE)
    assert [each.number for each in beta.under_way()] == [1]
    follows(beta, objects)
    assert [each.number for each in beta.under_way()] == [2]
    assert beta.rollout(1).state is RolloutState.COMPLETE


def test_a_list_of_a_moment_before_takes_nothing_back(alpha: SharedRollouts, objects: MemoryRolloutObjects) -> None:
    alpha.start(of("stable"), members("a"), NOTE)
    before = objects.kept()
    alpha.change(1, ended(RolloutState.UNDONE), lambda *_: None)
    alpha.start(of("other"), members("b"), NOTE)
    alpha.follow([kept_object(each) for each in before], NOW + LATE_MS - 1)
    assert [each.number for each in alpha.under_way()] == [2]
    follows(alpha, objects)
    assert [each.number for each in alpha.under_way()] == [2]


def test_after_a_restore_of_the_api_server_what_its_objects_say_counts(
    alpha: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    alpha.start(of("stable"), members("a"), NOTE)
    backup = dict(objects.objects)
    alpha.change(1, ended(RolloutState.UNDONE), lambda *_: None)
    objects.objects = backup
    follows(alpha, objects, NOW + LATE_MS - 1)
    assert alpha.under_way() == []
    follows(alpha, objects)
    assert [each.number for each in alpha.under_way()] == [1]


def test_a_rollout_whose_object_is_deleted_ends_and_assigns_nothing(
    alpha: SharedRollouts, objects: MemoryRolloutObjects, caplog: pytest.LogCaptureFixture
) -> None:
    alpha.start(of("stable"), members("a"), NOTE)
    objects.objects.clear()
    follows(alpha, objects, NOW + LATE_MS - 1)
    assert alpha.assigned().keys() == {"a"}
    follows(alpha, objects)
    assert (alpha.under_way(), alpha.assigned()) == ([], {})
    assert (alpha.rollout(1).state, alpha.rollout(1).why) == (RolloutState.CANCELLED, "its object was deleted")
    assert "rollout 1 of channel stable has ended: its object was deleted" in caplog.text
    with pytest.raises(NoSuchRolloutError):
        alpha.change(9, moved(MemberState.DONE), lambda *_: None)


def test_what_is_released_is_so_everywhere(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    alpha.start(of("stable"), members("a", state=MemberState.FAILED), NOTE)
    beta.release("stable")
    alpha.change(1, ended(RolloutState.COMPLETE), lambda *_: None)
    follows(beta, objects)
    assert beta.assigned() == alpha.assigned() == {"a": Assigned("stable", OLD, 1)}
    beta.release("stable")
    beta.release("none")
    assert beta.assigned() == {}
    follows(alpha, objects)
    assert alpha.assigned() == {}


def test_a_rollout_that_is_complete_is_so_here_once_its_channel_points_to_its_image(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha.start(of("stable"), members("a", state=MemberState.DONE), NOTE)
    follows(beta, objects)
    assert beta.assigned() == {"a": Assigned("stable", NEW, 1)}
    alpha.change(1, ended(RolloutState.COMPLETE), lambda *_: None)
    alpha.start(of("stable"), members("b"), NOTE)
    alpha.start(of("other"), members("c"), NOTE)
    words = "rollout 1 is complete elsewhere, and channel stable does not point to its image here yet"
    monkeypatch.setitem(CHANNELS, "stable", OLD)
    assert beta.follow([kept_object(each) for each in objects.kept()], NOW + LATE_MS) == [words]
    assert [each.number for each in beta.under_way()] == [1, 3]
    assert beta.assigned()["a"].image == NEW
    monkeypatch.setitem(CHANNELS, "stable", NEW)
    assert beta.follow([kept_object(each) for each in objects.kept()], NOW + LATE_MS) == []
    assert [each.number for each in beta.under_way()] == [2, 3]


def test_a_rollout_whose_channel_was_moved_back_by_hand_since_waits_for_nothing(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha.start(of("stable"), members("a", state=MemberState.DONE), NOTE)
    follows(beta, objects)
    alpha.change(1, ended(RolloutState.COMPLETE), lambda *_: None)
    alpha.release("stable")
    monkeypatch.setitem(CHANNELS, "stable", OLD)
    follows(beta, objects)
    assert (beta.under_way(), beta.assigned()) == ([], {})


@pytest.mark.parametrize(
    ("as_of_ms", "words"),
    [
        (None, "has not been read yet: "),
        (NOW - UNTOLD_SECONDS * 1000, ""),
        (NOW - UNTOLD_SECONDS * 1000 - 1, f"was read {UNTOLD_SECONDS} s ago: "),
    ],
)
def test_how_old_what_others_did_about_rollouts_may_be(alpha: SharedRollouts, as_of_ms: int | None, words: str) -> None:
    if as_of_ms is not None:
        alpha.follow([], as_of_ms)
    see = "see `resources` and `rollouts` of `netboot doctor`"
    assert alpha.behind() == (f"what other replicas did about rollouts, {words}{see}" if words else "")


def test_one_that_began_before_rollouts_were_objects_goes_on_here(
    alpha: SharedRollouts, objects: MemoryRolloutObjects, tmp_path: Path
) -> None:
    SqliteRollouts(tmp_path / "alpha" / "rollouts.db").start(of("stable"), members("a"), NOTE)
    follows(alpha, objects)
    assert alpha.unshared() == alpha.under_way() != []
    with pytest.raises(RolloutRefusedError, match=r"^rollout 1 of channel stable is running"):
        alpha.start(of("stable"), members("a"), NOTE)
    alpha.change(1, moved(MemberState.DONE, "a"), lambda *_: None)
    assert alpha.members(1) == members("a", state=MemberState.DONE)
    alpha.change(1, ended(RolloutState.COMPLETE), lambda *_: None)
    alpha.release("stable")
    assert (alpha.assigned(), objects.objects) == ({}, {})
    assert alpha.start(of("stable"), members("a"), NOTE).number == 2
    assert alpha.unshared() == []


def test_another_one_of_that_number_takes_its_place_once_it_has_ended(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects, tmp_path: Path
) -> None:
    SqliteRollouts(tmp_path / "alpha" / "rollouts.db").start(of("stable"), members("a"), NOTE)
    beta.start(of("other"), members("b"), NOTE)
    words = "rollout/1: there is another 1 here, of before replicas shared any: `netboot channel set --force` ends that"
    assert alpha.follow([kept_object(each) for each in objects.kept()], NOW + LATE_MS) == [words]
    assert [each.channel for each in alpha.under_way()] == ["stable"]
    alpha.change(1, ended(RolloutState.CANCELLED), lambda *_: None)
    follows(alpha, objects)
    assert [(each.channel, each.number) for each in alpha.under_way()] == [("other", 1)]
    assert alpha.members(1) == beta.members(1)


def test_where_the_api_server_is_away_nothing_changes_and_what_is_so_is_known(
    alpha: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    begun = alpha.start(of("stable"), members("a"), NOTE)
    objects.away = True
    acts: list[Callable[[], object]] = [
        lambda: alpha.start(of("other"), members("a"), NOTE),
        lambda: alpha.change(1, moved(MemberState.DONE, "a"), lambda *_: None),
    ]
    for act in acts:
        with pytest.raises(ClusterUnavailableError, match=AWAY):
            act()
    assert (alpha.under_way(), alpha.members(1)) == ([begun], members("a"))


def test_what_was_written_and_not_answered_is_asked_and_was_done(
    alpha: SharedRollouts, objects: MemoryRolloutObjects
) -> None:
    objects.unheard = True
    assert alpha.start(of("stable"), members("a"), NOTE).number == 1
    alpha.change(1, moved(MemberState.DONE, "a"), lambda *_: None)
    assert alpha.members(1) == members("a", state=MemberState.DONE)


def test_what_others_change_all_the_time_is_said(alpha: SharedRollouts, objects: MemoryRolloutObjects) -> None:
    alpha.start(of("stable"), members("a"), NOTE)
    tried = []

    def meanwhile() -> None:
        tried.append(1)
        there = objects.objects[1]
        objects.objects[1] = there._replace(version=f"other-{len(tried)}")

    objects.before_write = meanwhile
    with pytest.raises(ClusterUnavailableError, match=r"^rollout 1 is changed by others all the time: try again$"):
        alpha.change(1, moved(MemberState.DONE, "a"), lambda *_: None)
    assert len(tried) == TRIES


def test_an_object_that_cannot_be_read_changes_nothing(alpha: SharedRollouts, objects: MemoryRolloutObjects) -> None:
    begun = alpha.start(of("stable"), members("a"), NOTE)
    [kept] = objects.kept()
    bad = kept.model_copy(update={"spec": {**kept.spec, "members": "?"}, "generation": 9})
    objects.objects[1] = kept_object(bad)._replace(version="other")
    alpha.follow([kept_object(bad)], NOW + LATE_MS)
    assert alpha.under_way() == [begun]
    with pytest.raises(
        ClusterUnavailableError, match=r"^rollout/1: spec.members: is not base64 .*: correct it there; "
    ):
        alpha.change(1, moved(MemberState.DONE, "a"), lambda *_: None)


def here(tmp_path: Path) -> RolloutsHere:
    return RolloutsHere(tmp_path / "alpha" / "rollouts.db", lambda: NOW)


def cancelled_by_alice(begun: Rollout, those: Members) -> tuple[Rollout, Members]:
    return cancelled(begun, "channel set by alice", NOW), those


def test_what_is_ended_here_alone_is_so_until_the_api_server_says_again_what_it_is(
    alpha: SharedRollouts, objects: MemoryRolloutObjects, tmp_path: Path
) -> None:
    begun = alpha.start(of("stable"), members("a"), NOTE)
    follows(alpha, objects)
    here(tmp_path).change(1, cancelled_by_alice, lambda *_: None)
    follows(alpha, objects, NOW + LATE_MS - 1)
    assert (alpha.under_way(), alpha.assigned()) == ([], {})
    follows(alpha, objects)
    assert (alpha.under_way(), set(alpha.assigned())) == ([begun], {"a"})
    follows(alpha, objects)
    assert alpha.under_way() == [begun]


def test_a_word_that_is_newer_than_what_was_done_here_alone_counts_at_once(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects, tmp_path: Path
) -> None:
    alpha.start(of("stable"), members("a"), NOTE)
    follows(beta, objects)
    here(tmp_path).change(1, cancelled_by_alice, lambda *_: None)
    beta.change(1, moved(MemberState.DONE, "a"), lambda *_: None)
    follows(alpha, objects, NOW)
    assert alpha.members(1) == members("a", state=MemberState.DONE)
    assert [each.number for each in alpha.under_way()] == [1]


def test_what_was_ended_here_alone_is_ended_for_all_by_whoever_sets_the_channel_again(
    alpha: SharedRollouts, beta: SharedRollouts, objects: MemoryRolloutObjects, tmp_path: Path
) -> None:
    alpha.start(of("stable"), members("a"), NOTE)
    follows(beta, objects)
    here(tmp_path).change(1, cancelled_by_alice, lambda *_: None)
    alpha.release("stable")
    follows(beta, objects)
    assert (beta.under_way(), beta.rollout(1).why) == ([], "channel set by alice")
    assert alpha.rollout(1) == beta.rollout(1)


def test_what_is_released_here_alone_is_so_until_the_api_server_says_again_what_it_is(
    alpha: SharedRollouts, objects: MemoryRolloutObjects, tmp_path: Path
) -> None:
    alpha.start(of("stable"), members("a", state=MemberState.FAILED), NOTE)
    alpha.change(1, ended(RolloutState.COMPLETE), lambda *_: None)
    here(tmp_path).release("stable")
    follows(alpha, objects, NOW + LATE_MS - 1)
    assert alpha.assigned() == {}
    follows(alpha, objects)
    assert alpha.assigned().keys() == {"a"}
