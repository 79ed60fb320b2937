"""How long boots take, counted by a running service: once for each boot, over restarts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.lifecycle.known import Node
from tests.processes import wait_for
from tests.sockets.proven import MAC, PACE_MS, in_cluster, joined, node, reason, reported
from tests.sockets.service import Service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with in_cluster(tmp_path / "site") as running:
        yield running


def counted(service: Service, sample: str, target: str) -> float | None:
    """The value of that sample for the class of the machine; None: there is none."""
    line = rf'^netboot_boot_{sample}\{{class="hgx",image="[0-9a-f]{{12}}",(?:le="[^"]*",)?target="{target}"\}} (\S+)$'
    found = re.findall(line, service.text("/metrics"), re.MULTILINE)
    return float(found[-1]) if found else None


def test_each_boot_is_counted_once_with_its_class_and_image_and_a_restart_goes_on(
    service: Service, tmp_path: Path
) -> None:
    boot = service.boot(MAC)
    reported(service, boot, "Switched")
    joined(service, boot, tmp_path)
    wait_for(lambda: counted(service, "duration_seconds_count", "Ready") == 1)
    seconds = counted(service, "duration_seconds_sum", "Ready")
    assert seconds == pytest.approx(service.api(f"/v1/boots/{boot}")["seconds_to_ready"], abs=0.01)
    unaccounted = counted(service, "unaccounted_seconds_total", "Ready")
    assert unaccounted == pytest.approx(2 * PACE_MS / 1000, abs=0.002), (
        "from ImageVerified to Booted, for nobody heard of Switched"
    )
    assert counted(service, "duration_seconds_count", "InService") is None
    node(service, Node.GATED)
    wait_for(lambda: reason(service, "InService") == "HealthGated")
    node(service, Node.IN_SERVICE)
    wait_for(lambda: counted(service, "duration_seconds_count", "InService") == 1)
    assert service.stop() == 0
    service.start()
    assert counted(service, "duration_seconds_count", "Ready") == 1
    assert reason(service, "Booted") == "Booted", "what was found is there as soon as the service is ready"
    second = service.boot(MAC)
    reported(service, second)
    joined(service, second, tmp_path)
    wait_for(lambda: counted(service, "duration_seconds_count", "Ready") == 2)
    assert counted(service, "duration_seconds_bucket", "Ready") == 2, "the last bucket has all"
    assert counted(service, "unaccounted_seconds_total", "Ready") == unaccounted
    assert 'netboot_boot_duration_seconds_bucket{class="hgx"' in service.text("/metrics")
