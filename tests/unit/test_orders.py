"""Orders that replicas share: two stores over the same objects, and who brings to one what the other did."""

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from images.values.strict import Fault, FaultsError
from netboot.controllers.shared_acts import AndShared, orders_of, sharing
from netboot.join.errors import ClusterUnavailableError
from netboot.lifecycle.drains import AT_ONCE_SECONDS, Drain, DrainsStatus, State, reserved
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.order_objects import OrderObject, kept_object, order_object, spec_of
from netboot.machines.resources import Resource
from netboot.status.controllers import RolloutsStatus
from netboot.status.resources import Followed
from netboot.stores.drains import SqliteDrains
from netboot.stores.intents import make
from netboot.stores.known_orders import GONE, LATE_MS, as_of_ms
from netboot.stores.resources import ORDERS, KeptResources
from netboot.stores.shared_drains import TRIES, SharedDrains
from netboot.stores.shared_rollouts import SharedRollouts
from netboot.stores.status import StatusFile
from tests.drains import START, drain
from tests.order_objects import AWAY, MemoryOrders, resource
from tests.rollout_objects import MemoryRolloutObjects

REPLACED = "reboot was ordered by bob"


NOW = START + 10 * LATE_MS
"""When these write."""
FAULT = "order/a: spec.what: Input should be 'drain' or 'reboot'"


def store(folder: Path, objects: MemoryOrders, **present: str) -> SharedDrains:
    folder.mkdir(exist_ok=True)
    make(folder / "intents.db").close()
    return SharedDrains(folder / "intents.db", objects, lambda: present, lambda: NOW)


@pytest.fixture
def objects() -> MemoryOrders:
    return MemoryOrders()


@pytest.fixture
def alpha(tmp_path: Path, objects: MemoryOrders) -> SharedDrains:
    return store(tmp_path / "alpha", objects)


@pytest.fixture
def beta(tmp_path: Path, objects: MemoryOrders) -> SharedDrains:
    return store(tmp_path / "beta", objects)


def ended(order: Drain, end: str, words: str, at_ms: int = START + 1) -> Drain:
    return order.model_copy(update={"end": end, "words": words, "ended_ms": at_ms})


def spec(order: Drain) -> dict[str, Any]:
    return spec_of(order).model_dump(mode="json", exclude_none=True)


def test_an_order_is_the_same_as_an_object_and_back() -> None:
    orders = (
        drain("a", "1"),
        ended(drain("b", "2", "reboot", bare=True, local=True, owner="rollout/alpha/7"), "undone", "w"),
    )
    for order in orders:
        assert order_object(order.machine, "u", 1, spec(order)).drain == order


def test_what_people_say_is_one_line_in_an_object() -> None:
    order = drain("a", "1", who="al\nice" + "x" * 300, reason="DIMM\t4")
    said = order_object("a", "u", 1, spec(order)).drain
    assert said is not None
    assert (said.who, said.reason) == ("al ice" + "x" * 250, "DIMM 4")


def test_of_a_machine_one_order_stands_whichever_replica_was_asked(alpha: SharedDrains, beta: SharedDrains) -> None:
    first, second = drain("a", "1"), drain("a", "2", who="bob")
    assert alpha.order(first).did
    change = beta.order(second)
    assert (change.did, change.drain) == (False, first)
    assert beta.standing() == [first], "who was told of it knows it"
    third = drain("a", "3", "reboot", who="bob", since_ms=START + 1)
    change = beta.order(third)
    assert (change.did, change.drain, change.replaced) == (True, third, first)
    assert beta.of("a", 5) == [third, ended(first, "replaced", REPLACED)]
    assert alpha.standing() == [first], "it was not told yet"
    assert alpha.finish("1", "taken-off", "by alice", START + 9) is None, "and does not end what stands now"
    assert alpha.standing() == [third]
    assert alpha.finish("3", "taken-off", "by alice", START + 9) == ended(third, "taken-off", "by alice", START + 9)
    assert beta.finish("3", "rebooted", "late", START + 10) is None
    assert [one.end for one in beta.of("a", 5)] == ["taken-off", "replaced"]


