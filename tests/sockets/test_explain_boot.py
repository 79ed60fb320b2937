"""What was decided for a boot that there was, told by a running service after everything has changed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from netboot.lifecycle.known import Node
from tests.processes import wait_for
from tests.sockets.proven import CLASSED, MAC, in_cluster, joined, node, reason, reported
from tests.sockets.service import Service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with in_cluster(tmp_path / "site") as running:
        yield running


def test_a_past_boot_is_explained_by_what_was_written_down_then(service: Service, tmp_path: Path) -> None:
    claimed, boot = service.boot(MAC), service.boot(MAC)
    reported(service, boot)
    joined(service, boot, tmp_path)
    node(service, Node.IN_SERVICE)
    wait_for(lambda: reason(service, "InService") == "InService")

    def decided() -> object:
        found = service.api(f"/v1/machines/gpu-001/explain?boot={boot}")
        return found["decided"] and found["gate"]["in_service_at"]

    wait_for(decided)
    before = service.api(f"/v1/machines/gpu-001/explain?boot={boot}")
    (service.config.inventory / "site.yaml").write_text(CLASSED.replace("[quiet]", "[debug]"))
    wait_for(lambda: "debug" in service.api("/v1/machines/gpu-001/explain")["decision"]["kernel_arguments"])
    after = service.api(f"/v1/machines/gpu-001/explain?boot={boot}")
    assert after == before
    assert "quiet" in after["decided"]["kernel_arguments"]
    assert after["decided"]["digest"] == after["script"]["decision"]
    said = service.netboot("explain", "gpu-001", "--boot", boot)
    assert said.returncode == 0, said.stderr
    moments = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)", "MOMENT", said.stdout)
    lines = re.sub(r"\b[0-9a-f]{12,64}\b", "DIGEST", moments.replace(boot, "BOOT")).splitlines()
    assert lines[:8] == [
        "gpu-001 boot BOOT, proven",
        "  script         asked for at MOMENT, by 127.0.0.1, sha256 DIGEST… without the boot id",
        "  image          DIGEST (assigned; what runs is the machine's word)",
        "  profile        compute, of channel stable",
        "  because        machine gpu-001 (inventory)",
        "  because        profile compute uses channel stable",
        "  because        channel stable is image tiny DIGEST",
        "  kernel         console=ttyS0 quiet",
    ]
    inputs = ("class", "image", "machine", "profile", "service")
    assert lines[8] == f"  decided from   DIGEST: {', '.join(f'{name} DIGEST' for name in inputs)}"
    assert lines[9:] == [
        "  proof          by tpm, PCR policy: none, at MOMENT",
        "  token          yes, at MOMENT",
        "  approval       yes, at MOMENT",
        "  gate           first in service at MOMENT",
        "                 now InService: its Node is Ready and may take work",
    ]
    unproven = service.netboot("explain", "gpu-001", "--boot", claimed).stdout
    assert "because        cannot be told: it has not proven itself: decisions are kept of boots that have" in unproven
    assert "gate           never seen in service" in unproven
    assert json.loads(service.netboot("explain", "gpu-001", "--boot", boot, "--output", "json").stdout) == after
    other = service.netboot("explain", "gpu-002", "--boot", boot)
    assert (other.returncode, "no such boot of gpu-002: it is one of gpu-001" in other.stderr) == (3, True)
    nobody = service.netboot("explain", "gpu-001", "--boot", boot[:-1] + "x")
    assert (nobody.returncode, f"no such boot: {boot[:-1]}x was never heard of" in nobody.stderr) == (3, True)
    assert service.netboot("explain", "--mac", MAC, "--boot", boot).returncode == 2
