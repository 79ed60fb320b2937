"""Orders that replicas share: two stores over the same objects, and who brings to one what the other did."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from images.values.strict import Fault, FaultsError
from netboot.controllers.orders import GONE, LATE_MS, AndOrders
from netboot.join.errors import ClusterUnavailableError
from netboot.lifecycle.drains import Drain
from netboot.lifecycle.order_objects import OrderObject, drain_of, order_of, spec_of
from netboot.machines.resources import Resource
from netboot.status.controllers import RolloutsStatus
from netboot.stores.drains import SqliteDrains
from netboot.stores.intents import make
from netboot.stores.shared_drains import TRIES, SharedDrains
from tests.drains import START, drain
from tests.order_objects import AWAY, MemoryOrders

REPLACED = "reboot was ordered by bob"


def store(folder: Path, objects: MemoryOrders) -> SharedDrains:
    folder.mkdir(exist_ok=True)
    make(folder / "intents.db").close()
    return SharedDrains(folder / "intents.db", objects)


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


def test_an_order_is_the_same_as_an_object_and_back() -> None:
    orders = (
        drain("a", "1"),
        ended(drain("b", "2", "reboot", bare=True, local=True, owner="rollout/7"), "undone", "w"),
    )
    for order in orders:
        assert drain_of(order.machine, spec_of(order)) == order


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


def test_who_looks_knows_what_was_ordered_elsewhere(alpha: SharedDrains, beta: SharedDrains) -> None:
    given = drain("a", "1")
    beta.look("a")
    alpha.order(given)
    assert beta.standing() == []
    beta.look("a")
    assert beta.standing() == [given]


def test_who_reserves_counts_what_others_ordered(alpha: SharedDrains, beta: SharedDrains) -> None:
    wanted = [drain(name, f"of-{name}", "reboot", owner="rollout/1") for name in ("a", "b")]
    theirs = drain("b", "9")
    alpha.order(theirs)
    assert beta.reserve(wanted, set()) == [], "an order stands that was not counted"
    assert beta.reserve(wanted, {"9"}) == [wanted[0]]
    assert beta.standing() == [wanted[0]]


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
        objects.objects["a"] = OrderObject(
            "a", "uid-a", f"other-{len(tried)}", spec_of(ended(drain("a", "0"), "undone", ""))
        )

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
        lambda: alpha.order(drain("b", "2")),
        lambda: alpha.reserve([drain("b", "2")], {"1"}),
        lambda: alpha.finish("1", "taken-off", "by alice", START),
    ]
    for act in acts:
        with pytest.raises(ClusterUnavailableError, match=AWAY):
            act()
    assert alpha.standing() == [stands]


def test_an_object_that_is_none_keeps_its_machine_and_no_other(alpha: SharedDrains, objects: MemoryOrders) -> None:
    objects.objects["a"] = OrderObject(
        "a", "uid-a", "1", None, "order/a: spec.what: Input should be 'drain' or 'reboot'"
    )
    wanted = [drain(name, f"of-{name}", "reboot", owner="rollout/1") for name in ("a", "b")]
    assert alpha.reserve(wanted, set()) == [wanted[1]]
    with pytest.raises(ClusterUnavailableError) as caught:
        alpha.order(drain("a", "1"))
    assert str(caught.value) == (
        "order/a: spec.what: Input should be 'drain' or 'reboot': correct it there; if it is deleted, the order is "
        "taken off"
    )


def test_an_order_of_a_machine_that_has_another_name_now_is_ended_where_it_is(
    alpha: SharedDrains, objects: MemoryOrders, tmp_path: Path
) -> None:
    given = drain("old", "1")
    objects.write("old", spec_of(given), None)
    alpha.take([given.model_copy(update={"machine": "new"})])
    assert alpha.finish("1", "taken-off", "by alice", START) is not None
    assert objects.objects["old"].spec == spec_of(ended(given, "taken-off", "by alice", START))
    assert alpha.standing() == []


def test_a_disk_that_takes_nothing_undoes_no_order(
    alpha: SharedDrains, objects: MemoryOrders, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "alpha" / "intents.db"
    objects.before_write = lambda: path.unlink()
    assert alpha.order(drain("a", "1")).did
    assert objects.objects["a"].drain == drain("a", "1")
    assert "orders are not known here" in caplog.text


def resource(order: Drain) -> Resource:
    spec = spec_of(order).model_dump(mode="json", exclude_none=True)
    return Resource(kind="order", name=order.machine, shown=f"order/{order.machine}", spec=spec, uid=f"u-{order.id}")


class Objects:
    """`netboot.controllers.orders.Kept`."""

    def __init__(self, *orders: Drain, at_ms: int = START) -> None:
        self.resources: list[Resource] = list(map(resource, orders))
        self.at_ms, self.reads, self.fault = at_ms, 0, ""

    def has(self, *orders: Drain, at_ms: int) -> None:
        self.resources, self.at_ms, self.reads = list(map(resource, orders)), at_ms, 0

    def read(self) -> Iterable[Resource]:
        if self.fault:
            raise FaultsError([Fault("objects of namespace netboot", 0, "", self.fault)])
        self.reads += 1
        return self.resources

    def stands(self) -> bool:
        return self.reads > 0


class Rest:
    """The loop."""

    steps = 0

    def step(self) -> None:
        self.steps += 1

    def status(self) -> RolloutsStatus:
        return RolloutsStatus(at_ms=START, rollouts=())


class Now:
    now = START + 10 * LATE_MS

    def now_ms(self) -> int:
        return self.now


def following(kept: Objects, drains: SqliteDrains, **present: str) -> AndOrders:
    return AndOrders(Rest(), kept, drains, lambda: present, Now())


def test_what_others_ordered_and_ended_is_known_here(alpha: SharedDrains) -> None:
    given, theirs = drain("a", "1"), drain("b", "2", "reboot", owner="rollout/1")
    kept = Objects(given, theirs)
    loop = following(kept, alpha)
    loop.step()
    assert alpha.standing() == [given, theirs]
    over, next_ = (
        ended(given, "rebooted", "its boot is another"),
        drain("b", "3", "drain", who="bob", since_ms=START + 5),
    )
    kept.has(over, next_, at_ms=START + 9)
    loop.step()
    assert alpha.standing() == [next_]
    assert alpha.of("a", 5) == [over]
    assert alpha.of("b", 5)[1] == ended(theirs, "replaced", "drain was ordered by bob", START + 5)
    assert loop.status().problem == ""


def test_what_is_older_than_what_was_done_here_takes_nothing_back(alpha: SharedDrains) -> None:
    """The file is of a moment before."""
    first, second = drain("a", "1"), drain("a", "2", "reboot", who="bob", since_ms=START + 1)
    alpha.order(first)
    alpha.order(second)
    alpha.order(drain("b", "3"))
    following(Objects(first, at_ms=START), alpha).step()
    assert [one.id for one in alpha.standing()] == ["2", "3"]


def test_an_order_whose_object_was_deleted_is_taken_off_a_minute_later(
    alpha: SharedDrains, caplog: pytest.LogCaptureFixture
) -> None:
    given = drain("a", "1")
    alpha.order(given)
    kept = Objects(at_ms=START + LATE_MS)
    loop = following(kept, alpha)
    loop.step()
    assert alpha.standing() == [given], "it may be newer than what was read"
    kept.has(at_ms=START + LATE_MS + 1)
    loop.step()
    assert alpha.of("a", 1) == [ended(given, "taken-off", GONE, Now.now)]


def test_by_the_name_that_a_machine_has_now(alpha: SharedDrains) -> None:
    following(Objects(drain("old", "1"), at_ms=START + 2 * LATE_MS), alpha, old="new").step()
    assert [one.machine for one in alpha.standing()] == ["new"]


def test_what_cannot_be_read_stays_and_is_said(alpha: SharedDrains) -> None:
    given = drain("a", "1")
    kept = Objects(given)
    loop = following(kept, alpha)
    loop.step()
    kept.reads, kept.fault = 0, "cannot be told: EIO"
    loop.step()
    assert alpha.standing() == [given]
    assert loop.status().problem == (
        "what other replicas ordered cannot be told, and stays as it was: objects of namespace netboot: cannot be "
        "told: EIO"
    )
    kept.fault = ""
    bad = resource(drain("b", "2"))
    kept.resources.append(bad.model_copy(update={"spec": {**bad.spec, "what": "burn"}}))
    loop.step()
    assert alpha.standing() == [given]
    assert loop.status().problem == "order/b: spec.what: Input should be 'drain' or 'reboot'"


@pytest.mark.parametrize(
    ("spec", "refused", "words"),
    [
        (
            None,
            "is nested deeper than anything that is declared",
            "order/a: spec: is nested deeper than anything that is declared",
        ),
        ({}, "", "order/a: spec.id: Field required"),
    ],
)
def test_an_object_that_is_no_order(spec: Any, refused: str, words: str) -> None:
    resource = Resource(kind="order", name="a", shown="order/a", spec=spec, refused=refused)
    assert order_of(resource) == (None, words)
