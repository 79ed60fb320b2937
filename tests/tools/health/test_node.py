"""A run as the unit starts it: the files that an image has, tools on PATH, a service that answers."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import time
from typing import Any

import pytest

from images.build.node_files import node_files
from images.formats import tree
from images.node.health.checks import CHECKS
from netboot.lifecycle.health import HealthReport
from tests.unit.health.recorded import CLASS, WHOLE, links, plant, recorded

pytestmark = pytest.mark.tools

NEWER = "build the image with the service's version of netboot"
LINKS = "see gpu-fabric and gpu-xid (74); reset the GPUs; then the baseboard"
BOOT = "0195d3c2-8f11-8a3b-9c4d-5e6f7a8b9c0d"


@dataclass
class Service:
    """Answers with `expected`; `status` to reports."""

    expected: dict[str, Any]
    status: int = 204
    hardware: dict[str, Any] | None = None
    url: str = ""
    asked: list[str] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            service.asked.append(self.path)
            answer = {"schema": 1, "now_ms": int(time() * 1000), "expected": service.expected, "more": "of a later one"}
            answer |= {} if service.hardware is None else {"class": service.hardware}
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            assert self.path == f"/v1/boots/{BOOT}/health"
            service.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(service.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def node(root: Path, url: str, machine: str = "hgx-h100") -> Path:
    """What an image and its initrd leave on a machine, and tools."""
    plant(root, machine)
    for entry in node_files():
        tree.write(root, entry)
    (root / "run/netboot").mkdir(parents=True)
    env = f"BOOT={BOOT}\nREPORT={url}\nMAC=52:54:00:00:00:01\nNAME=gpu-001\n"
    (root / "run/netboot/boot.env").write_text(env)
    (root / "run/netboot/site.json").write_text("{}")
    tools = recorded(machine)[1]
    for at, output in enumerate(tools.values()):
        (root / f"said-{at}").write_text(output.text)
    for name in {line.split()[0] for line in tools}:
        answers = "".join(
            f'"{line.partition(" ")[2]}") cat "{root}/said-{at}"; exit {output.status} ;;\n'
            for at, (line, output) in enumerate(tools.items())
            if line.startswith(f"{name} ")
        )
        program(root / "bin" / name, f'case "$*" in\n{answers}*) echo "what is $*?"; exit 2 ;;\nesac')
    return root


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def run(root: Path) -> tuple[dict[str, Any], list[str]]:
    """The document that is kept, and what was said."""
    unit = (root / "usr/lib/systemd/system/netboot-health.service").read_text()
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and line[0] != "#")
    start = settings["ExecStart"].split()
    assert start == ["/usr/bin/python3", "-Bs", "-m", "node.health"]
    done = subprocess.run(
        [sys.executable, *start[1:], str(root)],
        cwd=root / settings["WorkingDirectory"].lstrip("/"),
        env={"PATH": f"{root}/bin:/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads((root / "run/netboot/health.json").read_text()), done.stderr.splitlines()


def statuses(made: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["status"] for one in made["checks"]}


def test_a_whole_machine_tells_the_service_that_it_is_in_order(tmp_path: Path) -> None:
    with serving(Service(WHOLE, hardware=CLASS)) as service:
        made, said = run(node(tmp_path, service.url))
    assert service.asked == [f"/v1/boots/{BOOT}/health?machine=gpu-001&mac=52%3A54%3A00%3A00%3A00%3A01"]
    assert service.told == [made]
    assert set(statuses(made).values()) == {"pass"}
    assert said == ["netboot-health: pass: 34 checks"]
    assert made["expected"] == sorted(WHOLE)
    report = HealthReport.model_validate_json(json.dumps(made))
    assert (report.status, report.machine, report.mac) == ("pass", "gpu-001", "52:54:00:00:00:01")


def test_what_is_wrong_is_said_and_a_site_s_own_checks_count(tmp_path: Path) -> None:
    with serving(Service({**WHOLE, "dpus": 1}, hardware=CLASS)) as service:
        root = node(tmp_path, service.url)
        at = list(recorded("hgx-h100")[1]).index("nvidia-smi nvlink --status")
        (root / f"said-{at}").write_text(links(8, 18, 17))
        program(root / "etc/netboot/health.d/fans", "echo 'fan 3 stands still'; echo 'rpm 0'; exit 2")
        program(root / "usr/lib/netboot/health.d/fans", "echo 'not asked'")
        program(root / "usr/lib/netboot/health.d/lamp", "exit 7")
        program(root / "etc/netboot/health.d/README.md", "echo 'no name of a check'")
        made, said = run(root)
    found = {one["name"]: one for one in service.told[0]["checks"]}
    assert {name: one for name, one in statuses(made).items() if one != "pass"} == {
        "expectations": "warn",
        "gpu-nvlink": "fail",
        "own-fans": "fail",
        "own-lamp": "unknown",
    }
    assert found["own-fans"]["facts"] == {"exit_status": 2, "more": ["rpm 0"]}
    unlinked = ", ".join(f"17 on GPU {at} (not 17)" for at in range(8))
    assert (
        "\n".join(said)
        == f"""\
