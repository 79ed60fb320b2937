"""Machines of a control plane, as commands speak of them: `netboot rollout start|status`, `netboot machine drain`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.lifecycle.conditions import Judged, MachineCondition
from netboot.lifecycle.control_planes import LABEL, ControlNode, ControlPlaneStatus
from netboot.lifecycle.drains import DrainsStatus
from netboot.lifecycle.phases import Phase
from netboot.lifecycle.reasons import ConditionType, Reason
from netboot.lifecycle.state import Batch
from tests.commands import Run
from tests.records import event, script
from tests.sites import KUBELET, add_image
from tests.sockets.api import NOW, Api
from tests.sockets.served import runner, served

CONTROL = ("cp1", "cp2", "cp3")
INVENTORY = f"""\
machines:
{
    chr(10).join(
        f"  - {{name: {name}, match: {{serial: S-{name}}}, profile: compute, rack: r{number % 2}, node: {{labels: "
        f'{{{LABEL}: ""}}}}, topology: {{accelerator_domain: nvl-1}}}}'
        for number, name in enumerate(CONTROL)
    )
}
  - {{name: w1, match: {{serial: S-w1}}, profile: compute, rack: r0}}
  - {{name: w2, match: {{serial: S-w2}}, profile: compute, rack: r1}}
profiles:
  - {{name: compute, channel: stable}}
channels:
  - {{name: stable}}
racks:
  - {{name: r0}}
  - {{name: r1}}
"""
START = ("rollout", "start", "stable", "next")


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """Everybody is in service, and the control plane in order. Its domain has more machines than may be out at once."""
    made = Api(tmp_path, inventory=INVENTORY)
    add_image(made.config, name="next", salt="2", documents=KUBELET)
    made.store.set_channel("stable", add_image(made.config))
    assert made.publisher.step()
    service = MachineCondition.of(ConditionType.IN_SERVICE, Reason.IN_SERVICE, "", 1)
    names = (*CONTROL, "w1", "w2")
    made.kept.keep([Judged(machine=name, conditions=(service,), timers={}, boot="b") for name in names], (), {})
    made.say(**{"drains-default": DrainsStatus(at_ms=NOW)})
    tell(made, cp1=True, cp2=True, cp3=True)
    return made


def tell(api: Api, **ready: bool) -> None:
    nodes = {name: ControlNode(ready=each) for name, each in ready.items()}
    api.say(**{"control-plane-default": ControlPlaneStatus(at_ms=NOW, nodes=nodes)})


@pytest.fixture
def run(api: Api, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    with served(api) as address:
        yield runner(address, api, capsys, monkeypatch)


def test_who_is_not_named_is_kept_and_each_command_says_so(api: Api, run: Run) -> None:
    kept = "machines of a control plane keep what they have, for --control-plane did not name them: cp1, cp2, cp3"
    dry = run(*START, "--dry-run").out.splitlines()
    assert dry[0].startswith("this would be a rollout of 2 machines of channel stable from ")
    assert dry[2:] == [kept, "2 of them are in service now; nothing was changed"]
    assert kept in run(*START).out.splitlines()
    status = run("rollout", "status", "stable").out.splitlines()
    assert f"control plane   {kept}" in status
    assert [line.split()[2] for line in status if line.startswith("cp")] == ["kept", "kept", "kept"]
    said = api.get("/v1/rollouts/1").json
    assert (said["control_plane"], said["of"]) == ({"named": [], "kept": list(CONTROL)}, 2)
    assert said["machines"]["kept"] == 3


def test_those_that_are_named_go_and_are_looked_at_before(api: Api, run: Run) -> None:
    named = (*START, "--control-plane", "cp1", "--control-plane", "cp3")
    tell(api, cp1=True, cp2=True)
    few = "without it 1 of its control plane's Nodes would be Ready, and 2 of 3 are a majority"
    for more in ((), ("--dry-run",), ("--on-next-boot",)):
        ran = run(*named, *more)
        assert (ran.status, ran.err.splitlines()[0]) == (
            4,
            f"Error: cp1 is of a control plane, and may not go now: {few}",
        )
    tell(api, cp1=True, cp2=True, cp3=True)
    begun = run(*named).out.splitlines()
    assert begun[2:4] == [
        "machines of a control plane go last, one at a time: cp1, cp3",
        "machines of a control plane keep what they have, for --control-plane did not name them: cp2",
    ]
    assert api.get("/v1/rollouts").json["rollouts"][0]["control_plane"] == {"named": ["cp1", "cp3"], "kept": ["cp2"]}


def test_where_it_cannot_be_told_nobody_who_is_named_goes(api: Api, run: Run) -> None:
    api.say(**{"control-plane-default": ControlPlaneStatus(at_ms=NOW - 30_001)})
    ran = run(*START, "--control-plane", "cp1")
    why = "how its control plane is cannot be told: nodes-default has not said for a while how it is"
    assert (ran.status, ran.err.splitlines()[0]) == (
        4,
        f"Error: cp1 is of a control plane, and may not go now: {why}",
    )
    assert run(*START).status == 0, "the inventory says whom to keep"


def test_a_drain_by_a_person_is_done_and_warned_of(api: Api, run: Run) -> None:
    node = event("cp1", 1, Phase.NODE_REGISTERED, 700, "node cp1 uid 1")
    api.states.take(Batch("join-0.db", 1, 3, [script("cp1", 1), event("cp1", 1, Phase.ATTESTED), node]))
    order = ("machine", "drain", "cp1", "--reason", "DIMM 4")
    assert run(*order, "--dry-run").out.splitlines()[1:] == [
        "It is of a control plane, whose other Nodes are in order."
    ]
    tell(api, cp1=True, cp2=False, cp3=True)
    ran = run(*order)
    few = "without it 1 of its control plane's Nodes would be Ready, and 2 of 3 are a majority"
    assert (ran.status, ran.out.splitlines()[1]) == (
        0,
        f"WARNING: it is of a control plane, and should not go now: {few}.",
    )
    assert [each.machine for each in api.drains.standing()] == ["cp1"]
