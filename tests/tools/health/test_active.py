"""What runs without a GPU is run for real: memory, processors, a disk; and the unit's program on a whole machine."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from images.build.node_files import node_files
from images.node.health.active import cpu, disk, memory
from images.node.health.expected import Expected
from images.node.health.hardware import Hardware
from images.node.health.machine import Machine, Output
from tests.tools.health.test_node import Service, node, run, serving
from tests.unit.health.recorded import CLASS, put

pytestmark = pytest.mark.tools

MIB = 2**20


@dataclass(frozen=True, slots=True)
class OfFiles(Machine):
    """A machine whose disks are files below its root, and that is in less of a hurry to be precise."""

    ran: list[list[str]] = field(default_factory=list)

    def run(self, *argv: str) -> Output:
        words = [word.replace("=/dev/", f"={self.root}/dev/") for word in argv]
        words = [word.replace("--runtime=10", "--runtime=2") for word in words]
        self.ran.append(words)
        return Machine.run(self, *words)

    def load(self, what: Any, seconds: float) -> Output:
        return Machine.load(self, what, seconds / 10)


def test_memory_and_processors_are_really_loaded(tmp_path: Path) -> None:
    machine = OfFiles(tmp_path, Expected(hardware=Hardware(floors={"cpu_gbs": 10.0**6})))
    copied, hashed = memory.look(machine), cpu.look(machine)
    assert (copied.status, hashed.status) == ("pass", "fail")
    assert copied.facts["gbs"] > 0
    assert re.fullmatch(r"all CPUs: [0-9.]+ of 1e\+06 GB/s", hashed.summary)


def disks(root: Path, *names: str) -> None:
    for name in names:
        put(root / f"sys/block/{name}/size", str(64 * MIB // 512))
        put(root / f"sys/block/{name}/device/model", f"a file, {name}")  # not compared: others use this disk too
        (root / "dev").mkdir(exist_ok=True)
        (root / f"dev/{name}").write_bytes(b"\1" * (64 * MIB))


def test_disks_are_really_read_and_never_written(tmp_path: Path) -> None:
    disks(tmp_path, "nvme0n1", "sda")
    before = {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in (tmp_path / "dev").iterdir()}
    machine = OfFiles(tmp_path, Expected(hardware=Hardware(floors={"disk_read_mbs": 0.001})))
    found = disk.look(machine)
    assert (found.status, found.summary) == ("pass", "2 disks read as they should"), machine.ran
    assert [line.partition(" ")[0] for line in found.facts["mbs"]] == ["nvme0n1", "sda"]
    assert {
        path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in (tmp_path / "dev").iterdir()
    } == before


def test_a_disk_that_is_gone_is_found_by_the_real_tool(tmp_path: Path) -> None:
    disks(tmp_path, "nvme0n1", "nvme1n1")
    (tmp_path / "dev/nvme1n1").unlink()
    (tmp_path / "dev/nvme1n1").mkdir()
    found = disk.look(OfFiles(tmp_path, Expected(hardware=Hardware(floors={"disk_read_mbs": 0.001}))))
    assert (found.status, found.summary) in (
        ("fail", "nvme1n1 could not be read"),
        ("fail", "nvme0n1 could not be read, nvme1n1 could not be read"),
    )


def active(root: Path, *more: str) -> tuple[int, list[str]]:
    """As the unit starts it: exit status, and what was said."""
    unit = (root / "usr/lib/systemd/system/netboot-active.service").read_text()
    settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and line[0] != "#")
    start = settings["ExecStart"].split()
    assert start == ["/usr/bin/python3", "-Bs", "-m", "node.health.active"]
    done = subprocess.run(
        [sys.executable, *start[1:], str(root), *more],
        cwd=root / settings["WorkingDirectory"].lstrip("/"),
        env={"PATH": f"{root}/bin:/usr/bin:/bin"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stderr.splitlines()


SAID = [
    "netboot-active: pass: active-dcgm: 24 results of DCGM in order (N s)",
    "netboot-active: pass: active-nccl: 8 GPUs reduce 473.2 GB/s (N s)",
]


def told(report: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["summary"] for one in report["checks"] if one["name"].startswith("active")}


def lines(said: Sequence[str]) -> list[str]:
    return [re.sub(r"\d+\.\d s\)", "N s)", line) for line in said]


def test_what_was_measured_before_the_node_takes_work_goes_with_its_report(tmp_path: Path) -> None:
    with serving(Service({}, hardware={**CLASS, "active": {"skip": ["nic"]}})) as service:
        root = node(tmp_path, service.url)
        put(root / "proc/cmdline", "quiet netboot.active=nic,dcgm,nccl")
        assert told(run(root)[0]) == {
            "active-dcgm": "not measured in this boot, or not yet",
            "active-nccl": "not measured in this boot, or not yet",
            "active-nic": "the class skips it",
        }
        status, said = active(root)
        assert (status, lines(said)) == (0, SAID)
        made, _ = run(root)
    assert told(made)["active-nccl"] == "8 GPUs reduce 473.2 GB/s"
    assert service.told[-1] == made


def test_beside_a_kubelet_nothing_is_begun_and_what_was_measured_stays(tmp_path: Path) -> None:
    with serving(Service({}, hardware=CLASS)) as service:
        root = node(tmp_path, service.url)
        put(root / "proc/cmdline", "netboot.active=dcgm")
        put(root / "sys/fs/cgroup/kubepods.slice/cgroup.events", "populated 1")
        assert active(root) == (1, ["netboot-active: nothing is measured beside work: Pods run here"])
        assert told(run(root)[0]) == {"active-dcgm": "not measured: Pods run here"}
        kept = json.dumps(
            [{"name": "active-dcgm", "status": "pass", "severity": "critical", "ms": 1, "summary": "well"}]
        )
        put(root / "run/netboot/health-active.json", kept)
        assert active(root)[0] == 1
        assert told(run(root)[0]) == {"active-dcgm": "well"}


@pytest.mark.parametrize(
    ("cmdline", "started"),
    [
        ("quiet netboot.active=all panic=30", True),
        ("netboot.active=", True),
        ("quiet panic=30", False),
        ("my.netboot.active=all netboot.actives=all", False),
    ],
)
def test_the_unit_is_part_of_a_boot_only_where_the_profile_asks(tmp_path: Path, cmdline: str, started: bool) -> None:
    """Else a kubelet, which it is ordered before, would wait for what it waits for."""
    (entry,) = [entry for entry in node_files() if "/system-generators/" in entry.path]
    assert (entry.path, entry.mode) == ("/usr/lib/systemd/system-generators/netboot-active-generator", 0o755)
    program = tmp_path / "generator"
    program.write_bytes(entry.content)
    program.chmod(entry.mode)
    folders = [tmp_path / name for name in ("normal", "early", "late")]
    for folder in folders:
        folder.mkdir()
    subprocess.run([program, *folders], env={"SYSTEMD_PROC_CMDLINE": cmdline, "PATH": "/usr/bin:/bin"}, check=True)
    made = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.service")}
    link = "normal/multi-user.target.wants/netboot-active.service"
    assert made == ({link} if started else set())
    assert not started or (tmp_path / link).readlink() == Path("/usr/lib/systemd/system/netboot-active.service")


def test_where_nobody_asks_nothing_is_measured(tmp_path: Path) -> None:
    with serving(Service({}, hardware=CLASS)) as service:
        root = node(tmp_path, service.url)
        put(root / "proc/cmdline", "quiet")
        assert active(root) == (0, ["netboot-active: no test is asked for"])
        assert told(run(root)[0]) == {}
