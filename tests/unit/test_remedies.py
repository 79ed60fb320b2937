"""The loop that helps machines: by its file and its clocks, and killed at each of its writes."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netboot.controllers.evidence import Evidence
from netboot.controllers.helping import AndRemedies
from netboot.controllers.remedies import MOST_WRITES, RemedyController, Surveyed
from netboot.join.node_drains import ORDER
from netboot.lifecycle.conditions import Judged
from netboot.lifecycle.intents import PutOn, TakeOff
from netboot.lifecycle.known import Node
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import Reason
from netboot.lifecycle.remedies import Pause, Standing, Taking
from netboot.lifecycle.remedy_policy import end_of
from netboot.lifecycle.transitions import Mark
from netboot.machines.maintenance import Freeze, Signal
from netboot.status.controllers import LifecycleStatus, RolloutsStatus
from netboot.stores.drains import SqliteDrains
from netboot.stores.intents import make
from netboot.stores.remedies import SqliteRemedies
from tests import drain_world, lifecycle_world
from tests.records import START, boot_id, event, script
from tests.remedies import remedy, rules
from tests.remedy_world import PLACE, KilledError, Outside, World

KURED = "kured reboots it (annotation weave.works/kured-reboot-in-progress)"


def test_one_that_is_not_well_is_rebooted_once_and_then_put_in_quarantine(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world = World(tmp_path)
    world.ill("m001")
    world.run(30)
    assert world.done() == []
    (shown,) = world.said.machines
    assert shown == Standing(
        machine="m001",
        reason=Reason.CHECKS_FAILED,
        since_ms=START,
        message="a check failed",
        what="reboot",
        left_seconds=10,
        words="",
    )
    world.run(0.2)
    assert world.done() == [("m001", "reboot")]
    assert world.store.one(1)[1] == f'"m001 {boot_id("m001", 1)}"'
    assert world.words("m001") == "it is to be rebooted, by remedy 1: remedy 1: ChecksFailed: a check failed"
    audit = [record.fields for record in caplog.records if record.name == "netboot.audit"]  # type: ignore[attr-defined]
    assert audit == [
        {
            "act": "remedy-reboot",
            "operator": "netboot",
            "machine": "m001",
            "remedy": 1,
            "reason": "ChecksFailed: a check failed",
        }
    ]
    world.rebooted("m001")
    world.ill("m001")
    world.run(30)
    assert (world.done(), world.said.under) == ([("m001", "reboot")], 1)
    world.run(0.2)
    assert world.done() == [("m001", "reboot"), ("m001", "quarantine")]
    assert [intent.mark for intent in world.intents.of("m001", world.now_ms())] == [Mark.QUARANTINED]
    world.run(60)
    assert len(world.done()) == 2
    assert world.said.taken == {"reboot": 1, "quarantine": 1}


def test_one_that_recovers_by_itself_or_by_its_reboot_gives_its_place_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world = World(tmp_path)
    world.ill("m001", "m002")
    world.run(29)
    world.well("m001")
    world.run(2)
    assert (world.done(), world.said.under) == ([("m002", "reboot")], 1)
    world.well("m002")
    world.run(1)
    assert world.said.under == 1, "it is in service in the boot that is to be rebooted"
    world.rebooted("m002")
    world.boots["m002"] = 1
    world.run(1)
    assert world.said.under == 1, "what was found of it is of the boot before"
    world.boots["m002"] = 2
    world.run(1)
    assert (world.taken()[0].end, world.said.under) == ("back", 0)
    lines = {each.getMessage(): each.fields for each in caplog.records if hasattr(each, "fields")}
    about = {"machine": "m002", "remedy": 1}
    assert lines["a remedy was begun"] == {"what": "reboot", **about, "reason": "ChecksFailed: a check failed"}
    assert lines["a remedy ended"] == {**about, "end": "back"}


def test_a_node_that_is_not_ready_is_put_in_quarantine_and_readmitted_by_a_person(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001", reason=Reason.NODE_NOT_READY)
    world.run(31)
    assert world.done() == [("m001", "quarantine")]
    assert world.drains.standing() == []
    world.intents.order("m001", TakeOff(Mark.QUARANTINED, "looked at"), "ann", world.now_ms())
    world.well("m001")
    world.run(1)
    assert world.taken()[0].end == "readmitted"


def test_an_order_that_came_to_nothing_is_waited_after_anew(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001")
    world.run(31)
    (order,) = world.drains.standing()
    world.run(29)
    world.drains.finish(order.id, "undone", "a budget", world.now_ms())
    world.run(29)
    assert len(world.done()) == 1
    assert world.taken()[0].end == "undone"
    world.run(2)
    assert world.done() == [("m001", "reboot"), ("m001", "quarantine")]


def test_waits_stand_still_while_it_cannot_be_seen_and_begin_anew_with_the_process(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001")
    world.run(29)
    for blind in ({"unseen": (PLACE,)}, {"silent": True}):
        for name, value in blind.items():
            setattr(world, name, value)
        world.run(60)
        world.unseen, world.silent = (), False
        world.run(0.2)
        assert world.done() == []
    ailing, world.ailing = world.ailing, None
    world.run(60)
    world.ailing = ailing
    world.start()
    world.run(29)
    assert world.done() == []
    world.run(2)
    assert world.done() == [("m001", "reboot")]


def test_a_wait_begins_anew_when_it_was_well_meanwhile_or_somebody_lets_it_go(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001", "m011")
    world.run(29)
    world.well("m001")
    world.intents.order("m011", PutOn(Mark.HELD, "DIMM 4"), "ann", world.now_ms())
    world.run(1)
    world.ill("m001")
    world.intents.order("m011", TakeOff(Mark.HELD, "replaced"), "ann", world.now_ms())
    world.run(29)
    assert world.done() == []
    world.run(2)
    assert world.done() == [("m011", "reboot"), ("m001", "reboot")]


def test_none_is_taken_for_ended_while_that_cannot_be_told(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001")
    world.run(31)
    world.rebooted("m001")
    world.well("m001")
    well, world.ailing = world.ailing, None  # the process has begun anew
    world.run(1)
    assert world.taken()[0].end is None
    world.ailing, world.silent = well, True
    world.run(1)
    assert world.taken()[0].end is None
    world.silent = False
    world.run(1)
    assert world.taken()[0].end == "back"


@pytest.mark.parametrize(("place", "words"), [(PLACE, f"{PLACE} cannot be looked at"), ("nodes/default/cpu", "")])
def test_what_is_due_when_its_place_is_lost_from_sight_is_withheld(tmp_path: Path, place: str, words: str) -> None:
    world = World(tmp_path)
    world.ill("m001")
    world.rollouts = {"m001": "rollout 3 of channel stable has it"}
    world.run(31)
    assert world.words("m001") == "rollout 3 of channel stable has it"
    world.rollouts, world.unseen = {}, (place,)
    world.run(0.2)
    assert world.done() == ([] if words else [("m001", "reboot")])
    assert world.words("m001").startswith(words)


def test_a_signal_from_outside_withholds_a_remedy_until_it_says_otherwise(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001")
    world.outside.signal = Signal(may=False, reason="https://change.example says: release of the week")
    world.run(100)
    assert world.done() == []
    assert world.words("m001") == "nothing begins: https://change.example says: release of the week"
    world.outside.signal = Signal(may=True, reason="https://change.example lets things begin")
    world.run(1)
    assert world.done() == [("m001", "reboot")]


def test_what_is_withheld_is_on_record_and_says_why(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001", holder=KURED)
    world.freeze = Freeze(who="bob", reason="audit", since_ms=START)
    world.run(40)
    world.ill("m001")
    world.run(40)
    world.freeze = None
    world.intents.order("m001", PutOn(Mark.HELD, "DIMM 4"), "ann", world.now_ms())
    world.run(100)
    assert world.words("m001") == "it is held, by ann: DIMM 4"
    assert world.done() == []
    held = f"{KURED}: netboot leaves it alone until it is let go"
    noted = [each.words for each in world.store.latest("m001", 10)]
    assert noted == ["nothing begins: frozen by bob: audit", held]
    assert world.said.withheld == 0
    calls = world.store.calls
    world.run(10)
    assert world.store.calls == calls


def test_one_of_a_rack_at_once_and_of_the_fleet_so_many(tmp_path: Path) -> None:
    world = World(tmp_path, fleet="1%")
    for name in ("m000", "m001", "m008", "m016", "m024", "m032"):
        world.ill(name)
        world.run(11)
    world.run(40)
    assert world.done() == [(name, "reboot") for name in ("m000", "m008", "m016", "m024")]
    assert world.words("m001") == (
        "no more than 4 machines may be out of service (class hgx), and 4 are: "
        "m000 (by remedy 1), m008 (by remedy 3), m016 (by remedy 4) and 1 more"
    )
    world.rebooted("m000")
    world.well("m000")
    world.run(1)
    assert world.done()[-1] == ("m001", "reboot"), "the longest ill comes first"


def test_what_has_one_cause_stops_everything_until_a_person_resumes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.ill("m100")
    world.run(20)
    world.ill("m000", "m008", "m016")
    world.run(60)
    cause = "m000, m008, m016 in 3 racks are not well for one reason, ChecksFailed, within ten minutes"
    assert world.done() == []
    assert world.said.paused == f"remedies are paused by netboot: {cause}"
    [said] = [
        each for each in caplog.records if each.getMessage() == "remedies are paused until `netboot remedies resume`"
    ]
    assert said.fields == {"reason": cause}  # type: ignore[attr-defined]
    world.start()
    assert world.controller.cause() == f"remedies are paused by netboot: {cause}"
    world.run(60)
    assert (world.done(), world.said.withheld) == ([], 4)
    world.store.pause(Pause(stands=False, who="ann", reason="it was the switch", since_ms=world.now_ms()))
    world.run(1)
    assert world.done() == [(name, "reboot") for name in ("m100", "m000", "m008", "m016")]
    assert (world.said.paused, world.controller.cause()) == ("", "")


def test_one_cause_is_seen_also_while_a_person_has_paused_them(tmp_path: Path) -> None:
    """Rollouts that undo themselves ask for it."""
    world = World(tmp_path)
    ann = Pause(stands=True, who="ann", reason="power work", since_ms=world.now_ms())
    world.store.pause(ann)
    world.ill("m000", "m008", "m016")
    world.run(1)
    cause = "m000, m008, m016 in 3 racks are not well for one reason, ChecksFailed, within ten minutes"
    assert (world.controller.cause(), world.store.books(world.now_ms()).pause) == (cause, ann)
    for name in ("m000", "m008"):
        world.well(name)
    world.run(1)
    assert world.controller.cause() == ""


def test_where_many_wait_a_look_writes_only_so_much(tmp_path: Path) -> None:
    world = World(tmp_path, act=False)
    world.ill(*world.names[:60])
    world.run(30.2)
    assert (len(world.store.latest(None, 99)), world.said.withheld) == (MOST_WRITES, 60)
    world.run(0.2)
    assert len(world.store.latest(None, 99)) == 60


def test_nothing_is_taken_while_what_is_at_hand_cannot_be_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001")
    world.evidence_lost = True
    world.run(31)
    assert (world.done(), world.controller.problem) == ([], "state.db cannot be read")
    rollouts = AndRemedies(Idle(), world.controller)
    assert rollouts.status().problem == "remedies: state.db cannot be read"
    world.evidence_lost = False
    world.run(0.2)
    assert (world.done(), world.controller.problem) == ([("m001", "reboot")], "")
    assert rollouts.status().problem == ""


def test_one_whose_evidence_cannot_be_read_hinders_no_other(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.torn = {"m001"}
    world.ill("m001")
    world.run(1)
    world.ill("m100")
    world.run(32)
    assert world.done() == [("m100", "reboot")]
    assert world.words("m001") == "what is at hand of its boot cannot be read: state.db cannot be read"
    assert (world.controller.problem, world.said.withheld) == ("state.db cannot be read", 1)
    world.torn = set()
    world.run(0.2)
    assert world.done() == [("m100", "reboot"), ("m001", "reboot")]
    assert (world.controller.problem, world.said.withheld) == ("", 0)


def test_what_cannot_be_told_of_machines_is_said_and_not_that_all_are_well(tmp_path: Path) -> None:
    world = World(tmp_path)
    ailing, world.ailing = world.ailing, None
    world.run(0.2)
    assert (world.said.unseen, world.said.ailing) == ("not all machines have been judged since the start", 0)
    world.ailing, world.silent = ailing, True
    world.run(0.2)
    assert world.said.unseen == "the lifecycle loop is silent"
    world.silent, world.unseen = False, (PLACE,)
    world.run(0.2)
    assert world.said.unseen == f"{PLACE} cannot be looked at"
    world.unseen = ()
    world.run(0.2)
    assert (world.said.unseen, world.controller.problem) == ("", "")


def test_one_that_was_well_between_two_looks_waits_anew(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.ill("m001")
    world.run(29)
    world.well("m001")
    world.ill("m001")
    world.run(29)
    assert world.done() == []
    world.run(2)
    assert world.done() == [("m001", "reboot")]


class Idle:
    """No rollouts."""

    def step(self) -> None: ...

    def status(self) -> RolloutsStatus:
        return RolloutsStatus(at_ms=0, rollouts=())


def life(world: World) -> None:
    """One machine that fails for good, one that a reboot helps, and one that leaves the inventory."""
    for name in ("m001", "m008", "m016"):
        if world.ailing is not None and world.boots[name] == 1 and name in world.declared:
            world.ill(name, reason=Reason.CHECKS_FAILED)
        advance(world, 11)
    advance(world, 22)
    for name in ("m001", "m008"):
        if any(each.machine == name for each in world.drains.standing()):
            world.rebooted(name)
    world.well("m008")
    world.ill("m001")
    advance(world, 22)
    world.declared.pop("m016", None)
    (world.ailing or {}).pop("m016", None)
    advance(world, 1)


def advance(world: World, minutes: int) -> None:
    """Time passes, whoever is killed meanwhile begins anew."""
    for _ in range(minutes * 2):
        try:
            world.run(0.5)
        except KilledError:
            world.start()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_any_write_it_neither_acts_twice_nor_loses_what_it_did(tmp_path: Path, after: bool) -> None:
    (tmp_path / "whole").mkdir()
    whole = World(tmp_path / "whole", wait=600)
    life(whole)
    expected = sorted((each.machine, each.what, each.end) for each in whole.taken())
    assert expected == [
        ("m001", "quarantine", None),
        ("m001", "reboot", "replaced"),
        ("m008", "reboot", "back"),
        ("m016", "reboot", "gone"),
    ]
    for at in range(1, whole.store.calls + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        world = World(folder, wait=600)
        world.store.at, world.store.after = at, after
        life(world)
        assert sorted((each.machine, each.what, each.end) for each in world.taken()) == expected, at
        orders = [each for name in ("m001", "m008", "m016") for each in world.drains.of(name, 9)]
        assert sorted(each.id for each in orders) == sorted(each.drain for each in world.taken() if each.drain)


def happens(world: World, act: str, name: str) -> None:
    reason = {"ill": Reason.CHECKS_FAILED, "not ready": Reason.NODE_NOT_READY}.get(act)
    if reason is not None:
        world.ill(name, reason=reason)
    elif act == "well":
        world.well(name)
    elif act in ("blind", "see"):
        world.unseen = (PLACE,) if act == "blind" else ()
    elif act == "restart":
        world.start()
    elif act == "rebooted" and any(each.machine == name for each in world.drains.standing()):
        world.rebooted(name)
    elif act in ("hold", "unhold"):
        order = PutOn(Mark.HELD, "mine") if act == "hold" else TakeOff(Mark.HELD, "")
        world.intents.order(name, order, "ann", world.now_ms())


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ill", "well", "not ready", "blind", "see", "restart", "rebooted", "hold", "unhold"]),
            st.integers(0, 5),
            st.integers(1, 25),
        ),
        max_size=15,
    )
)
def test_whatever_comes_no_more_are_under_a_remedy_than_may_be(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int, int]]
) -> None:
    world = World(tmp_path_factory.mktemp("world"), machines=120, wait=600)
    for act, number, minutes in acts:
        name, before = f"m{number * 4:03}", len(world.taken())
        happens(world, act, name)
        held = {each.machine for each in world.intents.all(world.now_ms()) if each.mark is Mark.HELD}
        world.run(minutes)
        new = world.taken()[before:]
        assert not (world.unseen and new)
        assert not {each.machine for each in new} & held
        under = {each.machine for each in world.taken() if each.end is None}
        assert len(under) <= 2, "2% of 120"
        racks = [world.declared[each].rack for each in under]
        assert len(racks) == len(set(racks)), "one of a rack"
        assert all(world.declared[each.machine].rules.remedies.act for each in new)


def test_what_a_remedy_orders_reaches_its_node_and_reboots_its_machine_once(tmp_path: Path) -> None:
    """The order is an operator's to whoever carries it out."""
    make(tmp_path / "intents.db").close()
    store, site = SqliteRemedies(tmp_path / "intents.db"), drain_world.World(drain_world.pod("a"))
    site.drains = SqliteDrains(tmp_path / "intents.db")  # type: ignore[assignment] # the same port
    site.drainer = site.started()
    taken = store.take(lambda books: Taking(remedy("n-1", at_ms=books.now_ms), ""), site.now_ms())
    assert taken is not None
    site.run(30)
    assert site.node_ is not None
    order = json.loads(site.node_.annotations[ORDER])
    assert (order["slot"], order["boot"], order["machine"]) == (taken.drain, boot_id("n-1", 1), "n-1")
    assert site.evicted == ["a"]
    site.run(300)
    books = store.books(site.now_ms())
    assert (site.reboots, books.drains) == ([boot_id("n-1", 1)], {})
    assert end_of(taken, books, back=True, gone=False) == "back"


