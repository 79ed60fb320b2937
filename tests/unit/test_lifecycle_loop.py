"""The lifecycle's loop: who is judged when, what stands still, what outlives a restart; and what can be seen."""

import weakref
from pathlib import Path
from typing import Any

import pytest

from netboot.config import Config
from netboot.controllers.declared import Published
from netboot.controllers.lifecycle import FIRST_MS, KEEP_MS, MOST
from netboot.controllers.nodes.observed import ObservedFile, ObservedNodes
from netboot.controllers.pieces import PIECE
from netboot.controllers.sight import Eyes, Sight
from netboot.controllers.surroundings import Surroundings
from netboot.controllers.waiting import Waiting
from netboot.lifecycle.errors import StateUnavailableError
from netboot.lifecycle.judge import Due
from netboot.lifecycle.known import Node
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.summary import LONG_GATED_MS
from netboot.lifecycle.transitions import Act
from netboot.machines.classes import Class
from netboot.machines.remedies import Remedies, Rules
from netboot.machines.values import Machine
from netboot.status.approver import ApproverStatus
from netboot.status.boot import BootStatus
from netboot.status.nodes import NodesStatus
from netboot.stores.conditions import JudgedFile, SqliteConditions
from netboot.stores.status import LONGEST, S, StatusFolder, write_status
from tests.joining import snapshot_of
from tests.lifecycle_world import ALL, World, declared
from tests.records import START, checked, event, script
from tests.sites import make_site


