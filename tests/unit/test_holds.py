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
from netboot.controllers.act_statuses import ANEW_SECONDS, GONE_SECONDS, LOOK_SECONDS, PACE_SECONDS, AndStatuses
from netboot.controllers.followed import Tied, unmeant
from netboot.controllers.holds import MOST_AT_ONCE, AndHolds
from netboot.controllers.resources import KEPT_SECONDS, ResourcesController
from netboot.controllers.resources_and_acts import AndActs
from netboot.controllers.seen_objects import SETTLE_SECONDS, UNSETTLED_SECONDS
from netboot.controllers.shipper import ShipperController
from netboot.join.errors import ConflictError, InvalidError
from netboot.kube.errors import ClusterRefusedError
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.hold_steps import Machines, Place, said, steps
from netboot.lifecycle.holds import HoldObject, HoldSaid, HoldsSaid, object_of, owner_of, who_of
from netboot.lifecycle.intents import DeclaredBy, Intent, PutOn, TakeOff
from netboot.lifecycle.transitions import Mark
from netboot.machines.resources import Changed, Listed, Resource, Same, Seen, fit
from netboot.machines.values import Inventory
from netboot.status.controllers import RolloutsStatus
from netboot.status.resources import Followed
from netboot.stores import resources as stores
from netboot.stores.holds import SaidHolds
from netboot.stores.inventory import forget_objects, holds_in
from netboot.stores.resources import HOLDS, KeptResources
from tests.intents import GONE, MemoryIntents
from tests.sites import make_site

LOOK = 0.1
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
PLACE = Place("site", "of")
STANDS = "what objects hold cannot be told, and stays as it was: "


def hold(name: str, machine: str = "gpu-001", uid: str = "u-1", **more: Any) -> Resource:
    spec = {"machine": machine, "reason": "DIMM 4", **more}
    return Resource(kind="hold", name=name, shown=f"hold/{name}", spec=spec, uid=uid)


class Stage:
    """The controllers' loop around objects on the disk; `restart`: another process."""

    def __init__(self, data: Path) -> None:
        self.data, self.intents, self.rounds, self.now = data, MemoryIntents(), 0, NOW
        self.inventory: Inventory | None = INVENTORY
        self.of, self.wrong = "of", ""
        self.restart()

    def restart(self, namespace: str = "site") -> None:
        told, kept = SaidHolds(self.data), KeptResources(self.data, namespace, HOLDS)
        self.kept = KeptResources(self.data, namespace, HOLDS)
        self.loop = AndHolds(self, namespace, kept, self.intents, lambda: self.inventory, told.write, told.read(), self)

    def now_ms(self) -> int:
        return self.now

    def step(self) -> None:
        self.rounds += 1

    def forget(self) -> None:
        """What was said is lost."""
        (self.data / "holds" / "said.json").unlink()
        self.restart()

    def status(self) -> RolloutsStatus:
        return RolloutsStatus(at_ms=NOW, rollouts=(), problem=self.wrong)

    def there(self, *objects: Resource) -> list[tuple[str, str, str, int | None]]:
        self.kept.write(objects, self.of)
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


def renamed(stage: Stage) -> None:
    """The name that gpu-002 had is another machine's."""
    text = SITE.replace("gpu-001", "old-2").replace(", former_names: [old-2]", "")
    stage.inventory = strict.check(strict.parse(text, "x"), Inventory)


def test_what_it_holds_by_another_name_is_known_without_what_was_said(stage: Stage) -> None:
    held = [("gpu-002", "hold/dimm", "DIMM 4", None)]
    assert stage.there(hold("dimm", "old-2")) == held
    renamed(stage)
    stage.forget()
    assert stage.held() == held
    assert stage.said("dimm") == ("Held", "machine gpu-002 is held")
    bad = hold("dimm", "old-2").model_copy(update={"spec": BAD})
    assert stage.there(bad) == held
    stage.forget()
    assert stage.held() == held
    assert stage.there(hold("dimm", "old-2", reason="DIMM 5")) == [("gpu-002", "hold/dimm", "DIMM 5", None)]
    assert stage.there(hold("dimm", "old-2", uid="u-2")) == [("old-2", "hold/dimm", "DIMM 4", None)], "another one"


