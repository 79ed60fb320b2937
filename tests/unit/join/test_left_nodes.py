"""Nodes of machines that do not come back go, by an operator's word and by uid; a late heartbeat is nobody's word."""

from collections.abc import Callable
from typing import Any

import pytest

from netboot.join.departed import KEPT_MS, clear_departed
from netboot.join.errors import ClusterUnavailableError
from netboot.join.left_nodes import RETIRED_MS, LeftNodes
from netboot.join.ports import Credential, NodeView
from netboot.lifecycle.errors import StateUnavailableError
from netboot.machines.values import Machine
from tests.joining import NOW, Stage, boot_id, declared, snapshot_of

YEAR_MS = 366 * 86_400_000


class Site:
    """gpu-001 joined as worker-1, which is not Ready any more."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.machines: tuple[Machine, ...] = (declared("gpu-001", node={"name": "worker-1"}),)
        self.retired: int | None = None
        self.known: set[tuple[str, str]] = set()
        self.join("gpu-001")
        self.node = self.stage.cluster.make_node("worker-1", ready=False)
        self.known.add(("gpu-001", self.node.uid))
        self.nodes = LeftNodes(lambda: {} if self.retired is None else {"gpu-001": self.retired}, self.registered)

    def join(self, machine: str) -> None:
        self.stage.cluster.leases.write(
            Credential(
                machine=machine, cluster="default", node="worker-1", assurance="tpm", boot=boot_id(machine),
                holder="a" * 64, holder_spki="", at_ms=NOW, issued=1, taints="netboot.dev/unchecked:NoExecute",
            )
        )  # fmt: skip

    def registered(self, machine: str, uid: str) -> bool:
        return (machine, uid) in self.known

    def clear(self, now_ms: int = NOW) -> bool:
        """Whether its Node is there then."""
        inventory = snapshot_of(*self.machines).inventory
        clear_departed(self.stage.exchange().issuer.clusters["default"], lambda: inventory, self.nodes, now_ms)
        return "worker-1" in self.stage.cluster._nodes

    def alter(self, **changes: Any) -> None:
        self.stage.cluster.put_node(self.node._replace(**changes))


@pytest.fixture
def site() -> Site:
    return Site()


def test_however_late_its_heartbeat_is_a_node_stays(site: Site) -> None:
    for passed in (0, RETIRED_MS, KEPT_MS, YEAR_MS):
        assert site.clear(NOW + passed)
    assert [call for call in site.stage.cluster.calls if call.startswith("nodes.")] == []


def test_the_node_of_a_retired_machine_goes_when_its_last_certificate_has_ended(site: Site) -> None:
    site.retired = NOW
    assert site.clear(NOW + RETIRED_MS - 1)
    site.stage.apiserver_ahead_ms = 7_000
    assert site.clear(NOW + RETIRED_MS - 1), "it was retired by our clock"
    assert not site.clear(NOW + RETIRED_MS)
    assert RETIRED_MS > 24 * 3_600_000
    assert site.stage.cluster.credentials, "its Lease says whose certificates are denied"


def test_who_is_approved_again_keeps_its_node_and_who_is_retired_again_is_looked_at_again(site: Site) -> None:
    site.retired = NOW
    site.retired = None
    assert site.clear(NOW + YEAR_MS)
    site.retired = NOW
    assert not site.clear(NOW + YEAR_MS)
    calls = len(site.stage.cluster.calls)
    site.clear(NOW + YEAR_MS)
    looked = [call for call in site.stage.cluster.calls[calls:] if call.startswith("nodes.")]
    assert looked == [], "none comes while it is retired"
    site.retired = NOW + 1
    again = site.stage.cluster.make_node("worker-1")
    site.known.add(("gpu-001", again.uid))
    assert not site.clear(NOW + YEAR_MS)


def test_the_node_of_a_machine_that_left_goes_with_its_lease(site: Site) -> None:
    site.machines = ()
    assert site.clear()
    assert site.clear(NOW + KEPT_MS - 1)
    assert not site.clear(NOW + KEPT_MS)
    assert site.stage.cluster.credentials == {}


def retires(site: Site) -> int:
    site.retired = NOW
    return NOW + RETIRED_MS


def leaves(site: Site) -> int:
    site.machines = ()
    site.clear()
    return NOW + KEPT_MS


@pytest.mark.parametrize("goes", [retires, leaves])
@pytest.mark.parametrize(
    "changes",
    [{"ready": True}, {"cordoned": True}, {"by_hand": True}, {"marked": False}, {"uid": "another"}],
    ids=lambda changes: next(iter(changes)),
)
def test_a_node_that_somebody_has_or_that_no_boot_of_it_registered_stays(
    site: Site, goes: Callable[[Site], int], changes: dict[str, Any]
) -> None:
    at = goes(site)
    site.alter(**changes)
    assert site.clear(at)
    assert not [call for call in site.stage.cluster.calls if call.startswith("nodes.delete")]


@pytest.mark.parametrize("goes", [retires, leaves])
def test_a_node_of_that_name_that_is_another_machine_s_now_stays(site: Site, goes: Callable[[Site], int]) -> None:
    site.machines = (declared("gpu-002", node={"name": "worker-1"}),)
    if goes is retires:
        site.machines += (declared("gpu-001", node={"name": "worker-9"}),)
    site.join("gpu-002")
    at = goes(site) if goes is retires else NOW + KEPT_MS
    site.clear()
    assert site.clear(at)


@pytest.mark.parametrize("goes", [retires, leaves])
def test_whoever_registers_at_that_moment_keeps_its_node(site: Site, goes: Callable[[Site], int]) -> None:
    """The one that was looked at is gone, and another has its name: its uid is another."""

    def registers() -> None:
        site.stage.cluster.remove_node("worker-1")
        site.stage.cluster.make_node("worker-1", ready=True)

    at = goes(site)
    site.stage.cluster.before["nodes.delete"] = registers
    assert site.clear(at)
    assert isinstance(site.stage.cluster.nodes.node("worker-1"), NodeView)


@pytest.mark.parametrize("goes", [retires, leaves])
def test_a_node_that_a_finalizer_keeps_hinders_no_other_and_is_told_once(
    site: Site, goes: Callable[[Site], int], caplog: pytest.LogCaptureFixture
) -> None:
    """Its deletion is on record in the cluster: it goes when that is taken off."""
    at = goes(site)
    site.stage.cluster.kept = {"worker-1"}
    assert site.clear(at)
    assert bool(site.stage.cluster.credentials) == (goes is retires)
    assert site.clear(at)
    assert len([record for record in caplog.records if "until its finalizers are taken off" in record.message]) == 1


def test_where_it_cannot_be_told_nothing_goes(site: Site) -> None:
    at = leaves(site)

    def broken(_machine: str, _uid: str) -> bool:
        raise StateUnavailableError("state.db cannot be used")

    site.nodes = LeftNodes(dict, broken)
    with pytest.raises(StateUnavailableError):
        site.clear(at)
    site.nodes = LeftNodes(dict, site.registered)
    site.stage.cluster.fail_next = 1
    with pytest.raises(ClusterUnavailableError):
        site.clear(at)
    assert site.stage.cluster.credentials, "the Lease goes after its Node"
    assert not site.clear(at)
    assert site.stage.cluster.credentials == {}
