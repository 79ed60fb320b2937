"""Rollouts, and where channels point, that replicas share: two stores over the same objects, and who brings to one what
the other did."""

import base64
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

import pytest

from images.store.store import Store
from images.values.types import NAME
from netboot.config import Config
from netboot.join.errors import ClusterUnavailableError
from netboot.lifecycle.errors import NoSuchRolloutError, RolloutRefusedError, StateUnavailableError
from netboot.lifecycle.packed_members import LARGEST, UnreadableError, have_room, packed, unpacked
from netboot.lifecycle.rollout import Assigned, Member, MemberState, Rollout, RolloutState
from netboot.lifecycle.rollout_counts import counted
from netboot.lifecycle.rollout_objects import COPY, RolloutSaid, Said, kept_object, rollout_object, said_of, spec_of
from netboot.lifecycle.rollout_orders import cancelled
from netboot.lifecycle.rollout_specs import LAST_NUMBER
from netboot.lifecycle.rollout_store import Members, Note
from netboot.machines.resources import Resource
from netboot.stores.image_repository import StoreImageRepository, open_image_repository
from netboot.stores.known_orders import LATE_MS, UNTOLD_SECONDS
from netboot.stores.known_rollouts import ALONE, GONE, MISSED, OF_TWO
from netboot.stores.rollout_rows import KEPT
from netboot.stores.rollouts import make
from netboot.stores.shared_rollouts import NOT_THERE, SET, TRIES, SharedRollouts
from tests.order_objects import AWAY
from tests.rollout_objects import MemoryRolloutObjects, resource
from tests.rollouts import rollout
from tests.sites import add_image, make_site

START = 1_767_225_600_000
NOW = START + 10 * LATE_MS
"""When these write."""
NOTE = Note(START, "alice", "start", "CVE")
LATER = NOW + LATE_MS
"""What was read of all by then is surely of after what was written."""


class Replica(NamedTuple):
    config: Config
    repository: StoreImageRepository
    store: SharedRollouts
    objects: MemoryRolloutObjects

    def follow(self, as_of_ms: int = LATER) -> list[str]:
        return self.store.follow([kept_object(each) for each in self.objects.kept()], as_of_ms)

    @property
    def stable(self) -> str | None:
        """Where the channel points here, for machines that boot."""
        return self.repository.channel("stable")


class Site(NamedTuple):
    """Two replicas, which have the same images; the channel points to `old` at both, and no object says so. `clock`: of
    both, in one place."""

    clock: list[int]
    objects: MemoryRolloutObjects
    alpha: Replica
    beta: Replica
    old: str
    new: str
    third: str
    present: dict[str, str]
    """Former name → the name of now, of machines."""

    def of(self, channel: str = "stable", image: str = "", base: str = "") -> Rollout:
        which = {"image": image or self.new, "base": base or self.old, "channel": channel}
        return rollout().model_copy(update=which | {"started_ms": self.clock[0]})

    def members(self, *names: str, state: MemberState = MemberState.WAITING) -> Members:
        return {name: Member(machine=name, previous=self.old, state=state) for name in names}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    clock, objects, present = [NOW], MemoryRolloutObjects(), dict[str, str]()
    replicas, images = list[Replica](), list[list[str]]()
    for name in ("alpha", "beta"):
        (tmp_path / name).mkdir()
        config = make_site(tmp_path / name)
        config.data.mkdir()
        if replicas:
            copytree(replicas[0].config.keys, config.keys, dirs_exist_ok=True)
        images.append([add_image(config, name=image, salt=image) for image in ("old", "new", "third")])
        repository = open_image_repository(config)
        for channel in ("stable", "other"):
            repository.point(channel, images[0][0])
        make(config.data / "shared-rollouts.db").close()
        store = SharedRollouts(
            config.data / "shared-rollouts.db", objects, repository, lambda: present, lambda: clock[0]
        )
        replicas.append(Replica(config, repository, store, objects))
    assert images[0] == images[1]
    (alpha, beta), (old, new, third) = replicas, images[0]
    return Site(clock, objects, alpha, beta, old, new, third, present)


@pytest.fixture
def alpha(site: Site) -> Replica:
    return site.alpha


@pytest.fixture
def beta(site: Site) -> Replica:
    return site.beta


def begun(site: Site, at: Replica, *names: str, state: MemberState = MemberState.WAITING, **which: str) -> Rollout:
    return at.store.start(site.of(**which), site.members(*(names or ("a",)), state=state), NOTE)


def moved(state: MemberState, *names: str) -> Callable[[Rollout, Members], tuple[Rollout, Members]]:
    def change(was: Rollout, those: Members) -> tuple[Rollout, Members]:
        return was, those | {name: those[name].model_copy(update={"state": state}) for name in names}

    return change


def ended(state: RolloutState) -> Callable[[Rollout, Members], tuple[Rollout, Members]]:
    return lambda was, those: (was.model_copy(update={"state": state, "ended_ms": NOW}), those)


def nothing(*_: object) -> None:
    """No line in the history."""


def said(objects: MemoryRolloutObjects, channel: str = "stable") -> Said:
    spec = objects.objects[channel].spec
    assert spec is not None
    return said_of(spec, {})


# -- what an object says


