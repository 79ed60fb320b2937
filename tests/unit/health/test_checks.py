"""What each check says of recorded machines, and of the same with one thing wrong."""

import re
from pathlib import Path
from typing import Any

import pytest

from images.node.health.checks import CHECKS
from images.node.health.expected import Expected
from images.node.health.machine import CannotTellError, Offset, Output
from images.node.health.result import Result
from tests.unit.health.recorded import GPUS, TOOLS, WHOLE, Told, expected, links, plant, text

REMAPPED = "New row marked for remapping, reset gpu to activate."
PCI, IB = "sys/bus/pci/devices", "sys/class/infiniband"


def look(machine: Told) -> dict[str, Result]:
    found = {}
    for check in CHECKS:
        try:
            found[check.name] = check.look(machine)
        except CannotTellError as error:
            found[check.name] = Result("unknown", str(error), error.remedy)
    return found


def h100(root: Path, tools: dict[str, Output] | None = None, files: dict[str, str | None] | None = None) -> Told:
    plant(root, "hgx-h100.tree", **(files or {}))
    return Told(root, expected(**WHOLE), Offset(120, 40), TOOLS | (tools or {}))


def words(found: dict[str, Result]) -> dict[str, tuple[str, str]]:
    return {name: (one.status, one.summary) for name, one in found.items()}


def test_a_whole_machine_is_in_order(tmp_path: Path) -> None:
    assert words(look(h100(tmp_path))) == {
        "expectations": ("pass", "11 expectations"),
        "cpus": ("pass", "224 CPUs are online"),
        "memory": ("pass", "2048 GiB, 2048 expected"),
        "nvme": ("pass", "4 NVMe disks, live"),
        "clock": ("pass", "within 0.12 s of the service's clock"),
        "gpu-count": ("pass", "8 GPUs on the PCI bus"),
        "gpu-uuid": ("pass", "8 GPUs: NVIDIA H100 80GB HBM3"),
        "gpu-ecc": ("pass", "8 GPUs without uncorrected memory errors"),
        "gpu-nvlink": ("pass", "18 NVLinks are active on each GPU"),
        "gpu-fabric": ("pass", "4 NVSwitches, all of version 535.161.08"),
        "gpu-xid": ("pass", "no Xid in the kernel log of this boot"),
        "pcie-width": ("pass", "18 PCIe links at full width"),
        "ib-ports": ("pass", "8 InfiniBand ports up"),
        "roce-gids": ("pass", "2 RoCE ports up, with GIDs"),
        "nic-firmware": ("pass", "10 RDMA cards: 28.39.2048, 32.38.3056"),
    }


def test_where_nothing_is_expected_there_are_facts(tmp_path: Path) -> None:
    machine = Told(plant(tmp_path, "hgx-h100.tree"), Expected(source="service"), Offset(0, 1), TOOLS)
    found = look(machine)
    assert {name: one.status for name, one in found.items() if one.status != "pass"} == {"expectations": "absent"}
    assert found["expectations"].summary == "the inventory says nothing of what this machine should have: facts only"
    assert found["gpu-uuid"].facts["driver"] == "535.161.08"
    assert len(found["gpu-uuid"].facts["uuids"]) == 8
    assert found["gpu-ecc"].facts["corrected"] == [0, 0, 3, 0, 0, 0, 0, 0]
    assert found["ib-ports"].facts["ports"][7] == "mlx5_7/1 ACTIVE 400 LID 423"