def test_a_machine_whose_name_moved_before_the_inventory_did_is_not_let_go(stage: Stage) -> None:
    """`netboot.stores.renamed` has moved what is held, and the inventory in force has the name of before still."""
    stage.there(hold("dimm"))
    [held] = stage.intents.all(NOW)
    stage.intents._intents = [held.model_copy(update={"machine": "gpu-009"})]
    assert stage.held() == [("gpu-009", "hold/dimm", "DIMM 4", None)]
    text = SITE.replace("gpu-001", "gpu-009").replace("profile: p}", "profile: p, former_names: [gpu-001]}", 1)
    stage.inventory = strict.check(strict.parse(text, "x"), Inventory)
    assert stage.held() == [("gpu-009", "hold/dimm", "DIMM 4", None)]
    assert stage.said("dimm") == ("Held", "machine gpu-009 is held")
    assert [each.act for each in stage.intents.history(None, 9)] == ["put-on"]


def test_another_namespace_lets_nobody_go_and_it_is_said_until_a_person_does(stage: Stage) -> None:
    stage.there(hold("dimm"), hold("psu", "gpu-002"))
    stage.restart("other")
    stage.of = "other-of"
    fan = ("gpu-002", "hold/psu", "fan", None)
    assert stage.there(hold("psu", "gpu-002", uid="u-2", reason="fan")) == [
        DIMM,
        fan,
        ("gpu-002", "hold/psu", "DIMM 4", None),
    ]
    assert stage.loop.status().problem == (
        "gpu-001 stays held by hold/dimm of namespace site, which is not followed: `netboot machine unhold gpu-001` "
        "lets it go; gpu-002 stays held by hold/psu of namespace site, which is not followed: `netboot machine unhold "
        "gpu-002` lets it go"
    )
    for machine in ("gpu-001", "gpu-002"):
        stage.intents.order(machine, TakeOff(Mark.HELD, "", but=owner_of("other", "")), "bob", NOW)
    assert stage.held() == [fan]
    assert stage.loop.status().problem == ""
    assert stage.there() == []


def test_a_namespace_that_is_followed_again_is_believed_where_it_is_the_same(stage: Stage) -> None:
    stage.there(hold("dimm"), hold("psu", "gpu-002"))
    stage.restart("other")
    stage.of = "other-of"
    stage.there()
    stage.restart()
    stage.of = "of"
    assert stage.there(hold("psu", "gpu-002")) == [("gpu-002", "hold/psu", "DIMM 4", None)]


def test_what_was_read_is_lost_while_the_definition_was_made_anew_and_nobody_is_let_go(stage: Stage) -> None:
    stage.there(hold("dimm"))
    [path] = stage.kept.paths()
    path.unlink()
    stage.of = "of-2"
    assert stage.there() == [DIMM]
    assert stage.loop.status().problem == (
        "gpu-001 stays held by hold/dimm, which went with its namespace, or with the definition of Holds: apply it "
        "again, and where it is not meant any more delete it when it holds"
    )
    assert stage.there(hold("dimm", uid="u-2")) == [DIMM]
    assert stage.loop.status().problem == ""
    assert stage.there() == []
    stage.of = ""
    assert stage.there(hold("dimm", uid="u-2")) == [DIMM]
    assert stage.there() == [DIMM], "what is not known is equal to nothing"


def test_another_machine_s_hold_of_that_name_lets_nobody_go_where_the_definition_was_made_anew(stage: Stage) -> None:
    assert stage.there(hold("dimm")) == [DIMM]
    stage.of = "of-2"
    now = hold("dimm", "gpu-002", uid="u-2")
    assert stage.there(now) == [DIMM, ("gpu-002", "hold/dimm", "DIMM 4", None)]
    assert "gpu-001 stays held by hold/dimm, which went with its namespace" in stage.loop.status().problem
    assert stage.there(hold("dimm", uid="u-3")) == [DIMM], "of this definition the one before was deleted"


def old_form(stage: Stage, machine: str = "gpu-001") -> None:
    """What an older version wrote."""
    stage.intents.order(machine, PutOn(Mark.HELD, "DIMM 4", None, "kubernetes/dimm", exactly=True), "hold/dimm", NOW)


