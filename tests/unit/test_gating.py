"""The gate's loop over a cluster in memory: whom it lets in, whom it shuts out, and when it stands still."""

import contextlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from images.values.backoff import Backoff
from netboot.controllers.nodes import moves, reports
from netboot.controllers.nodes.gating import GateController, GateStatus
from netboot.controllers.nodes.moves import OPENINGS, OPENINGS_SECONDS
from netboot.controllers.nodes.reports import LATELY_MS, MOST_WORDS, STALE_MS
from netboot.join.errors import ClusterUnavailableError
from netboot.join.node_said import HealthSaid
from netboot.join.ports import NodeView
from netboot.lifecycle.cordons import Cordon
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.known import NodeWord
from netboot.lifecycle.outage import Outages
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.state import Batch
from netboot.machines.classes import Class, Gate
from netboot.machines.values import Machine, Match
from tests.kube_fake import FakeCluster, FakeNodes
from tests.records import boot_id, certified, event, script
from tests.states import MemoryStates

REGISTERED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
CLOSED = {"key": "netboot.dev/unchecked", "value": "ChecksFailed", "effect": "NoSchedule"}
STALE = {**CLOSED, "value": "ReportStale"}
FOREIGN = {"key": "example.com/busy", "effect": "NoSchedule"}
RETIRED = {"key": "netboot.dev/held", "value": "Retired", "effect": "NoSchedule"}
MINUTE = 60_000


def of(name: str, boot: int = 1) -> str:
    """The fingerprint of the certificate of a boot."""
    return f"{boot}{name.rpartition('-')[2]:0>63}"


class Stage:
    """`machines`: so many, of class `hgx`. Each has attested once and has a certificate; their Nodes are registered."""

    def __init__(self, machines: int = 1, gate: Gate | None = None) -> None:
        self.cluster, self.states, self.seconds, self.followed = FakeCluster(), MemoryStates(), 0.0, True
        self.held: dict[str, str] | None = None
        self.labels: dict[str, str] = {}
        self.accepted: set[str] | None = set()
        self.names = [f"n-{number}" for number in range(1, machines + 1)]
        kind = Class(name="hgx", gate=gate or Gate())
        self.machines = {
            name: Machine.model_validate({"name": name, "match": Match(serial=name), "profile": "p", "class": "hgx"})
            for name in self.names
        }
        self.classes = {"hgx": kind}
        self._taken, self._heartbeat = 0, 0
        self.start()
        for name in self.names:
            self.know(script(name, 1), event(name, 1, Phase.ATTESTED), certified(name, 1, of(name)))
            self.register(name)
            self.note(name, 1)

    def start(self) -> None:
        """The process begins anew, and knows nothing."""
        self.gate = GateController(
            lambda: self.cluster.nodes,
            lambda: self.machines,
            lambda: self.classes,
            self.states,
            self,
            lambda _machine: self.labels,
            lambda: self.accepted,
            lambda: round(self.seconds * 1000),
            lambda: self.seconds,
        )

    def register(self, name: str) -> None:
        """A kubelet makes its Node, after join has deleted the one of the boot before."""
        self.cluster.remove_node(name)
        self.cluster.put_node(self.cluster.make_node(name)._replace(taints=(REGISTERED,)))

    def note(self, name: str, boot: int) -> None:
        """The collector has written down whose Node that is."""
        detail = f"node {name} uid {self.node(name).uid}"
        self.know(event(name, boot, Phase.NODE_REGISTERED, 700, detail))

    def holds(self) -> dict[str, str] | None:
        return self.held

    def know(self, *records: object) -> None:
        self._taken += len(records)
        self.states.take(Batch("any.db", 1, self._taken, records))  # type: ignore[arg-type] # records of the state

    def say(self, name: str, status: str = "True", credential: str | None = None) -> None:
        """A node writes onto its Node."""
        self._heartbeat += 1
        health = HealthSaid(status, "r", f"{name} is {status}", credential or of(name), {}, str(self._heartbeat))
        self.gate.take(self.cluster.put_node(self.node(name)._replace(health=health)))

    def node(self, name: str) -> NodeView:
        return self.cluster._nodes[name]

    def step(self, seconds: float = 0.5) -> None:
        """All Nodes are seen as they are now, and what is due is done."""
        self.seconds += seconds
        for name in list(self.cluster._nodes):
            self.gate.take(self.node(name))
        self.gate.step(followed=self.followed)

    def pass_minutes(self, minutes: int, *talking: str, every: int = 10) -> None:
        """These say `every` so many minutes that all is well."""
        for tenth in range(minutes * 10):
            for name in talking if tenth % (every * 10) == 0 else ():
                self.say(name)
            self.step(6.0)

    def taints(self, name: str = "n-1") -> list[Any]:
        return list(self.node(name).taints)

    def with_taints(self, *taints: dict[str, str]) -> list[str]:
        return [name for name in self.names if self.taints(name) == list(taints)]


