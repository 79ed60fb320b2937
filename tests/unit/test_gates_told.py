"""The condition `netboot.dev/Gate`: what others are told of gates, and when; that it says what the taint is."""

from typing import Any

import pytest

from netboot.controllers.nodes.gating import GateController
from netboot.controllers.nodes.moves import MOST_REFUSED, MOST_TOLD
from netboot.join.errors import ClusterUnavailableError, InvalidError
from netboot.join.node_said import GateSaid
from netboot.join.ports import NodeView
from netboot.lifecycle.errors import CannotTellError
from tests.kube_fake import FakeCluster, FakeNodes
from tests.unit.test_gating import REGISTERED, Stage

OPEN = GateSaid("True", "Open", "netboot's gate is open")
SHUT = GateSaid("False", "Unchecked", "netboot's gate has not opened yet")
FAILED = GateSaid("False", "ChecksFailed", "netboot's gate was closed after it had been open")
AT_MS = 1_790_000_000_000


class Told(Stage):
    """`clock`: None: the setting is off."""

    def __init__(self, machines: int = 1, clock: int | None = AT_MS) -> None:
        self.clock = clock
        super().__init__(machines)

    def start(self) -> None:
        super().start()
        at_ms = self.clock
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
            told_ms=None if at_ms is None else lambda: at_ms,
        )

    def says(self, name: str = "n-1") -> GateSaid | None:
        return self.node(name).gate


class Refusing(FakeNodes):
    """An API server that does not take the condition of these Nodes; `tried`: whose, in turn."""

    def __init__(self, cluster: FakeCluster, *names: str, error: Exception) -> None:
        super().__init__(cluster)
        self.names, self.error, self.tried = set(names), error, list[str]()

    def tell_gate(self, node: NodeView, said: GateSaid, at_ms: int) -> None:
        self.tried.append(node.name)
        assert at_ms == AT_MS
        if node.name in self.names:
            raise self.error
        super().tell_gate(node, said, at_ms)


REFUSED = ClusterUnavailableError("the account lacks a right")


def test_it_follows_the_taint_and_comes_after_it() -> None:
    stage = Told()
    stage.step()
    assert (stage.says(), stage.taints()) == (SHUT, [REGISTERED])
    for how, says in (("True", OPEN), ("False", FAILED), ("True", OPEN)):
        stage.say("n-1", how)
        stage.step()
        assert stage.says() == says
    stage.cluster.put_node(stage.node("n-1")._replace(gate=SHUT))  # by somebody of the group netboot:break-glass
    stage.step()
    assert stage.says() == OPEN
    before = stage.node("n-1").version
    stage.step(60.0)
    assert stage.node("n-1").version == before, "nothing is new"


def test_without_the_setting_nobody_is_told() -> None:
    stage = Told(clock=None)
    stage.say("n-1")
    stage.step()
    assert (stage.says(), stage.taints()) == (None, [])


def test_a_node_that_somebody_has_in_their_hands_or_gave_away() -> None:
    """Of the first it says how the taint is, as of any; the other is nobody's to write to."""
    stage = Told(machines=2)
    stage.cluster.put_node(stage.node("n-1")._replace(by_hand=True, taints=()))
    stage.cluster.put_node(stage.node("n-2")._replace(marked=False))
    stage.step()
    assert (stage.says("n-1"), stage.says("n-2")) == (OPEN, None)


def test_a_gate_that_cannot_be_moved_is_not_told_as_if_it_had_been() -> None:
    stage = Told()

    class Stuck(FakeNodes):
        def taint(self, *_: Any, **__: Any) -> NodeView:
            raise REFUSED

    stage.cluster.nodes = Stuck(stage.cluster)
    stage.say("n-1")
    with pytest.raises(CannotTellError, match=r"^the taints of the Node n-1 cannot be changed"):
        stage.step()
    assert stage.says() == SHUT


def test_where_nodes_are_not_seen_as_they_are_nothing_is_told() -> None:
    stage = Told()
    stage.followed = False
    stage.step()
    assert stage.says() is None


@pytest.mark.parametrize("error", [REFUSED, InvalidError("metadata: Too long")])
def test_what_cannot_be_told_hinders_no_gate_is_said_and_tried_again(error: Exception) -> None:
    stage = Told(machines=9)
    refusing = stage.cluster.nodes = Refusing(stage.cluster, *stage.names[:4], error=error)
    for name in stage.names:
        stage.say(name)
    why = f"the condition netboot.dev/Gate of the Node n-1 cannot be written: {error}"
    for _ in range(2):  # with the first step three are refused, and no more are tried; then they come last
        with pytest.raises(CannotTellError) as caught:
            stage.step(5.0)
        assert str(caught.value) == why
    assert refusing.tried == ["n-1", "n-2", "n-3", "n-4", *stage.names[4:], "n-1", "n-2"]
    assert stage.with_taints() == stage.names
    assert [stage.says(name) for name in stage.names] == [None] * 4 + [OPEN] * 5
    refusing.names.clear()
    with pytest.raises(CannotTellError):
        stage.gate.step(followed=True)  # nothing is due
    stage.step(5.0)
    assert [stage.says(name) for name in stage.names] == [OPEN] * 9


def test_a_machine_that_is_gone_is_no_trouble() -> None:
    stage = Told()
    stage.cluster.nodes = Refusing(stage.cluster, "n-1", error=REFUSED)
    with pytest.raises(CannotTellError):
        stage.step()
    del stage.machines["n-1"]
    stage.step()


def test_somebody_else_wrote_meanwhile() -> None:
    """What it is then comes with the watch."""
    stage = Told()
    stage.say("n-1")
    stage.cluster.put_node(stage.node("n-1")._replace(cordoned=True))
    stage.gate.step(followed=True)
    assert stage.says() is None
    stage.step()
    stage.step()
    assert stage.says() == OPEN


def test_as_many_as_may_be_with_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netboot.controllers.nodes.moves.MOST_TOLD", 2)
    stage = Told(machines=5)
    told = []
    for _ in range(3):
        stage.step(5.0)
        told.append(sum(stage.says(name) is not None for name in stage.names))
    assert told == [2, 4, 5]
    assert MOST_TOLD > MOST_REFUSED