def test_from_a_node_that_falls_to_a_quarantine_whatever_is_reported_meanwhile(tmp_path: Path) -> None:
    """The lifecycle's loop and this one, as they are in one process."""
    make(tmp_path / "intents.db").close()
    store, site = SqliteRemedies(tmp_path / "intents.db"), lifecycle_world.World("gpu-001")
    site.declared = {"gpu-001": lifecycle_world.declared("gpu-001", rules=rules())}

    def said() -> LifecycleStatus:
        return site.loop.status().model_copy(update={"up_ms": site.up})

    seen = Surveyed(
        site.loop.ailing,
        site.loop.declared,
        site.kept.judged,
        said,
        dict,
        tuple,
        Evidence(site.states, dict_of).of,
        site.loop.out,
        tuple,
    )
    controller = RemedyController(store, seen, Unfrozen(), Outside(), site, lambda: site.up, lambda _: None)

    def minutes(count: int) -> list[tuple[str, str]]:
        for _ in range(count * 12):
            site.pass_seconds(5)
            controller.step()
        return [(each.what, each.reason) for each in store.taken_after(0, 9)]

    phases = (Phase.BOOTED, Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)
    site.take(script("gpu-001", 1), *(event("gpu-001", 1, phase) for phase in phases))
    site.nodes = {"default": {"gpu-001": Node.NOT_READY}}
    assert minutes(19) == []
    site.take(event("gpu-001", 1, Phase.FAILED), script("gpu-001", 2), event("gpu-001", 2, Phase.BOOTED))
    site.seeing = frozenset()
    assert minutes(90) == [], "nobody can see"
    site.seeing = lifecycle_world.ALL
    assert minutes(30) == []
    assert minutes(2) == [("quarantine", "NodeNotReady")]
    assert json.loads(store.one(1)[1])["boot"]["phases"][-1].startswith("Ready ")
    assert site.loop.out() == {"gpu-001"}
    site.declared = {"gpu-001": site.declared["gpu-001"]._replace(enabled=False)}
    site.pass_seconds(5)
    assert site.loop.out() == set(), "nobody awaits one that is disabled"


def dict_of(_names: Sequence[str]) -> dict[str, Judged]:
    """Nothing was found."""
    return {}


class Unfrozen:
    """No freeze."""

    def standing(self, _now_ms: int) -> None:
        return None


def test_a_machine_of_a_control_plane_is_left_alone_and_it_says_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.control = {"m007"}
    world.ill("m007")
    world.run(60)
    assert world.done() == []
    assert world.words("m007") == "it is of a control plane, whose machines remedies leave alone"