def test_a_rollout_is_the_same_as_an_object_and_back(site: Site) -> None:
    more = {"verdict": "too many failed", "blocked": 5, "clock_ms": 9, "reason": "CVE", "undoing": True, "number": 7}
    those = site.members("a", "b", state=MemberState.DONE)
    those["a"] = those["a"].model_copy(update={"rack": "R1", "position": 4, "boot": "x", "proved": True})
    for rollout_ in (None, RolloutSaid(site.of().model_copy(update=more), those, (NOTE,), released=True)):
        meant = Said(site.old, "old", "alice", START, rollout_)
        spec = spec_of(meant)
        assert said_of(spec, {}) == meant
        found = rollout_object("stable", "u", 3, spec.model_dump(mode="json", exclude_none=True), "v")
        assert (found.spec, found.fault) == (spec, "")
    assert spec.rollout is not None
    assert (spec.rollout.done, spec.rollout.of) == (2, 2)


def test_an_object_that_is_none_says_why(site: Site) -> None:
    spec = spec_of(Said(site.old, "old", "alice", START)).model_dump(mode="json", exclude_none=True)
    bad = [
        rollout_object("Stable!", "u", 1, spec),
        rollout_object("stable", "u", 1, spec | {"image": "x"}),
        kept_object(Resource(kind="rollout", name="a", shown="rollout/a", spec=None, refused="is too large")),
    ]
    assert [each.fault for each in bad] == [
        f"rollout/Stable!: metadata.name: {NAME.message}",
        "rollout/stable: spec.image: must be a SHA-256 digest: 64 lower-case hexadecimal characters",
        "rollout/a: spec: is too large",
    ]


def bombed(size: int) -> str:
    return base64.b64encode(zlib.compress(b"[" + b" " * size + b"]")).decode()


ONE = b'{"machine":"a","previous":"%s"},' % (b"0" * 64)
CUT_OFF = "is cut off, longer than it may be, or has more"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("?", "is not base64 of what zlib compressed: "),
        ("\u00e9", "is not base64 of what zlib compressed: "),
        (base64.b64encode(b"no zlib").decode(), "is not base64 of what zlib compressed: "),
        (base64.b64encode(b"x").decode(), CUT_OFF),
        (base64.b64encode(zlib.compress(b"[]")[:-1]).decode(), CUT_OFF),
        (base64.b64encode(zlib.compress(b"[]") + b"x").decode(), CUT_OFF),
        (bombed(12 << 20), CUT_OFF),
        (base64.b64encode(zlib.compress(b"[" + b"0," * 50_000 + b"0]")).decode(), r"^0: "),
        (base64.b64encode(zlib.compress(b"[" + ONE * 50_000 + ONE[:-1] + b"]")).decode(), r": .*50000"),
        (base64.b64encode(zlib.compress(b'[{"machine": 1}]')).decode(), r"^0\.machine: "),
        (packed([Member(machine="a", previous="0" * 64)] * 2), "has a machine twice"),
    ],
)
def test_machines_that_cannot_be_read(value: str, why: str) -> None:
    with pytest.raises(UnreadableError, match=why):
        unpacked(value)


def test_as_many_machines_begin_as_an_object_holds_in_the_end(site: Site, alpha: Replica) -> None:
    def many(count: int) -> Members:
        return site.members(*(f"node-{number:05}" for number in range(count)))

    have_room(many(15_000).values())
    with pytest.raises(RolloutRefusedError, match=r"^20,000 machines are more than a rollout can have: use several"):
        alpha.store.start(site.of(), many(20_000), NOTE)
    assert site.objects.objects == {}
    chance = random.Random(1)
    over = [
        each.model_copy(update={"boot": f"{chance.getrandbits(128):036x}", "served": f"{chance.getrandbits(128):036x}"})
        for each in many(15_000).values()
    ]
    assert 0.6 * LARGEST < len(packed(over)) <= LARGEST


def test_words_give_way_where_machines_would_not_fit_with_them(site: Site) -> None:
    chance = random.Random(1)
    those = [
        each.model_copy(update={"why": f"{chance.getrandbits(1200):0300x}", "boot": f"{chance.getrandbits(128):036x}"})
        for each in site.members(*(f"node-{number:05}" for number in range(15_000))).values()
    ]
    found = unpacked(packed(those))
    assert (len(found), {each.why for each in found.values()}) == (15_000, {""})
    assert [each.boot for each in found.values()] == [each.boot for each in those]
    assert unpacked(packed(those[:9])) == {each.machine: each for each in those[:9]}


# -- begin, change, end


