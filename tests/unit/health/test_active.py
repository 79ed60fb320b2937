"""Tests that load a machine: which are asked for, beside what none is begun, and what their tools may say."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from images.node.health.active import TESTS, dcgm, disk, gpu_copy, nccl, nic
from images.node.health.active import rates as cpus
from images.node.health.active.course import RESULTS, asked, kept, workload
from images.node.health.active.judging import behind, under
from images.node.health.expected import Expected
from images.node.health.floors import SIBLINGS
from images.node.health.hardware import Hardware
from images.node.health.machine import Output
from images.node.health.own import MOST, own_checks
from tests.unit.health.recorded import HARDWARE, Told, expected, loaded, plant, put, recorded, told, words

TOOLS = recorded("hgx-h100")[1]
NAMES = [test.name for test in TESTS]


def h100(root: Path, cmdline: str = "netboot.active=all", tools: dict[str, Output] | None = None, **own: Any) -> Told:
    plant(root, "hgx-h100", {"proc/cmdline": f"quiet {cmdline} panic=30"})
    return Told(root, expected(hardware=Hardware(**own)) if own else expected(hardware=HARDWARE), None, tools or TOOLS)


def test_what_a_machine_in_order_reaches(tmp_path: Path) -> None:
    assert words(loaded(h100(tmp_path))) == {
        "active-memory": ("pass", "224 CPUs copy 701.1 GB/s"),
        "active-cpu": ("pass", "224 CPUs hash 239.7 GB/s"),
        "active-disk": ("pass", "4 disks read as they should"),
        "active-dcgm": ("pass", "24 results of DCGM in order"),
        "active-gpu-copy": ("pass", "8 GPUs copy as they should"),
        "active-nccl": ("pass", "8 GPUs reduce 473.2 GB/s"),
        "active-nic": ("pass", "10 RDMA ports as quick as they should be"),
    }


def test_a_tool_that_is_not_there_is_said_and_never_a_pass(tmp_path: Path) -> None:
    only = {line: output for line, output in TOOLS.items() if line.startswith(("@load", "nvidia-smi"))}
    assert {name: said for name, said in words(loaded(h100(tmp_path, tools=only))).items() if said[0] != "pass"} == {
        "active-disk": ("unknown", "this image has no fio"),
        "active-dcgm": ("unknown", "this image has no dcgmi"),
        "active-gpu-copy": ("unknown", "this image has no nvbandwidth"),
        "active-nccl": ("unknown", "this image has no all_reduce_perf"),
        "active-nic": ("unknown", "this image has no ib_write_bw"),
    }


def test_a_machine_without_gpus_disks_and_cards_is_measured_by_what_it_has(tmp_path: Path) -> None:
    tools = {f"@load {what}": Output(0, '{"rates": {"0": 5e9, "1": 5e9}}') for what in ("memory", "cpu")}
    plant(tmp_path, "vm")
    assert words(loaded(Told(tmp_path, Expected(), None, tools))) == {
        "active-memory": ("pass", "2 CPUs copy 10 GB/s"),
        "active-cpu": ("pass", "2 CPUs hash 10 GB/s"),
        "active-disk": ("absent", "no disk is built in"),
        "active-dcgm": ("absent", "no NVIDIA GPU is on the PCI bus, and none is expected"),
        "active-gpu-copy": ("absent", "no NVIDIA GPU is on the PCI bus, and none is expected"),
        "active-nccl": ("absent", "no NVIDIA GPU is on the PCI bus, and none is expected"),
        "active-nic": ("absent", "no RDMA port is up"),
    }


@pytest.mark.parametrize(
    ("cmdline", "skip", "tests", "skipped", "strange"),
    [
        ("", (), [], [], []),
        ("netboot.active=", (), [], [], []),
        ("netboot.active=all", (), NAMES, [], []),
        ("netboot.active=nic,memory", (), ["active-memory", "active-nic"], [], []),
        ("netboot.active=all", ("nccl", "dcgm"), [name for name in NAMES if name[7:] not in ("nccl", "dcgm")], 2, []),
        ("netboot.active=memory,mmeory", ("fio",), ["active-memory"], [], ["mmeory", "fio"]),
        ("netboot.active=all netboot.active=cpu", (), ["active-cpu"], [], []),
    ],
)
def test_the_profile_asks_and_the_class_skips(
    tmp_path: Path, cmdline: str, skip: tuple[str, ...], tests: list[str], skipped: Any, strange: list[str]
) -> None:
    wanted = asked(h100(tmp_path, cmdline, skip=skip), TESTS)
    assert [test.name for test in wanted.tests] == tests
    assert len(wanted.skipped) == (skipped or 0)
    assert list(wanted.strange) == strange


@pytest.mark.parametrize(
    ("said", "cgroup", "words"),
    [
        ("inactive\ninactive", None, ""),
        ("inactive\ninactive", "populated 0\nfrozen 0", ""),
        ("failed\ninactive", None, ""),
        ("active\ninactive", None, "kubelet.service runs"),
        ("activating\nactive", None, "kubelet.service, slurmd.service runs"),
        ("inactive\ninactive", "populated 1\nfrozen 0", "Pods run here"),
        ("Failed to connect to bus: No such file or directory", None, "systemd does not say whether the kubelet runs"),
        ("", None, "systemd does not say whether the kubelet runs"),
    ],
)
def test_nothing_is_begun_beside_work(tmp_path: Path, said: str, cgroup: str | None, words: str) -> None:
    machine = h100(tmp_path, tools=told("hgx-h100", {"systemctl is-active kubelet": Output(3, said)}))
    if cgroup is not None:
        put(tmp_path / "sys/fs/cgroup/kubepods.slice/cgroup.events", cgroup)
    assert workload(machine) == words


def test_the_report_has_what_was_measured_and_says_what_is_not_yet(tmp_path: Path) -> None:
    machine = h100(tmp_path, "netboot.active=memory,cpu,gpu", skip=("cpu",))
    assert [(one["name"], one["status"], one["summary"]) for one in kept(machine, TESTS)] == [
        ("active-memory", "unknown", "not measured in this boot, or not yet"),
        ("active-cpu", "absent", "the class skips it"),
        ("active", "unknown", "this image has no test called gpu"),
    ]
    measured = {"name": "active-memory", "status": "pass", "severity": "major", "ms": 5000, "summary": "well"}
    put(tmp_path / RESULTS, json.dumps([measured, {"name": "active-nic", "status": "pass"}, 7]))
    assert kept(machine, TESTS)[0] == measured
    assert len(kept(machine, TESTS)) == 3, "what nobody asked for is not reported"
    for torn in ("{", "7", '[{"name": "active-memory", "status": "well"}]'):
        put(tmp_path / RESULTS, torn)
        assert kept(machine, TESTS)[0]["status"] == "unknown"
    assert kept(h100(tmp_path, ""), TESTS) == []


def test_floors_of_eight_gpus_are_of_no_other_machine(tmp_path: Path) -> None:
    """Those of an H100 with NVSwitches are not those of an H100 on PCIe, or of four."""
    slow = TOOLS["all_reduce_perf -b 4G -e 4G -n 20 -c 1 -g 8"].text.replace(": 473.155", ": 60.5")
    names = "nvidia-smi --query-gpu=index,name"
    pcie = TOOLS[f"{names} --format=csv,noheader,nounits"].text.replace("80GB HBM3", "PCIe")
    tools = {"all_reduce_perf": Output(0, slow), names: Output(0, pcie)}
    found = words(loaded(h100(tmp_path, tools=told("hgx-h100", tools))))
    assert found["active-nccl"] == ("pass", "8 GPUs reduce 60.5 GB/s")
    own = h100(tmp_path, tools=told("hgx-h100", tools), floors={"nccl_gbs": 100.0})
    assert words(loaded(own))["active-nccl"] == ("fail", "8 GPUs: 60.5 of 100 GB/s")


def test_where_nobody_says_a_floor_siblings_are_compared(tmp_path: Path) -> None:
    slow = json.loads(next(output.text for line, output in TOOLS.items() if line.startswith("fio ")))
    slow["jobs"][2]["read"]["bw_bytes"] = 3_000_000_000
    machine = h100(tmp_path, tools=told("hgx-h100", {"fio": Output(0, json.dumps(slow))}), architecture="amd64")
    assert words(loaded(machine))["active-disk"] == ("warn", "nvme2n1: 3000 MB/s, its siblings have 6701")


RATES = st.dictionaries(st.text("abc", min_size=1, max_size=3), st.floats(1e-3, 1e6), max_size=9)


@given(RATES, st.floats(1e-3, 1e6))
def test_a_floor_is_what_must_be_reached(rates: dict[str, float], floor: float) -> None:
    machine = Told(Path("/nonexistent"), expected(hardware=Hardware(floors={"disk_read_mbs": floor})))
    found = [finding.text.partition(":")[0] for finding in under(machine, "disk_read_mbs", rates, "")]
    assert found == [where for where, rate in rates.items() if rate < floor]
    assert under(Told(Path("/nonexistent")), "disk_read_mbs", rates, "") == [], "nobody says one"


@given(RATES)
def test_siblings_that_are_alike_are_in_order(rates: dict[str, float]) -> None:
    alike = {where: 100 + rate / 1e6 for where, rate in rates.items()}
    assert behind("disk_read_mbs", alike, "") == []
    if len(alike) > 2:
        one = next(iter(alike))
        assert [
            finding.text.partition(":")[0] for finding in behind("disk_read_mbs", alike | {one: 99 * SIBLINGS}, "")
        ] == [one]


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "rates",
                        "jobs",
                        "jobname",
                        "read",
                        "bw_bytes",
                        "error",
                        "0",
                        "DCGM Diagnostic",
                        "test_categories",
                    ),
                    *("tests", "results", "warnings", "entity_id", "status", "nvbandwidth", "testcases", "name"),
                    *("bandwidth_matrix", "warning", "error_severity"),
                ]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)
SAID = st.sampled_from(
    [output.text for line, output in TOOLS.items() if not line.startswith(("nvidia", "nv-", "nvme"))]
)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """Something recorded with a part of it replaced."""
    whole = draw(SAID)
    start = draw(st.integers(0, len(whole)))
    return whole[:start] + draw(st.text(max_size=30)) + whole[start + draw(st.integers(0, 60)) :]


@given(st.one_of(JSON.map(json.dumps), spoilt(), st.text(max_size=200)))
def test_whatever_a_tool_says_is_numbers_above_zero_or_nothing(said: str) -> None:
    numbers = [
        *cpus.parsed(said).values(),
        *(rate for rate in disk.parsed(said).values() if rate is not None),
        *(rate for _, rows in gpu_copy.parsed(said).values() for row in rows for rate in row if rate is not None),
    ]
    if (reduced := nccl.parsed(said)) is not None:
        numbers.append(reduced.gbs)
    if (rate := nic.parsed(said)) is not None:
        numbers.append(rate)
    assert all(0 < number < 2**63 for number in numbers)
    for one in dcgm.parsed(said):
        assert len(one.words) <= 120


OLD = """\
Successfully ran diagnostic for group.
{"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "GPU Memory", "results": [
  {"gpu_ids": "0,1", "status": "PASS"}, {"gpu_ids": "2", "status": "FAIL", "warnings": "A DBE was found"}]}]}]}}
"""


def test_dcgm_3_is_understood(tmp_path: Path) -> None:
    machine = h100(tmp_path, tools=told("hgx-h100", {"dcgmi": Output(226, OLD)}))
    assert words(loaded(machine))["active-dcgm"] == ("fail", "GPU Memory of GPU 2: A DBE was found")


def test_a_site_s_own_checks_that_are_too_many_are_said(tmp_path: Path) -> None:
    for number in range(MOST + 2):
        put(tmp_path / f"etc/netboot/health.d/fan-{number:02}", "#!/bin/sh\n")
        (tmp_path / f"etc/netboot/health.d/fan-{number:02}").chmod(0o755)
    machine = Told(tmp_path)
    found = own_checks(machine)
    assert [check.name for check in found] == [*(f"own-fan-{number:02}" for number in range(MOST)), "own"]
    said = found[-1].look(machine)
    assert (said.status, said.summary) == (
        "unknown",
        "18 checks of the site's own, of which the first 16 by name are run",
    )
    (tmp_path / "etc/netboot/health.d/fan-00").unlink()
    (tmp_path / "etc/netboot/health.d/fan-01").unlink()
    assert len(own_checks(machine)) == MOST