def test_cordons_are_told_of_nodes_that_are_netboot_s() -> None:
    stage = Stage(3)
    stage.cluster.put_node(stage.node("n-1")._replace(cordoned=True, cordoned_by="kubectl"))
    stage.cluster.put_node(stage.node("n-2")._replace(cordoned=True, marked=False))
    stage.step()
    assert stage.gate.cordons() == {"n-1": Cordon(node="n-1", by="kubectl", uid=stage.node("n-1").uid)}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_it_opens_by_a_report_under_a_certificate_of_this_boot(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage = Stage()
    stage.step()
    assert stage.taints() == [REGISTERED]
    stage.say("n-1", credential="f" * 64)
    stage.step()
    assert stage.taints() == [REGISTERED]
    stage.say("n-1")
    stage.step()
    assert stage.taints() == []
    assert stage.gate.status() == GateStatus({"open": 1, "shut": 0, "closed": 0}, {"opened": 1, "closed": 0}, 0)
    assert lines(caplog) == [
        "the gate of n-1 waits (NoReport): the node has not said yet how healthy it is",
        (
            "the gate of n-1 waits (OtherBoot): what the node says of its health is not under a certificate of its "
            "current boot"
        ),
        "the gate of n-1 is open: n-1 is True",
    ]


def test_a_certificate_that_the_state_knows_a_little_later_counts_soon() -> None:
    stage = Stage()
    stage.say("n-1", credential=of("n-1", 7))
    stage.step()
    assert stage.taints() == [REGISTERED]
    stage.know(certified("n-1", 1, of("n-1", 7)))
    for _ in range(4):
        stage.step()
    assert stage.taints() == []


def test_a_report_of_the_boot_before_opens_nothing() -> None:
    """Somebody took the key of a machine's earlier boot, and writes with it while the new one is on its way."""
    stage = Stage()
    stage.register("n-1")
    stage.say("n-1")
    for _ in range(20):
        stage.step()
    assert stage.taints() == [REGISTERED], "the state has not heard of the new boot yet"
    stage.know(event("n-1", 2, Phase.ATTESTED), certified("n-1", 2, of("n-1", 2)))
    stage.note("n-1", 2)
    stage.say("n-1")
    stage.step(60.0)
    assert stage.taints() == [REGISTERED]
    stage.say("n-1", credential=of("n-1", 2))
    stage.step()
    assert stage.taints() == []


def test_what_somebody_else_writes_meanwhile_is_not_lost() -> None:
    stage = Stage()
    stage.say("n-1")
    busy = stage.node("n-1")._replace(taints=(REGISTERED, FOREIGN))
    stage.cluster.before["nodes.taint"] = lambda: stage.cluster.put_node(busy) and None
    stage.step()
    assert stage.taints() == [REGISTERED, FOREIGN]
    stage.step()
    assert stage.taints() == [FOREIGN]


def test_a_check_that_fails_closes_it_and_it_opens_again_when_the_cause_is_gone() -> None:
    stage = Stage()
    for status, taints in (("True", []), ("Unknown", []), ("False", [CLOSED]), ("Unknown", [CLOSED]), ("True", [])):
        stage.say("n-1", status)
        stage.step()
        assert stage.taints() == taints, status


def test_what_a_node_says_under_its_boots_certificate_is_told_and_nothing_else() -> None:
    stage = Stage()
    stage.say("n-1", "False", credential="f" * 64)
    stage.step()
    assert stage.gate.words() == {}
    stage.say("n-1", "False")
    stage.step()
    assert stage.gate.words() == {"n-1": NodeWord(failed=boot_id("n-1", 1))}
    stage.say("n-1", "False", credential="f" * 64)
    stage.step()
    assert stage.gate.words() == {"n-1": NodeWord(failed=boot_id("n-1", 1))}, "the last word that counts holds"
    stage.say("n-1", "Unknown")
    stage.step()
    assert stage.gate.words() == {}
    stage.cluster.put_node(stage.node("n-1")._replace(holder="kured reboots it"))
    stage.step()
    assert stage.gate.words() == {"n-1": NodeWord(holder="kured reboots it")}


def test_a_word_that_is_stale_says_nothing_any_more() -> None:
    stage = Stage(machines=4)
    stage.say("n-1", "False")
    stage.step()
    assert list(stage.gate.words()) == ["n-1"]
    stage.pass_minutes(45, "n-2", "n-3", "n-4")
    assert stage.gate.words() == {}


def test_a_mistake_that_reaches_every_node_closes_a_tenth_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A typo in `gpus:`, say."""
    stage = Stage(machines=25)
    for status in ("True", "False"):
        for name in stage.names:
            stage.say(name, status)
        stage.step()
    for _ in range(20):
        stage.step()
    stage.held = {"n-9": "Retired"}
    stage.step(10.0)
    assert stage.taints("n-9") == [RETIRED], "who retires a machine needs no budget"
    stage.held = {"n-9": ""}
    stage.step(10.0)
    assert len(stage.with_taints(CLOSED)) == 2
    assert len(stage.with_taints()) == 23
    assert stage.gate.status() == GateStatus({"open": 23, "shut": 0, "closed": 2}, {"opened": 25, "closed": 2}, 23)
    withheld = [line for line in lines(caplog) if "stays open" in line]
    assert len(set(withheld)) == 23
    assert withheld[-1] == "the gate of n-9 stays open, for as many as may be are closed: n-9 is False"
    for name in stage.names:
        stage.say(name)
    stage.step()
    assert (len(stage.with_taints()), stage.gate.status().withheld) == (25, 0)


def test_one_that_falls_silent_is_closed_after_half_an_hour() -> None:
    stage = Stage(machines=5)
    stage.pass_minutes(1, *stage.names)
    assert len(stage.with_taints()) == 5
    stage.pass_minutes(28, *stage.names[1:])
    assert len(stage.with_taints()) == 5
    stage.pass_minutes(3, *stage.names[1:])
    assert stage.with_taints(STALE) == ["n-1"]
    stage.say("n-1")
    stage.step()
    assert len(stage.with_taints()) == 5


def test_one_outage_closes_nobody() -> None:
    """Most of a class fall silent at once; the clock of the class stands still until half of it is back."""
    stage = Stage(machines=8)
    stage.pass_minutes(1, *stage.names)
    stage.pass_minutes(300, *stage.names[5:])
    assert len(stage.with_taints()) == 8
    stage.pass_minutes(40, *stage.names[2:])
    assert len(stage.with_taints(STALE)) == 1, "the budget of eight"
    assert set(stage.with_taints(STALE)) < {"n-1", "n-2"}


@pytest.mark.parametrize("machines", [1, 2, 5])
def test_an_api_server_that_is_gone_makes_nobody_stale(machines: int) -> None:
    stage = Stage(machines)
    stage.pass_minutes(1, *stage.names)
    stage.followed = False
    stage.pass_minutes(600)
    stage.followed = True
    stage.pass_minutes(10)
    assert len(stage.with_taints()) == machines


def test_what_never_reported_is_left_as_somebody_opened_it() -> None:
    """Nodes of images that are older than the gate."""
    stage = Stage(machines=5)
    for name in stage.names:
        stage.cluster.put_node(stage.node(name)._replace(taints=()))
    stage.pass_minutes(2 * STALE_MS // MINUTE + LATELY_MS // MINUTE)
    assert len(stage.with_taints()) == 5


def test_a_class_may_say_report_and_do_not_taint() -> None:
    stage = Stage(gate=Gate(on_failure="report"))
    for status in ("True", "False"):
        stage.say("n-1", status)
        stage.step()
    assert stage.taints() == []


def test_a_hold_of_the_machine_is_a_taint_of_its_node() -> None:
    stage = Stage()
    stage.say("n-1")
    stage.held = {"n-1": "Retired"}
    stage.step()
    assert stage.taints() == [RETIRED]
    stage.held = None
    stage.step(10.0)
    assert stage.taints() == [RETIRED], "it cannot be told"
    stage.held = {"n-1": ""}
    stage.step(10.0)
    assert stage.taints() == []


def test_a_node_of_no_machine_and_one_that_is_gone_are_nobody_s_to_move() -> None:
    stage = Stage(machines=2)
    stage.say("n-1")
    stage.cluster.make_node("foreign")
    del stage.machines["n-1"]
    stage.step()
    assert stage.taints() == [REGISTERED]
    stage.gate.begin_round(well=False)
    stage.cluster.remove_node("n-2")
    stage.step()
    stage.gate.begin_round(well=True)
    assert stage.gate.status().gates == {"open": 0, "shut": 0, "closed": 0}


class Refusing(FakeNodes):
    """An API server that refuses to change these Nodes; `tried`: how often it was asked to."""

    def __init__(self, cluster: FakeCluster, *names: str) -> None:
        super().__init__(cluster)
        self.names, self.tried = set(names), Counter[str]()

    def taint(
        self, node: NodeView, taints: Sequence[Mapping[str, str]], labels: Mapping[str, str] | None = None
    ) -> NodeView:
        if node.name in self.names:
            self.tried[node.name] += 1
            raise ClusterUnavailableError("the apiserver refused a request of ours (422 Invalid): at most 16 taints")
        return super().taint(node, taints, labels)


def test_nodes_that_cannot_be_changed_hinder_no_other_and_are_named(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(machines=9)
    refusing = stage.cluster.nodes = Refusing(stage.cluster, "n-1", "n-2", "n-3", "n-4")
    for name in stage.names:
        stage.say(name)
    problems = []
    for _ in range(240):
        with pytest.raises(CannotTellError) as caught:
            stage.step()
        problems.append(str(caught.value))
    assert stage.with_taints() == ["n-5", "n-6", "n-7", "n-8", "n-9"]
    why = "the apiserver refused a request of ours (422 Invalid): at most 16 taints"
    assert set(problems) == {f"the taints of the Node n-1 cannot be changed: {why}"}
    assert {name: 5 <= tried <= 9 for name, tried in refusing.tried.items()} == dict.fromkeys(
        sorted(refusing.names), True
    )
    assert [line for line in lines(caplog) if "n-4" in line] == [f"the gate of n-4 cannot be changed: {why}"]
    refusing.names.clear()
    for _ in range(8):
        stage.seconds += 60.0
        with contextlib.suppress(CannotTellError):
            stage.step()
    stage.step()
    assert len(stage.with_taints()) == 9


def test_where_all_are_refused_few_are_tried_and_the_others_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "AGAIN", Backoff(first=0.1, longest=0.1))
    stage = Stage(machines=9)
    refusing = stage.cluster.nodes = Refusing(stage.cluster, *stage.names)
    for name in stage.names:
        stage.say(name)
    for _ in range(3):
        with pytest.raises(CannotTellError):
            stage.step()
    assert refusing.tried == dict.fromkeys(stage.names, 1)


def test_one_that_cannot_be_changed_and_need_not_be_any_more_is_no_trouble() -> None:
    stage = Stage()
    stage.cluster.nodes = Refusing(stage.cluster, "n-1")
    stage.say("n-1")
    with pytest.raises(CannotTellError):
        stage.step()
    stage.cluster.put_node(stage.node("n-1")._replace(taints=()))
    stage.step()
    with pytest.raises(CannotTellError):
        stage.say("n-1", "False")
        stage.step(60.0)
    del stage.machines["n-1"]
    stage.step()


@pytest.mark.parametrize("forgotten", [False, True], ids=["a restart", "an inventory without it came and went"])
def test_a_gate_that_was_closed_for_silence_opens_by_new_words_alone(forgotten: bool) -> None:
    stage = Stage(machines=5)
    stage.pass_minutes(1, *stage.names)
    stage.pass_minutes(35, *stage.names[1:])
    assert stage.with_taints(STALE) == ["n-1"]
    if forgotten:
        machines = stage.machines.copy()
        stage.machines.clear()
        for _ in range(2):
            stage.gate.begin_round(well=True)
            stage.step()
        stage.machines.update(machines)
    else:
        stage.start()
    for minutes in (1, 20, 20):
        stage.pass_minutes(minutes, *stage.names[1:])
        assert stage.with_taints(STALE) == ["n-1"]
    stage.say("n-1", credential="f" * 64)
    stage.step()
    assert stage.with_taints(STALE) == ["n-1"], "a stranger's are none"
    stage.say("n-1")
    stage.step()
    assert len(stage.with_taints()) == 5


def test_what_is_written_over_under_another_certificate_still_counts() -> None:
    """Who has the key of an earlier boot writes right after the node, each time."""
    stage = Stage(machines=5)
    for status, taints in (("True", []), ("False", [CLOSED]), ("True", [])):
        stage.say("n-1", status)
        stage.say("n-1", "False" if status == "True" else "True", credential="f" * 64)
        for _ in range(8):
            stage.step()
        assert stage.taints("n-1") == taints
    stage.cluster.put_node(stage.node("n-1")._replace(health=None))
    stage.step()
    assert stage.taints("n-1") == []
    for name in stage.names[1:]:
        stage.say(name)
    for tenth in range(320):
        stage.say("n-1", credential="f" * 64)
        for name in stage.names[1:] if tenth % 100 == 0 else ():
            stage.say(name)
        stage.step(6.0)
    assert stage.taints("n-1") == [STALE], "it is alive by nobody else's word"


def test_of_what_is_said_under_many_certificates_the_latest_is_kept() -> None:
    stage = Stage()
    for number in range(1_000):
        stage.say("n-1", credential=f"{number:064}")
    stage.say("n-1", credential=of("n-1", 7))
    stage.step()
    (entry,) = stage.gate._reports.entries.values()
    assert len(entry.words) == MOST_WORDS
    stage.know(certified("n-1", 1, of("n-1", 7)))
    for _ in range(4):
        stage.step()
    assert (stage.taints(), entry.words) == ([], {})


def test_a_change_of_class_makes_nobody_stale_and_nobody_fresh() -> None:
    """Classes' clocks show what they like; how long ago something was is the same by each."""
    stage = Stage(machines=12)
    new, old = stage.names[6:], stage.names[:6]
    for name in new:
        stage.machines[name] = stage.machines[name].model_copy(update={"class_name": "new"})
    stage.pass_minutes(120, *old)
    stage.pass_minutes(11, *stage.names)
    stage.machines["n-12"] = stage.machines["n-12"].model_copy(update={"class_name": "hgx"})
    stage.step(6.0)
    assert stage.taints("n-12") == []
    stage.machines["n-1"] = stage.machines["n-1"].model_copy(update={"class_name": "new"})
    stage.pass_minutes(31, *stage.names[1:])
    assert stage.with_taints(STALE) == ["n-1"]


def test_who_is_held_takes_nothing_of_what_may_be_closed() -> None:
    """One closed machine that waits for its repair would keep every other of a small class open."""
    stage = Stage(machines=5)
    for status in ("True", "False"):
        for name in stage.names[:2]:
            stage.say(name, status)
        stage.step()
    assert stage.with_taints(CLOSED) == ["n-1"]
    assert stage.gate.status().withheld == 1
    stage.held = {"n-1": "Retired"}
    stage.step(6.0)
    stage.step(6.0)
    assert (stage.taints("n-1"), stage.taints("n-2")) == ([CLOSED, RETIRED], [CLOSED])


def test_who_registers_as_a_gate_that_was_closed_takes_nothing_of_what_may_be_closed() -> None:
    stage = Stage(machines=5)
    for status in ("True", "False"):
        stage.cluster.put_node(stage.node("n-1")._replace(taints=(REGISTERED, CLOSED)))
        stage.say("n-2", status)
        stage.step()
    assert stage.taints("n-2") == [CLOSED]


def test_one_that_left_the_inventory_is_not_withheld_any_more() -> None:
    stage = Stage(machines=5)
    for status in ("True", "False"):
        for name in stage.names[:3]:
            stage.say(name, status)
        stage.step()
    assert stage.gate.status().withheld == 2
    del stage.machines["n-3"]
    stage.step()
    assert stage.gate.status().withheld == 1


def test_a_node_whose_checks_come_and_go_is_written_to_no_more_than_so_often() -> None:
    stage = Stage(machines=2)
    for _ in range(100):
        for status in ("True", "False"):
            stage.say("n-1", status)
            stage.step()
    assert stage.gate.status().moved == {"opened": OPENINGS, "closed": OPENINGS}
    stage.say("n-1")
    stage.step()
    assert stage.taints("n-1") == [CLOSED]
    stage.step(OPENINGS_SECONDS)
    assert stage.taints("n-1") == []


def test_where_checks_take_long_who_falls_silent_is_still_found() -> None:
    """Ten minutes of checks, and each second report is written."""
    stage = Stage(machines=5)
    stage.pass_minutes(1, *stage.names)
    stage.pass_minutes(38, *stage.names[1:], every=18)
    assert stage.with_taints(STALE) == ["n-1"]


def test_who_said_something_lately_is_counted_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Outages]()

    def outages() -> Outages:
        made.append(Outages())
        return made[-1]

    monkeypatch.setattr(reports, "Outages", outages)
    stage = Stage()
    for _ in range(121):
        stage.step()
    assert len(made) == 13


