"""Ten thousand hellos of a stranger against the whole service, with a real apiserver behind it."""

import time

import pytest

from netboot.status.supervisor import SupervisorStatus
from netboot.stores.status import StatusFolder
from tests.cluster.threats.live_site import LEASES, SERVE, LiveSite
from tests.sockets.hello_flood import HELLOS, Flood, memory_kib
from tests.soft_tpm import other_tpm

pytestmark = pytest.mark.cluster


def test_ten_thousand_hellos_write_nothing_cost_no_memory_and_hold_up_nobody(site: LiveSite) -> None:
    """Unlimited by address here: each of them is looked at, and a machine joins to the end meanwhile."""
    status = StatusFolder(site.service.config.data / "status").read("supervisor", SupervisorStatus)
    assert status is not None
    pid = status.processes["join-0"].pid
    assert pid is not None
    stranger = site.power_on(site.fresh("new"), ek=other_tpm(), macs=("52:54:00:00:00:99",))
    flood = Flood(site.net, SERVE, stranger.hello())
    machine, began = site.power_on(site.fresh()), time.monotonic()
    flood.warm()
    before = memory_kib(pid), site.tokens(), len(site.admin("GET", LEASES).json()["items"])
    flood.start()
    said, node = site.join(machine)
    joined = time.monotonic()
    flood.join()
    print(f"{HELLOS} hellos in {time.monotonic() - began:.1f} s; a machine joined after {joined - began:.1f} s")
    assert node.get(f"{site.cluster.url}/api", timeout=60).status_code == 200
    assert flood.statuses == {404: HELLOS}
    assert memory_kib(pid) - before[0] < 16 * 1024
    assert site.tokens() - before[1] <= {said["token"][:6]}
    assert len(site.admin("GET", LEASES).json()["items"]) == before[2] + 1
