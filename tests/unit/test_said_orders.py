"""What objects of orders are told of how far they are."""

from pathlib import Path

import pytest

from netboot.lifecycle.drains import FRESH_MS, DrainsStatus, State
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.order_objects import order_object, spec_of
from netboot.machines.values import Machine, Match
from netboot.stores.live import LiveView
from netboot.stores.resources import ORDERS, KeptResources
from netboot.stores.said_orders import SaidOrders, status_of
from netboot.stores.snapshot import write_snapshot
from netboot.stores.status import StatusFile
from tests.drains import START, drain
from tests.joining import snapshot_of
from tests.order_objects import resource

NOTHING = {"id": "", "state": "", "message": "", "since": ""}


class Stage:
    """Machines `a`, `b` (once `old`) of cluster one, `c` of cluster two; an order of each, by their numbers."""

    def __init__(self, data: Path) -> None:
        in_clusters = (("a", "one", ()), ("b", "one", ("old",)), ("c", "two", ()))
        machines = [
            Machine(name=name, match=Match(serial=f"serial-{name}"), profile="p", cluster=cluster, former_names=former)
            for name, cluster, former in in_clusters
        ]
        write_snapshot(data / "snapshot.json", snapshot_of(*machines))
        kept, self._data = KeptResources(data, "netboot", ORDERS), data
        named = {"a": "1", "old": "2", "c": "3", "gone": "4"}
        orders = [drain(name, number) for name, number in named.items()]
        specs = {each.machine: spec_of(each).model_dump(mode="json", exclude_none=True) for each in orders}
        self._objects = [order_object(name, f"u-{name}", 1, spec) for name, spec in specs.items()]
        self._kept, self.now = kept, START
        self.they_say()
        live = LiveView(data / "snapshot.json")
        self.said = SaidOrders(data, "netboot", ("one", "two"), live, lambda: self.now)

    def they_say(self, **states: State) -> None:
        """What objects say of how far they are."""
        self._kept.write([resource(each._replace(state=states.get(each.name))) for each in self._objects])

    def say(self, cluster: str, leads: bool, problem: str = "", **states: State) -> None:
        status = DrainsStatus(at_ms=self.now, leads=leads, problem=problem, drains=states)
        StatusFile(self._data / "status", f"drains-{cluster}").write(status)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def state(number: str, **more: object) -> State:
    return State.model_validate({"id": number, "state": "draining", "words": "w", "since_ms": START} | more)


def test_who_leads_a_cluster_says_of_its_orders_how_far_they_are_and_of_others_nothing(stage: Stage) -> None:
    assert stage.said.read().statuses() == {}
    stage.say("one", True, a=state("1"), b=state("7"))
    stage.say("two", False, c=state("3"))
    told = {"id": "1", "state": "draining", "message": "w", "since": "2026-01-01T00:00:00Z"}
    assert stage.said.read().statuses() == {"a": ("u-a", told)}
    same = stage.said.read()
    assert stage.said.read() is same
    stage.they_say(a=state("1"), old=state("6"), c=state("5"))
    stage.say("two", True)
    expected = {"a": ("u-a", told), "old": ("u-old", NOTHING), "c": ("u-c", NOTHING)}
    assert stage.said.read().statuses() == expected, "what was said of one before is taken off"
    stage.they_say(a=state("1"))
    assert stage.said.read().statuses() == {"a": ("u-a", told)}, "once"
    stage.say("one", False)
    assert stage.said.read().statuses() == {}, "who leads another cluster says nothing of it"
    stage.say("one", True, "the API server is away")
    assert stage.said.read().statuses() == {}, "who cannot go on takes nothing off"
    stage.say("one", True)
    assert stage.said.read().statuses() == {"a": ("u-a", NOTHING)}
    stage.now += FRESH_MS + 1
    assert stage.said.read().statuses() == {}, "who stands still leads nothing"


def test_what_cannot_be_read_is_not_told(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "resources" / "orders.json").write_text("{")
    with pytest.raises(CannotTellError, match="is not what this version writes"):
        stage.said.read()


def test_what_is_told_fits_into_an_object() -> None:
    said = status_of(state("a" * 20, words="two\nlines" + "x" * 2000))
    assert (said["id"], said["message"][:9], len(said["message"])) == ("a" * 20, "two lines", 1000)