def test_a_machine_without_any_of_it_has_it_absent(tmp_path: Path) -> None:
    machine = Told(plant(tmp_path, "vm.tree"), expected(cpus=2, memory_gib=2), Offset(-900, 20))
    found = words(look(machine))
    assert {name: said for name, said in found.items() if said[0] == "pass"} == {
        "expectations": ("pass", "2 expectations"),
        "cpus": ("pass", "2 CPUs are online"),
        "memory": ("pass", "2 GiB, 2 expected"),
        "clock": ("pass", "within 0.9 s of the service's clock"),
    }
    assert {said for said in found.values() if said[0] != "pass"} == {
        ("absent", "no NVMe disk, and none is expected"),
        ("absent", "no NVIDIA GPU is on the PCI bus, and none is expected"),
        ("absent", "no NVSwitch is on the PCI bus, and none is expected"),
        ("absent", "no NVIDIA GPU, and no Xid in the kernel log"),
        ("absent", "neither a GPU nor an RDMA card is on the PCI bus"),
        ("absent", "no InfiniBand port, and none is expected"),
        ("absent", "no RoCE port, and none is expected"),
        ("absent", "no RDMA card, and none is expected"),
    }


def test_what_is_expected_and_not_there_is_missed_precisely(tmp_path: Path) -> None:
    """A machine of the laboratory under the class of an HGX H100."""
    machine = Told(plant(tmp_path, "vm.tree"), expected(**WHOLE, nic_firmware={"MT_0000000838": "28.39.2048"}), None)
    nothing = ("unknown", "8 GPUs expected, none on the PCI bus: there is none to ask")
    assert words(look(machine)) == {
        "expectations": ("pass", "12 expectations"),
        "cpus": ("fail", "224 CPUs expected, 2 are online"),
        "memory": ("fail", "2048 GiB of memory expected, 2 are there"),
        "nvme": ("fail", "4 NVMe disks expected, none found"),
        "clock": ("unknown", "the service could not be asked for its time"),
        "gpu-count": ("fail", "8 GPUs expected, none on the PCI bus"),
        "gpu-uuid": nothing,
        "gpu-ecc": nothing,
        "gpu-nvlink": nothing,
        "gpu-fabric": ("fail", "4 NVSwitches expected, none on the PCI bus"),
        "gpu-xid": ("absent", "no NVIDIA GPU, and no Xid in the kernel log"),
        "pcie-width": ("unknown", "x16 expected, and no GPU is on the PCI bus"),
        "ib-ports": ("fail", "8 InfiniBand ports expected, none found"),
        "roce-gids": ("fail", "2 RoCE ports expected, none in order"),
        "nic-firmware": ("fail", "no card of board MT_0000000838, whose firmware is expected"),
    }