netboot-health: warn: expectations: this image does not know what is expected by dpus: not checked; {NEWER}
netboot-health: fail: gpu-nvlink: 18 active NVLinks expected on each GPU, {unlinked}; {LINKS}
netboot-health: fail: own-fans: fan 3 stands still
netboot-health: unknown: own-lamp: it said nothing; exit status 7
netboot-health: fail: 36 checks"""
    )


def test_without_the_service_the_results_stay_on_the_machine(tmp_path: Path) -> None:
    with serving(Service({"cpus": 2}, status=400)) as service:
        root = node(tmp_path, service.url, "vm")
        made, said = run(root)
        assert statuses(made)["cpus"] == "pass"
        assert said[-1] == f"netboot-health: the service was not told: {service.url} answered 400: Bad Request"
    made, said = run(root)
    assert said[-1].startswith("netboot-health: the service was not told: cannot reach ")
    found = {one["name"]: one for one in made["checks"]}
    assert found["expectations"]["summary"] == (
        "1 expectations, as the service said earlier in this boot; it does not answer now"
    )
    assert found["clock"]["status"] == "pass"
    assert found["clock"]["summary"].startswith("a time service holds the clock; ")
    assert made["expected"] == ["cpus"]


def test_the_class_s_hardware_stays_on_the_machine_while_it_has_one(tmp_path: Path) -> None:
    hardware = {"name": "hgx", "architecture": "amd64", "memory_bytes": 2**41}
    kept = tmp_path / "run/netboot/class.json"
    with serving(Service({}, hardware=hardware)) as service:
        root = node(tmp_path, service.url, "vm")
        run(root)
        assert json.loads(kept.read_text()) == hardware
    run(root)
    assert json.loads(kept.read_text()) == hardware, "nobody answered: what was said earlier counts"
    with serving(Service({})) as service:
        env = root / "run/netboot/boot.env"
        env.write_text(re.sub("REPORT=.*", f"REPORT={service.url}", env.read_text()))
        run(root)
    assert not kept.exists()


def test_a_class_says_what_is_tolerated_and_what_is_not_looked_at(tmp_path: Path) -> None:
    limits = {"nvme_used_percent": 0, "nvlink_replay": 3}
    hardware = {"name": "hgx", "thresholds": limits, "skip_checks": ["time-service", "expectations"]}
    with serving(Service({}, hardware=hardware)) as service:
        root = node(tmp_path, service.url)
        document, said = run(root)
    found = {check["name"]: check for check in document["checks"]}
    assert [check["name"] for check in document["checks"]] == [check.name for check in CHECKS]
    skipped = found["time-service"]
    assert (skipped["status"], skipped["summary"], skipped["severity"]) == ("absent", "the class skips it", "major")
    assert (found["nvme-smart"]["status"], found["nvme-smart"]["summary"]) == (
        "warn",
        (
            "nvme0: 1 % of its endurance is used, nvme1: 1 % of its endurance is used, "
            "nvme2: 1 % of its endurance is used, nvme3: 1 % of its endurance is used"
        ),
    )
    unknown = "class.skip_checks.expectations, class.thresholds.nvlink_replay"
    words = f"this image does not know what is expected by {unknown}: not checked"
    assert f"netboot-health: warn: expectations: {words}; {NEWER}" in said


def test_what_was_not_started_by_netboot_is_left_alone(tmp_path: Path) -> None:
    for entry in node_files():
        tree.write(tmp_path, entry)
    argv = [sys.executable, "-Bs", "-m", "node.health", str(tmp_path)]
    done = subprocess.run(argv, cwd=tmp_path / "usr/lib/netboot", env={}, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    where = tmp_path / "run/netboot/boot.env"
    assert done.stderr == (f"netboot-health: cannot read {where}: this system was not started by netboot's initrd\n")