def test_labels_come_with_the_write_that_opens_the_gate() -> None:
    stage = Stage()
    stage.labels = {"zone": "a", "tier": "leaf-1"}
    stage.say("n-1")
    stage.cluster.calls.clear()
    stage.step()
    assert (stage.taints(), dict(stage.node("n-1").labels)) == ([], {"zone": "a", "tier": "leaf-1"})
    assert [call for call in stage.cluster.calls if call.startswith("nodes.taint")] == ["nodes.taint n-1"]


def test_labels_follow_the_inventory_and_those_of_others_stay() -> None:
    stage = Stage()
    stage.cluster.put_node(stage.node("n-1")._replace(labels={"theirs": "1", "zone": "of somebody"}))
    stage.labels = {"zone": "a", "tier": "leaf-1"}
    stage.step()
    assert stage.taints() == [REGISTERED], "it says where it stands before it may take work"
    assert dict(stage.node("n-1").labels) == {"theirs": "1", "zone": "a", "tier": "leaf-1"}
    stage.labels = {"zone": "b"}
    stage.step(6.0)
    assert dict(stage.node("n-1").labels) == {"theirs": "1", "zone": "b"}
    stage.cluster.put_node(stage.node("n-1")._replace(labels={"zone": "moved"}))
    stage.step()
    assert dict(stage.node("n-1").labels) == {"zone": "b"}
    stage.labels = {}
    stage.step(6.0)
    assert (dict(stage.node("n-1").labels), stage.node("n-1").written) == ({}, ())
    stage.cluster.calls.clear()
    stage.step(6.0)
    assert stage.cluster.calls == []


