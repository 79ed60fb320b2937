"""A claim is not a boot, over the whole service: what a stranger on the wire can do to a machine that is in service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from images.store.store import Store
from netboot.clock import moment_ms
from netboot.controllers.records import KNOWS
from netboot.lifecycle.bootid import minted_ms
from netboot.lifecycle.events import EventRecord
from netboot.lifecycle.phases import Phase
from netboot.stores.facts import Facts
from tests.processes import wait_for
from tests.sites import add_image, make_site
from tests.sockets.service import Service, serving

MAC = "52:54:00:00:00:01"
OBSERVED = (Phase.ATTESTED, Phase.TOKEN_ISSUED, Phase.CSR_APPROVED, Phase.NODE_REGISTERED, Phase.READY)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    config = make_site(tmp_path / "site")
    Store(config.store).set_channel("stable", add_image(config))
    with serving(config, tmp_path / "site" / "netboot.yaml") as running:
        yield running


def observed(service: Service, boot: str, folder: Path) -> None:
    """What join, approver and collector would have journalled, each its own; put in place whole."""
    for owner, name in (("join", "join-0.db"), ("approver", "approver-default.db"), ("nodes", "nodes-default.db")):
        facts = Facts(folder / name)
        for place, phase in enumerate(OBSERVED):
            at_ms = minted_ms(boot) + 20_000 + 1_000 * place
            if phase in KNOWS[owner]:
                facts.append(EventRecord(at_ms=at_ms, boot=boot, machine="gpu-001", phase=phase, peer=""))
        facts.close()
        (folder / name).rename(service.config.data / "journal" / name)


def whole(trace: dict[str, Any]) -> bool:
    """Ready, and all that came of it is shown: it is of several journals."""
    reached = {each["phase"] for each in trace.get("reached", ())}
    return reached >= {"ScriptServed", "InitrdStarted", *OBSERVED} and trace["seconds_to_ready"] is not None


def test_a_healthy_machine_s_script_fetched_by_a_stranger_with_false_events(service: Service, tmp_path: Path) -> None:
    wait_for(lambda: service.outcome(MAC) == "boot")
    boot = service.boot(MAC)
    assert service.post(boot, MAC, "InitrdStarted", uptime_ms=2_000) == 204
    observed(service, boot, tmp_path)

    def ready() -> Any:
        found = service.api("/v1/machines/gpu-001")
        return found if found["current"] and whole(found["current"]) else None

    before = wait_for(ready)
    metrics = "netboot_machines_by_state"

    claimed = service.boot(MAC)  # a stranger asks in its name, and tells
    for phase in ("InitrdStarted", "ImageFetched", "ImageVerified", "Switched", "Booted", "Joining", "Failed"):
        assert service.post(claimed, MAC, phase, uptime_ms=1_000, detail="a false report") == 204
    assert service.post(boot, MAC, "Failed", detail="a false report of the very boot") == 204
    wait_for(lambda: service.api(f"/v1/boots/{claimed}").get("failures"))
    wait_for(lambda: service.api(f"/v1/boots/{boot}").get("failures"))

    after = service.api("/v1/machines/gpu-001")
    assert {**after["current"], "failures": [], "last_at": ""} == {**before["current"], "failures": [], "last_at": ""}
    assert (after["current"]["boot"], after["current"]["standing"]) == (boot, "proven")
    assert (after["pending"]["boot"], after["pending"]["standing"]) == (claimed, "reported")
    assert f'{metrics}{{state="Ready"}} 1.0' in service.text("/metrics")
    shown = service.netboot("machine", "show", "gpu-001").stdout
    assert f"pending boot    {claimed}  Failed" in shown
    assert f"current boot    {boot}  Ready, proven, Ready " in shown
    explained = service.netboot("explain", "gpu-001").stdout
    assert f"  current {boot}  Ready, proven, Ready " in explained
    assert f"  pending {claimed}  Failed, reported, last heard " in explained
    listed = service.netboot("machine", "list").stdout
    assert "Ready, and an unproven Failed" in listed


def test_the_trace_of_a_node_from_its_kernel_to_ready(service: Service, tmp_path: Path) -> None:
    wait_for(lambda: service.outcome(MAC) == "boot")
    boot = service.boot(MAC)
    assert service.post(boot, MAC, "InitrdStarted", uptime_ms=1) == 204
    observed(service, boot, tmp_path)
    trace = wait_for(lambda: whole(found := service.api(f"/v1/boots/{boot}")) and found)
    started = moment_ms(next(one["at"] for one in trace["reached"] if one["phase"] == "InitrdStarted")) - 1
    seconds = (minted_ms(boot) + 24_000 - started) / 1_000
    assert (moment_ms(trace["kernel_at"]), trace["seconds_to_ready"]) == (started, seconds)
    lines = service.netboot("boot", "show", boot).stdout.splitlines()
    assert f"from the start of its kernel to the Ready node: {seconds:.1f} s" in lines
    phases = [line.split()[:2] for line in lines if "observed" in line]
    assert phases == [[str(phase), "observed"] for phase in OBSERVED]