def test_a_machine_gets_stuck_and_recovers_and_both_are_said(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = World()
    world.take(script("gpu-001", 1), event("gpu-001", 1, Phase.SWITCHED))
    world.judge()
    assert world.found() == ("False", "Booting")
    world.pass_seconds(599)
    assert world.found() == ("False", "Booting")
    world.pass_seconds(1)
    assert world.found() == ("False", "Stuck")
    status = world.loop.status()
    assert (status.overdue, status.waiting) == ({"Switched": 1}, 0)
    assert ("Booted", "Stuck", 1) in status.conditions
    world.take(event("gpu-001", 1, Phase.BOOTED))
    world.judge()
    assert (world.found(), world.loop.status().overdue) == (("True", "Booted"), {})
    said = [record.getMessage() for record in caplog.records if "Booted is" in record.getMessage()]
    assert [text.partition(": boot ")[0] for text in said] == [
        "gpu-001: Booted is False (Stuck)",
        "gpu-001: Booted is True (Booted)",
    ]


@pytest.mark.parametrize("blind", [frozenset(), frozenset({"cluster/default"})])
def test_nobody_is_late_while_we_cannot_see(blind: frozenset[str]) -> None:
    world = World()
    world.take(script("gpu-001", 1), event("gpu-001", 1, Phase.SWITCHED))
    world.seeing = blind
    world.pass_seconds(2_000)
    assert world.found() == ("False", "Booting")
    assert "reports" in world.loop.status().unseen
    world.seeing = ALL
    world.pass_seconds(600)
    assert world.found() == ("False", "Booting")
    world.pass_seconds(2)
    assert world.found() == ("False", "Stuck")


def test_a_restart_forgets_neither_what_passed_nor_when_conditions_changed() -> None:
    world = World()
    world.take(script("gpu-001", 1), event("gpu-001", 1, Phase.SWITCHED))
    world.judge()
    since = world.kept.conditions()["gpu-001"][0].since_ms
    world.pass_seconds(400)
    world.up, world.now_ms_ = 5_000_000, START - 9_000_000  # the host was started again, and its clock is wrong
    world.start()
    world.judge()
    assert world.kept.conditions()["gpu-001"][0].since_ms == since
    world.pass_seconds(200)
    assert world.found() == ("False", "Booting")
    world.pass_seconds(KEEP_MS // 1000 + 2)
    assert world.found() == ("False", "Stuck")
    assert world.kept.conditions()["gpu-001"][0].since_ms == since


def test_a_restart_of_the_service_moves_no_condition_while_nodes_are_being_listed() -> None:
    world = World()
    phases = (Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)
    world.take(script("gpu-001", 1), *(event("gpu-001", 1, phase) for phase in phases))
    world.nodes = {"default": {"gpu-001": Node.IN_SERVICE}}
    world.judge()
    before, listed = world.kept.conditions()["gpu-001"], world.nodes
    world.start()
    world.nodes = {}
    world.pass_seconds(5)
    watched = world.loop.watched
    world.nodes = listed
    world.pass_seconds(5)
    assert (watched, world.loop.watched) == (False, True)
    assert world.kept.conditions()["gpu-001"] == before
    world.start()
    world.nodes = {}
    world.pass_seconds(FIRST_MS // 1000 + 2)
    assert world.found("InService") == ("Unknown", "NodeNotSeen")


def test_where_nothing_happens_nobody_is_judged_and_little_is_written() -> None:
    world = World(*(f"gpu-{number}" for number in range(3 * MOST)))
    watched = [world.loop.watched]
    world.loop.step()
    watched.append(world.loop.watched)
    assert world.judge() == 2
    assert [*watched, world.loop.watched] == [False, False, True]
    assert len(world.kept.kept) == 3 * MOST
    asked: list[Any] = []
    world.states.machines = lambda names=None: asked.append(names) or {}  # type: ignore[method-assign,func-returns-value]
    writes = world.kept.writes
    world.pass_seconds(KEEP_MS // 1000 * 3)
    assert asked == []
    assert world.kept.writes - writes == 3


def test_what_the_inventory_changes_is_judged_anew_and_who_leaves_it_is_forgotten() -> None:
    world = World("gpu-001", "gpu-002")
    world.take(script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED))
    world.judge()
    assert world.found("UpToDate") == ("True", "UpToDate")
    world.declared = {"gpu-001": declared("gpu-001", image="b" * 64)}
    world.judge()
    assert world.found("UpToDate") == ("False", "OtherImage")
    assert set(world.kept.kept) == {"gpu-001"}
    assert all(count == 1 for _, _, count in world.loop.status().conditions)
    world.start()
    world.declared = {}
    world.judge()
    assert world.kept.kept == {}


def test_who_left_while_the_disk_refused_and_is_back_is_judged_like_the_others() -> None:
    world = World("gpu-001", "gpu-002")
    world.take(script("gpu-001", 1), event("gpu-001", 1, Phase.SWITCHED))
    world.judge()
    both, world.kept.refuses = world.declared, True
    world.declared = {"gpu-002": declared("gpu-002")}
    world.judge()
    world.declared = dict(both or {})
    world.judge()
    world.kept.refuses = False
    world.judge()
    assert set(world.kept.kept) == {"gpu-001", "gpu-002"}
    world.pass_seconds(605)
    assert (world.found(), world.loop.status().overdue) == (("False", "Stuck"), {"Switched": 1})


def test_a_new_inventory_costs_a_judgement_of_those_machines_alone_for_which_it_says_something_else() -> None:
    world = World("gpu-001", "gpu-002")
    world.judge()
    asked: list[list[str]] = []
    machines = world.states.machines

    def note(names: Any = None) -> Any:
        asked.append(names)
        return machines(names)

    world.states.machines = note  # type: ignore[method-assign]
    world.declared = {"gpu-001": declared("gpu-001"), "gpu-002": declared("gpu-002", enabled=False)}
    world.judge()
    assert asked == [["gpu-002"]]


def test_whoever_compares_a_long_inventory_or_list_of_nodes_is_heard_meanwhile() -> None:
    names = [f"gpu-{number:04}" for number in range(4 * PIECE)]
    surroundings, heard = Surroundings(), list[int]()
    inventory = {name: declared(name) for name in names}
    assert len(surroundings.take_declared(inventory, lambda: heard.append(1))) == len(names)
    assert len(heard) == 4
    assert len(surroundings.take_nodes({"default": dict.fromkeys(names, Node.GATED)}, lambda: heard.append(2))) == 4_000
    assert len(heard) == 8
    assert surroundings.take_declared(inventory, lambda: heard.append(3)) == []
    assert len(heard) == 8


def test_what_is_published_is_made_anew_only_for_another_snapshot_and_heard_of_meanwhile() -> None:
    machine = {"match": {"serial": "S1"}, "profile": "compute"}
    machines = [Machine.model_validate({"name": f"gpu-{number:04}", **machine}) for number in range(2 * PIECE)]
    snapshots, heard = [snapshot_of(*machines)], list[int]()
    published = Published(lambda: snapshots[0], {"default"})
    first = published.declared(lambda: heard.append(1))
    assert first is not None
    assert (len(first), len(heard), first["gpu-0000"].joins) == (2 * PIECE, 2, True)
    assert published.declared() is first
    before = weakref.ref(snapshots[0])
    snapshots[0] = snapshots[0].model_copy(update={"published_ms": 2})
    assert before() is None, "whoever publishes frees it, not the thread of the lowest priority"
    again = published.declared()
    assert (again == first, again is first) == (True, False)
    assert published.declared() is again


@pytest.mark.parametrize("replicas", [True, False])
def test_of_each_machine_it_is_said_whether_other_services_see_to_it(replicas: bool) -> None:
    fields = {"name": "gpu-001", "match": {"serial": "S1"}, "profile": "compute", "class": "c"}
    snapshot = snapshot_of(Machine.model_validate(fields))
    classes = {"classes": (Class(name="c", remedies=Remedies(act=True)),)}
    snapshot = snapshot.model_copy(update={"inventory": snapshot.inventory.model_copy(update=classes)})
    found = Published(lambda: snapshot, {"default"}, replicas=replicas).declared()
    assert found is not None
    assert found["gpu-001"].rules == Rules(Remedies(act=True), "class c", replicas)


def test_who_is_interrupted_while_comparing_has_taken_nothing_and_begins_anew() -> None:
    names = [f"gpu-{number:04}" for number in range(2 * PIECE)]
    surroundings = Surroundings()

    def fail() -> None:
        raise StateUnavailableError("no")

    inventory = {name: declared(name) for name in names}
    with pytest.raises(StateUnavailableError):
        surroundings.take_declared(inventory, fail)
    assert len(surroundings.take_declared(inventory)) == len(names)
    nodes = {"default": dict.fromkeys(names, Node.NOT_READY)}
    with pytest.raises(StateUnavailableError):
        surroundings.take_nodes(nodes, fail)
    assert len(surroundings.take_nodes(nodes)) == len(names)
    assert surroundings.places({"default"}) == (set(), {"nodes/default/hgx"})


def test_who_waits_waits_once_and_what_was_planned_before_is_forgotten() -> None:
    waiting = Waiting()
    waiting.tell(["b", "a"])
    waiting.tell(["b", "c"])
    assert (waiting.take(2), len(waiting), waiting.take(2), len(waiting)) == (["b", "a"], 1, ["c"], 0)
    waiting.plan("a", [Due("reports", 5), Due("nodes", 9)])
    waiting.plan("a", [Due("reports", 7)])
    waiting.pass_time({"reports": 6, "nodes": 9})
    assert len(waiting) == 0
    waiting.pass_time({"reports": 7})
    assert waiting.take(1) == ["a"]
    waiting.plan("a", ())
    waiting.pass_time({"reports": 99})
    assert len(waiting) == 0


def test_nodes_and_acts_are_noticed() -> None:
    world = World()
    phases = (Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)
    world.take(script("gpu-001", 1), *(event("gpu-001", 1, phase) for phase in phases))
    for nodes, found in (
        ({}, ("Unknown", "NodeNotSeen")),
        ({"gpu-001": Node.GATED, "another": Node.GATED}, ("False", "HealthGated")),
        ({"gpu-001": Node.IN_SERVICE}, ("True", "InService")),
        ({"gpu-001": Node.CORDONED}, ("False", "Cordoned")),
        ({"gpu-001": Node.NOT_READY}, ("False", "NodeNotReady")),
    ):
        world.nodes = {"default": nodes}
        world.judge()
        assert world.found("InService") == found
    world.acts = {"gpu-001": (Act.RETIRE,)}
    world.judge()
    assert world.found("InService") == ("False", "Retired")
    world.acts = {}
    world.judge()
    assert world.found("InService") == ("False", "NodeNotReady")


def test_an_outage_of_a_class_loses_none_of_its_machines() -> None:
    names = [f"gpu-{number}" for number in range(4)]
    world = World(*names)
    for name in names:
        phases = (Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)
        world.take(script(name, 1), *(event(name, 1, phase) for phase in phases))
    world.nodes = {"default": {name: Node.NOT_READY if name != "gpu-3" else Node.IN_SERVICE for name in names}}
    world.pass_seconds(1_500)
    assert world.found("Booted", "gpu-0") == ("True", "Booted")
    assert world.loop.status().unseen == ("nodes/default/hgx",)
    world.nodes = {"default": {name: Node.NOT_READY if name == "gpu-0" else Node.IN_SERVICE for name in names}}
    world.pass_seconds(1_205)
    assert world.found("Booted", "gpu-0") == ("Unknown", "Lost")


def test_machines_that_go_one_by_one_and_retired_ones_are_no_outage() -> None:
    names = [f"gpu-{number}" for number in range(10)]
    world = World(*names)
    for name in names:
        phases = (Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)
        world.take(script(name, 1), *(event(name, 1, phase) for phase in phases))
    world.acts = {"gpu-9": (Act.RETIRE,), "gpu-8": (Act.RETIRE,)}
    for gone in (3, 5, 6, 7, 8):
        nodes = {name: Node.NOT_READY if at < gone or at > 7 else Node.IN_SERVICE for at, name in enumerate(names)}
        world.nodes = {"default": nodes}
        world.pass_seconds(1_205)
        assert world.loop.status().unseen == ()
        assert world.found("Booted", f"gpu-{gone - 1}") == ("Unknown", "Lost")
    world.start()
    world.judge()
    assert world.found("Booted", "gpu-0") == ("Unknown", "Lost")


def test_a_report_of_health_that_is_late_is_stale_and_the_next_one_is_not() -> None:
    world = World()
    world.take(script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED), checked("gpu-001", 1))
    world.pass_seconds(1_199)
    assert world.found("Healthy") == ("True", "ChecksPassed")
    world.take(checked("gpu-001", 1, after_ms=900))
    world.pass_seconds(1_199)
    assert world.found("Healthy") == ("True", "ChecksPassed")
    world.pass_seconds(5)
    assert world.found("Healthy") == ("Unknown", "ReportStale")


def test_a_disk_that_refuses_is_said_and_nobody_is_forgotten_for_it() -> None:
    world = World()
    world.kept.refuses = True
    world.take(script("gpu-001", 1), event("gpu-001", 1, Phase.BOOTED))
    assert world.loop.step() is False
    status = world.loop.status()
    assert (status.problem, status.waiting) == ("no space left", 1)
    world.kept.refuses = False
    world.judge()
    assert (world.found(), world.loop.status().problem) == (("True", "Booted"), "")


def test_one_that_cannot_be_judged_keeps_none_of_the_others_waiting() -> None:
    names = [f"gpu-{number:03}" for number in range(MOST)]
    world = World(*names)
    machines = world.states.machines

    def fail(asked: Any = None) -> Any:
        if "gpu-050" in asked:
            raise StateUnavailableError("database disk image is malformed")
        return machines(asked)

    world.states.machines = fail  # type: ignore[method-assign, assignment]
    for _ in range(40):
        world.loop.step()
    assert set(world.kept.kept) == set(names) - {"gpu-050"}
    world.states.machines = machines  # type: ignore[method-assign]
    world.judge()
    assert set(world.kept.kept) == set(names)


def test_what_was_kept_and_is_gone_is_found_again_though_nothing_comes() -> None:
    world = World("gpu-001", "gpu-002")
    world.judge()
    world.kept.kept.clear()
    world.kept.refuses = True
    world.take(script("gpu-001", 1))
    assert world.loop.step() is False
    world.kept.refuses = False
    world.judge()
    assert set(world.kept.kept) == {"gpu-001", "gpu-002"}


def test_a_file_that_is_removed_under_an_idle_service_is_whole_again_within_a_minute(tmp_path: Path) -> None:
    path, names = tmp_path / "conditions.db", ["gpu-001", "gpu-002"]
    world = World(*names)
    file = JudgedFile(path)
    world.kept = file  # type: ignore[assignment]
    world.start()
    world.take(script("gpu-001", 1), event("gpu-001", 1, Phase.SWITCHED))
    world.judge()
    before = SqliteConditions(path).conditions()
    path.unlink()
    world.pass_seconds(KEEP_MS // 1000 + 2)
    after = SqliteConditions(path).conditions()
    assert {name: [(each.type, each.reason) for each in found] for name, found in after.items()} == {
        name: [(each.type, each.reason) for each in found] for name, found in before.items()
    }
    assert set(after) == set(names)
    assert (file.seen_time()["reports"], world.loop.status().problem) == (KEEP_MS + 2_000, "")
    world.pass_seconds(600)
    assert SqliteConditions(path).conditions()["gpu-001"][0].reason == "Stuck"
    file.close()


def test_nothing_is_judged_before_an_inventory_is_in_force() -> None:
    world = World()
    world.declared = None
    world.judge()
    assert world.kept.kept == {}


# -- what can be seen -------------------------------------------------------------------------------------------------


class Said:
    """What the processes of a site say; `caught_up`: of the projection."""

    def __init__(self, root: Path) -> None:
        self.config: Config = make_site(root / "site", workers=2).model_copy(update={"clusters": {"default": None}})
        self.folder, self.caught_up = root / "status", True
        self.config = self.config.model_copy(update={"data": root})
        self.eyes = Eyes(self.config, StatusFolder(self.folder), lambda: self.caught_up)

    def boot(self, index: int, up_ms: int) -> None:
        counts: dict[str, Any] = {name: {} for name in ("scripts", "events", "health", "transfers")}
        zero = dict.fromkeys(("bytes_sent", "refused", "discoveries_dropped", "open_connections", "journal_lag"), 0)
        write_status(self.folder, f"boot-{index}", BootStatus(at_ms=1, up_ms=up_ms, **counts, **zero))

    def cluster(self, up_ms: int, *, nodes: bool = True, alert: bool = False, followed: bool = True) -> None:
        common: dict[str, Any] = {"at_ms": 1, "up_ms": up_ms, "message": "so", "unavailable": 0}
        counts: dict[str, Any] = {"decided": (), "waiting": 0, "oldest_seconds": 0.0, "followed": followed}
        write_status(self.folder, "approver-default", ApproverStatus(**common, ok=not alert, **counts))
        of_nodes = {"ok": nodes and not alert, "followed": nodes, "registered": 0, "ready": 0}
        write_status(self.folder, "nodes-default", NodesStatus(**common, **of_nodes))


def test_who_is_silent_cannot_be_seen_by(tmp_path: Path) -> None:
    said = Said(tmp_path)
    assert said.eyes.look(20_000) == Sight(frozenset(), {})
    said.boot(0, 20_000)
    assert said.eyes.look(20_000).seeing == frozenset()
    said.boot(1, 20_000)
    assert said.eyes.look(20_000).seeing == {"reports"}
    said.cluster(20_000)
    assert said.eyes.look(20_000).seeing == {"reports"}, "its Nodes have not been listed yet"
    write_status(said.folder, "observed-default", ObservedNodes())
    assert said.eyes.look(20_000).seeing == {"reports", "cluster/default"}
    for blind in ({"nodes": False}, {"followed": False}):
        said.cluster(20_000, **blind)
        assert said.eyes.look(20_000).seeing == {"reports"}
    # one Node asks for too many certificates, or its gate cannot be moved: the others are seen all the same
    said.cluster(20_000, alert=True)
    assert said.eyes.look(20_000).seeing == {"reports", "cluster/default"}
    said.cluster(20_000)
    assert said.eyes.look(30_000).seeing == {"reports", "cluster/default"}
    assert said.eyes.look(30_001).seeing == frozenset()
    assert said.eyes.look(19_999).seeing == {"reports", "cluster/default"}  # said after we began to look
    assert said.eyes.look(9_999).seeing == frozenset()  # of before the host was started
    said.caught_up = False
    assert said.eyes.look(20_000).seeing == frozenset()
    (said.folder / "boot-0.json").write_text("{")
    said.caught_up = True
    assert said.eyes.look(20_000).seeing == frozenset()


def test_nodes_are_as_new_as_the_word_that_they_are_followed(tmp_path: Path) -> None:
    """A collector that comes back writes how Nodes are, and then that it follows them."""

    class Coming(StatusFolder):
        def read(self, process: str, model: type[S], most: int = LONGEST) -> S | None:
            if process == "nodes-default":
                file.write({"n": Node.IN_SERVICE}, {})
                said.cluster(1)
            return super().read(process, model, most)

    said = Said(tmp_path)
    file = ObservedFile(said.folder, "default")
    file.write({"n": Node.NOT_READY}, {})
    for index in range(2):
        said.boot(index, 1)
    said.cluster(1)
    sight = Eyes(said.config, Coming(said.folder), lambda: True).look(1)
    assert sight.seeing == {"reports", "cluster/default"}
    assert sight.nodes == {"default": {"n": Node.IN_SERVICE}}


def test_nodes_are_read_when_they_changed_and_what_is_torn_leaves_what_was(tmp_path: Path) -> None:
    said = Said(tmp_path)
    file = ObservedFile(said.folder, "default")
    file.write(None, {})
    assert said.eyes.look(1).nodes == {}
    nodes = {"a": Node.IN_SERVICE, "b": Node.GATED, "c": Node.NOT_READY, "d": Node.CORDONED}
    file.write(nodes, {})
    first = said.eyes.look(1).nodes["default"]
    assert first == nodes
    assert file.write(nodes, {})
    assert said.eyes.look(1).nodes["default"] is first
    said.folder.rename(tmp_path / "away")
    said.folder.write_text("a file in its place")
    assert not file.write({}, {})  # what could not be written is written when it can be
    said.folder.unlink()
    (tmp_path / "away").rename(said.folder)
    assert file.write({}, {})
    assert said.eyes.look(1).nodes["default"] == {}
    write_status(said.folder, "observed-default", ObservedNodes(gated=("a",)))
    assert said.eyes.look(1).nodes["default"] == {"a": Node.GATED}
    (said.folder / "observed-default.json").write_text("{")
    assert said.eyes.look(1).nodes["default"] == {"a": Node.GATED}


def test_machines_that_the_gate_keeps_long_from_work_and_those_that_are_up_and_unhealthy_are_counted() -> None:
    names = ("gpu-001", "gpu-002", "gpu-003")
    world = World(*names)
    phases = (Phase.BOOTED, Phase.ATTESTED, Phase.NODE_REGISTERED, Phase.READY)
    for name in names:
        world.take(script(name, 1), *(event(name, 1, phase) for phase in phases), checked(name, 1, "fail"))
    world.acts = {"gpu-002": (Act.RETIRE,)}
    world.nodes = {"default": dict.fromkeys(names, Node.GATED) | {"gpu-003": Node.NOT_READY}}
    world.judge()
    assert (world.loop.status().long_gated, world.loop.status().unhealthy) == (0, 2)
    world.now_ms_ += LONG_GATED_MS - 1
    assert world.loop.status().long_gated == 0
    world.now_ms_ += 1
    assert world.loop.status().long_gated == 1, "who is retired, or not Ready, is none of them"
    world.nodes = {"default": dict.fromkeys(names, Node.IN_SERVICE)}
    world.judge()
    assert world.loop.status().long_gated == 0


def test_who_waits_is_told_since_it_waits_and_keeps_its_place() -> None:
    at = 0.0
    waiting = Waiting(lambda: at)
    assert waiting.longest_seconds() == 0.0
    waiting.tell(["a", "b"])
    at = 7.0
    waiting.tell(["a", "c"])
    assert waiting.longest_seconds() == 7.0
    assert waiting.take(2) == ["a", "b"]
    assert waiting.longest_seconds() == 0.0
