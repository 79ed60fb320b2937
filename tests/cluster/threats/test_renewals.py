"""A rollout before a real control plane: it drains a machine and tells it to reboot by itself, and is complete when the
machine is in service with the image."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.threats.live_site import NODES, LiveSite
from tests.cluster.threats.test_drains import Kubelet, a_pod_of_a_set, chassis_boot, in_service, order
from tests.processes import wait_for
from tests.sites import KUBELET, add_image

pytestmark = pytest.mark.cluster


def rollout(site: LiveSite) -> Any:
    return json.loads(netboot(site, "status", "rolled", "--output", "json"))


def netboot(site: LiveSite, *arguments: str) -> str:
    done = site.service.netboot("rollout", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def started(site: LiveSite) -> bool:
    """The rollout has begun; False: a drain of another test, which took rights away, has not been looked at since."""
    done = site.service.netboot("rollout", "start", "rolled", "next", "--bake", "0s", "--deadline", "10m")
    if done.returncode != 0:
        assert "machines cannot be drained now" in done.stderr, done.stderr
        return False
    assert "`netboot rollout status rolled` says how far they are" in done.stdout
    return True


def serves(site: LiveSite, machine: Kubelet) -> None:
    """It has joined, and its gate is open."""
    wait_for(lambda: "NodeRegistered" in site.phases(chassis_boot(site, machine.name)), 180)
    wait_for(lambda: in_service(site, machine.name) == "InService", 180)


def alone(site: LiveSite) -> None:
    """Machines of other tests, which are off, are retired: where most of a cluster's Nodes are gone it is taken for an
    outage (rule L11 of the lifecycle), in which no rollout begins anything."""
    for name in nodes_of(site):
        said = site.service.order(f"/v1/machines/{name}/retire", reason="its test is over")
        assert said.status_code == 200, said.text


def nodes_of(site: LiveSite) -> dict[str, Any]:
    """The Nodes of its machines that there are, by name."""
    items = site.admin("GET", NODES).json()["items"]
    return {one["metadata"]["name"]: one for one in items if one["metadata"]["name"] in site.machines}


@pytest.mark.usefixtures("no_workload_left")
def test_a_rollout_drains_a_machine_tells_it_to_reboot_and_counts_it_when_it_is_back(
    site: LiveSite, tmp_path: Path
) -> None:
    alone(site)
    chassis = site.fresh("roll")
    new = add_image(site.service.config, name="next", salt="next", documents=KUBELET)
    machine = Kubelet(site, chassis, tmp_path / "first")
    order(site, "accept", machine.name, "--reason", "no checks here", "--until", "1h")
    with machine.running():
        serves(site, machine)
        pod = a_pod_of_a_set(machine)
        wait_for(lambda: started(site), 180)
        wait_for(lambda: machine.drained() == "Draining", 180)
        leaving = f"/api/v1/namespaces/default/pods/{pod}"
        wait_for(lambda: site.admin("GET", leaving).json()["metadata"].get("deletionTimestamp"), 180)
        assert machine.reboot() == 1, "it is not drained"
        machine.ask("DELETE", leaving, {"gracePeriodSeconds": 0}, 200)
        wait_for(machine.told, 180)
        (member,) = rollout(site)["members"]
        assert (member["state"], member["order"]["owner"]) == ("assigned", f"rollout/{rollout(site)['number']}")
        assert [machine.reboot(), machine.reboot()] == [0, 1]
    site.boot_server_knows()
    again = Kubelet(site, chassis, tmp_path / "second")
    with again.running():
        serves(site, again)
        wait_for(lambda: rollout(site)["state"] == "complete", 180)
        assert (again.told(), again.drained(), again.reboot()) == (None, None, 1)
    assert rollout(site)["why"] == "1 done"
    assert site.service.api(f"/v1/machines/{machine.name}/drains")["drains"][0]["end"] == "rebooted"
    served = site.service.api(f"/v1/boots/{chassis_boot(site, machine.name)}")["script"]["image"]
    assert served == new
