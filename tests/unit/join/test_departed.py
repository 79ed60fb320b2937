"""Leases of machines that have left: who is kept how long, and whose name is free at once."""

import pytest

from netboot.join.departed import KEPT_MS, clear_departed
from netboot.join.errors import ClusterUnavailableError
from netboot.join.left_nodes import LeftNodes
from netboot.join.ports import Credential
from netboot.machines.values import Machine
from tests.joining import NOW, Stage, boot_id, declared, snapshot_of

DAY_MS = 86_400_000
NOBODY = LeftNodes(dict, lambda _machine, _uid: False)
TAINTS = "netboot.dev/unchecked:NoExecute"


class Site:
    """A cluster with the Lease of gone-1, beside an inventory that tests change."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.machines: tuple[Machine, ...] = ()
        self.write("gone-1")

    def write(self, name: str, cluster: str = "default", node: str = "") -> Credential:
        held = Credential(
            machine=name, cluster=cluster, node=node or f"{name}.example", taints=TAINTS, assurance="tpm",
            boot=boot_id(name), holder="a" * 64,
            holder_spki="", token_id="abc123", token_expires_ms=NOW + 300_000, at_ms=NOW, ek_sha256="e" * 64,
        )  # fmt: skip
        return self.stage.cluster.leases.write(held)

    def clear(self, now_ms: int = NOW) -> None:
        inventory = snapshot_of(*self.machines).inventory
        clear_departed(self.stage.exchange().issuer.clusters["default"], lambda: inventory, NOBODY, now_ms)

    @property
    def leases(self) -> dict[str, int | None]:
        """When each machine was seen to have left, by its name."""
        return {one.machine: one.left_ms for one in self.stage.cluster.credentials.values()}

    @property
    def taints(self) -> dict[str, str]:
        """Of each machine's Lease."""
        return {one.machine: one.taints for one in self.stage.cluster.credentials.values()}


@pytest.fixture
def site() -> Site:
    return Site()


def test_who_has_left_is_noted_and_goes_a_week_later(site: Site) -> None:
    site.clear()
    assert site.leases == {"gone-1": NOW}
    site.clear(NOW + DAY_MS)
    assert site.leases == {"gone-1": NOW}
    site.clear(NOW + KEPT_MS - 1)
    assert site.leases == {"gone-1": NOW}
    site.stage.cluster.secrets["abc123"] = {}
    site.clear(NOW + KEPT_MS)
    assert (site.leases, site.stage.cluster.secrets) == ({}, {})
    assert KEPT_MS == 7 * DAY_MS


def test_who_comes_back_begins_anew(site: Site) -> None:
    site.clear()
    site.machines = (declared("gone-1", enabled=False),)
    site.clear(NOW + KEPT_MS)
    assert site.leases == {"gone-1": None}
    site.machines = ()
    site.clear(NOW + KEPT_MS + 1)
    assert site.leases == {"gone-1": NOW + KEPT_MS + 1}


@pytest.mark.parametrize("declared_still", [False, True])
def test_a_name_under_which_another_machine_has_joined_asks_for_no_taints_of_the_one_before(
    site: Site, declared_still: bool
) -> None:
    """Or that machine would have to register with the taints of both. The Lease itself says for its week whose the last
    certificates are; an inventory of yesterday that comes back has taken nothing away."""
    before = (declared("gone-1", enabled=False),) if declared_still else ()
    renamed = tuple(machine.model_copy(update={"node": declared("x").node}) for machine in before)
    site.machines = (*renamed, declared("new-1", node={"name": "gone-1.example"}))
    site.clear()
    left = None if declared_still else NOW
    assert (site.leases, site.taints) == ({"gone-1": left}, {"gone-1": TAINTS}), "nobody has joined under it yet"
    site.write("new-1", node="gone-1.example")
    site.clear()
    assert site.leases == {"gone-1": left, "new-1": None}
    assert site.taints == {"gone-1": "", "new-1": TAINTS}


def test_the_taints_of_a_machine_that_comes_back_are_its_own_again(site: Site) -> None:
    site.write("new-1", node="gone-1.example")
    site.machines = (declared("new-1", node={"name": "gone-1.example"}),)
    site.clear()
    assert site.taints["gone-1"] == ""
    site.machines = (declared("gone-1", node={"name": "gone-1.example"}),)
    site.clear()
    assert (site.leases, site.taints) == ({"gone-1": None, "new-1": NOW}, {"gone-1": TAINTS, "new-1": ""})


def test_where_the_inventory_cannot_be_told_every_lease_stays_as_it_is(site: Site) -> None:
    clear_departed(site.stage.exchange().issuer.clusters["default"], lambda: None, NOBODY, NOW)
    assert site.leases == {"gone-1": None}


def test_a_machine_that_went_to_another_cluster_has_left_this_one(site: Site) -> None:
    site.machines = (declared("gone-1", cluster="other"),)
    site.clear()
    assert site.leases == {"gone-1": NOW}


def test_leases_of_other_clusters_are_none_of_its_business(site: Site) -> None:
    site.write("theirs", "other")
    site.clear()
    assert site.leases == {"gone-1": NOW, "theirs": None}


def test_it_is_the_apiserver_s_clock_that_counts(site: Site) -> None:
    site.stage.apiserver_ahead_ms = -7_000
    site.clear(NOW + 7_000)
    assert site.leases == {"gone-1": NOW}


def test_a_cluster_that_is_not_fit_is_left_alone(site: Site) -> None:
    def unfit() -> None:
        raise ClusterUnavailableError("the apiserver's clock is 40 s behind ours")

    site.stage.preflight = unfit
    with pytest.raises(ClusterUnavailableError):
        site.clear()
    assert site.leases == {"gone-1": None}


@pytest.mark.parametrize("call", ["leases.write", "leases.delete"])
def test_who_joins_at_that_very_moment_keeps_its_lease(site: Site, call: str) -> None:
    def joins() -> None:
        known = site.stage.cluster.credentials["default", "gone-1"]
        site.stage.cluster.leases.write(known.model_copy(update={"boot": boot_id("gone-1", 9), "left_ms": None}))

    if call == "leases.delete":
        site.clear()
    site.stage.cluster.before[call] = joins
    site.clear(NOW + KEPT_MS)
    [kept] = site.stage.cluster.credentials.values()
    assert kept.boot == boot_id("gone-1", 9)