def test_who_asks_what_stands_is_told_what_was_ordered_and_taken_off_elsewhere(
    alpha: SharedDrains, beta: SharedDrains
) -> None:
    given = drain("a", "1")
    assert beta.stands("a") is None
    alpha.order(given)
    assert beta.standing() == []
    assert beta.stands("a") == given
    assert beta.standing() == [given]
    alpha.finish("1", "taken-off", "by alice", START + 1)
    assert beta.stands("a") is None
    assert beta.of("a", 5) == [ended(given, "taken-off", "by alice")]


def test_who_reserves_counts_what_others_ordered(alpha: SharedDrains, beta: SharedDrains) -> None:
    wanted = [drain(name, f"of-{name}", "reboot", owner="rollout/beta/1") for name in ("a", "b")]
    theirs = drain("b", "9")
    alpha.order(theirs)
    assert beta.reserve(wanted, set()) == [], "an order stands that was not counted"
    assert beta.reserve(wanted, {"9"}) == [wanted[0]]
    assert beta.standing() == [wanted[0], theirs], "and knows it then"


def test_who_writes_at_the_same_moment_as_another_looks_anew(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    mine, theirs = drain("a", "1"), drain("a", "2", who="bob")

    def first() -> None:
        objects.before_write = lambda: None
        beta.order(theirs)

    objects.before_write = first
    change = alpha.order(mine)
    assert (change.did, change.drain) == (False, theirs)
    objects.before_write = first
    theirs = drain("b", "4", who="bob")
    wanted = [drain("b", "3", "reboot", owner="rollout/1")]
    assert alpha.reserve(wanted, {"2"}) == [], "another was faster"
    assert objects.objects["b"].drain == theirs


def test_what_others_change_all_the_time_is_said(alpha: SharedDrains, objects: MemoryOrders) -> None:
    tried = []

    def meanwhile() -> None:
        tried.append(1)
        over = ended(drain("a", "0"), "undone", "")
        objects.objects["a"] = order_object("a", "uid-a", len(tried), spec(over), f"other-{len(tried)}")

    objects.before_write = meanwhile
    with pytest.raises(ClusterUnavailableError, match=r"^the order of a is changed by others all the time: try again$"):
        alpha.order(drain("a", "1"))
    assert len(tried) == TRIES


def test_where_the_api_server_is_away_nothing_is_ordered_and_what_stands_is_known(
    alpha: SharedDrains, objects: MemoryOrders
) -> None:
    stands = drain("a", "1")
    alpha.order(stands)
    objects.away = True
    acts: list[Callable[[], object]] = [
        lambda: alpha.stands("a"),
        lambda: alpha.order(drain("b", "2")),
        lambda: alpha.reserve([drain("b", "2")], {"1"}),
        lambda: alpha.finish("1", "taken-off", "by alice", START),
    ]
    for act in acts:
        with pytest.raises(ClusterUnavailableError, match=AWAY):
            act()
    assert alpha.standing() == [stands]


def test_what_was_written_and_not_answered_is_asked_and_was_done(alpha: SharedDrains, objects: MemoryOrders) -> None:
    given = drain("a", "1")
    objects.unheard = True
    assert alpha.order(given).did
    assert alpha.standing() == [given]
    assert alpha.finish("1", "taken-off", "by alice", START + 1) == ended(given, "taken-off", "by alice")
    assert objects.objects["a"].drain == ended(given, "taken-off", "by alice")


def test_what_was_not_written_was_not_ordered(alpha: SharedDrains, objects: MemoryOrders) -> None:
    def away() -> None:
        raise ClusterUnavailableError(AWAY)

    objects.before_write = away
    with pytest.raises(ClusterUnavailableError, match=AWAY):
        alpha.order(drain("a", "1"))
    assert alpha.standing() == []


def test_of_what_is_reserved_what_was_written_stands_though_the_rest_was_not(
    alpha: SharedDrains, objects: MemoryOrders
) -> None:
    written: list[int] = []

    def once() -> None:
        if written:
            raise ClusterUnavailableError(AWAY)
        written.append(1)

    objects.before_write = once
    wanted = [drain(name, f"of-{name}", "reboot", owner="rollout/alpha/1") for name in ("a", "b")]
    with pytest.raises(ClusterUnavailableError, match=AWAY):
        alpha.reserve(wanted, set())
    assert alpha.standing() == [wanted[0]]


def test_an_object_that_is_none_keeps_its_machine_and_no_other(alpha: SharedDrains, objects: MemoryOrders) -> None:
    bad = spec(drain("a", "9")) | {"what": "burn"}
    objects.objects["a"] = order_object("a", "uid-a", 1, bad, "1")
    wanted = [drain(name, f"of-{name}", "reboot", owner="rollout/alpha/1") for name in ("a", "b")]
    assert alpha.reserve(wanted, set()) == [wanted[1]]
    acts: list[Callable[[], object]] = [lambda: alpha.order(drain("a", "1")), lambda: alpha.stands("a")]
    for act in acts:
        with pytest.raises(ClusterUnavailableError) as caught:
            act()
        assert str(caught.value) == f"{FAULT}: correct it there; if it is deleted, the order is taken off"


def test_an_order_of_a_machine_that_has_another_name_now_is_the_same_order(
    alpha: SharedDrains, objects: MemoryOrders, tmp_path: Path
) -> None:
    given = drain("old", "1")
    alpha.order(given)
    beta = store(tmp_path / "beta", objects, old="new")
    here = given.model_copy(update={"machine": "new"})
    assert beta.stands("new") == here
    assert beta.order(drain("new", "2")).drain == here, "none beside it"
    assert beta.reserve([drain("new", "3", "reboot", owner="rollout/beta/1")], {"1"}) == []
    assert beta.finish("1", "taken-off", "by alice", START + 1) == ended(here, "taken-off", "by alice")
    assert objects.objects["old"].drain == ended(given, "taken-off", "by alice")
    next_ = drain("new", "4", "reboot")
    assert beta.order(next_).did
    assert (list(objects.objects), beta.standing()) == (["old"], [next_])


def test_a_disk_that_takes_nothing_undoes_no_order(
    alpha: SharedDrains, objects: MemoryOrders, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "alpha" / "intents.db"
    objects.before_write = path.unlink
    assert alpha.order(drain("a", "1")).did
    assert objects.objects["a"].drain == drain("a", "1")
    assert "orders are not known here" in caplog.text
    with pytest.raises(StateUnavailableError, match="it is not there"):
        alpha.stands("a")


def test_an_order_that_was_never_an_object_is_carried_on_and_ends(
    alpha: SharedDrains, objects: MemoryOrders, tmp_path: Path
) -> None:
    """It was given before orders were objects."""
    alone = drain("a", "1")
    SqliteDrains(tmp_path / "alpha" / "intents.db").order(alone)
    alpha.follow([], NOW + 2 * LATE_MS)
    assert alpha.order(drain("a", "2")).drain == alone
    assert alpha.reserve([drain("b", "3", owner="rollout/alpha/1")], set()) == [], "it counts"
    assert alpha.finish("1", "taken-off", "by alice", START + 1) == ended(alone, "taken-off", "by alice")
    assert objects.objects == {}


def test_beside_an_object_whose_order_has_ended_one_that_was_never_an_object_stands(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders, tmp_path: Path
) -> None:
    """It was given while orders were none, between two times that they were."""
    over = drain("a", "1")
    beta.order(over)
    beta.finish("1", "taken-off", "by bob", START + 1)
    alone = drain("a", "2", since_ms=START + 5)
    SqliteDrains(tmp_path / "alpha" / "intents.db").order(alone)
    following(Objects(*objects.kept()), alpha).step()
    assert alpha.stands("a") == alone
    assert alpha.order(drain("a", "3")).drain == alone, "none beside it"
    change = alpha.order(drain("a", "4", "reboot", who="bob", since_ms=START + 9))
    assert (change.did, change.replaced) == (True, alone)
    assert [(one.id, one.end) for one in alpha.of("a", 5)] == [("4", None), ("1", "taken-off"), ("2", "replaced")]


class Objects:
    """`netboot.controllers.shared_acts.Kept`, and of when it is."""

    def __init__(self, *resources: Resource, at_ms: int = NOW) -> None:
        self.fault = ""
        self.has(resources, at_ms)

    def has(self, resources: Iterable[Resource], at_ms: int = NOW) -> None:
        """They were written then, or by `NOW`, and are still so then."""
        self.resources, self.at_ms, self.seen, self.reads = list(resources), min(at_ms, NOW), at_ms, 0

    def read(self) -> Iterable[Resource]:
        if self.fault:
            raise FaultsError([Fault("objects of namespace netboot", 0, "", self.fault)])
        self.reads += 1
        return self.resources

    def stands(self) -> bool:
        return self.reads > 0

    def seen_ms(self) -> int:
        return self.seen


class Rest:
    """The loop."""

    steps = 0

    def step(self) -> None:
        self.steps += 1

    def status(self) -> RolloutsStatus:
        return RolloutsStatus(at_ms=START, rollouts=())


def following(kept: Objects, drains: SharedDrains) -> AndShared[OrderObject]:
    return AndShared(Rest(), "orders", kept, orders_of, drains.follow, kept.seen_ms, drains.now_ms)


def test_what_others_ordered_and_ended_is_known_here(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    given, theirs = drain("a", "1"), drain("b", "2", "reboot", owner="rollout/beta/1")
    beta.order(given)
    beta.reserve([theirs], {"1"})
    kept = Objects(*objects.kept())
    loop = following(kept, alpha)
    loop.step()
    assert alpha.standing() == [given, theirs]
    beta.finish("1", "rebooted", "its boot is another", START + 1)
    next_ = drain("b", "3", "drain", who="bob", since_ms=START + 5)
    beta.order(next_)
    kept.has(objects.kept())
    loop.step()
    assert alpha.standing() == [next_]
    assert alpha.of("a", 5) == [ended(given, "rebooted", "its boot is another")]
    assert alpha.of("b", 5)[1] == ended(theirs, "replaced", "drain was ordered by bob", START + 5)
    assert loop.status().problem == ""


def test_who_was_away_while_an_order_was_taken_off_and_others_came_and_went_knows_that(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    first, second = drain("a", "1", "reboot"), drain("a", "2", who="bob", since_ms=START + 1)
    alpha.order(first)
    beta.stands("a")
    beta.finish("1", "taken-off", "by bob", START + 1)
    beta.order(second)
    beta.finish("2", "taken-off", "by bob", START + 2)
    assert alpha.standing() == [first]
    following(Objects(*objects.kept()), alpha).step()
    assert alpha.standing() == []
    over = ended(second, "taken-off", "by bob", START + 2)
    assert alpha.of("a", 5) == [over, ended(first, "replaced", "drain was ordered by bob")]


def test_what_is_older_than_what_was_done_here_takes_nothing_back(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    """The file is of a moment before: one was taken off since, and never known here."""
    first, second = drain("a", "1"), drain("a", "2", "reboot", who="bob", since_ms=START + 1)
    beta.order(first)
    before = objects.kept()
    beta.finish("1", "taken-off", "by bob", START)
    alpha.order(second)
    alpha.order(drain("b", "3"))
    kept = Objects(*before, at_ms=NOW + LATE_MS - 1)
    loop = following(kept, alpha)
    loop.step()
    assert [one.id for one in alpha.standing()] == ["2", "3"]
    kept.has(objects.kept(), NOW + LATE_MS + 1)
    loop.step()
    assert [one.id for one in alpha.standing()] == ["2", "3"]


def test_an_order_whose_object_was_deleted_is_taken_off_once_what_was_read_is_surely_of_after_it(
    alpha: SharedDrains, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    given = drain("a", "1")
    alpha.order(given)
    kept = Objects(at_ms=NOW)
    loop = following(kept, alpha)
    loop.step()
    assert alpha.standing() == [given], "it may be newer than what was read"
    kept.seen = NOW + LATE_MS - 1
    loop.step()
    assert alpha.standing() == [given]
    kept.seen = NOW + LATE_MS
    loop.step()
    assert alpha.of("a", 1) == [ended(given, "taken-off", GONE, NOW)]
    assert f"drain of a has ended: {GONE}" in caplog.text


@pytest.mark.parametrize("by", ["alpha", "beta"])
def test_an_order_that_was_read_and_is_not_there_any_more_is_taken_off_at_once(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders, by: str
) -> None:
    given = drain("a", "1")
    (alpha if by == "alpha" else beta).order(given)
    kept = Objects(*objects.kept())
    loop = following(kept, alpha)
    loop.step()
    objects.objects.clear()
    kept.has([], NOW + 1)
    loop.step()
    assert alpha.of("a", 1) == [ended(given, "taken-off", GONE, NOW)]
    assert alpha.finish("1", "taken-off", "by alice", NOW) is None
    assert alpha.order(drain("a", "2")).did


def test_an_order_whose_object_is_gone_can_be_taken_off_and_another_be_given(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    """Its definition was removed, say, and made anew: whoever has the order is told."""
    alpha.order(drain("a", "1"))
    alpha.order(drain("b", "2"))
    beta.stands("a")
    objects.objects.clear()
    over = alpha.finish("1", "taken-off", "by alice", START + 1)
    assert (over, objects.objects["a"].drain) == (ended(drain("a", "1"), "taken-off", "by alice"),) * 2
    following(Objects(*objects.kept(), at_ms=NOW + LATE_MS), beta).step()
    assert beta.of("a", 5) == [over]
    change = alpha.order(drain("b", "3"))
    assert (change.did, change.replaced) == (True, None)
    assert [one.id for one in alpha.standing()] == ["3"]


def test_an_object_that_was_made_anew_is_believed_once_it_is_surely_newer(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    """As by a restore of a backup: of another uid nothing says which one is newer."""
    alpha.order(drain("a", "1"))
    objects.objects.clear()
    again = drain("a", "2", who="bob", since_ms=START + 1)
    beta.order(again)
    kept = Objects(*objects.kept(), at_ms=NOW + LATE_MS - 1)
    loop = following(kept, alpha)
    loop.step()
    assert [one.id for one in alpha.standing()] == ["1"]
    kept.seen = NOW + LATE_MS
    loop.step()
    assert alpha.standing() == [again]


@pytest.mark.parametrize("by", ["a question", "the list"])
def test_what_an_object_says_stands_again_though_it_had_ended_here(
    alpha: SharedDrains, objects: MemoryOrders, tmp_path: Path, by: str
) -> None:
    """Its end was written down while orders were no objects."""
    given = drain("a", "1")
    alpha.order(given)
    SqliteDrains(tmp_path / "alpha" / "intents.db").finish("1", "taken-off", "by alice", START)
    assert alpha.finish("1", "taken-off", "by alice", START) is None
    if by == "the list":
        following(Objects(*objects.kept()), alpha).step()
    else:
        alpha.stands("a")
    assert alpha.standing() == [given]


@pytest.mark.parametrize("by", ["a question", "the list", "another order", "a count"])
def test_after_a_restore_of_the_api_server_what_its_objects_say_counts(
    alpha: SharedDrains, objects: MemoryOrders, by: str
) -> None:
    """Of the same uid, and of a lower generation."""
    given, backup = drain("a", "1"), dict[str, OrderObject]()
    alpha.order(given)
    backup |= objects.objects
    alpha.finish("1", "taken-off", "by alice", START + 1)
    alpha.order(drain("a", "2"))
    alpha.finish("2", "taken-off", "by alice", START + 2)
    objects.objects = backup
    if by == "the list":
        kept = Objects(*objects.kept(), at_ms=NOW + LATE_MS - 1)
        loop = following(kept, alpha)
        loop.step()
        assert alpha.standing() == [], "it may be of before"
        kept.seen = NOW + LATE_MS
        loop.step()
    else:
        alpha.now_ms = lambda: NOW + LATE_MS
        acts: dict[str, Callable[[], object]] = {
            "a question": lambda: alpha.stands("a"),
            "another order": lambda: alpha.order(drain("a", "3")),
            "a count": lambda: alpha.reserve([drain("b", "4")], ()),
        }
        acts[by]()
    assert alpha.standing() == [given]


def test_an_order_that_was_made_and_deleted_before_anybody_read_it_ends(alpha: SharedDrains) -> None:
    kept = Objects(at_ms=NOW)
    loop = following(kept, alpha)
    loop.step()
    alpha.order(drain("a", "1"))
    kept.seen = NOW + LATE_MS - 1
    loop.step()
    assert [one.id for one in alpha.standing()] == ["1"]
    kept.seen = NOW + LATE_MS
    loop.step()
    assert (alpha.standing(), kept.reads) == ([], 1)


def test_a_copy_of_an_object_takes_no_order_from_its_machine(alpha: SharedDrains, objects: MemoryOrders) -> None:
    given = drain("a", "1")
    alpha.order(given)
    objects.objects["b"] = order_object("b", "uid-b", 1, spec(given), "9")
    with pytest.raises(ClusterUnavailableError) as caught:
        alpha.stands("b")
    assert str(caught.value) == (
        "order/b: spec.id: another object has the same: correct it there; if it is deleted, the order is taken off"
    )
    assert alpha.standing() == [given]
    assert alpha.reserve([drain("b", "2"), drain("c", "3")], {"1"}) == [drain("c", "3")]
    assert alpha.standing() == [given, drain("c", "3")]


def test_a_copy_of_an_object_takes_no_order_of_another_machine_that_has_ended(
    alpha: SharedDrains, objects: MemoryOrders
) -> None:
    given = drain("a", "1")
    alpha.order(given)
    copy = order_object("b", "uid-b", 1, spec(given), "9")
    alpha.finish("1", "taken-off", "by alice", START + 1)
    alpha.order(drain("a", "2"))
    loop = following(Objects(*objects.kept(), resource(copy)), alpha)
    loop.step()
    assert [(one.machine, one.id) for one in alpha.standing()] == [("a", "2")]
    assert loop.status().problem == "order/b: spec.id: another object has the same"
    objects.objects["b"] = copy
    change = alpha.order(drain("b", "3", "reboot"))
    assert (change.did, [one.id for one in alpha.of("b", 5)]) == (True, ["3"]), "a new one takes its place"


def test_of_two_objects_of_one_machine_that_of_its_own_name_is_believed(
    tmp_path: Path, beta: SharedDrains, objects: MemoryOrders
) -> None:
    beta.order(drain("a-new", "2"))
    beta.order(drain("old", "1"))
    alpha = store(tmp_path / "alpha", objects, old="a-new")
    loop = following(Objects(*objects.kept()), alpha)
    for _ in range(2):
        loop.step()
        assert [(one.machine, one.id) for one in alpha.standing()] == [("a-new", "2")]
    assert alpha.reserve([drain("a-new", "3")], {"2"}) == []


def test_who_reserves_takes_nothing_off_for_what_it_reads_is_no_deletion(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    """With a definition all objects go; who follows them tells these from others."""
    beta.order(drain("a", "1"))
    following(Objects(*objects.kept()), alpha).step()
    objects.objects.clear()
    assert alpha.reserve([drain("c", "3")], {"1"}) == [drain("c", "3")]
    assert [one.id for one in alpha.standing()] == ["1", "3"]


def test_what_was_read_to_reserve_is_taken_back_by_no_list_of_before(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    beta.order(drain("a", "1"))
    alpha.order(drain("b", "2"))
    before = objects.kept()
    kept = Objects(*before)
    loop = following(kept, alpha)
    loop.step()
    beta.finish("1", "taken-off", "by alice", START + 1)
    beta.order(drain("c", "3"))
    for _ in range(2):
        assert alpha.reserve([], {"2", "3"}) == []
    assert [one.id for one in alpha.standing()] == ["2", "3"]
    kept.has(before, NOW + 1)
    loop.step()
    assert [one.id for one in alpha.standing()] == ["2", "3"]


def test_who_reserves_takes_over_no_order_that_it_does_not_believe_yet(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    """Its object is another one of that name, made within a minute of a word of here."""
    alpha.order(drain("a", "1"))
    alpha.finish("1", "taken-off", "by alice", START + 1)
    objects.objects.clear()
    theirs = drain("a", "2", who="bob")
    beta.order(theirs)
    alpha._take = lambda *_: None  # type: ignore[method-assign]
    assert alpha.reserve([drain("a", "3"), drain("b", "4")], ()) == [], "it is counted"
    assert alpha.reserve([drain("a", "3"), drain("b", "4")], {"2"}) == [drain("b", "4")]
    assert objects.objects["a"].drain == theirs


def test_an_object_that_is_going_takes_no_order_and_its_own_can_end(alpha: SharedDrains, objects: MemoryOrders) -> None:
    given = drain("a", "1")
    alpha.order(given)
    objects.objects["a"] = objects.objects["a"]._replace(going=True)
    with pytest.raises(ClusterUnavailableError) as caught:
        alpha.order(drain("a", "2", "reboot"))
    assert str(caught.value) == (
        "order/a was deleted, and waits for its finalizers: once these are taken off, a new order can be given"
    )
    assert alpha.stands("a") == given
    assert alpha.finish("1", "taken-off", "by alice", START + 1) == ended(given, "taken-off", "by alice")
    objects.objects["a"] = objects.objects["a"]._replace(going=True)
    assert alpha.reserve([drain("a", "3")], ()) == []


def test_what_was_written_by_a_clock_that_was_ahead_is_of_no_moment(alpha: SharedDrains, tmp_path: Path) -> None:
    kept = Objects()
    kept.at_ms, kept.seen = NOW + 3_600_000, NOW - 5
    following(kept, alpha).step()
    assert as_of_ms(tmp_path / "alpha" / "intents.db") == NOW - 5


def test_of_when_those_are_that_came_counts_where_what_went_is_not_believed_to_be_gone(
    alpha: SharedDrains, tmp_path: Path
) -> None:
    config: Any = SimpleNamespace(data=tmp_path, inventory_kubernetes=SimpleNamespace(namespace="netboot"))
    KeptResources(tmp_path, "netboot", ORDERS).write([])
    StatusFile(tmp_path / "resources", "followed_orders").write(Followed(seen_ms=5, came_ms=NOW))
    rollouts = SharedRollouts(tmp_path / "rollouts.db", MemoryRolloutObjects(), cast("Any", None), dict, int)
    sharing(config, Rest(), alpha, rollouts).step()
    assert as_of_ms(tmp_path / "alpha" / "intents.db") == NOW


def test_how_far_an_order_is_elsewhere_is_known_here(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    alpha.order(drain("a", "1"))
    beta.order(drain("b", "2"))
    kept = Objects(*objects.kept())
    loop = following(kept, alpha)
    loop.step()
    assert alpha.elsewhere() == {}
    state = State(id="1", state="draining", words="2 Pods", since_ms=START)
    objects.objects["a"] = objects.objects["a"]._replace(state=state)
    kept.has(objects.kept(), NOW + 1)
    loop.step()
    assert alpha.elsewhere() == {"a": state}
    assert reserved(alpha.standing(), (), alpha.elsewhere())["a"].told is False
    here = DrainsStatus(at_ms=NOW, drains={"a": state.model_copy(update={"state": "ordered"})})
    assert reserved(alpha.standing(), [here], alpha.elsewhere())["a"].told is True, "who carries it out knows more"
    alpha.finish("1", "taken-off", "by alice", START + 1)
    assert alpha.elsewhere() == {}


def test_who_reserves_writes_as_many_as_it_can_within_its_time(alpha: SharedDrains, objects: MemoryOrders) -> None:
    seconds = [0.0]

    def slow() -> None:
        seconds[0] += AT_ONCE_SECONDS / 2

    objects.before_write, alpha._monotonic = slow, lambda: seconds[0]
    wanted = [drain(name, f"of-{name}", "reboot", owner="rollout/alpha/1") for name in ("a", "b", "c")]
    assert alpha.reserve(wanted, ()) == wanted[:2]
    assert alpha.standing() == wanted[:2]


def test_by_the_name_that_a_machine_has_now(tmp_path: Path, beta: SharedDrains, objects: MemoryOrders) -> None:
    beta.order(drain("old", "1"))
    alpha = store(tmp_path / "alpha", objects, old="new")
    kept = Objects(*objects.kept(), at_ms=NOW + 2 * LATE_MS)
    loop = following(kept, alpha)
    loop.step()
    assert [one.machine for one in alpha.standing()] == ["new"]
    kept.seen = NOW + 3 * LATE_MS
    loop.step()
    assert [one.machine for one in alpha.standing()] == ["new"]


def test_of_when_what_is_known_is_written_down(alpha: SharedDrains, tmp_path: Path) -> None:
    path = tmp_path / "alpha" / "intents.db"
    assert as_of_ms(path) == 0
    kept = Objects(at_ms=NOW)
    loop = following(kept, alpha)
    loop.step()
    assert as_of_ms(path) == NOW
    kept.seen = NOW + 5
    loop.step()
    assert (as_of_ms(path), kept.reads) == (NOW + 5, 1)


def test_what_cannot_be_read_stays_and_is_said(alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders) -> None:
    given = drain("a", "1")
    beta.order(given)
    kept = Objects(*objects.kept())
    loop = following(kept, alpha)
    loop.step()
    kept.reads, kept.fault = 0, "cannot be told: EIO"
    loop.step()
    assert alpha.standing() == [given]
    assert loop.status().problem == (
        "what other replicas did about orders cannot be told, and stays as it was: objects of namespace netboot: "
        "cannot be told: EIO"
    )
    kept.fault = ""
    bad = resource(order_object("b", "u", 1, spec(drain("b", "2"))))
    kept.resources.append(bad.model_copy(update={"spec": {**bad.spec, "what": "burn"}}))
    loop.step()
    assert alpha.standing() == [given]
    assert loop.status().problem == FAULT.replace("/a", "/b")


def test_of_two_objects_with_one_id_neither_is_taken(alpha: SharedDrains) -> None:
    twice = [resource(order_object(name, f"u-{name}", 1, spec(drain(name, "1")))) for name in ("a", "b")]
    other = resource(order_object("c", "u-c", 1, spec(drain("c", "2"))))
    loop = following(Objects(*twice, other), alpha)
    loop.step()
    assert [one.id for one in alpha.standing()] == ["2"]
    assert loop.status().problem == (
        "order/a: spec.id: another object has the same, order/b: spec.id: another object has the same"
    )


def test_an_order_whose_object_cannot_be_read_any_more_stands(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders
) -> None:
    given = drain("a", "1")
    beta.order(given)
    kept = Objects(*objects.kept())
    loop = following(kept, alpha)
    loop.step()
    bad = kept.resources[0]
    kept.has([bad.model_copy(update={"spec": {**bad.spec, "what": "burn"}, "generation": 2})], NOW + 3 * LATE_MS)
    loop.step()
    assert (alpha.standing(), loop.status().problem) == ([given], FAULT)
    objects.objects.clear()
    kept.has([], NOW + 4 * LATE_MS)
    loop.step()
    assert alpha.standing() == []


def test_what_the_disk_did_not_take_is_taken_over_with_the_next_look(
    alpha: SharedDrains, beta: SharedDrains, objects: MemoryOrders, tmp_path: Path
) -> None:
    given, path = drain("a", "1"), tmp_path / "alpha" / "intents.db"
    beta.order(given)
    loop = following(Objects(*objects.kept()), alpha)
    path.rename(path.with_suffix(".away"))
    loop.step()
    assert "it is not there" in loop.status().problem
    path.with_suffix(".away").rename(path)
    loop.step()
    assert alpha.standing() == [given]
    assert loop.status().problem == ""


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"id": None}, "order/a: spec.id: Input should be a valid string"),
        ({"reason": ""}, "order/a: spec.reason: String should have at least 1 character"),
        ({"who": "al\nice"}, "order/a: spec.who: must be one line of printable text"),
        (
            {"since": "yesterday"},
            "order/a: spec.since: must be a moment with its zone, as RFC 3339 has it: 2026-11-24T08:00:00Z",
        ),
        ({"deadline": "2026-12-24T08:00:00Z"}, "order/a: spec: `deadline` must be within a day of `since`"),
    ],
)
def test_an_object_that_is_no_order(changed: dict[str, Any], words: str) -> None:
    said = Resource(kind="order", name="a", shown="order/a", spec=spec(drain("a", "1")) | changed)
    assert (kept_object(said).drain, kept_object(said).fault) == (None, words)


def test_an_object_of_which_too_much_was_said_is_no_order() -> None:
    why = "is nested deeper than anything that is declared"
    said = Resource(kind="order", name="a", shown="order/a", spec=None, refused=why)
    assert (kept_object(said).drain, kept_object(said).fault) == (None, f"order/a: spec: {why}")