@pytest.mark.parametrize(
    ("files", "check", "said"),
    [
        (
            {f"{PCI}/0000:13:00.0/{name}": None for name in ("vendor", "device", "class")},
            "gpu-count",
            ("fail", "8 GPUs expected, only 7 on the PCI bus"),
        ),
        (
            {f"{PCI}/0000:13:00.0/current_link_width": "8"},
            "pcie-width",
            ("fail", "PCIe links are narrower than they should be: 0000:13:00.0 has x8 of x16"),
        ),
        (
            {f"{PCI}/0000:31:00.0/current_link_width": "4"},
            "pcie-width",
            ("fail", "PCIe links are narrower than they should be: 0000:31:00.0 has x4 of x16"),
        ),
        (
            {f"{IB}/mlx5_3/ports/1/state": "1: DOWN", f"{IB}/mlx5_3/ports/1/phys_state": "2: Polling"},
            "ib-ports",
            ("fail", "8 InfiniBand ports expected, 7 in order: mlx5_3/1 is DOWN (Polling)"),
        ),
        (
            {f"{IB}/mlx5_3/ports/1/state": "2: INIT", f"{IB}/mlx5_3/ports/1/lid": "0x0"},
            "ib-ports",
            ("fail", "8 InfiniBand ports expected, 7 in order: mlx5_3/1 is INIT (LinkUp)"),
        ),
        (
            {f"{IB}/mlx5_3/ports/1/lid": "0x0"},
            "ib-ports",
            ("fail", "8 InfiniBand ports expected, 7 in order: mlx5_3/1 has no LID"),
        ),
        (
            {f"{IB}/mlx5_3/ports/1/rate": "200 Gb/sec (2X NDR)"},
            "ib-ports",
            ("fail", "8 InfiniBand ports expected, 7 in order: mlx5_3/1 has 200 of 400 Gb/s"),
        ),
        (
            {f"{IB}/mlx5_9/ports/1/gid_attrs/types/3": None},
            "roce-gids",
            ("fail", "2 RoCE ports expected, 1 in order: mlx5_9/1 has no RoCE v2 GID with an address"),
        ),
        (
            {f"{IB}/mlx5_9/ports/1/state": "1: DOWN"},
            "roce-gids",
            ("fail", "2 RoCE ports expected, 1 in order: mlx5_9/1 is DOWN (LinkUp)"),
        ),
        (
            {f"{IB}/mlx5_2/fw_ver": "28.36.1010"},
            "nic-firmware",
            ("warn", "cards of board MT_0000000838 have different firmware: 28.36.1010, 28.39.2048"),
        ),
        ({"sys/class/nvme/nvme2/state": "dead"}, "nvme", ("fail", "NVMe: nvme2 is dead")),
        (
            {f"sys/class/nvme/nvme3/{name}": None for name in ("state", "transport", "model")},
            "nvme",
            ("fail", "4 NVMe disks expected, 3 found"),
        ),
        (
            {f"sys/devices/system/memory/memory{at}/state": None for at in range(2)},
            "memory",
            ("fail", "2048 GiB of memory expected, 1984 are there"),
        ),
        ({"sys/devices/system/cpu/online": "0-111"}, "cpus", ("fail", "224 CPUs expected, 112 are online")),
        ({"sys/devices/system/cpu/online": "0-239"}, "cpus", ("warn", "224 CPUs expected, 240 are online")),
        (
            {"sys/devices/system/cpu/online": "what?"},
            "cpus",
            ("unknown", "/sys/devices/system/cpu/online cannot be read"),
        ),
        (
            {"sys/module/nvidia/version": "550.90.07"},
            "gpu-fabric",
            ("fail", "the driver is 550.90.07 and the fabric manager 535.161.08: they must be the same"),
        ),
        (
            {"sys/module/nvidia/version": None},
            "gpu-fabric",
            ("fail", "4 NVSwitches, and no driver is loaded"),
        ),
        ({"dev/kmsg": None}, "gpu-xid", ("unknown", "the kernel log cannot be read: No such file or directory")),
    ],
)
def test_one_thing_that_is_wrong_is_named(
    tmp_path: Path, files: dict[str, str | None], check: str, said: tuple[str, str]
) -> None:
    found = words(look(h100(tmp_path, files=files)))
    assert found[check] == said
    assert [name for name, (status, _) in found.items() if status != "pass"] == [check]