def owners(stage: Stage) -> list[str]:
    return [f"{each.machine} {each.owner}" for each in stage.intents.all(NOW)]


def test_what_an_older_version_wrote_goes_on_and_is_one_s_own_then(stage: Stage) -> None:
    old_form(stage)
    assert stage.there(hold("dimm").model_copy(update={"spec": BAD})) == [DIMM]
    assert stage.there(hold("dimm")) == [DIMM]
    assert owners(stage) == ["gpu-001 kubernetes/site/dimm"]
    assert stage.loop.status().problem == "", "nor was it in between"
    assert stage.there() == []


def test_what_an_older_version_wrote_is_no_other_object_s(stage: Stage) -> None:
    old_form(stage)
    assert stage.there(hold("dimm", "gpu-002")) == [DIMM, ("gpu-002", "hold/dimm", "DIMM 4", None)]
    assert owners(stage) == ["gpu-001 kubernetes/dimm", "gpu-002 kubernetes/site/dimm"]
    said = (
        "gpu-001 stays held by hold/dimm, of which no namespace is known: `netboot machine unhold gpu-001` lets it go"
    )
    assert stage.loop.status().problem == said
    assert stage.there() == [DIMM], "nor believed to be gone"
    assert stage.loop.status().problem == said


def test_what_an_older_version_wrote_of_a_renamed_machine_is_of_that(stage: Stage) -> None:
    old_form(stage, "gpu-002")
    said = HoldSaid(uid="u-1", machine="old-2", held="gpu-002", why="Held", message="", since_ms=NOW)
    SaidHolds(stage.data).write(HoldsSaid(holds={"dimm": said}))
    stage.restart()
    renamed(stage)
    assert stage.there(hold("dimm", "old-2")) == [("gpu-002", "hold/dimm", "DIMM 4", None)]
    assert owners(stage) == ["gpu-002 kubernetes/site/dimm"]


def test_the_uid_of_one_that_went_is_told_without_what_was_said(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "netboot.audit")
    stage.there(hold("dimm"))
    stage.forget()
    assert [each["act"] for each in audited(caplog)] == ["hold"]
    assert stage.there() == []
    assert [(each["act"], each["uid"]) for each in audited(caplog)] == [("unhold", "u-1")]