def test_a_node_without_our_mark_gets_no_label() -> None:
    stage = Stage()
    stage.cluster.put_node(stage.node("n-1")._replace(marked=False))
    stage.labels = {"zone": "a"}
    stage.step()
    assert dict(stage.node("n-1").labels) == {}


def test_a_node_that_has_no_room_for_labels_is_closed_all_the_same_and_hinders_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(2)
    for name in stage.names:
        stage.say(name)
    stage.step()
    stage.cluster.full, stage.labels = True, {"zone": "a"}
    stage.step(6.0)
    words = "has no room for labels, for the apiserver does not take them: metadata.annotations: Too long: may not be"
    assert [line for line in lines(caplog) if words in line] == [
        f"the gate of {name} {words} more than 262144 bytes" for name in stage.names
    ]
    stage.say("n-1", "False")
    stage.step()
    assert stage.taints("n-1") == [CLOSED]


def test_an_acceptance_opens_a_gate_in_spite_of_checks_and_its_end_shuts_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stage = Stage()
    stage.say("n-1", "False")
    stage.accepted = {"n-1"}
    stage.labels = {"zone": "a"}
    stage.step()
    assert (stage.taints(), dict(stage.node("n-1").labels)) == ([], {"zone": "a", "netboot.dev/accepted": "true"})
    words = "the gate of n-1 is open, for its machine is accepted, and in spite of this: n-1 is False"
    assert [line for line in lines(caplog) if "is open" in line] == [words]
    stage.pass_minutes(40)
    assert stage.taints() == [], "nor does it close for silence"
    stage.accepted = None
    stage.step(6.0)
    assert stage.taints() == [], "it cannot be told that it ended"
    stage.accepted = set()
    stage.step(6.0)
    assert (stage.taints(), dict(stage.node("n-1").labels)) == ([STALE], {"zone": "a"})


