"""Tests under load: what was not measured, or not asked for in words that are known, is never taken for in order."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from images.node.health import active
from images.node.health.active import TESTS
from images.node.health.active.course import RESULTS, asked, kept, workload
from images.node.health.checks import firmware
from images.node.health.hardware import Hardware
from images.node.health.machine import LOAD, Output
from tests.unit.health.recorded import HARDWARE, Told, expected, loaded, plant, put, recorded, told, words

TOOLS = recorded("hgx-h100")[1]


def of_the_fixture(root: Path, tools: dict[str, Output], hardware: Hardware = HARDWARE, cmdline: str = "all") -> Told:
    plant(root, "hgx-h100", {"proc/cmdline": f"quiet netboot.active={cmdline} panic=30"})
    return Told(root, expected(hardware=hardware), None, tools)


def test_a_cpu_whose_process_died_is_no_pass(tmp_path: Path) -> None:
    """Bad memory is a SIGBUS to the process that touches it: a sum of the others would say that all is well."""
    script = (
        "import os, runpy, signal, sys\n"
        "load = runpy.run_path(sys.argv[1])\n"
        "load['rates'].__globals__['load'] = lambda *_: os.kill(os.getpid(), signal.SIGBUS)\n"
        "load['rates']('memory', 0.01)\n"
    )
    done = subprocess.run(
        [sys.executable, "-Bs", "-c", script, str(LOAD)], capture_output=True, text=True, timeout=60, check=False
    )
    cpus_here = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))][:8]
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"the process of CPU {', '.join(cpus_here)} died\n"
    tools = told("hgx-h100", {"@load memory": Output(1, done.stderr)})
    status, said = words(loaded(of_the_fixture(tmp_path, tools)))["active-memory"]
    assert (status, said) == ("unknown", f"not measured: {done.stderr.strip()}")


def test_a_gpu_of_which_nothing_was_measured_is_no_pass(tmp_path: Path) -> None:
    copies = json.loads(next(output.text for line, output in TOOLS.items() if line.startswith("nvbandwidth")))
    copies["nvbandwidth"]["testcases"][0]["bandwidth_matrix"][0][3] = "N/A"
    machine = of_the_fixture(tmp_path, told("hgx-h100", {"nvbandwidth": Output(0, json.dumps(copies))}))
    assert words(loaded(machine))["active-gpu-copy"] == (
        "unknown",
        "host_to_device_memcpy_ce: 7 of 8 GPUs measured",
    )


def test_a_class_that_skips_all_is_told_that_no_test_is_called_so(tmp_path: Path) -> None:
    wanted = asked(of_the_fixture(tmp_path, TOOLS, Hardware(skip=("all",)), "memory"), TESTS)
    assert ([test.name for test in wanted.tests], wanted.strange) == (["active-memory"], ("all",))


def test_jobs_of_slurm_go_on_without_slurmd_and_are_work(tmp_path: Path) -> None:
    machine = of_the_fixture(
        tmp_path, told("hgx-h100", {"systemctl is-active kubelet": Output(3, "inactive\ninactive")})
    )
    assert workload(machine) == ""
    put(tmp_path / "sys/fs/cgroup/system.slice/slurmstepd.scope/cgroup.events", "populated 1\nfrozen 0")
    assert workload(machine) == "jobs of Slurm run here"


def test_where_no_profile_asks_the_class_s_words_are_nobody_s(tmp_path: Path) -> None:
    """A class may name a test that only newer images have: a machine that measures nothing does not report it."""
    machine = of_the_fixture(tmp_path, TOOLS, Hardware(skip=("fio",)))
    put(tmp_path / "proc/cmdline", "quiet")
    assert kept(machine, TESTS) == []


@pytest.mark.parametrize(
    "torn", ["[" * 200_000, '[{"name": [], "status": [], "severity": 1, "ms": 1, "summary": ""}]'], ids=["deep", "list"]
)
def test_results_that_are_torn_are_none(tmp_path: Path, torn: str) -> None:
    machine = of_the_fixture(tmp_path, TOOLS, cmdline="memory")
    put(tmp_path / RESULTS, torn)
    assert [one["status"] for one in kept(machine, TESTS)] == ["unknown"]


@pytest.mark.parametrize(("have", "least"), [("1.2", "1.2.0"), ("1.2.0", "1.2"), ("0", "0.0")])
def test_a_version_is_no_older_than_itself_with_a_nought(have: str, least: str) -> None:
    assert firmware.version(have) == firmware.version(least) is not None


def test_nothing_is_measured_beside_images_that_are_unpacked_and_it_is_the_first_to_die_of_memory() -> None:
    assert active.__file__ is not None
    unit = (Path(active.__file__).parent.parent / "systemd/netboot-active.service").read_text().splitlines()
    assert "After=netboot-images.service" in unit
    assert "Before=kubelet.service slurmd.service" in unit
    assert "OOMScoreAdjust=1000" in unit
    assert "[Install]" not in unit, "it is started by its generator, where the profile asks"
