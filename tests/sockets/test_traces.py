"""A running service exports each boot as one trace, to a collector that may come later and that nobody waits for."""

from itertools import pairwise
from pathlib import Path

from netboot.lifecycle.known import Node
from tests.otlp import receiving, said
from tests.processes import wait_for
from tests.sites import free_ports
from tests.sockets.proven import MAC, in_cluster, joined, node, reported
from tests.sockets.service import Service


def detail(service: Service) -> tuple[bool, str]:
    found = service.readyz()["details"].get("traces", {"ok": True, "message": ""})
    return found["ok"], found["message"]


def test_one_boot_is_one_trace_also_where_the_collector_comes_late(tmp_path: Path) -> None:
    [port] = free_ports(1)
    where = f"http://127.0.0.1:{port}"
    with in_cluster(tmp_path / "site", more=f"traces: {{endpoint: '{where}'}}\n") as service:
        wait_for(lambda: (service.config.data / "traces" / "position.json").exists())
        boot = service.boot(MAC)
        reported(service, boot)
        joined(service, boot, tmp_path)
        node(service, Node.IN_SERVICE)
        words = f"traces do not go to {where}: it cannot be reached: "
        wait_for(lambda: detail(service)[1].startswith(words))
        readiness = service.readyz()
        assert (readiness["ready"], readiness["degraded"]) == (True, True)
        wait_for(lambda: "netboot_traces_waiting_boots 1.0" in service.text("/metrics"))
        with receiving(port) as receiver:
            wait_for(lambda: receiver.spans != [])
            wait_for(lambda: detail(service) == (True, "in order"))
            wait_for(lambda: "netboot_traces_exported_boots_total 1.0" in service.text("/metrics"))  # kept for a second
            assert service.stop() == 0
    assert {span.trace_id.hex() for span in receiver.spans} == {boot.replace("-", "")}
    [whole] = [span for span in receiver.spans if not span.parent_span_id]
    phases = [span for span in receiver.spans if span.parent_span_id]
    assert [span.name for span in phases] == [
        "ScriptServed",
        "Kernel",
        "InitrdStarted",
        "ImageFetched",
        "ImageVerified",
        "Switched",
        "Booted",
        "Joining",
        "Attested",
        "TokenIssued",
        "CSRApproved",
        "NodeRegistered",
        "Ready",
    ]
    assert {span.parent_span_id for span in phases} == {whole.span_id}
    known = said(whole)
    assert (known["netboot.machine"], known["netboot.class"]) == ("gpu-001", "hgx")
    assert (known["netboot.boot"], known["netboot.outcome"]) == (boot, "InService")
    assert (phases[0].start_time_unix_nano, phases[-1].end_time_unix_nano) == (
        whole.start_time_unix_nano,
        whole.end_time_unix_nano,
    )
    assert all(a.end_time_unix_nano == b.start_time_unix_nano for a, b in pairwise(phases))