def test_who_said_nothing_is_shut_again_when_its_acceptance_ends() -> None:
    stage = Stage()
    stage.accepted = {"n-1"}
    stage.step()
    assert stage.taints() == []
    stage.accepted = set()
    stage.step(6.0)
    assert stage.taints() == [{**CLOSED, "value": "AcceptanceEnded"}]
    stage.say("n-1")
    stage.step()
    assert stage.taints() == []


def test_who_is_in_order_meanwhile_stays_open_when_its_acceptance_ends() -> None:
    stage = Stage()
    stage.accepted = {"n-1"}
    stage.step()
    stage.say("n-1")
    stage.step()
    assert (stage.taints(), dict(stage.node("n-1").labels)) == ([], {})
    stage.accepted = set()
    stage.step(6.0)
    assert stage.taints() == []


def test_an_acceptance_opens_no_node_that_is_not_of_a_boot_that_proved_itself() -> None:
    """Another Node under its name, as somebody may make who deleted the one that the boot registered."""
    stage = Stage()
    stage.register("n-1")
    stage.accepted = {"n-1"}
    stage.say("n-1", "False")
    for _ in range(20):
        stage.step(6.0)
    assert stage.taints() == [REGISTERED]
    stage.register("n-1")
    for _ in range(20):
        stage.step(6.0)
    assert stage.taints() == [REGISTERED], "nor one that says nothing"


def test_what_was_opened_by_an_acceptance_closes_within_the_budget() -> None:
    stage = Stage(3)
    stage.accepted = set(stage.names)
    stage.step()
    assert stage.with_taints() == stage.names
    stage.accepted = set()
    stage.step(6.0)
    assert len(stage.with_taints()) == 2
    assert stage.gate.status().withheld == 2
    stage.accepted = set(stage.names)
    stage.step(6.0)
    assert (stage.with_taints(), stage.gate.status().withheld) == (stage.names, 0)


def test_a_node_that_has_no_room_for_the_label_is_not_let_in() -> None:
    stage = Stage()
    stage.cluster.full, stage.accepted = True, {"n-1"}
    with pytest.raises(CannotTellError, match="may not be more than 262144 bytes"):
        stage.step()
    assert stage.taints() == [REGISTERED]