@pytest.mark.parametrize(
    ("tools", "check", "said"),
    [
        (
            {"nvidia-smi --query-gpu=index,uuid": Output(9, text("nvidia-smi-no-driver.txt"))},
            "gpu-uuid",
            ("unknown", "the NVIDIA driver is not loaded"),
        ),
        (
            {"nvidia-smi --query-gpu=index,uuid": Output(18, text("nvidia-smi-mismatch.txt"))},
            "gpu-uuid",
            ("unknown", "the driver in the kernel and its libraries are of different versions"),
        ),
        (
            {"nvidia-smi --query-gpu=index,uuid": Output(6, text("nvidia-smi-no-devices.txt"))},
            "gpu-uuid",
            ("unknown", "GPUs are on the PCI bus, and the driver could start none of them"),
        ),
        (
            {"nvidia-smi --query-gpu=index,ecc": Output(2, text("nvidia-smi-field.txt"))},
            "gpu-ecc",
            ("unknown", "this nvidia-smi does not know ecc.mode.current"),
        ),
        (
            {"nvidia-smi --query-gpu=index,ecc": Output(-11, "")},
            "gpu-ecc",
            ("unknown", "nvidia-smi: exit status -11"),
        ),
        (
            {"nvidia-smi --query-gpu=index,uuid": Output(0, "".join(text("nvidia-smi-uuid.csv").splitlines(True)[:7]))},
            "gpu-uuid",
            ("fail", "8 GPUs on the PCI bus, the driver has 7"),
        ),
        (
            {"nvidia-smi --query-gpu=index,uuid": Output(0, text("nvidia-smi-uuid.csv").replace("728601,", "728600,"))},
            "gpu-uuid",
            ("fail", "GPUs without a UUID of their own"),
        ),
        (
            {"nvidia-smi --query-gpu=index,uuid": Output(0, text("nvidia-smi-uuid.csv").replace("H100", "A100", 1))},
            "gpu-uuid",
            ("fail", "model H100 expected, there is NVIDIA A100 80GB HBM3"),
        ),
        (
            {
                "nvidia-smi --query-gpu=index,ecc": Output(
                    0, text("nvidia-smi-ecc.csv").replace("4, Enabled, 0", "4, Enabled, 7")
                )
            },
            "gpu-ecc",
            ("fail", "memory errors that ECC could not correct: GPU 4: 7"),
        ),
        (
            {
                "nvidia-smi --query-gpu=index,ecc": Output(
                    0, text("nvidia-smi-ecc.csv").replace("4, Enabled", "4, Disabled")
                )
            },
            "gpu-ecc",
            ("warn", "ECC is off on GPU 4"),
        ),
        (
            {"nvidia-smi --query-gpu=index,ecc": Output(0, "0, [N/A], [N/A], [N/A]\n")},
            "gpu-ecc",
            ("absent", "1 GPU without ECC"),
        ),
        (
            {
                "nvidia-smi --query-remapped-rows": Output(
                    0, text("nvidia-smi-rows.csv").replace("1, No, No", "1, Yes, No")
                )
            },
            "gpu-ecc",
            ("warn", "rows wait to be remapped on GPU 1"),
        ),
        (
            {
                "nvidia-smi --query-remapped-rows": Output(
                    0, text("nvidia-smi-rows.csv").replace("1, No, No", "1, No, Yes")
                )
            },
            "gpu-ecc",
            ("fail", "rows could not be remapped on GPU 1"),
        ),
        (
            {"nvidia-smi nvlink --status": Output(0, links(7, 18, 18) + links(1, 18, 12).replace("GPU 0", "GPU 7"))},
            "gpu-nvlink",
            ("fail", "18 active NVLinks expected on each GPU, 12 on GPU 7"),
        ),
        (
            {"nvidia-smi nvlink --status": Output(0, "")},
            "gpu-nvlink",
            ("fail", "18 active NVLinks expected on each GPU, none"),
        ),
        (
            {"systemctl is-active": Output(3, "failed\n")},
            "gpu-fabric",
            ("fail", "4 NVSwitches, and nvidia-fabricmanager.service is failed"),
        ),
        (
            {"nvidia-smi --query-gpu=index,fabric": Output(0, "0, Completed, Success\n1, Completed, Failure\n")},
            "gpu-fabric",
            ("fail", "GPUs that are not in the fabric: GPU 1: Completed Failure"),
        ),
        (
            {"nvidia-smi --query-gpu=index,fabric": Output(0, "0, Completed, Success\n1, In Progress, [N/A]\n")},
            "gpu-fabric",
            ("warn", "GPUs that are not in the fabric: GPU 1: In Progress"),
        ),
        (
            {"nvidia-smi --query-gpu=index,fabric": Output(2, 'Field "fabric.state" is not a valid field to query.')},
            "gpu-fabric",
            ("pass", "4 NVSwitches, all of version 535.161.08"),
        ),
        (
            {"nv-fabricmanager --version": Output(1, "?")},
            "gpu-fabric",
            ("fail", "4 NVSwitches, and no version of the fabric manager can be read"),
        ),
    ],
)
def test_what_tools_say_is_understood(
    tmp_path: Path, tools: dict[str, Output], check: str, said: tuple[str, str]
) -> None:
    found = words(look(h100(tmp_path, tools)))
    assert found[check] == said
    assert [name for name, (status, _) in found.items() if status != "pass" and name != check] == []


