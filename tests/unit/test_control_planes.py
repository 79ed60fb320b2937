"""Which machines are of a control plane, and whether one may go: by tables; and who looks."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from netboot.controllers.nodes.control_plane import ControlPlaneLook
from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.control_planes import LABEL, ControlNode, ControlPlaneStatus, hindrances, of_control_planes
from netboot.lifecycle.errors import CannotTellError
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.machines.values import Machine
from netboot.stores.control_planes import SaidControlPlanes, file_of
from netboot.stores.status import StatusFile, StatusFolder
from tests.kube_fake import FakeCluster

GOOD, BAD = ControlNode(ready=True), ControlNode(ready=False)
ETCD, NO_ETCD = ControlNode(ready=True, etcd=True), ControlNode(ready=True, etcd=False)


def machine(name: str, *, declared: bool = True, **more: Any) -> Machine:
    labels = {LABEL: ""} if declared else {}
    said = {"name": name, "match": {"serial": name}, "profile": "p", "node": {"labels": labels}, **more}
    return Machine.model_validate(said)


class Shown:
    """Of cluster `default`; None: nobody says."""

    def __init__(self, nodes: Mapping[str, ControlNode] | None) -> None:
        self.nodes = nodes

    def seen(self, cluster: str) -> Mapping[str, ControlNode]:
        if self.nodes is None or cluster != "default":
            raise CannotTellError(f"nodes-{cluster} has not said for a while how it is")
        return self.nodes


def judged(names: Sequence[str], out: Sequence[str] = ()) -> dict[str, Judged]:
    reasons = {name: Reason.NODE_NOT_READY if name in out else Reason.IN_SERVICE for name in names}
    return {
        name: Judged(
            machine=name,
            conditions=(MachineCondition.of(ConditionType.IN_SERVICE, reason, "", 1),),
            timers={},
            boot="boot",
            image="",
        )
        for name, reason in reasons.items()
    }


THREE = [machine("cp1"), machine("cp2"), machine("cp3")]


def why(nodes: Mapping[str, ControlNode] | None, machines: Sequence[Machine] = THREE, **by: str) -> str:
    """Of cp1."""
    return hindrances(["cp1", "w1"], [*machines, machine("w1", declared=False)], Shown(nodes), judged, by)["cp1"]


def test_it_may_go_while_all_others_are_in_order() -> None:
    assert why({"cp1": GOOD, "cp2": GOOD, "cp3": GOOD}) == ""
    assert why({"cp1": ETCD, "cp2": ETCD, "cp3": ETCD}) == ""
    assert why({"cp1": BAD, "cp2": GOOD, "cp3": GOOD}) == "", "the others do without it already"
    assert why({"cp1": ETCD, "cp2": GOOD, "cp3": ETCD, "cp4": ETCD}) == "", "one that has no etcd is no member of it"


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        (
            {"cp1": GOOD, "cp2": GOOD, "cp3": BAD},
            "without it 1 of its control plane's Nodes would be Ready, and 2 of 3 are a majority",
        ),
        (
            {"cp1": GOOD, "cp2": GOOD},
            "without it 1 of its control plane's Nodes would be Ready, and 2 of 3 are a majority",
        ),
        (
            {"cp1": GOOD, "cp2": GOOD, "cp3": GOOD, "x1": BAD, "x2": BAD},
            "without it 2 of its control plane's Nodes would be Ready, and 3 of 5 are a majority",
        ),
        (
            {"cp1": ETCD, "cp2": ETCD, "cp3": NO_ETCD},
            "without it 1 of its etcd's Pods would be Ready, and 2 of 3 are a majority",
        ),
        (
            {"cp1": GOOD, "cp2": ETCD, "cp3": NO_ETCD},
            "without it 1 of its etcd's Pods would be Ready, and 2 of 3 are a majority",
        ),
        (
            {"cp2": GOOD, "cp3": GOOD},
            "its Node cp1 is not among those that the cluster shows of its control plane",
        ),
        (None, "how its control plane is cannot be told: nodes-default has not said for a while how it is"),
    ],
)
def test_it_may_not_where_the_others_would_be_no_majority_or_nobody_can_tell(
    nodes: Mapping[str, ControlNode] | None, said: str
) -> None:
    assert why(nodes) == said


def test_one_and_two_are_never_without_a_majority_less() -> None:
    one = [machine("cp1")]
    assert why({"cp1": GOOD}, one) == (
        "without it 0 of its control plane's Nodes would be Ready, and 1 of 1 are a majority"
    )
    assert why({"cp1": GOOD, "x1": GOOD}, one) == (
        "without it 1 of its control plane's Nodes would be Ready, and 2 of 2 are a majority"
    )


def test_never_beside_another_that_is_out_by_whoevers_word() -> None:
    five = dict.fromkeys(("cp1", "cp2", "cp3", "x1", "x2"), GOOD)
    assert why(five, cp2="by alice") == "cp2, of the same control plane, is out of service (by alice)"
    assert why(five, cp1="by rollout 7 of channel stable") == "", "its own word is none against it"
    elsewhere = [machine("cp1"), machine("cp2", cluster="other"), machine("cp3")]
    assert why(five, elsewhere, cp2="by alice") == "", "another cluster's"
    disabled = [machine("cp1"), machine("cp2", enabled=False), machine("cp3")]
    assert why(five, disabled, cp2="by alice") == "", "it is no machine any more"

    def found(names: Sequence[str]) -> dict[str, Judged]:
        return judged(names, out=["cp3"])

    assert hindrances(["cp1"], THREE, Shown(five), found, {}) == {
        "cp1": "cp3, of the same control plane, is out of service (by itself)"
    }
    unknown = hindrances(["cp1"], THREE, Shown(five), lambda _names: judged(["cp1", "cp2"]), {})
    assert unknown == {"cp1": "cp3, of the same control plane, was not looked at yet"}


def test_of_a_control_plane_is_who_has_the_label_in_the_inventory_or_on_its_node() -> None:
    machines = [machine("cp1"), machine("cp2", declared=False), machine("w1", declared=False)]
    assert [each.name for each in of_control_planes(machines, Shown({"cp2": GOOD}))] == ["cp1", "cp2"]
    assert [each.name for each in of_control_planes(machines, Shown(None))] == ["cp1"]


def test_what_is_said_is_read_until_it_is_old(tmp_path: Path) -> None:
    now = 100_000
    said = SaidControlPlanes(StatusFolder(tmp_path), lambda: now)
    with pytest.raises(CannotTellError, match="nodes-default has not said for a while how it is"):
        said.seen("default")
    file = StatusFile(tmp_path, file_of("default"))
    file.write(ControlPlaneStatus(at_ms=now, nodes={"cp1": GOOD}))
    assert said.seen("default") == {"cp1": GOOD}
    file.write(ControlPlaneStatus(at_ms=now, problem="the API server does not answer", nodes={"cp1": GOOD}))
    with pytest.raises(CannotTellError, match="the API server does not answer"):
        said.seen("default")
    file.write(ControlPlaneStatus(at_ms=now - 30_001, nodes={"cp1": GOOD}))
    with pytest.raises(CannotTellError, match="for a while"):
        said.seen("default")


def test_who_looks_says_what_is_there_and_why_it_cannot_be_told() -> None:
    fake, said = FakeCluster(), list[ControlPlaneStatus]()
    fake.control_plane.there |= {"cp1": ETCD, "cp2": BAD}
    look = ControlPlaneLook(lambda: fake.control_plane, lambda: ["cp1", "w1"], said.append, lambda: 7)
    look.step()
    assert said == [ControlPlaneStatus(at_ms=7, nodes={"cp1": ETCD, "cp2": BAD})]
    fake.down = "the API server lab cannot be reached"
    look.step()
    assert said[1] == ControlPlaneStatus(at_ms=7, problem="the API server lab cannot be reached")


def test_the_etcd_of_a_control_plane_that_is_none_of_ours_is_not_looked_at() -> None:
    fake, said = FakeCluster(), list[ControlPlaneStatus]()
    fake.control_plane.there |= {"x1": ETCD}
    ControlPlaneLook(lambda: fake.control_plane, lambda: ["w1"], said.append, lambda: 7).step()
    assert said == [ControlPlaneStatus(at_ms=7, nodes={"x1": GOOD})]
    assert [call.strip() for call in fake.calls] == ["control_plane.nodes"]
