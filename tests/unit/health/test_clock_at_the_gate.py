"""A node whose clock is wrong, or that nobody can tell to be right, takes no work: from the checks to the gate."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from images.node.health import machine as machines
from images.node.health.checks import clock, time_service
from images.node.health.document import encoded, finished
from images.node.health.machine import Machine, Offset
from images.node.status.said import said
from netboot.controllers.nodes.gate import Decision, Known, decide
from netboot.join.node_said import HealthSaid
from netboot.join.ports import NodeView
from netboot.machines.classes import Gate
from tests.unit.health.recorded import Told, expected, look, plant

REGISTERED = {"key": "netboot.dev/unchecked", "effect": "NoExecute"}
CLOSED = {"key": "netboot.dev/unchecked", "value": "ChecksFailed", "effect": "NoSchedule"}
BUNDLE = json.dumps({"time_servers": ["ntp.example"]})
FREE = {"@clock_is_held": "no"}
DHCP = {"run/chrony-dhcp/netboot.sources": "# DHCP\nserver 192.0.2.7 iburst"}
IMAGE = {"etc/chrony/sources.d/rack.sources": "pool ntp.example iburst"}
SILENT = "cannot tell: time-service: time servers are named, and no time service holds the clock"
DRIFTS = "to look at: time-service: no time service holds the clock, and nobody names a time server: it drifts"
NEAR = Offset(120, 40)


def at_the_gate(
    root: Path, files: dict[str, str | None], offset: Offset | None, *taints: dict[str, str], clock_ms: int | None
) -> Decision:
    """What becomes of the Node of a machine that is in order but for its clock."""
    known = expected(clock_ms=clock_ms)
    found = look(Told(plant(root, "hgx-h100", files), known, offset), [clock.CHECK, time_service.CHECK])
    severity = {check.name: check.severity for check in (clock.CHECK, time_service.CHECK)}
    results = [{"name": name, "severity": severity[name], "ms": 1, **asdict(one)} for name, one in found.items()]
    told_node = said(encoded(finished("018bcfe5-6800-8fff-bfff-c8dd6b13e782", None, None, results, [])))
    assert told_node is not None
    checks = dict(one.split("=") for one in told_node.checks.split(","))
    health = HealthSaid(*told_node[:3], "a" * 64, checks, "2026-01-01T00:00:00Z")
    plain = NodeView("gpu-001", "uid", ready=True, boot_id="", created_ms=0, marked=True)
    view = plain._replace(taints=taints, health=health)
    return decide(view, Known(certificates={"a" * 64}, gate=Gate(), hold=""))


@pytest.mark.parametrize(
    ("files", "offset", "clock_ms", "words", "opens", "closes"),
    [
        ({}, NEAR, None, "all checks (2) are in order", True, False),
        (
            {},
            Offset(-90_000, 40),
            None,
            "failed: clock: 89.96 s behind the service's clock; 5 s are tolerated",
            False,
            True,
        ),
        (
            {},
            Offset(3_000, 40),
            1_000,
            "failed: clock: 2.96 s ahead of the service's clock; 1 s are tolerated",
            False,
            True,
        ),
        (
            {},
            Offset(7_000, 40),
            None,
            "to look at: clock: 6.96 s ahead of the service's clock; 5 s are tolerated",
            True,
            False,
        ),
        (FREE | DHCP, NEAR, None, SILENT, False, False),
        (FREE | IMAGE, NEAR, None, SILENT, False, False),
        (FREE | {"run/netboot/site.json": BUNDLE}, NEAR, None, SILENT, False, False),
        (FREE | {"run/netboot/site.json": "{}"}, NEAR, None, DRIFTS, True, False),
        (FREE, NEAR, None, DRIFTS, True, False),
        ({}, None, None, "all checks (2) are in order", True, False),
        (FREE, None, None, "cannot tell: clock: the service could not be asked for its time", False, False),
    ],
)
def test_a_node_takes_work_once_its_clock_is_right(
    tmp_path: Path,
    files: dict[str, str | None],
    offset: Offset | None,
    clock_ms: int | None,
    words: str,
    opens: bool,
    closes: bool,
) -> None:
    shut = at_the_gate(tmp_path / "shut", files, offset, REGISTERED, clock_ms=clock_ms)
    open_ = at_the_gate(tmp_path / "open", files, offset, clock_ms=clock_ms)
    assert (shut.words, open_.words) == (words, words)
    assert shut.taints == (() if opens else (REGISTERED,))
    assert open_.taints == ((CLOSED,) if closes else ())


def test_a_time_server_is_waited_for_as_long_as_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's own clock, by a kernel and a clock of the test's."""
    now, answers = [100.0], iter([False, False, True])
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(machines, "disciplined", lambda: next(answers))
    assert Machine(Path("/")).clock_is_held(60)
    assert now == [102.0]
    monkeypatch.setattr(machines, "disciplined", lambda: False)
    assert not Machine(Path("/")).clock_is_held(60)
    assert now == [162.0]
    assert not Machine(Path("/")).clock_is_held()
    assert now == [162.0]