def test_what_one_began_another_has_and_changes_and_the_first_goes_on_from_there(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    first = begun(site, alpha, "a", "b")
    assert beta.follow() == []
    assert (beta.store.under_way(), beta.store.members(1)) == ([first], site.members("a", "b"))
    assert beta.store.assigned() == {name: Assigned("stable", site.old, 1) for name in ("a", "b")}
    assert beta.store.history(1, 9) == alpha.store.history(1, 9)
    beta.store.change(1, moved(MemberState.DONE, "a"), lambda *_: Note(START + 5, "netboot", "looked"))
    assert alpha.store.members(1) == site.members("a", "b"), "it was not told yet"
    alpha.store.change(1, moved(MemberState.ASSIGNED, "b"), nothing)
    both = site.members("a", state=MemberState.DONE) | site.members("b", state=MemberState.ASSIGNED)
    assert alpha.store.members(1) == both
    assert [each.act for each in alpha.store.history(1, 9)] == ["looked", "start"]
    beta.follow()
    assert (beta.store.members(1), beta.store.listed(9)[0].counts) == (both, counted(both))
    assert [each.act for each in beta.store.history(1, 9)] == ["looked", "start"]


def test_who_goes_on_by_what_it_wrote_itself_asks_nothing(site: Site, alpha: Replica) -> None:
    begun(site, alpha)
    asked = site.objects.asked
    alpha.store.change(1, lambda was, those: (was, those), nothing)
    assert site.objects.asked == asked
    alpha.store.change(1, moved(MemberState.DONE, "a"), nothing)
    assert site.objects.asked == asked + 1


def test_of_two_that_begin_in_one_channel_at_the_same_moment_one_does(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    def first() -> None:
        site.objects.before_write = lambda: None
        begun(site, beta, "b")

    site.objects.before_write = first
    with pytest.raises(RolloutRefusedError, match=r"^rollout 2 of channel stable is running: one"):
        begun(site, alpha)
    alpha.follow()
    assert [each.number for each in alpha.store.under_way()] == [2]
    assert alpha.store.members(2).keys() == {"b"}


def test_two_that_begin_in_two_channels_at_the_same_moment_have_two_numbers(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    def first() -> None:
        site.objects.before_write = lambda: None
        begun(site, beta, "b", channel="other")

    site.objects.before_write = first
    begun(site, alpha)
    alpha.follow()
    assert {each.channel: each.number for each in alpha.store.under_way()} == {"stable": 1, "other": 2}


def test_a_number_is_above_all_that_are_there(site: Site, alpha: Replica, beta: Replica) -> None:
    site.objects.numbers = 6
    begun(site, beta, channel="other")
    site.objects.numbers = 0  # the ConfigMap was made anew
    assert begun(site, alpha).number == 8


def test_what_others_ended_and_began_anew_is_over_for_who_has_not_heard_of_it(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    begun(site, alpha)
    beta.store.point("stable", site.old, "bob", end=True)
    begun(site, beta, image=site.third)
    seen = list[bool]()

    def look(was: Rollout, those: Members) -> tuple[Rollout, Members]:
        seen.append(was.under_way)
        return (was, those) if not was.under_way else moved(MemberState.ASSIGNED, "a")(was, those)

    assert alpha.store.change(1, look, nothing).why == MISSED
    assert (seen, [each.number for each in alpha.store.under_way()]) == ([True, False], [2]), (
        "the first look was by what it knew, and was not written"
    )
    assert alpha.store.assigned() == {"a": Assigned("stable", site.old, 2)}


def test_who_has_heard_of_nothing_yet_cannot_tell_what_is_assigned(site: Site, alpha: Replica, beta: Replica) -> None:
    begun(site, alpha)
    for ask in (beta.store.assigned, beta.store.images):
        with pytest.raises(
            StateUnavailableError, match=r"^what other replicas did about rollouts, has not been read yet"
        ):
            ask()
    beta.store.alone("other", site.third, "bob")
    assert beta.store.assigned() == {}, "it was set by force, whatever others did"
    beta.follow()
    assert beta.store.assigned().keys() == {"a"}


def test_a_number_is_above_all_that_are_known_here(site: Site, alpha: Replica) -> None:
    site.objects.numbers = 40
    assert begun(site, alpha).number == 41
    site.objects.numbers = 0  # the ConfigMap was made anew
    assert begun(site, alpha, channel="other").number == 42


def test_where_a_channel_was_set_meanwhile_nothing_begins(site: Site, alpha: Replica, beta: Replica) -> None:
    beta.store.point("stable", site.third, "bob")
    with pytest.raises(RolloutRefusedError) as caught:
        begun(site, alpha)
    assert str(caught.value) == SET.format("stable")
    alpha.follow()
    assert begun(site, alpha, base=site.third).base == site.third


def test_what_is_complete_moves_its_channel_in_the_same_write(site: Site, alpha: Replica, beta: Replica) -> None:
    begun(site, alpha, state=MemberState.DONE)
    beta.follow()
    alpha.store.change(1, ended(RolloutState.COMPLETE), nothing)
    now = said(site.objects)
    assert (now.image, now.image_name, now.who, now.since_ms) == (site.new, rollout().image_name, "rollout 1", NOW)
    assert (alpha.stable, alpha.store.channel("stable")) == (site.new, site.new)
    assert (beta.stable, beta.store.assigned()["a"].image) == (site.old, site.new)
    beta.follow()
    assert (beta.stable, beta.store.assigned(), beta.store.under_way()) == (site.new, {}, [])
    assert beta.store.rollout(1).state is RolloutState.COMPLETE


def test_what_is_undone_leaves_its_channel(site: Site, alpha: Replica) -> None:
    begun(site, alpha)
    alpha.store.change(1, ended(RolloutState.UNDONE), nothing)
    assert (said(site.objects).image, alpha.stable) == (site.old, site.old)


def test_what_one_ends_another_completes_no_more(site: Site, alpha: Replica, beta: Replica) -> None:
    """Whoever was first is right, and the channel is as he left it."""
    begun(site, alpha, state=MemberState.DONE)
    beta.follow()
    beta.store.change(1, lambda was, those: (cancelled(was, "channel set by bob", NOW), those), nothing)
    beta.store.point("stable", site.old, "bob")

    def look(was: Rollout, those: Members) -> tuple[Rollout, Members]:
        return (was.model_copy(update={"state": RolloutState.COMPLETE}), those) if was.under_way else (was, those)

    assert alpha.store.change(1, look, nothing).state is RolloutState.CANCELLED
    assert (said(site.objects).image, alpha.stable) == (site.old, site.old)


def test_one_of_before_has_ended_whatever_is_asked_of_it(site: Site, alpha: Replica) -> None:
    begun(site, alpha)
    alpha.store.change(1, ended(RolloutState.UNDONE), nothing)
    begun(site, alpha)
    assert alpha.store.change(1, lambda was, those: (was, those), nothing).state is RolloutState.UNDONE
    assert [each.number for each in alpha.store.under_way()] == [2]
    with pytest.raises(NoSuchRolloutError):
        alpha.store.change(9, moved(MemberState.DONE), nothing)


# -- set by a person


def test_what_is_set_at_one_replica_is_so_at_all(site: Site, alpha: Replica, beta: Replica) -> None:
    alpha.store.point("stable", site.new, "alice\n")
    assert said(site.objects) == Said(site.new, "new", "alice ", NOW)
    assert (alpha.stable, beta.stable) == (site.new, site.old)
    assert beta.follow() == []
    assert beta.stable == site.new
    beta.store.point("stable", site.third, "bob")
    assert alpha.follow() == []
    assert (alpha.stable, beta.stable) == (site.third, site.third)


def test_what_was_left_assigned_is_released_by_it_everywhere(site: Site, alpha: Replica, beta: Replica) -> None:
    begun(site, alpha, state=MemberState.FAILED)
    alpha.store.change(1, ended(RolloutState.COMPLETE), nothing)
    beta.follow()
    assert beta.store.assigned() == alpha.store.assigned() == {"a": Assigned("stable", site.old, 1)}
    beta.store.point("stable", site.new, "bob")
    assert beta.store.assigned() == {}
    alpha.follow()
    assert alpha.store.assigned() == {}


def test_while_a_rollout_is_under_way_nobody_sets_its_channel(site: Site, alpha: Replica, beta: Replica) -> None:
    begun(site, alpha)
    with pytest.raises(RolloutRefusedError, match=r"^rollout 1 of channel stable is running"):
        beta.store.point("stable", site.third, "bob")
    assert (said(site.objects).image, beta.stable) == (site.old, site.old)


def test_of_two_that_set_one_at_the_same_moment_the_last_is_so_everywhere(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    def meanwhile() -> None:
        site.objects.before_write = lambda: None
        beta.store.point("stable", site.third, "bob")

    site.objects.before_write = meanwhile
    alpha.store.point("stable", site.new, "alice")
    beta.follow()
    assert (alpha.stable, beta.stable) == (site.new, site.new)


# -- alone


def test_what_is_set_here_alone_stays_until_somebody_sets_it_for_all(site: Site, alpha: Replica, beta: Replica) -> None:
    begun(site, alpha)
    beta.follow()
    site.objects.away = True
    for act in (
        lambda: beta.store.point("stable", site.third, "bob"),
        lambda: beta.store.start(site.of(channel="other"), site.members("b"), NOTE),
        lambda: beta.store.change(1, moved(MemberState.DONE, "a"), nothing),
        beta.store.refresh,
    ):
        with pytest.raises(ClusterUnavailableError, match=AWAY):
            act()
    assert (beta.stable, [each.number for each in beta.store.under_way()]) == (site.old, [1])
    assert beta.store.alone("stable", site.third, "bob") == [1]
    assert (beta.stable, beta.store.under_way(), beta.store.assigned()) == (site.third, [], {})
    assert beta.store.rollout(1).why == "channel set by bob, at this replica alone"
    site.objects.away = False
    alpha.store.change(1, moved(MemberState.DONE, "a"), nothing)
    for _ in range(2):
        assert beta.follow(LATER + LATE_MS) == [ALONE.format("stable")]
        assert (beta.stable, beta.store.under_way(), beta.store.assigned()) == (site.third, [], {})
        assert beta.store.behind().endswith(ALONE.format("stable"))
        beta.store.refresh()
    site.clock[0] += 1
    alpha.store.change(1, ended(RolloutState.UNDONE), nothing)
    assert beta.follow(LATER + LATE_MS) == [ALONE.format("stable")], "it ended by itself"
    alpha.store.point("stable", site.old, "alice")
    assert beta.follow(LATER + LATE_MS) == []
    assert (beta.stable, beta.store.channel("stable"), beta.store.behind()) == (site.old, site.old, "")


def test_what_is_set_here_alone_stays_where_the_rollout_of_then_is_complete(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    begun(site, alpha, state=MemberState.DONE)
    beta.follow()
    beta.store.alone("stable", site.old, "bob")
    site.clock[0] += 1
    alpha.store.change(1, ended(RolloutState.COMPLETE), nothing)
    assert beta.follow() == [ALONE.format("stable")]
    assert (alpha.stable, beta.stable, beta.store.channel("stable")) == (site.new, site.old, site.old)
    with pytest.raises(RolloutRefusedError) as caught:
        begun(site, beta)
    assert str(caught.value) == ALONE.format("stable")
    site.clock[0] += 1
    begun(site, alpha, base=site.new, image=site.third)
    assert beta.follow(LATER + LATE_MS) == []
    assert (beta.stable, [each.number for each in beta.store.under_way()]) == (site.new, [2])


def test_what_is_set_here_alone_stays_whatever_is_done_to_the_rollout_of_then(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    begun(site, alpha)
    beta.follow()
    beta.store.alone("stable", site.third, "bob")
    beta.store.change(1, lambda was, those: (was.model_copy(update={"state": RolloutState.PAUSED}), those), nothing)
    assert (beta.stable, beta.store.assigned(), beta.store.behind()[-40:]) == (site.third, {}, ALONE.format("")[-40:])
    last = said(site.objects).rollout
    assert last is not None
    assert last.rollout.state is RolloutState.PAUSED


def test_what_is_set_here_alone_stays_where_a_rollout_of_before_that_nobody_here_knew_is_complete(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    alpha.store.point("stable", site.old, "alice")
    beta.follow()
    begun(site, alpha, state=MemberState.DONE)
    site.clock[0] += 1
    beta.store.alone("stable", site.third, "bob")
    assert beta.follow() == [ALONE.format("stable")]
    site.clock[0] += 1
    alpha.store.change(1, ended(RolloutState.COMPLETE), nothing)
    assert (beta.follow(), beta.stable) == ([ALONE.format("stable")], site.third)
    site.clock[0] += 1
    begun(site, alpha, base=site.new, image=site.old, state=MemberState.DONE)
    alpha.store.change(2, ended(RolloutState.COMPLETE), nothing)
    assert (beta.follow(), beta.stable) == ([], site.old)


def test_what_was_done_before_is_no_reason_to_give_up_what_is_set_here_alone(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    alpha.store.point("stable", site.old, "alice")
    beta.follow()
    site.clock[0] += 1
    begun(site, alpha, state=MemberState.DONE)
    site.clock[0] += 1
    assert beta.store.alone("stable", site.third, "bob") == []
    assert (beta.follow(), beta.stable) == ([ALONE.format("stable")], site.third)


def test_where_what_others_did_cannot_be_written_down_a_channel_is_set_all_the_same(site: Site, alpha: Replica) -> None:
    (alpha.config.data / "shared-rollouts.db").write_bytes(b"no database" * 100)
    assert alpha.store.point("stable", site.new, "alice") == []
    assert (alpha.stable, said(site.objects).image) == (site.new, site.new)
    assert alpha.store.alone("stable", site.third, "alice") is None
    assert alpha.stable == site.third


def test_who_sets_it_again_ends_the_rollout_for_all(site: Site, alpha: Replica, beta: Replica) -> None:
    begun(site, alpha)
    beta.follow()
    beta.store.alone("stable", site.third, "bob")
    with pytest.raises(RolloutRefusedError):
        beta.store.point("stable", site.third, "bob")
    site.clock[0] += 1
    assert beta.store.point("stable", site.third, "bob", end=True) == [1]
    assert beta.store.point("stable", site.third, "bob", end=True) == []
    assert ALONE.format("stable") not in beta.store.behind()
    alpha.follow()
    assert (alpha.stable, beta.stable) == (site.third, site.third)
    for each in (alpha, beta):
        assert (each.store.under_way(), each.store.rollout(1).why) == ([], "channel set by bob")
        assert each.store.history(1, 1)[0].act == "channel set"


def test_a_channel_that_no_object_says_anything_of_is_set_alone_until_one_does(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    alpha.store.point("stable", site.new, "alice")
    words = [ALONE.format("stable")]
    site.clock[0] += 1
    assert beta.store.alone("stable", site.third, "bob") == []
    there = dict(site.objects.objects)
    site.objects.objects.clear()
    assert (beta.follow(), beta.store.behind()) == ([], words[0])
    site.objects.objects |= there
    assert (beta.follow(), beta.store.behind(), beta.stable) == (words, words[0], site.third), "it is of before"
    site.clock[0] += 1
    alpha.store.point("stable", site.new, "alice")
    assert beta.follow() == []
    assert beta.stable == site.new


# -- what is heard late, or not


def test_who_was_away_while_rollouts_came_and_went_knows_how_it_is_now(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    begun(site, alpha, state=MemberState.DONE)
    beta.follow()
    alpha.store.change(1, ended(RolloutState.COMPLETE), nothing)
    begun(site, alpha, base=site.new, image=site.old)
    alpha.store.change(2, ended(RolloutState.COMPLETE), nothing)
    assert beta.follow() == []
    assert (beta.stable, beta.store.under_way(), beta.store.assigned()) == (site.old, [], {})
    assert (beta.store.rollout(1).state, beta.store.rollout(1).why) == (RolloutState.CANCELLED, MISSED)
    assert beta.store.rollout(2).state is RolloutState.COMPLETE


def test_an_image_that_is_not_here_yet_is_waited_for_and_the_rollout_with_it(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    fourth = add_image(alpha.config, salt="4")
    begun(site, alpha, image=fourth, state=MemberState.DONE)
    assert beta.follow() == []
    alpha.store.change(1, ended(RolloutState.COMPLETE), nothing)
    words = f"channel stable stays as it is: image {fourth[:12]} is not here yet"
    assert beta.follow() == [words]
    assert (beta.stable, beta.store.assigned()["a"].image) == (site.old, fourth)
    add_image(beta.config, salt="4")
    assert beta.follow() == []
    assert (beta.stable, beta.store.assigned()) == (fourth, {})


def test_a_rollout_that_is_not_known_here_for_want_of_an_image_is_said_while_it_is_under_way(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    fourth = add_image(alpha.config, salt="4")
    alpha.store.point("stable", fourth, "alice")
    words = f"channel stable stays as it is: image {fourth[:12]} is not here yet"
    assert (beta.follow(), beta.store.hidden()) == ([words], []), "nothing is to be driven"
    begun(site, alpha, base=fourth)
    assert (beta.follow(), beta.store.hidden(), beta.store.under_way()) == ([words], [words], [])
    there = dict(site.objects.objects)
    site.objects.objects.clear()
    assert (beta.follow(), beta.store.hidden()) == ([], [])
    site.objects.objects |= there
    beta.store.refresh()
    assert beta.store.hidden() == [words]
    add_image(beta.config, salt="4")
    assert (beta.follow(), beta.store.hidden()) == ([], [])
    assert [each.number for each in beta.store.under_way()] == [1]


def test_an_image_that_nobody_here_trusts_and_a_busy_store_leave_it_as_it_was(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    alpha.store.point("stable", site.new, "alice")
    with Store(beta.config.store).writing():
        [busy] = beta.follow()
    for key in beta.config.keys.glob("*.pub"):
        key.unlink()
    [untrusted] = beta.follow()
    assert all(words.startswith("channel stable stays as it is: ") for words in (busy, untrusted))
    assert beta.stable == site.old


def test_a_channel_s_file_that_cannot_be_read_is_set_anew(site: Site, alpha: Replica, beta: Replica) -> None:
    for each in (alpha, beta):
        (each.config.store / "channels" / "stable.json").write_text("{")
    alpha.store.point("stable", site.new, "alice")
    assert (beta.follow(), alpha.stable, beta.stable) == ([], site.new, site.new)


def test_a_list_of_a_moment_before_takes_nothing_back_and_a_restore_does(site: Site, alpha: Replica) -> None:
    begun(site, alpha)
    before = dict(site.objects.objects)
    alpha.store.change(1, ended(RolloutState.COMPLETE), nothing)
    site.objects.objects = before
    alpha.follow(LATER - 1)
    assert (alpha.stable, alpha.store.under_way()) == (site.new, [])
    alpha.follow()
    assert (alpha.stable, [each.number for each in alpha.store.under_way()]) == (site.old, [1])


def test_after_a_restore_what_is_set_then_is_so_though_it_is_the_same_generation(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    alpha.store.point("stable", site.new, "alice")
    restored = dict(site.objects.objects)
    alpha.store.point("stable", site.old, "alice")
    beta.follow()
    site.objects.objects = restored
    alpha.store.point("stable", site.third, "bob")
    assert said(site.objects).image == alpha.stable == site.third
    assert beta.follow(LATER + LATE_MS) == []
    assert beta.stable == site.third


def test_after_a_restore_a_rollout_goes_on_though_there_was_a_later_one(site: Site, alpha: Replica) -> None:
    begun(site, alpha, state=MemberState.FAILED)
    restored = dict(site.objects.objects)
    alpha.store.change(1, ended(RolloutState.COMPLETE), nothing)
    begun(site, alpha, "b", base=site.new, image=site.third, state=MemberState.FAILED)
    alpha.store.change(2, ended(RolloutState.COMPLETE), nothing)
    assert alpha.store.assigned().keys() == {"b"}, "and nobody of the one before"
    site.objects.objects = restored
    assert alpha.follow() == []
    assert ([each.number for each in alpha.store.under_way()], alpha.stable) == ([1], site.old)
    assert alpha.store.assigned() == {"a": Assigned("stable", site.old, 1)}


def test_after_a_restore_what_is_set_is_so_here_at_once_though_a_later_generation_was_known(
    site: Site, alpha: Replica
) -> None:
    alpha.store.point("stable", site.new, "alice")
    restored = dict(site.objects.objects)
    for image in (site.old, site.new, site.old):
        alpha.store.point("stable", image, "alice")
    alpha.follow(NOW)
    site.objects.objects = restored
    alpha.store.point("stable", site.third, "bob")
    assert (said(site.objects).image, alpha.stable, alpha.store.channel("stable")) == (site.third,) * 3


def test_after_a_restore_what_is_known_is_no_longer_hidden(site: Site, alpha: Replica, beta: Replica) -> None:
    begun(site, alpha)
    beta.follow()
    restored = dict(site.objects.objects)
    alpha.store.point("stable", add_image(alpha.config, salt="4"), "alice", end=True)
    begun(site, alpha, base=site.objects.objects["stable"].spec.image)  # type: ignore[union-attr]
    assert (len(beta.follow()), len(beta.store.hidden())) == (1, 1)
    assert beta.store.under_way() == []
    site.objects.objects = restored
    assert (beta.follow(LATER + LATE_MS), beta.store.hidden()) == ([], [])
    assert [each.number for each in beta.store.under_way()] == [1]
    assert beta.store.assigned().keys() == {"a"}


def test_a_rollout_that_is_over_is_over_where_what_came_after_it_is_not_known(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    begun(site, alpha)
    beta.follow()
    fourth = add_image(alpha.config, salt="4")
    alpha.store.point("stable", fourth, "alice", end=True)
    begun(site, alpha, base=fourth)
    assert len(beta.follow()) == 1
    assert (beta.store.under_way(), beta.store.assigned(), beta.stable) == ([], {}, site.old)
    assert beta.store.rollout(1).why == MISSED


def test_of_what_is_forgotten_the_rollout_in_force_is_none(site: Site, alpha: Replica) -> None:
    begun(site, alpha)
    restored = dict(site.objects.objects)
    alpha.store.change(1, ended(RolloutState.UNDONE), nothing)
    begun(site, alpha)
    alpha.store.change(2, ended(RolloutState.UNDONE), nothing)
    site.objects.objects = restored
    alpha.follow()
    site.objects.numbers = KEPT + 9
    begun(site, alpha, channel="other")
    assert alpha.store.rollout(1).under_way
    with pytest.raises(NoSuchRolloutError):
        alpha.store.rollout(KEPT)
    assert alpha.store.assigned()["a"].rollout == KEPT + 10


def test_after_a_restore_nobody_s_change_is_lost_to_who_knows_another_one_of_that_generation(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    begun(site, alpha, "a", "b")
    restored = dict(site.objects.objects)
    beta.follow()
    beta.store.change(1, moved(MemberState.ASSIGNED, "a"), nothing)
    site.objects.objects = restored
    alpha.store.change(1, lambda was, those: (was.model_copy(update={"state": RolloutState.PAUSED}), those), nothing)
    beta.follow(LATER + LATE_MS)
    assert beta.store.rollout(1).state is RolloutState.PAUSED
    beta.store.change(1, moved(MemberState.ASSIGNED, "b"), nothing)
    last = said(site.objects).rollout
    assert last is not None
    assert (last.rollout.state, last.members["a"].state) == (RolloutState.PAUSED, MemberState.WAITING)


def test_a_newer_list_is_not_taken_back_by_what_was_read_before_it(site: Site, alpha: Replica, beta: Replica) -> None:
    alpha.store.point("stable", site.new, "alice")
    before = site.objects.objects["stable"]
    alpha.store.point("stable", site.third, "alice")
    beta.follow(NOW)
    beta.objects.objects["stable"] = before  # as a read that was answered before that list
    beta.store.refresh()
    assert beta.stable == site.third


def test_of_two_objects_with_one_number_the_second_is_none(site: Site, alpha: Replica, beta: Replica) -> None:
    first = begun(site, alpha)
    beta.follow()
    site.objects.numbers = 0
    [kept] = site.objects.kept()
    other = {**kept.spec, "rollout": {**kept.spec["rollout"], "channel": "other"}}
    site.objects.objects["other"] = kept_object(kept.model_copy(update={"name": "other", "uid": "o", "spec": other}))
    words = OF_TWO.format("other", 1, "stable")
    assert (beta.follow(), beta.store.hidden()) == ([words], [words])
    assert (beta.store.under_way(), beta.store.rollout(1).channel) == ([first], "stable")
    copied = kept_object(kept.model_copy(update={"name": "other", "uid": "copied"}))
    assert (copied.spec, copied.fault) == (None, COPY.format("other", "stable"))
    del site.objects.objects["other"]
    assert (beta.follow(), beta.store.hidden()) == ([], [])


def test_rollouts_have_numbers_up_to_a_last_one(site: Site, alpha: Replica) -> None:
    site.objects.numbers = LAST_NUMBER - 1
    assert begun(site, alpha).number == LAST_NUMBER
    with pytest.raises(RolloutRefusedError, match=r"^rollouts have numbers up to 1,000,000,000, and there is one"):
        begun(site, alpha, channel="other")


def test_machines_that_have_another_name_by_now_keep_their_places(site: Site, alpha: Replica, beta: Replica) -> None:
    begun(site, alpha, "a", "b", "c", state=MemberState.FAILED)
    alpha.store.change(1, moved(MemberState.SKIPPED, "c"), nothing)
    site.present.update({"a": "new-a", "b": "c"})
    beta.follow()
    both = site.members("new-a", state=MemberState.FAILED) | site.members("c", state=MemberState.SKIPPED)
    assert beta.store.members(1) == both
    beta.store.change(1, moved(MemberState.DONE, "new-a"), nothing)
    last = said(site.objects).rollout
    assert last is not None
    assert {name: each.state for name, each in last.members.items()} == {
        "new-a": MemberState.DONE,
        "c": MemberState.SKIPPED,
    }


def test_what_was_read_just_now_is_not_taken_back_by_a_list_of_before(
    site: Site, alpha: Replica, beta: Replica
) -> None:
    begun(site, alpha)
    beta.store.refresh()
    assert [each.number for each in beta.store.under_way()] == [1]
    assert beta.store.follow([], LATER - 1) == []
    assert [each.number for each in beta.store.under_way()] == [1]
    begun(site, alpha, channel="other")
    beta.store.refresh()
    site.objects.objects.clear()  # the definition was removed
    beta.store.refresh()
    assert [each.number for each in beta.store.under_way()] == [1, 2]


def test_a_rollout_whose_object_is_deleted_ends_and_assigns_nothing(
    site: Site, alpha: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    begun(site, alpha)
    site.objects.objects.clear()
    with pytest.raises(ClusterUnavailableError) as caught:
        alpha.store.change(1, moved(MemberState.DONE, "a"), nothing)
    assert str(caught.value) == NOT_THERE.format("stable")
    alpha.follow(LATER - 1)
    assert alpha.store.assigned().keys() == {"a"}
    alpha.follow()
    assert (alpha.store.under_way(), alpha.store.assigned(), alpha.stable) == ([], {}, site.old)
    assert (alpha.store.rollout(1).state, alpha.store.rollout(1).why) == (RolloutState.CANCELLED, GONE)
    assert "rollout 1 of channel stable has ended: its object was deleted" in caplog.text


def test_where_its_object_is_gone_who_sets_the_channel_makes_one_and_its_rollout_is_over(
    site: Site, alpha: Replica
) -> None:
    """With the definition, which takes none back by itself."""
    begun(site, alpha)
    site.objects.objects.clear()
    alpha.store.point("stable", site.third, "alice")
    assert (alpha.store.under_way(), alpha.store.assigned(), alpha.stable) == ([], {}, site.third)
    assert said(site.objects).rollout is None


def test_what_was_written_and_not_answered_is_asked_and_was_done(site: Site, alpha: Replica) -> None:
    site.objects.unheard = True
    assert begun(site, alpha).number == 1
    alpha.store.change(1, moved(MemberState.DONE, "a"), nothing)
    assert alpha.store.members(1) == site.members("a", state=MemberState.DONE)


def test_what_was_not_written_and_not_answered_was_not_done(site: Site, alpha: Replica) -> None:
    begun(site, alpha)

    def lost() -> None:
        raise ClusterUnavailableError(AWAY)

    site.objects.before_write = lost
    with pytest.raises(ClusterUnavailableError, match=AWAY):
        alpha.store.change(1, moved(MemberState.DONE, "a"), nothing)
    assert alpha.store.members(1) == site.members("a")


def test_what_others_change_all_the_time_is_said(site: Site, alpha: Replica) -> None:
    begun(site, alpha)
    tried = []

    def meanwhile() -> None:
        tried.append(1)
        site.objects.objects["stable"] = site.objects.objects["stable"]._replace(version=f"other-{len(tried)}")

    site.objects.before_write = meanwhile
    with pytest.raises(ClusterUnavailableError, match=r"^rollout/stable is changed by others all the time: try again$"):
        alpha.store.change(1, moved(MemberState.DONE, "a"), nothing)
    assert len(tried) == TRIES


@pytest.mark.parametrize("bad", ["members", "image"])
def test_an_object_that_cannot_be_read_changes_nothing(site: Site, alpha: Replica, bad: str) -> None:
    first = begun(site, alpha)
    [kept] = site.objects.kept()
    before = dict(site.objects.objects)
    members = {"rollout": {**kept.spec["rollout"], "members": "AAAA"}}
    spec = {**kept.spec, **(members if bad == "members" else {"image": "x"})}
    unreadable = kept_object(kept.model_copy(update={"spec": spec, "generation": 9, "version": "other"}))
    site.objects.objects["stable"] = unreadable
    key = "spec.rollout.members: is not base64" if bad == "members" else "spec.image: "
    words = f"rollout/stable: {key}"
    [fault] = alpha.store.follow([unreadable], LATER)
    assert fault.startswith(words)
    assert (alpha.store.under_way(), alpha.store.hidden()) == ([first], [fault])
    with pytest.raises(ClusterUnavailableError, match=f"^{words}.*: correct it there, or delete it, which ends its"):
        alpha.store.change(1, moved(MemberState.DONE, "a"), nothing)
    site.objects.objects = before
    assert (alpha.follow(LATER + LATE_MS), alpha.store.hidden(), alpha.store.under_way()) == ([], [], [first])


@pytest.mark.parametrize(
    ("as_of_ms", "words"),
    [
        (None, "has not been read yet: "),
        (NOW - UNTOLD_SECONDS * 1000, ""),
        (NOW - UNTOLD_SECONDS * 1000 - 1, f"was read {UNTOLD_SECONDS} s ago: "),
    ],
)
def test_how_old_what_others_did_about_rollouts_may_be(alpha: Replica, as_of_ms: int | None, words: str) -> None:
    if as_of_ms is not None:
        alpha.store.follow([], as_of_ms)
    see = "see `resources` and `rollouts` of `netboot doctor`"
    assert alpha.store.behind() == (f"what other replicas did about rollouts, {words}{see}" if words else "")


def test_what_is_kept_of_one_is_what_it_says(site: Site, alpha: Replica) -> None:
    begun(site, alpha)
    there = site.objects.objects["stable"]
    assert kept_object(resource(there)) == there
