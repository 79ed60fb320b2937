"""What the checks say of a real H100, as it was recorded (`fixtures/h100-vm`), and of one value of it changed."""

import re
from pathlib import Path

import pytest

from images.node.health.expected import Expected
from images.node.health.machine import Output
from tests.unit.health.recorded import Told, expected, loaded, look, plant, recorded, said, words

FILES, TOOLS = recorded("h100-vm")
SMI = "nvidia-smi -q"
CLASS = {"gpus": 1, "gpu_model": "H100", "pcie_width": 16, "cpus": 16, "memory_gib": 128}
XIDS = "Xid 31 at PCI:0000:00:06, 13 at PCI:0000:00:06, 43 at PCI:0000:00:06: of programs, not of the hardware"


def h100(root: Path, said: str | None = None, known: Expected | None = None) -> Told:
    tools = TOOLS if said is None else TOOLS | {SMI: Output(0, said)}
    return Told(plant(root, "h100-vm"), known or expected(**CLASS), None, tools)


def test_a_real_gpu_is_in_order_after_programs_that_made_it_fault(tmp_path: Path) -> None:
    found = words(look(h100(tmp_path)))
    assert {name: said for name, said in found.items() if said[0] != "absent"} == {
        "expectations": ("pass", "5 expectations"),
        "cpus": ("pass", "16 CPUs are online"),
        "memory": ("pass", "128 GiB, 128 expected"),
        "clock": ("unknown", "the service could not be asked for its time"),
        "time-service": ("warn", "no time service holds the clock, and nobody names a time server: it drifts"),
        "gpu-count": ("pass", "1 GPU on the PCI bus"),
        "gpu-uuid": ("pass", "1 GPU: NVIDIA H100 80GB HBM3"),
        "gpu-recovery": ("pass", "1 GPU: no reset is asked for"),
        "gpu-ecc": ("pass", "1 GPU without uncorrected memory errors"),
        "gpu-xid": ("pass", XIDS),
        "gpu-throttle": ("pass", "1 GPU not slowed down by heat or power"),
        "gpu-temperature": ("pass", "the warmest GPU has 39 C"),
        "pcie-width": ("pass", "1 PCIe link at full width"),
        "pcie-speed": ("pass", "1 PCIe link at full speed"),
        "pcie-errors": ("pass", "no PCIe error too many, by 1 counter"),
    }


def test_a_class_that_wants_nvlink_is_not_content_with_a_gpu_that_has_none(tmp_path: Path) -> None:
    """Passed through alone it has none, and nvidia-smi says nothing at all of its links, with exit status 0."""
    found = words(look(h100(tmp_path, known=expected(**CLASS, nvlinks=18, nvswitches=4))))
    assert {name: said for name, said in found.items() if said[0] == "fail" or "nvlink" in name} == {
        "gpu-nvlink": ("fail", "18 active NVLinks expected on each GPU, none"),
        "nvlink-errors": ("fail", "0 of 1 GPU answer"),
        "gpu-fabric": ("fail", "4 NVSwitches expected, none on the PCI bus"),
    }


def test_a_gpu_at_the_end_of_its_power_is_in_order(tmp_path: Path) -> None:
    """699 of 700 W, 67 C, `SW Power Cap` active: what a GPU is bought for."""
    busy = said("nvidia-smi-q-load.txt")
    assert re.search(r"SW Power Cap +: Active\n", busy)
    found = words(look(h100(tmp_path, busy)))
    assert found["gpu-throttle"] == ("pass", "1 GPU not slowed down by heat or power")
    assert found["gpu-temperature"] == ("pass", "the warmest GPU has 67 C")
    assert [name for name, (status, _) in found.items() if status == "fail"] == []


@pytest.mark.parametrize(
    ("name", "value", "check", "verdict"),
    [
        ("GPU Recovery Action", "Reset", "gpu-recovery", ("fail", "GPU 0 asks for Reset")),
        ("SRAM Threshold Exceeded", "Yes", "gpu-ecc", ("fail", "GPU 0 has more SRAM errors than NVIDIA tolerates")),
        ("Unrepairable Memory", "Yes", "gpu-ecc", ("fail", "GPU 0 has memory that cannot be repaired")),
        ("Channel Repair Pending", "Yes", "gpu-ecc", ("warn", "memory waits to be repaired on GPU 0")),
        ("TPC Repair Pending", "Yes", "gpu-ecc", ("warn", "memory waits to be repaired on GPU 0")),
        ("HW Slowdown", "Active", "gpu-throttle", ("fail", "GPU 0 is slowed down: HW Slowdown")),
        ("HW Thermal Slowdown", "Active", "gpu-throttle", ("fail", "GPU 0 is slowed down: HW Thermal Slowdown")),
        (
            "HW Power Brake Slowdown",
            "Active",
            "gpu-throttle",
            ("fail", "GPU 0 is slowed down: HW Power Brake Slowdown"),
        ),
        (
            "GPU T.Limit Temp",
            "-3 C",
            "gpu-temperature",
            ("fail", "GPU 0 has 39 C, 3 above its highest working temperature"),
        ),
        ("Memory Current Temp", "140 C", "gpu-temperature", ("fail", "GPU 0's memory has 140 C, more than 95")),
        ("Host Max", "5", "", ("", "")),
        ("Device Max", "6", "pcie-speed", ("fail", "GPU 0 reaches PCIe generation 5 of 6")),
        ("GPU Current Temp", "[Unknown Error]", "gpu-temperature", ("fail", "GPU 0 says Unknown Error")),
    ],
)
def test_one_value_of_the_real_words_is_found_by_one_check(
    tmp_path: Path, name: str, value: str, check: str, verdict: tuple[str, str]
) -> None:
    row = re.compile(rf"^( +{re.escape(name)} +: ).*$", re.MULTILINE)
    changed, count = row.subn(rf"\g<1>{value}", TOOLS[SMI].text, count=1)
    assert count == 1
    before, after = words(look(h100(tmp_path / "before"))), words(look(h100(tmp_path / "after", changed)))
    assert {one: said for one, said in after.items() if said != before[one]} == ({check: verdict} if check else {})


def test_copies_that_a_real_gpu_made_are_read(tmp_path: Path) -> None:
    copies = "nvbandwidth -j -t host_to_device_memcpy_ce device_to_host_memcpy_ce"
    names = "nvidia-smi --query-gpu=index,name --format=csv,noheader,nounits"
    told = {copies: Output(0, said("nvbandwidth.json")), names: Output(0, "0, NVIDIA H100 80GB HBM3\n")}
    machine = h100(tmp_path)
    found = look_active(Told(machine.root, machine.expected, None, machine.tools | told))
    assert found["active-gpu-copy"] == ("pass", "1 GPU copy as they should")
    assert found["active-nccl"] == ("absent", "one GPU: there is nothing to reduce")


def look_active(machine: Told) -> dict[str, tuple[str, str]]:
    gpu = ("active-gpu-copy", "active-nccl")
    return {name: one for name, one in words(loaded(machine)).items() if name in gpu}
