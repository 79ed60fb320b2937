"""Holds that objects declare: what they do to what stands, and what does nothing to it."""

import logging
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from images.values import strict
from netboot.config import load_config
from netboot.controllers.hold_statuses import ANEW_SECONDS, LOOK_SECONDS, PACE_SECONDS, AndHoldStatuses
from netboot.controllers.holds import MOST_AT_ONCE, AndHolds
from netboot.controllers.resources import SETTLE_SECONDS, UNSETTLED_SECONDS, ResourcesController
from netboot.controllers.resources_and_holds import AndHolds as BothFollowed
from netboot.controllers.shipper import ShipperController
from netboot.join.errors import InvalidError
from netboot.kube.errors import ClusterRefusedError
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.holds import (
    HoldObject,
    HoldSaid,
    HoldsSaid,
    Machines,
    object_of,
    owner_of,
    said,
    steps,
    who_of,
)
from netboot.lifecycle.intents import Intent, PutOn, TakeOff
from netboot.lifecycle.transitions import Mark
from netboot.machines.resources import Changed, Listed, Resource, Seen, fit
from netboot.machines.values import Inventory
from netboot.status.controllers import RolloutsStatus
from netboot.status.resources import Followed
from netboot.stores import resources as stores
from netboot.stores.holds import SaidHolds
from netboot.stores.inventory import forget_objects, holds_in
from netboot.stores.resources import HOLDS, KeptResources
from tests.intents import GONE, MemoryIntents
from tests.sites import make_site

NOW = 1_800_000_000_000
UNTIL = "2027-01-15T09:00:00Z"
UNTIL_MS = NOW + 3_600_000
SITE = """
machines:
  - {name: gpu-001, match: {macs: ["52:54:00:00:00:01"]}, profile: p}
  - {name: gpu-002, match: {macs: ["52:54:00:00:00:02"]}, profile: p, former_names: [old-2]}
profiles: [{name: p, channel: stable}]
channels: [{name: stable}]
"""
GPU_2 = '  - {name: gpu-002, match: {macs: ["52:54:00:00:00:02"]}, profile: p, former_names: [old-2]}\n'
INVENTORY = strict.check(strict.parse(SITE, "x"), Inventory)
MACHINES = Machines(frozenset({"gpu-001", "gpu-002"}), {"old-2": "gpu-002"})
STANDS = "what objects hold cannot be told, and stays as it was: "


def hold(name: str, machine: str = "gpu-001", uid: str = "u-1", **more: Any) -> Resource:
    spec = {"machine": machine, "reason": "DIMM 4", **more}
    return Resource(kind="hold", name=name, shown=f"hold/{name}", spec=spec, uid=uid)


class Stage:
    """The controllers' loop around objects on the disk; `restart`: another process."""

    def __init__(self, data: Path) -> None:
        self.data, self.intents, self.rounds, self.now = data, MemoryIntents(), 0, NOW
        self.inventory: Inventory | None = INVENTORY
        self.kept = KeptResources(data, "site", HOLDS)
        self.restart()

    def restart(self) -> None:
        told, kept = SaidHolds(self.data), KeptResources(self.data, "site", HOLDS)
        self.loop = AndHolds(self, "site", kept, self.intents, lambda: self.inventory, told.write, told.read(), self)

    def now_ms(self) -> int:
        return self.now

    def step(self) -> None:
        self.rounds += 1

    def status(self) -> RolloutsStatus:
        return RolloutsStatus(at_ms=NOW, rollouts=())

    def there(self, *objects: Resource) -> list[tuple[str, str, str, int | None]]:
        self.kept.write(objects, "of")
        return self.held()

    def held(self) -> list[tuple[str, str, str, int | None]]:
        self.loop.step()
        return [(one.machine, one.who, one.reason, one.until_ms) for one in self.intents.all(self.now)]

    def said(self, name: str) -> tuple[str, str]:
        told = SaidHolds(self.data).read()
        assert told is not None
        return told.holds[name].why, told.holds[name].message


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


DIMM = ("gpu-001", "hold/dimm", "DIMM 4", None)