def test_an_image_without_the_tools_says_so(tmp_path: Path) -> None:
    machine = Told(plant(tmp_path, "hgx-h100.tree"), expected(**GPUS), Offset(0, 0))
    found = words(look(machine))
    assert found["gpu-count"] == ("pass", "8 GPUs on the PCI bus")
    assert {name for name, said in found.items() if said == ("unknown", "this image has no nvidia-smi")} == {
        "gpu-uuid",
        "gpu-ecc",
        "gpu-nvlink",
    }
    assert found["gpu-fabric"] == ("unknown", "this image has no nv-fabricmanager")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            r"79|62|63|31|13|fallen off",
            ("fail", "Xid 79 at PCI:0000:2b:00, 79 at unknown, 62 at 0000:01:00: GPU has fallen off the bus."),
        ),
        (
            r"\): 63",
            (
                "warn",
                f"Xid 63 at PCI:0000:10:1c: pid=1896, Row Remapper: {REMAPPED}",
            ),
        ),
        (r"\): (31|13)", ("pass", "Xid 31 at PCI:0000:10:00, 13 at PCI:0000:01:00: of programs, not of the hardware")),
        (r"loading|GPU at", ("pass", "no Xid in the kernel log of this boot")),
        (r"NVRM: fallen", ("fail", "Xid 79 at unknown: fallen off the bus and is not responding to commands")),
    ],
)
def test_the_worst_xid_decides(tmp_path: Path, lines: str, said: tuple[str, str]) -> None:
    log = "\n".join(line for line in text("kmsg.txt").splitlines() if re.search(lines, line))
    assert words(look(h100(tmp_path, files={"dev/kmsg": log})))["gpu-xid"] == said


@pytest.mark.parametrize(
    ("offset", "tolerated", "said"),
    [
        (Offset(6_000, 500), None, ("warn", "5.5 s ahead of the service's clock; 5 s are tolerated")),
        (Offset(-61_000, 500), None, ("fail", "60.5 s behind the service's clock; 5 s are tolerated")),
        (Offset(6_000, 2_000), None, ("pass", "within 6 s of the service's clock")),
        (Offset(-80, 5), 50, ("warn", "0.075 s behind the service's clock; 0.05 s are tolerated")),
    ],
)
def test_the_clock(tmp_path: Path, offset: Offset, tolerated: int | None, said: tuple[str, str]) -> None:
    assert words(look(Told(tmp_path, expected(clock_ms=tolerated), offset)))["clock"] == said


def test_memory_without_blocks_is_judged_by_what_the_kernel_has_left(tmp_path: Path) -> None:
    files: dict[str, str | None] = {"sys/devices/system/memory/block_size_bytes": None}
    found = look(h100(tmp_path, files=files))["memory"]
    assert (found.status, found.summary) == ("pass", "2015.5 GiB, 2048 expected")
    assert found.facts["by"] == "MemTotal"


def test_firmware_is_judged_by_board(tmp_path: Path) -> None:
    plant(tmp_path, "hgx-h100.tree")
    wanted: Any = {"MT_0000000838": "28.43.1014", "MT_0000000884": "32.38.3056"}
    found = words(look(Told(tmp_path, expected(nic_firmware=wanted))))["nic-firmware"]
    assert found == (
        "fail",
        "firmware: " + ", ".join(f"mlx5_{at} has 28.39.2048, not 28.43.1014" for at in range(8)),
    )


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            Expected(source="nobody"),
            (
                "unknown",
                "the service could not be asked what this machine should have: facts only, nothing is judged by them",
            ),
        ),
        (
            Expected(source="kept", cpus=224),
            ("pass", "1 expectations, as the service said earlier in this boot; it does not answer now"),
        ),
        (
            Expected(source="service", cpus=224, not_understood=("dpus",)),
            ("warn", "this image does not know what is expected by dpus: not checked"),
        ),
    ],
)
def test_how_the_expectations_came(tmp_path: Path, known: Expected, said: tuple[str, str]) -> None:
    assert words(look(Told(plant(tmp_path, "vm.tree"), known)))["expectations"] == said