def test_a_defect_is_said_and_what_it_is_around_goes_on(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.there(hold("dimm"))
    monkeypatch.setattr(stage.intents, "all", lambda now_ms: 1 // (now_ms - NOW))
    stage.loop.step()
    assert (stage.rounds, stage.loop.status().problem) == (2, f"{STANDS}a defect; see the log")
    stage.wrong = "away"
    assert stage.loop.status().problem == f"away; {STANDS}a defect; see the log"
    [record] = [record for record in caplog.records if record.exc_info]
    assert (
        record.getMessage()
        == "Holds are not followed, by a defect: ZeroDivisionError('integer division or modulo by zero')"
    )


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
        for step in steps(objects, intents.all(NOW), PLACE, MACHINES, last, NOW):
            by = {each.name: who_of(each) for each in objects}
            intents.order(step.machine, step.order, by.get(step.name, "kubernetes"), NOW)
        assert steps(objects, intents.all(NOW), PLACE, MACHINES, last, NOW) == [], "all is done"
        stands = {(each.owner, each.machine) for each in intents.all(NOW)}
        last = told = said(objects, intents.all(NOW), PLACE, MACHINES, last, NOW)
        assert {("operator", "gpu-001"), ("remedy/1", "gpu-002")} <= stands
        for name in ("a", "b", "c"):
            own = {machine for owner, machine in stands if owner == owner_of("site", name)}
            was = {machine for owner, machine in before if owner == owner_of("site", name)}
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
    [told] = said([each], [], PLACE, MACHINES, {}, NOW).values()
    document = told.status()["conditions"][0]
    assert (document["type"], len(document["message"]) <= 800, document["lastTransitionTime"]) == (
        "InForce",
        True,
        "2027-01-15T08:00:00Z",
    )
    for step in steps([each], [], PLACE, MACHINES, {}, NOW):
        assert isinstance(step.order, PutOn)
        Intent(
            machine=step.machine, mark=Mark.HELD, owner=step.order.owner, who=who_of(each), reason=step.order.reason,
            since_ms=NOW, until_ms=step.order.until_ms,
        )  # fmt: skip


def test_since_when_it_is_so_is_kept_until_it_is_not() -> None:
    first = said(objects_of({"a": {"machine": "gpu-001", "reason": "x"}}), [], PLACE, MACHINES, {}, NOW)
    again = said(objects_of({"a": {"machine": "gpu-001", "reason": "y"}}), [], PLACE, MACHINES, first, NOW + 5)
    assert (again["a"].since_ms, again["a"].why) == (NOW, "Held")
    gone = said(objects_of({"a": {"machine": "gpu-009", "reason": "y"}}), [], PLACE, MACHINES, again, NOW + 5)
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
            tied=Tied("who does not want one any more applies it again, and deletes it"),
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


def test_new_ones_are_taken_while_those_that_went_are_not_believed_to_be_gone(follower: Follower) -> None:
    """And are of the definition of before, for as long as one of those is not there again: nothing is let go of it."""
    assert follower.sees(Listed((hold("dimm"),))) == ["dimm"]
    follower.of = "ns/crd-2"
    assert follower.sees(Listed((hold("psu", uid="u-2"),))) == ["dimm", "psu"]
    assert follower.controller.status().message == MADE_ANEW
    assert follower.kept.uid == "ns/crd-1"
    assert follower.sees(Changed(hold("psu", uid="u-2", reason="fan"), there=True)) == ["dimm", "psu"]
    assert [each.spec["reason"] for each in follower.kept.read()] == ["DIMM 4", "fan"]
    assert follower.sees(Changed(hold("psu", uid="u-2"), there=False)) == ["dimm"], "who makes and deletes them"
    assert follower.sees(Changed(hold("psu", uid="u-3"), there=True)) == ["dimm", "psu"]
    follower.restart(follower.kept.read())
    assert follower.sees(Listed((hold("fan", uid="u-2"),))) == ["dimm", "fan", "psu"], "nobody can tell any more"
    assert follower.kept.uid == "ns/crd-1", "over restarts, too"
    again = [hold(name, uid="u-4") for name in ("dimm", "fan", "psu")]
    assert follower.sees(Listed(tuple(again))) == ["dimm", "fan", "psu"]
    assert (follower.controller.status().ok, follower.kept.uid) == (True, "ns/crd-2")
    assert follower.sees(Listed(())) == []


def test_of_when_those_are_that_came_is_known_where_what_went_is_not_believed_to_be_gone(follower: Follower) -> None:
    follower.sees(Listed((hold("dimm"),)))
    follower.of = "ns/crd-2"
    follower.sees(Listed(()))
    before = follower.seen[-1].seen_ms
    follower.now += KEPT_SECONDS
    follower.controller.take("hold", Same())
    follower.controller.step()
    assert follower.seen[-1] == Followed(seen_ms=before, came_ms=follower.now_ms())
    follower.now += KEPT_SECONDS
    assert follower.sees(Changed(hold("psu"), there=True)) == ["dimm", "psu"]
    assert follower.seen[-1] == Followed(seen_ms=before, came_ms=follower.now_ms() - 5000)


def test_a_file_that_is_taken_away_meanwhile_is_written_again(follower: Follower) -> None:
    follower.sees(Listed((hold("dimm"),)))
    follower.of = "ns/crd-2"
    follower.sees(Listed(()))
    [path] = follower.kept.paths()
    path.unlink()
    for _ in range(round(2 * UNSETTLED_SECONDS / LOOK)):
        follower.now += LOOK
        follower.controller.take("hold", Same())
        follower.controller.step()
    assert [each.name for each in follower.kept.read()] == ["dimm"]


def test_what_is_said_of_objects_all_the_time_keeps_no_change_of_them_waiting(follower: Follower) -> None:
    follower.sees(Listed((hold("dimm"), hold("psu"))))
    said = [hold("psu").model_copy(update={"status": {"state": str(number)}}) for number in range(60)]
    writes, inode = list[float](), 0
    [path] = follower.kept.paths()
    for number, each in enumerate(said):
        follower.now += LOOK
        follower.controller.take("hold", Changed(each, there=True))
        if number == 10:
            follower.controller.take("hold", Changed(hold("dimm"), there=False))
            gone_at = follower.now
        follower.controller.step()
        if path.stat().st_ino != inode:
            inode = path.stat().st_ino
            writes.append(follower.now)
    first, *later = writes[1:]
    assert first - gone_at == pytest.approx(SETTLE_SECONDS)
    assert [each.name for each in follower.kept.read()] == ["psu"]
    assert len(later) == 0, "what is said alone is written each few seconds"
    follower.now += UNSETTLED_SECONDS
    follower.controller.step()
    assert [each.status for each in follower.kept.read()] == [{"state": "59"}]


def test_a_list_is_of_when_it_was_asked_for(follower: Follower) -> None:
    """Of many pages it is as it was with the first."""
    follower.sees(Listed((hold("dimm"),)))
    with pytest.raises(AssertionError):  # nobody watches here
        follower.controller._watch("hold", 1.0)
    asked = follower.now_ms()
    follower.now += 2 * KEPT_SECONDS
    follower.sees(Listed((hold("dimm"),)))
    assert follower.seen[-1].seen_ms == asked


def test_of_what_has_come_to_its_end_nothing_is_missed(follower: Follower) -> None:
    tied = Tied("do it anew", lambda each: each.name == "over")
    assert unmeant("ns/crd-1", [hold("over")], [], lambda: follower, tied) == ""
    follower.of = "ns/crd-2"
    assert unmeant("ns/crd-1", [hold("over")], [], lambda: follower, tied) == ""
    assert unmeant("ns/crd-1", [hold("over"), hold("psu")], [], lambda: follower, tied) == (
        "objects went with their namespace, or with the definition of their kind, and nobody meant them: hold/psu; "
        "do it anew"
    )


def test_new_ones_that_go_with_their_definition_too_are_not_believed_to_be_gone(follower: Follower) -> None:
    assert follower.sees(Listed((hold("dimm"), hold("fan")))) == ["dimm", "fan"]
    follower.of = "ns/crd-2"
    assert follower.sees(Listed((hold("fan"), hold("psu", uid="u-2")))) == ["dimm", "fan", "psu"]
    assert follower.sees(Listed((hold("psu", uid="u-2"),))) == ["dimm", "fan", "psu"], "a word that came late"
    follower.standing = frozenset()
    assert follower.sees(Listed(())) == ["dimm", "fan", "psu"]
    follower.of, follower.standing = "ns/crd-3", frozenset({"hold"})
    assert follower.sees(Listed(())) == ["dimm", "fan", "psu"]
    follower.refused = "403"
    assert follower.sees(Listed(())) == ["dimm", "fan", "psu"]


def test_where_nobody_may_say_which_definition_it_is_nothing_goes(follower: Follower) -> None:
    assert follower.sees(Listed((hold("dimm"),))) == ["dimm"]
    follower.refused = "403"
    assert follower.sees(Listed(())) == ["dimm"]
    assert follower.controller.status().message.startswith("whether objects that went were meant cannot be told: 403")
    follower.refused, follower.standing = "", frozenset()
    assert follower.sees(Listed(())) == ["dimm"], "a definition that is being removed"


def test_what_is_left_of_a_definition_that_is_being_removed_is_no_first_reading(follower: Follower) -> None:
    """What was read before was lost: nobody could tell later what went with the definition."""
    follower.standing = frozenset()
    follower.controller.take("hold", Listed((hold("psu"),)))
    follower.now += UNSETTLED_SECONDS
    follower.controller.step()
    assert not follower.kept.there()
    assert follower.controller.status().message.startswith(
        "the API server has removed objects with the definition of their kind, or with their namespace, and nobody "
        "meant them: hold"
    )
    follower.standing = frozenset({"hold"})
    assert follower.sees(Listed((hold("psu"), hold("fan")))) == ["fan", "psu"]


def test_too_many_are_said_as_that_and_not_tried_in_each_round(
    follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert follower.sees(Listed((hold("dimm"),))) == ["dimm"]
    monkeypatch.setattr(follower.kept, "_most_objects", 1)
    assert follower.sees(Listed((hold("dimm"), hold("psu")))) == ["dimm"]
    status = follower.controller.status()
    assert (status.ok, status.message.split(";")[0], status.remedy) == (
        False,
        "there are 2 Holds, and namespace site may have 1",
        "delete objects that are not meant, and bound how many there may be by a ResourceQuota",
    )
    tried, write = list[int](), follower.kept.write

    def counted(*args: Any) -> None:
        tried.append(1)
        write(*args)

    monkeypatch.setattr(follower.kept, "write", counted)
    for _ in range(9):
        follower.now += UNSETTLED_SECONDS / 10
        follower.controller.step()
    assert tried == []
    follower.now += UNSETTLED_SECONDS
    follower.controller.step()
    assert tried == [1], "but again and again"
    assert follower.sees(Changed(hold("psu"), there=False)) == ["dimm"]
    assert follower.controller.status().ok


def test_more_than_is_read_is_not_written(follower: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower.kept, "_most", 100)
    with pytest.raises(stores.TooMuchError, match="and holds have at most 100"):
        follower.kept.write([hold("dimm"), hold("psu")])


def test_what_is_wrong_with_one_of_the_two_is_said_and_keeps_none_of_the_other(tmp_path: Path) -> None:
    holds, inventory = Follower(tmp_path), Follower(tmp_path / "other")
    both = AndActs(inventory.controller, {"holds": holds.controller})
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
        self.refused = self.unanswered = self.gone = self.unforeseen = ""
        self.holds: HoldsSaid | None = None
        self.shipper = ShipperController(cast("Any", self), lambda: cast("Any", self), self)
        self.statuses = AndStatuses(self.shipper, "hold", lambda: self.holds, lambda: self, lambda: self.now)

    def now_ms(self) -> int:
        return NOW

    def write(self, name: str, uid: str, status: Mapping[str, Any]) -> None:
        if self.away:
            raise CannotTellError("away")
        if name == self.unanswered:
            raise CannotTellError(f"500: of {name}")
        if name == self.gone:
            raise ConflictError(f"404 NotFound: {name} not found")
        if name == self.unforeseen:
            raise KeyError(name)
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
    told.shipper._reflector.problem = None
    told.says(a="Held")
    told.away = True
    assert told.steps(1) == []
    assert told.statuses.status().message == "holds: away"
    told.away = False
    assert told.steps(1) == [("a", "u", "Held")]
    assert told.statuses.status().ok


def test_one_that_is_refused_holds_up_no_other_and_is_said() -> None:
    told = Told()
    told.shipper._reflector.problem = None
    told.says(a="Held", b="Held")
    told.refused = "a"
    assert told.steps(3) == [("b", "u", "Held")]
    assert told.statuses.status().message == "holds: status of hold/a is refused: 422 Invalid: a: not this one"
    told.now, told.refused = ANEW_SECONDS, ""
    assert told.steps(2) == [("a", "u", "Held"), ("b", "u", "Held")]
    assert told.statuses.status().ok


def test_one_of_which_the_answer_is_not_understood_holds_up_no_other_and_is_named() -> None:
    told = Told()
    told.shipper._reflector.problem = None
    told.says(a="Held", b="Held")
    told.unforeseen = "a"
    assert told.steps(3) == [("b", "u", "Held")]
    assert told.statuses.status().message == (
        "holds: status of hold/a is refused: no answer that is understood: a defect; see the log"
    )
    told.now, told.unforeseen = ANEW_SECONDS, ""
    assert told.steps(2) == [("a", "u", "Held"), ("b", "u", "Held")]
    assert told.statuses.status().ok


def test_one_that_is_gone_for_the_api_server_alone_is_said_after_a_while() -> None:
    told = Told()
    told.shipper._reflector.problem = None
    told.says(a="Held", b="Held")
    told.gone = "a"
    assert told.steps(3) == [("b", "u", "Held")]
    assert told.statuses.status().ok, "it was deleted a moment ago"
    told.now = GONE_SECONDS
    told.steps(1)
    assert told.statuses.status().message == "holds: status of hold/a is refused: 404 NotFound: a not found"
    told.says(b="Held")
    told.steps(1)
    assert told.statuses.status().ok


def test_what_is_wrong_with_machines_hides_nothing_of_holds() -> None:
    told = Told()
    told.shipper._reflector.problem = "403"
    told.says(a="Held")
    told.refused = "a"
    told.steps(2)
    assert told.statuses.status().message == ("403; holds: status of hold/a is refused: 422 Invalid: a: not this one")


def test_a_status_says_of_which_generation_it_is(stage: Stage) -> None:
    stage.there(hold("dimm").model_copy(update={"generation": 2}))
    told = SaidHolds(stage.data).read()
    assert told is not None
    assert told.holds["dimm"].status() == {
        "conditions": [
            {
                "type": "InForce",
                "status": "True",
                "reason": "Held",
                "message": "machine gpu-001 is held",
                "lastTransitionTime": "2027-01-15T08:00:00Z",
                "observedGeneration": 2,
            }
        ]
    }
    stage.there(hold("dimm").model_copy(update={"generation": 3}))
    again = SaidHolds(stage.data).read()
    assert again is not None and again.holds["dimm"].generation == 3
    unknown = HoldSaid(uid="u", why="Held", message="m", since_ms=NOW).status()
    assert unknown["conditions"][0]["observedGeneration"] == 0, "one that has none is believed"


def test_what_became_of_the_most_holds_is_read_again_and_once(tmp_path: Path) -> None:
    said = HoldSaid(uid="u" * 36, machine="m" * 64, held="m" * 64, by="b" * 64, why="Held", message="m", since_ms=NOW)
    file = SaidHolds(tmp_path)
    assert file.write(HoldsSaid(holds={f"n-{number:060}": said for number in range(stores.MOST_HOLDS)}))
    read = SaidHolds(tmp_path).read()
    assert read is not None and len(read.holds) == stores.MOST_HOLDS
    assert file.read() is file.read()
    file.write(HoldsSaid())
    assert file.read() == HoldsSaid()


def test_one_that_is_never_answered_holds_up_no_other() -> None:
    told = Told()
    told.shipper._reflector.problem = None
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


def test_whoever_waits_for_longest_comes_first_and_more_than_words_before_these() -> None:
    told = Told()
    told.says(a="Held", b="Held", c="Held")
    told.steps(1)
    for step, why in enumerate(("Ended", "Held", "Ended", "Held"), 1):
        told.now = float(step)
        told.says(a=why, b="Held", c="Held")
        told.steps(1)
    told.says(a="Ended", b="Held", c="Held")
    told.now = 9.0
    assert told.steps(1) == [("a", "u", "Ended")], "all others were written meanwhile"

    class Words:
        def statuses(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
            return {
                name: ("u", {"state": state, "message": f"{told.now:.0f}", "conditions": [{"reason": name}]})
                for name, state in (("a", "1"), ("b", "1"), ("c", "2" if told.now > 100 else "1"))
            }

    told = Told()
    told.holds = cast("Any", Words())
    told.steps(3)
    told.now, told.holds = 101.0, cast("Any", Words())
    assert [name for name, *_ in told.steps(3)] == ["c", "a", "b"]
    for now in (102.0, 103.0):  # one step of each: whose words were written last has to wait
        told.now, told.holds = now, cast("Any", Words())
        told.steps(1)
    told.now, told.holds = 104.0, cast("Any", Words())
    assert [name for name, *_ in told.steps(3)] == ["c", "a", "b"]


def test_one_that_is_too_large_is_said() -> None:
    spec = {"machine": "gpu-001", "reason": "x" * 70_000}
    large = fit(Resource(kind="hold", name="dimm", shown="hold/dimm", spec=spec, uid="u"))
    words = "has 70,036 bytes, and one object has at most 65,536: leave out what it need not say"
    assert object_of(large) == HoldObject("dimm", "u", None, words)


def test_the_order_of_a_deletion_is_of_its_owner_alone() -> None:
    owner, by = owner_of("site", "dimm"), DeclaredBy(of="of", uid="u-1", machine="gpu-001")
    intent = Intent(machine="gpu-001", mark=Mark.HELD, owner=owner, who="x", reason="y", since_ms=NOW, object=by)
    [step] = steps([], [intent], PLACE, MACHINES, {}, NOW)
    assert step.order == TakeOff(Mark.HELD, "hold/dimm was deleted", "kubernetes/site/dimm")