def audited(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    found = [getattr(record, "fields") for record in caplog.records if record.name == "netboot.audit"]  # noqa: B009
    caplog.clear()
    return found


def test_an_object_holds_and_its_deletion_lets_go_and_both_are_acts(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "netboot.audit")
    assert stage.there(hold("dimm", by="alice", until=UNTIL)) == [("gpu-001", "alice (hold/dimm)", "DIMM 4", UNTIL_MS)]
    assert stage.said("dimm") == ("Held", f"machine gpu-001 is held until {UNTIL}")
    common = {"operator": "kubernetes", "machine": "gpu-001", "object": "hold/dimm", "namespace": "site", "uid": "u-1"}
    assert audited(caplog) == [
        {"act": "hold", **common, "reason": "DIMM 4", "did": "put-on", "by": "alice", "until_ms": UNTIL_MS}
    ]
    assert stage.held() == [("gpu-001", "alice (hold/dimm)", "DIMM 4", UNTIL_MS)]
    assert audited(caplog) == [], "once"
    stage.restart()
    assert stage.there() == []
    assert audited(caplog) == [
        {
            "act": "unhold",
            **common,
            "reason": "hold/dimm was deleted",
            "did": "taken-off",
            "by": "alice",
            "until_ms": None,
        }
    ]
    assert [(each.act, each.who) for each in stage.intents.history("gpu-001", 9)] == [
        ("taken-off", "kubernetes"),
        ("put-on", "alice (hold/dimm)"),
    ]
    assert (stage.rounds, stage.loop.status().problem) == (3, ""), "what it is around goes on"


def test_an_object_that_is_altered_alters_what_stands_be_it_an_earlier_end(stage: Stage) -> None:
    stage.there(hold("dimm"))
    assert stage.there(hold("dimm", reason="DIMM 5", until=UNTIL)) == [("gpu-001", "hold/dimm", "DIMM 5", UNTIL_MS)]
    stage.now = UNTIL_MS
    assert stage.held() == []
    assert stage.said("dimm") == ("Ended", f"it ended at {UNTIL}")
    assert stage.there(hold("dimm")) == [DIMM], "its end was taken away"
    assert stage.there(hold("dimm", until="2027-01-15T08:00:00Z")) == [], "an end that was before"
    acts = [each.act for each in stage.intents.history("gpu-001", 9)]
    assert acts == ["taken-off", "put-on", "ended", "altered", "put-on"]


def test_other_holds_stand_beside_it(stage: Stage) -> None:
    stage.intents.order("gpu-001", PutOn(Mark.HELD, "fan"), "bob", NOW)
    assert stage.there(hold("dimm"), hold("psu", reason="PSU")) == [
        DIMM,
        ("gpu-001", "hold/psu", "PSU", None),
        ("gpu-001", "bob", "fan", None),
    ]
    assert stage.there() == [("gpu-001", "bob", "fan", None)]


BAD = {"machine": "gpu-001", "reason": "two\nlines"}


def test_one_that_cannot_be_read_takes_out_nobody_and_lets_nobody_go(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "netboot.controllers.holds")
    bad = hold("bad").model_copy(update={"spec": BAD})
    assert stage.there(bad, hold("dimm")) == [DIMM]
    words = (
        "spec.reason: must be one line of printable text; what it held before stays held until the object is mended "
        "or deleted"
    )
    assert stage.said("bad") == ("Malformed", words)
    assert stage.there(bad, hold("dimm").model_copy(update={"spec": BAD})) == [DIMM]
    assert [record.getMessage() for record in caplog.records] == [f"hold/bad: {words}", f"hold/dimm: {words}"], "once"


def test_of_a_machine_that_there_is_not_it_waits_for_one(stage: Stage) -> None:
    assert stage.there(hold("dimm", "gpu-009"), hold("psu")) == [("gpu-001", "hold/psu", "DIMM 4", None)]
    why = "the inventory in force has no machine 'gpu-009'; it is held as soon as there is one"
    assert stage.said("dimm") == ("NoSuchMachine", why)
    more = strict.check(strict.parse(SITE.replace("gpu-002", "gpu-009"), "x"), Inventory)
    stage.inventory = more
    assert ("gpu-009", "hold/dimm", "DIMM 4", None) in stage.held()
    stage.inventory = INVENTORY
    assert ("gpu-009", "hold/dimm", "DIMM 4", None) in stage.held(), "who left the inventory is not let go"


def test_a_machine_that_was_renamed_stays_held_by_its_name_of_now(stage: Stage) -> None:
    assert stage.there(hold("dimm", "old-2")) == [("gpu-002", "hold/dimm", "DIMM 4", None)]
    assert stage.said("dimm") == ("Held", "machine gpu-002 is held")


def test_who_has_that_name_afterwards_is_not_held_and_the_renamed_machine_is_not_let_go(stage: Stage) -> None:
    """Over restarts, too, and while the object has a fault; who wants it to be of the new one makes another object."""
    held = [("gpu-002", "hold/dimm", "DIMM 4", None)]
    assert stage.there(hold("dimm", "old-2")) == held
    stage.inventory = strict.check(
        strict.parse(SITE.replace("gpu-001", "old-2").replace(", former_names: [old-2]", ""), "x"), Inventory
    )
    stage.restart()
    assert stage.held() == held
    assert stage.said("dimm") == ("Held", "machine gpu-002 is held")
    assert stage.there(hold("dimm", "old-2").model_copy(update={"spec": BAD})) == held
    stage.restart()
    taken = stage.inventory
    stage.inventory = strict.check(strict.parse(SITE.replace("gpu-001", "old-2").replace(GPU_2, ""), "x"), Inventory)
    assert stage.there(hold("dimm", "old-2")) == held, "while the machine is out of the inventory, too"
    assert stage.said("dimm")[0] == "NoSuchMachine" and "no machine 'gpu-002'" in stage.said("dimm")[1]
    stage.inventory = taken
    assert stage.held() == held
    assert stage.there(hold("dimm", "old-2", reason="DIMM 5")) == [("gpu-002", "hold/dimm", "DIMM 5", None)]
    assert stage.there(hold("dimm", "old-2", uid="u-2")) == [("old-2", "hold/dimm", "DIMM 4", None)]


def test_what_cannot_be_told_lets_nobody_go_over_restarts_too(stage: Stage) -> None:
    stage.loop.step()
    assert stage.loop.status().problem == (
        f"{STANDS}objects of namespace site: have not been read yet: see `resources` of `netboot doctor`"
    )
    assert stage.there(hold("dimm")) == [DIMM]
    [path] = stage.kept.paths()
    for damaged in (b"", b"{", b'{"namespace": "other", "objects": []}'):
        path.write_bytes(damaged)
        assert stage.held() == [DIMM]
        assert stage.loop.status().problem.startswith(STANDS)
        stage.restart()
        assert stage.held() == [DIMM]
    path.unlink()
    stage.restart()
    assert stage.held() == [DIMM]
    stage.inventory = None
    assert stage.there() == [DIMM], "nor while nobody knows which machines there are"
    stage.inventory = INVENTORY
    stage.intents.broken = True
    stage.loop.step()
    assert stage.loop.status().problem == f"{STANDS}{GONE}"
    stage.intents.broken = False
    assert stage.held() == []


names, machines = st.sampled_from(["a", "b", "c"]), st.sampled_from(["gpu-001", "gpu-002", "old-2", "gpu-009"])
ends = st.sampled_from([None, UNTIL, "2020-01-01T00:00:00Z"])
specs = st.one_of(
    st.fixed_dictionaries({"machine": machines, "reason": st.sampled_from(["x", "y"]), "until": ends}),
    st.just({"machine": "gpu-001"}),
)
worlds = st.dictionaries(names, specs)


def objects_of(world: Mapping[str, Any]) -> list[HoldObject]:
    return [object_of(hold(name).model_copy(update={"spec": spec})) for name, spec in world.items()]


@settings(deadline=None)
@given(st.lists(worlds, min_size=1, max_size=4))
def test_whatever_comes_and_goes_what_stands_is_what_is_said_and_nobody_else_s_is_touched(many: list[Any]) -> None:
    intents = MemoryIntents()
    intents.order("gpu-001", PutOn(Mark.HELD, "fan"), "bob", NOW)
    intents.order("gpu-002", PutOn(Mark.QUARANTINED, "usb", owner="remedy/1"), "netboot", NOW)
    last = dict[str, HoldSaid]()
    for world in many:
        objects = objects_of(world)
        before = {(each.owner, each.machine) for each in intents.all(NOW)}
        for step in steps(objects, intents.all(NOW), MACHINES, last, NOW):
            by = {each.name: who_of(each) for each in objects}
            intents.order(step.machine, step.order, by.get(step.name, "kubernetes"), NOW)
        assert steps(objects, intents.all(NOW), MACHINES, last, NOW) == [], "all is done"
        stands = {(each.owner, each.machine) for each in intents.all(NOW)}
        last = told = said(objects, MACHINES, last, NOW)
        assert {("operator", "gpu-001"), ("remedy/1", "gpu-002")} <= stands
        for name in ("a", "b", "c"):
            own = {machine for owner, machine in stands if owner == owner_of(name)}
            was = {machine for owner, machine in before if owner == owner_of(name)}
            why = told[name].why if name in told else "Deleted"
            if why == "Held":
                assert own == {MACHINES.present.get(world[name]["machine"], world[name]["machine"])}
            else:
                assert own == (was if why in ("Malformed", "NoSuchMachine") else set())


any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
odd_specs = any_json | st.fixed_dictionaries(
    {"machine": any_json | machines, "reason": any_json | st.just("x"), "until": any_json | ends, "by": any_json}
)


@given(st.text(max_size=70), odd_specs)
def test_whatever_an_object_has_it_is_a_hold_or_says_what_is_wrong(name: str, spec: Any) -> None:
    each = object_of(Resource(kind="hold", name=name, shown=f"hold/{name}", spec=spec, uid="u"))
    assert (each.hold is None) == bool(each.fault)
    [told] = said([each], MACHINES, {}, NOW).values()
    document = told.status()["conditions"][0]
    assert (document["type"], len(document["message"]) <= 800, document["lastTransitionTime"]) == (
        "InForce",
        True,
        "2027-01-15T08:00:00Z",
    )
    for step in steps([each], [], MACHINES, {}, NOW):
        assert isinstance(step.order, PutOn)
        Intent(
            machine=step.machine, mark=Mark.HELD, owner=step.order.owner, who=who_of(each), reason=step.order.reason,
            since_ms=NOW, until_ms=step.order.until_ms,
        )  # fmt: skip


def test_since_when_it_is_so_is_kept_until_it_is_not() -> None:
    first = said(objects_of({"a": {"machine": "gpu-001", "reason": "x"}}), MACHINES, {}, NOW)
    again = said(objects_of({"a": {"machine": "gpu-001", "reason": "y"}}), MACHINES, first, NOW + 5)
    assert (again["a"].since_ms, again["a"].why) == (NOW, "Held")
    gone = said(objects_of({"a": {"machine": "gpu-009", "reason": "y"}}), MACHINES, again, NOW + 5)
    assert (gone["a"].since_ms, gone["a"].why) == (NOW + 5, "NoSuchMachine")


# -- what the API server says of them


class Follower:
    """Who follows holds, told by hand what the API server says."""

    def __init__(self, data: Path) -> None:
        self.now, self.of, self.refused = 1_000.0, "ns/crd-1", ""
        self.standing: Set[str] = frozenset({"hold"})
        self.data, self.seen = data, list[Followed]()
        self.kept = KeptResources(data, "site", HOLDS)
        self.restart(None)

    def restart(self, written: tuple[Resource, ...] | None) -> None:
        self.controller = ResourcesController(
            ("hold",),
            lambda: self,
            self.kept,
            written,
            self.seen[-1] if self.seen else None,
            self.seen.append,
            self,
            lambda: self.now,
            tied=True,
        )
        self.controller._reflectors["hold"].problem = None

    def now_ms(self) -> int:
        return NOW + round(self.now * 1000)

    def watch(self, _kind: str, _seconds: float) -> Any:
        raise AssertionError

    def uid(self) -> str:
        if self.refused:
            raise ClusterRefusedError(self.refused)
        return self.of

    def kinds(self) -> Set[str]:
        return self.standing

    def sees(self, seen: Seen) -> list[str]:
        self.controller.take("hold", seen)
        self.now += max(SETTLE_SECONDS, UNSETTLED_SECONDS)
        self.controller.step()
        return [each.name for each in self.kept.read()]


@pytest.fixture
def follower(tmp_path: Path) -> Follower:
    return Follower(tmp_path)


MADE_ANEW = (
    "objects went with their namespace, or with the definition of their kind, and nobody meant them: hold/dimm; who "
    "does not want one any more applies it again, and deletes it; what counts is what there was at 2027-01-15T08:16:40Z"
)


def test_the_last_hold_that_is_deleted_is_gone_be_it_while_nobody_watched(follower: Follower) -> None:
    assert follower.sees(Listed((hold("dimm"), hold("psu")))) == ["dimm", "psu"]
    assert follower.sees(Changed(hold("dimm"), there=False)) == ["psu"]
    follower.restart(follower.kept.read())
    assert follower.sees(Listed(())) == []


def test_an_empty_list_of_a_definition_that_was_made_anew_lets_nobody_go(follower: Follower) -> None:
    assert follower.sees(Listed((hold("dimm"),))) == ["dimm"]
    for restarted in (False, True):
        follower.of = "ns/crd-2"
        if restarted:
            follower.restart(follower.kept.read())
        assert follower.sees(Listed(())) == ["dimm"]
        assert follower.controller.status().message == MADE_ANEW
    assert follower.sees(Changed(hold("dimm", uid="u-2"), there=True)) == ["dimm"]
    assert (follower.controller.status().ok, follower.kept.uid) == (True, "ns/crd-2")
    assert follower.sees(Changed(hold("dimm", uid="u-2"), there=False)) == [], "as its words have it"


def test_where_nobody_may_say_which_definition_it_is_nothing_goes(follower: Follower) -> None:
    assert follower.sees(Listed((hold("dimm"),))) == ["dimm"]
    follower.refused = "403"
    assert follower.sees(Listed(())) == ["dimm"]
    assert follower.controller.status().message.startswith("whether objects that went were meant cannot be told: 403")
    follower.refused, follower.standing = "", frozenset()
    assert follower.sees(Listed(())) == ["dimm"], "a definition that is being removed"


def test_more_than_is_read_is_not_written(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MOST_BYTES_OF_HOLDS", 100)
    with pytest.raises(ValueError, match="and holds have at most 100"):
        follower.kept.write([hold("dimm"), hold("psu")])


def test_what_is_wrong_with_one_of_the_two_is_said_and_keeps_none_of_the_other(tmp_path: Path) -> None:
    holds, inventory = Follower(tmp_path), Follower(tmp_path / "other")
    both = BothFollowed(inventory.controller, holds.controller)
    holds.controller._reflectors["hold"].problem = "403"
    inventory.sees(Listed(()))
    status = both.status()
    assert (status.ok, status.message, status.age_seconds) == (
        False,
        "holds: 403; nobody can tell of which moment what counts is",
        None,
    )
    holds.controller._reflectors["hold"].problem = None
    assert holds.sees(Listed((hold("dimm"),))) == ["dimm"]
    inventory.controller._reflectors["hold"].problem = "away"
    status = both.status()
    assert (status.ok, status.message.split(";")[0], status.objects) == (False, "away", {"hold": 1})


def test_holds_are_followed_where_it_is_said_and_forgotten_where_not(tmp_path: Path) -> None:
    config = make_site(tmp_path, inventory=SITE)
    config.data.mkdir()
    file = tmp_path / "netboot.yaml"
    text = file.read_text()
    for more, namespace in (("", None), ("{}", None), ("{holds: true, namespace: site}", "site")):
        file.write_text(f"{text}inventory_kubernetes: {more}\n" if more else text)
        config = load_config(file)
        assert holds_in(config) == namespace
        kept = KeptResources(config.data, "site", HOLDS)
        kept.write([hold("dimm")])
        forget_objects(config)
        assert kept.there() == (namespace is not None), more


def test_many_are_taken_a_part_at_a_time(stage: Stage) -> None:
    many = [hold(f"n-{number:03}") for number in range(MOST_AT_ONCE + 1)]
    assert len(stage.there(*many)) == MOST_AT_ONCE
    assert SaidHolds(stage.data).read() is None, "not before all is so"
    assert len(stage.held()) == MOST_AT_ONCE + 1
    assert stage.said("n-100") == ("Held", "machine gpu-001 is held")


# -- what became of them, in their status


class Told:
    """Where statuses are written."""

    def __init__(self) -> None:
        self.now, self.written, self.away = 0.0, list[tuple[str, str, str]](), False
        self.refused = self.unanswered = ""
        self.holds: HoldsSaid | None = None
        shipper = ShipperController(cast("Any", self), lambda: cast("Any", self), self)
        self.statuses = AndHoldStatuses(shipper, lambda: self.holds, lambda: self, lambda: self.now)

    def now_ms(self) -> int:
        return NOW

    def write(self, name: str, uid: str, status: Mapping[str, Any]) -> None:
        if self.away:
            raise CannotTellError("away")
        if name == self.unanswered:
            raise CannotTellError(f"500: of {name}")
        if name == self.refused:
            raise InvalidError(f"422 Invalid: {name}: not this one")
        self.written.append((name, uid, status["conditions"][0]["reason"]))

    def says(self, **whys: Any) -> None:
        self.holds = HoldsSaid(
            holds={name: HoldSaid(uid="u", why=why, message="m", since_ms=NOW) for name, why in whys.items()}
        )

    def steps(self, count: int) -> list[tuple[str, str, str]]:
        self.waited = [self.statuses.step() for _ in range(count)]
        found, self.written = self.written, []
        return found


def test_what_differs_is_written_once_and_all_of_it_now_and_then() -> None:
    told = Told()
    assert (told.steps(1), told.waited) == ([], [LOOK_SECONDS])
    told.says(a="Held", b="NoSuchMachine")
    both = [("a", "u", "Held"), ("b", "u", "NoSuchMachine")]
    assert (told.steps(3), told.waited) == (both, [PACE_SECONDS, PACE_SECONDS, LOOK_SECONDS])
    told.says(a="Ended", b="NoSuchMachine")
    assert told.steps(3) == [("a", "u", "Ended")]
    told.now = ANEW_SECONDS
    assert told.steps(3) == [("a", "u", "Ended"), ("b", "u", "NoSuchMachine")]
    told.says(b="NoSuchMachine")
    assert told.steps(1) == []
    told.says(a="Ended", b="NoSuchMachine")
    assert told.steps(2) == [("a", "u", "Ended")], "it is another one, of that name"


def test_an_api_server_that_is_away_is_said_and_asked_again() -> None:
    told = Told()
    told.statuses._shipper._reflector.problem = None
    told.says(a="Held")
    told.away = True
    assert told.steps(1) == []
    assert told.statuses.status().message == "holds: away"
    told.away = False
    assert told.steps(1) == [("a", "u", "Held")]
    assert told.statuses.status().ok


def test_one_that_is_refused_holds_up_no_other_and_is_said() -> None:
    told = Told()
    told.statuses._shipper._reflector.problem = None
    told.says(a="Held", b="Held")
    told.refused = "a"
    assert told.steps(3) == [("b", "u", "Held")]
    assert told.statuses.status().message == "holds: status of hold/a is refused: 422 Invalid: a: not this one"
    told.now, told.refused = ANEW_SECONDS, ""
    assert told.steps(2) == [("a", "u", "Held"), ("b", "u", "Held")]
    assert told.statuses.status().ok


def test_one_that_is_never_answered_holds_up_no_other() -> None:
    told = Told()
    told.statuses._shipper._reflector.problem = None
    told.says(a="Held", b="Held", c="Held")
    told.unanswered = "a"
    assert told.steps(4) == [("b", "u", "Held"), ("c", "u", "Held")]
    assert told.statuses.status().message == "holds: 500: of a"
    told.says(a="Held", b="Held", c="Ended")
    assert told.steps(1) == [("c", "u", "Ended")]
    told.unanswered = ""
    assert told.steps(2) == [("a", "u", "Held")]
    assert told.statuses.status().ok


def test_what_says_another_thing_comes_before_what_is_written_anew() -> None:
    told = Told()
    told.says(a="Held", b="Held")
    told.steps(1)
    told.now = ANEW_SECONDS / 2
    told.steps(1)
    told.now = ANEW_SECONDS
    told.says(a="Held", b="Held", c="Held")
    assert told.steps(3) == [("c", "u", "Held"), ("a", "u", "Held")]


def test_one_that_is_too_large_is_said() -> None:
    spec = {"machine": "gpu-001", "reason": "x" * 70_000}
    large = fit(Resource(kind="hold", name="dimm", shown="hold/dimm", spec=spec, uid="u"))
    words = "has 70,036 bytes, and one object has at most 65,536: leave out what it need not say"
    assert object_of(large) == HoldObject("dimm", "u", None, words)


def test_the_order_of_a_deletion_is_of_its_owner_alone() -> None:
    intent = Intent(machine="gpu-001", mark=Mark.HELD, owner=owner_of("dimm"), who="x", reason="y", since_ms=NOW)
    [step] = steps([], [intent], MACHINES, {}, NOW)
    assert step.order == TakeOff(Mark.HELD, "hold/dimm was deleted", "kubernetes/dimm")
