"""`netboot serve` with a cluster: its processes, and that machines boot whatever becomes of the cluster."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from images.store.store import Store
from netboot.clock import SystemClock
from netboot.config import load_config
from netboot.lifecycle.errors import CannotTellError
from netboot.stores.control_planes import SaidControlPlanes
from netboot.stores.status import StatusFolder
from tests.processes import wait_for
from tests.sites import add_image, free_ports, make_site
from tests.sockets.service import Service, serving

MAC = "52:54:00:00:00:01"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """Nothing answers where its cluster should be, and the kubeconfigs have not been made yet."""
    root = tmp_path / "site"
    make_site(root)
    [port] = free_ports(1)
    server = f"https://127.0.0.1:{port}"
    file, given = root / "netboot.yaml", f'{{endpoints: ["{server}"], authority: tls/cluster.crt}}'
    file.write_text(f"{file.read_text()}clusters:\n  default: {given}\n")
    config = load_config(root / "netboot.yaml")
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, root / "netboot.yaml") as running:
        yield running


def test_a_cluster_that_cannot_be_reached_takes_nothing_down(service: Service) -> None:
    assert service.outcome(MAC) == "boot"

    def told() -> Any:
        said = service.readyz()
        messages = [said["details"][name]["message"] for name in ("approver-default", "nodes-default")]
        return said if all("kubeconfig" in each for each in messages) else None

    said = wait_for(told)
    assert (said["ready"], said["degraded"]) == (True, True)
    processes = said["details"]["processes"]["processes"]
    assert {"approver-default", "nodes-default"} < set(processes)
    assert "netboot_cluster_unavailable_total" in service.text("/metrics")
    wait_for((service.config.data / "status" / "control-plane-default.json").exists)
    control = SaidControlPlanes(StatusFolder(service.config.data / "status"), SystemClock().now_ms)

    def why() -> bool:
        """A status older than half a minute is reported as old instead."""
        with pytest.raises(CannotTellError) as error:
            control.seen("default")
        return "kubeconfig" in str(error.value)

    wait_for(why)
    before = processes["approver-default"]["pid"]
    os.kill(before, signal.SIGKILL)

    def again() -> bool:
        process = service.readyz()["details"]["processes"]["processes"]["approver-default"]
        return bool(process["ready"]) and process["pid"] != before

    wait_for(again)
    assert service.outcome(MAC) == "boot"
    assert service.stop() == 0
