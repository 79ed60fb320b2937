"""What each check says of recorded machines; their faults one by one: test_one_bad_thing.py."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from images.node.health import thresholds as table
from images.node.health.expected import Expected, with_class
from images.node.health.hardware import Hardware, Nics
from images.node.health.kept import WINDOW_SECONDS, grown
from images.node.health.machine import Offset, Output
from images.node.health.thresholds import THRESHOLDS
from tests.unit.health.recorded import (
    CLASS,
    GPUS,
    HARDWARE,
    WHOLE,
    Told,
    expected,
    look,
    plant,
    put,
    recorded,
    said,
    told,
    words,
)

IB = "sys/class/infiniband"
AGAIN = "if it comes again, have the GPU replaced"
TOOLS = recorded("hgx-h100")[1]


def h100(root: Path, tools: dict[str, Output] | None = None, files: dict[str, str | None] | None = None) -> Told:
    plant(root, "hgx-h100", files)
    known = expected(**WHOLE, hardware=HARDWARE)
    return Told(root, known, Offset(120, 40), told("hgx-h100", tools or {}))


def test_a_whole_machine_is_in_order(tmp_path: Path) -> None:
    assert words(look(h100(tmp_path))) == {
        "expectations": ("pass", "17 expectations"),
        "cpus": ("pass", "224 CPUs are online"),
        "memory": ("pass", "2048 GiB, 2048 expected"),
        "memory-errors": ("pass", "32 counters of memory errors"),
        "hugepages": ("pass", "huge pages: 16 of 1 GiB"),
        "disks": ("pass", "4 disks, those of the class among them"),
        "nvme": ("pass", "4 NVMe disks, live"),
        "nvme-smart": ("pass", "4 NVMe disks well by themselves"),
        "clock": ("pass", "within 0.12 s of the service's clock"),
        "time-service": ("pass", "a time service holds the clock"),
        "gpu-count": ("pass", "8 GPUs on the PCI bus"),
        "gpu-uuid": ("pass", "8 GPUs: NVIDIA H100 80GB HBM3"),
        "gpu-recovery": ("pass", "8 GPUs: no reset is asked for"),
        "gpu-ecc": ("pass", "8 GPUs without uncorrected memory errors"),
        "gpu-nvlink": ("pass", "18 NVLinks are active on each GPU"),
        "nvlink-errors": ("pass", "no NVLink error too many, by 432 counters"),
        "gpu-fabric": ("pass", "4 NVSwitches, all of version 535.161.08"),
        "gpu-xid": ("pass", "no Xid in the kernel log of this boot"),
        "nvswitch-sxid": ("pass", "no SXid that matters in the kernel log of this boot"),
        "gpu-throttle": ("pass", "8 GPUs not slowed down by heat or power"),
        "gpu-temperature": ("pass", "the warmest GPU has 40 C"),
        "nics": ("pass", "10 ports of the class's network cards"),
        "pcie-width": ("pass", "26 PCIe links at full width"),
        "pcie-speed": ("pass", "22 PCIe links at full speed"),
        "pcie-errors": ("pass", "no PCIe error too many, by 86 counters"),
        "ib-ports": ("pass", "8 InfiniBand ports up"),
        "ib-errors": ("pass", "10 ports without errors too many"),
        "roce-gids": ("pass", "2 RoCE ports up, with GIDs"),
        "ports": ("pass", "2 named ports up"),
        "cables": ("pass", "no card complains of a cable"),
        "nic-firmware": ("pass", "18 RDMA cards: 28.39.2048, 32.38.3056"),
        "firmware": ("pass", "10 versions of firmware, new enough"),
        "memlock": ("pass", "containers may lock all memory"),
        "bmc-log": ("pass", "nothing severe among 3 entries"),
    }


def test_where_nothing_is_expected_there_are_facts(tmp_path: Path) -> None:
    machine = Told(plant(tmp_path, "hgx-h100"), Expected(source="service"), Offset(0, 1), TOOLS)
    found = look(machine)
    assert {name: one.status for name, one in found.items() if one.status != "pass"} == {
        "expectations": "absent",
        "disks": "absent",
        "nics": "absent",
        "ports": "absent",
        "firmware": "absent",
    }
    assert found["expectations"].summary == "the inventory says nothing of what this machine should have: facts only"
    assert found["gpu-uuid"].facts["driver"] == "535.161.08"
    assert len(found["gpu-uuid"].facts["uuids"]) == 8
    assert found["gpu-ecc"].facts["corrected"] == [0, 0, 3, 0, 0, 0, 0, 0]
    assert found["ib-ports"].facts["ports"][7] == "mlx5_7/1 ACTIVE 400 LID 423"


def test_a_machine_without_any_of_it_has_it_absent(tmp_path: Path) -> None:
    machine = Told(plant(tmp_path, "vm"), expected(cpus=2, memory_gib=2), Offset(-900, 20))
    found = words(look(machine))
    assert {name: one for name, one in found.items() if one[0] == "pass"} == {
        "expectations": ("pass", "2 expectations"),
        "cpus": ("pass", "2 CPUs are online"),
        "memory": ("pass", "2 GiB, 2 expected"),
        "clock": ("pass", "within 0.9 s of the service's clock"),
        "time-service": ("pass", "a time service holds the clock"),
    }
    assert {one for one in found.values() if one[0] != "pass"} == {
        ("absent", "neither a GPU nor an RDMA card is on the PCI bus"),
        ("absent", "no GPU, RDMA card or NVMe disk is on the PCI bus"),
        ("absent", "no InfiniBand port, and none is expected"),
        ("absent", "no NVIDIA GPU is on the PCI bus, and none is expected"),
        ("absent", "no NVIDIA GPU, and no Xid in the kernel log"),
        ("absent", "no NVMe disk"),
        ("absent", "no NVMe disk, and none is expected"),
        ("absent", "no NVSwitch is on the PCI bus, and no SXid in the kernel log"),
        ("absent", "no NVSwitch is on the PCI bus, and none is expected"),
        ("absent", "no RDMA card"),
        ("absent", "no RDMA card, and none is expected"),
        ("absent", "no RDMA port"),
        ("absent", "no RoCE port, and none is expected"),
        ("absent", "no card that tells of its cables"),
        ("absent", "no counter of PCIe errors, of no cards"),
        ("absent", "no huge pages, and none are expected"),
        ("absent", "no ipmitool in this image, or no BMC that the kernel knows (ipmi_si, ipmi_devintf)"),
        ("absent", "no memory controller tells of errors (EDAC)"),
        ("absent", "the class names no port"),
        ("absent", "the class names no firmware"),
        ("absent", "the class says nothing of disks"),
        ("absent", "the class says nothing of network cards"),
    }


def test_what_is_expected_and_not_there_is_missed_precisely(tmp_path: Path) -> None:
    """A machine of the laboratory under the class of an HGX H100."""
    more: dict[str, Any] = {"nic_firmware": {"MT_0000000838": "28.39.2048"}, "hardware": HARDWARE}
    machine = Told(plant(tmp_path, "vm"), expected(**WHOLE, **more), None)
    nothing = ("unknown", "8 GPUs expected, none on the PCI bus: there is none to ask")
    assert words(look(machine)) == {
        "expectations": ("pass", "18 expectations"),
        "cpus": ("fail", "224 CPUs expected, 2 are online"),
        "memory": ("fail", "2048 GiB of memory expected, 2 are there"),
        "memory-errors": ("absent", "no memory controller tells of errors (EDAC)"),
        "hugepages": ("fail", "huge pages: 16 of 1 GiB expected, none there"),
        "disks": ("fail", "4 disks MZQL23T8 of 3840 GB expected, none there"),
        "nvme": ("fail", "4 NVMe disks expected, none found"),
        "nvme-smart": ("absent", "no NVMe disk"),
        "clock": ("pass", "a time service holds the clock; the service could not be asked for its time"),
        "time-service": ("pass", "a time service holds the clock"),
        "gpu-count": ("fail", "8 GPUs expected, none on the PCI bus"),
        "gpu-uuid": nothing,
        "gpu-recovery": nothing,
        "gpu-ecc": nothing,
        "gpu-nvlink": nothing,
        "nvlink-errors": nothing,
        "gpu-fabric": ("fail", "4 NVSwitches expected, none on the PCI bus"),
        "gpu-xid": ("absent", "no NVIDIA GPU, and no Xid in the kernel log"),
        "nvswitch-sxid": ("absent", "no NVSwitch is on the PCI bus, and no SXid in the kernel log"),
        "gpu-throttle": nothing,
        "gpu-temperature": nothing,
        "nics": ("fail", "8 ports of ConnectX-7 expected, none there, 2 ports of 15b3:a2dc expected, none there"),
        "pcie-width": ("unknown", "x16 expected, and no GPU is on the PCI bus"),
        "pcie-speed": ("absent", "no GPU, RDMA card or NVMe disk is on the PCI bus"),
        "pcie-errors": ("absent", "no counter of PCIe errors, of no cards"),
        "ib-ports": ("fail", "8 InfiniBand ports expected, none found"),
        "ib-errors": ("absent", "no RDMA port"),
        "roce-gids": ("fail", "2 RoCE ports expected, none in order"),
        "ports": ("fail", "enp64s0f0np0 is not there, enp64s0f1np1 is not there"),
        "cables": ("absent", "no card that tells of its cables"),
        "nic-firmware": ("fail", "no card of board MT_0000000838, whose firmware is expected"),
        "firmware": (
            "unknown",
            (
                "the version of MT_0000000838 cannot be read, the version of bios cannot be read, "
                "the version of bmc cannot be read"
            ),
        ),
        "memlock": ("absent", "no RDMA card"),
        "bmc-log": ("absent", "no ipmitool in this image, or no BMC that the kernel knows (ipmi_si, ipmi_devintf)"),
    }


def test_an_image_without_the_tools_says_so(tmp_path: Path) -> None:
    machine = Told(plant(tmp_path, "hgx-h100"), expected(**GPUS), Offset(0, 0))
    found = words(look(machine))
    assert found["gpu-count"] == ("pass", "8 GPUs on the PCI bus")
    assert {name for name, one in found.items() if one == ("unknown", "this image has no nvidia-smi")} == {
        *("gpu-uuid", "gpu-recovery", "gpu-ecc", "gpu-nvlink", "nvlink-errors", "gpu-throttle", "gpu-temperature"),
        *("pcie-speed", "pcie-errors"),
    }
    assert found["nvme-smart"] == ("unknown", "this image has no nvme-cli: disks are not asked")
    assert found["gpu-fabric"] == ("unknown", "this image has no nv-fabricmanager")


@pytest.mark.parametrize(
    ("lines", "summary"),
    [
        (
            r"79|62|63|31|13|fallen off",
            ("fail", "Xid 79 at PCI:0000:2b:00, 79 at unknown, 62 at 0000:01:00: GPU has fallen off the bus."),
        ),
        (r"\): 63", ("pass", "Xid 63 at PCI:0000:10:1c: of programs, not of the hardware")),
        (r"\): (31|13)", ("pass", "Xid 31 at PCI:0000:10:00, 13 at PCI:0000:01:00: of programs, not of the hardware")),
        (r"loading|GPU at", ("pass", "no Xid in the kernel log of this boot")),
        (r"NVRM: fallen", ("fail", "Xid 79 at unknown: fallen off the bus and is not responding to commands")),
    ],
)
def test_the_worst_xid_decides(tmp_path: Path, lines: str, summary: tuple[str, str]) -> None:
    log = "\n".join(line for line in said("kmsg.txt").splitlines() if re.search(lines, line))
    assert words(look(h100(tmp_path, files={"dev/kmsg": log})))["gpu-xid"] == summary


@pytest.mark.parametrize(
    ("offset", "tolerated", "said"),
    [
        (Offset(6_000, 500), None, ("warn", "5.5 s ahead of the service's clock; 5 s are tolerated")),
        (Offset(-61_000, 500), None, ("fail", "60.5 s behind the service's clock; 5 s are tolerated")),
        (Offset(6_000, 2_000), None, ("pass", "within 6 s of the service's clock")),
        (Offset(-80, 5), 50, ("fail", "0.075 s behind the service's clock; 0.05 s are tolerated")),
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
    plant(tmp_path, "hgx-h100")
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
    assert words(look(Told(plant(tmp_path, "vm"), known)))["expectations"] == said


def test_a_kernel_log_that_cannot_be_read_is_no_good_news(tmp_path: Path) -> None:
    found = words(look(h100(tmp_path, files={"dev/kmsg": None})))
    unread = ("unknown", "the kernel log cannot be read: No such file or directory")
    assert {name for name, one in found.items() if one[0] != "pass"} == {"gpu-xid", "nvswitch-sxid", "cables"}
    assert {found[name] for name in ("gpu-xid", "nvswitch-sxid", "cables")} == {unread}


LOG = "6,1,0,-;Linux version 6.8.0-45-generic"
OFF_THE_BUS = "4,1305,9300001,-;NVRM: Xid (PCI:0000:13:00): 79, GPU has fallen off the bus."
FATAL = "4,1306,9300002,-;nvidia-nvswitch2: SXid (PCI:0000:22:00.0): 24007, Fatal, Link 30 sourcetrack timeout error"


def test_a_ring_of_the_kernel_that_has_wrapped_heals_no_gpu(tmp_path: Path) -> None:
    machine = h100(tmp_path, files={"dev/kmsg": "\n".join([LOG, OFF_THE_BUS, FATAL])})
    before = words(look(machine))
    put(tmp_path / "dev/kmsg", LOG)
    assert words(look(machine)) == before
    assert (before["gpu-xid"][0], before["nvswitch-sxid"][0]) == ("fail", "fail")


def test_what_programs_do_pushes_nothing_out_that_the_hardware_said(tmp_path: Path) -> None:
    faults = [f"4,{at},1,-;NVRM: Xid (PCI:0000:13:00): 31, pid={at}, MMU Fault" for at in range(2000, 3000)]
    machine = h100(tmp_path, files={"dev/kmsg": "\n".join([LOG, OFF_THE_BUS, *faults])})
    look(machine)
    put(tmp_path / "dev/kmsg", "\n".join(faults))
    assert words(look(machine))["gpu-xid"][0] == "fail"
    assert (tmp_path / "run/netboot/health/gpu-xid.json").stat().st_size < 4096


def test_of_what_a_gpu_needs_the_driver_s_latest_word_counts(tmp_path: Path) -> None:
    change = "NVRM: Xid (PCI:0000:13:00): 154, GPU recovery action changed from"
    asked, done = (
        f"4,10,1,-;{change} 0x0 (None) to 0x1 (GPU Reset Required)",
        f"4,11,1,-;{change} 0x1 (GPU Reset Required) to 0x0 (None)",
    )
    machine = h100(tmp_path, files={"dev/kmsg": asked})
    found = look(machine)["gpu-xid"]
    assert (found.status, found.remedy) == (
        "fail",
        "drain the node; the driver says what the GPU needs: GPU Reset Required",
    )
    put(tmp_path / "dev/kmsg", f"{asked}\n{done}")
    assert look(machine)["gpu-xid"].status == "pass"


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (79, "drain the node and power-cycle it; if it comes again, have the GPU replaced"),
        (
            95,
            f"drain the node and reset the GPU (`nvidia-smi -r`, or a restart); {AGAIN}",
        ),
        (54, "power it off, and see the GPU's power connectors and its seat"),
        (74, "drain the node and reset all its GPUs (a restart does); on the same link again: the baseboard"),
    ],
)
def test_the_catalogue_s_action_is_the_remedy(tmp_path: Path, code: int, remedy: str) -> None:
    machine = h100(tmp_path, files={"dev/kmsg": f"4,10,1,-;NVRM: Xid (PCI:0000:13:00): {code}, words"})
    assert look(machine)["gpu-xid"].remedy == remedy


def test_an_sxid_that_the_hardware_corrects_and_lines_of_registers_are_no_finding(tmp_path: Path) -> None:
    lines = [
        "4,1,1,-;nvidia-nvswitch2: SXid (PCI:0000:22:00.0): 12023, Non-fatal, Link 30 crumbstore ECC limit err",
        "4,2,1,-;nvidia-nvswitch2: SXid (PCI:0000:22:00.0): 24007, Severity 1 Engine instance 30 Sub-engine 00",
        "4,3,1,-;nvidia-nvswitch2: SXid (PCI:0000:22:00.0): 24007, Data {0x00000000, 0x00000000}",
    ]
    assert words(look(h100(tmp_path, files={"dev/kmsg": "\n".join(lines)})))["nvswitch-sxid"][0] == "pass"


def test_a_cable_that_was_changed_is_in_order_again(tmp_path: Path) -> None:
    bad = (
        "3,900,1,-;mlx5_core 0000:31:00.0: port_module:252:(pid 0): "
        "Port module event[error]: module 0, Cable error, Unsupported cable"
    )
    machine = h100(tmp_path, files={"dev/kmsg": bad})
    assert look(machine)["cables"].status == "fail"
    put(tmp_path / "dev/kmsg", f"{bad}\n6,901,1,-;mlx5_core 0000:31:00.0: Port module event: module 0, Cable plugged")
    assert look(machine)["cables"].status == "pass"


def test_a_slot_that_has_its_power_again_is_in_order(tmp_path: Path) -> None:
    card = "mlx5_core 0000:12:00.0:"
    weak = f"4,901,1,-;{card} mlx5_pcie_event:299:(pid 7): Detected insufficient power on the PCIe slot (27W)."
    machine = h100(tmp_path, files={"dev/kmsg": weak})
    assert look(machine)["cables"].status == "warn"
    put(
        tmp_path / "dev/kmsg", f"{weak}\n6,902,1,-;mlx5_core 0000:12:00.0: PCIe slot advertised sufficient power (75W)."
    )
    assert look(machine)["cables"].status == "pass"


def test_a_card_that_can_less_than_the_slots_of_its_class_is_in_order(tmp_path: Path) -> None:
    plant(tmp_path, "hgx-h100")
    found = words(look(Told(tmp_path, expected(pcie_gts=64), None, told("hgx-h100", {}))))
    assert found["pcie-speed"][0] == "pass"


def test_of_two_containerds_the_first_that_ran_is_the_machine_s(tmp_path: Path) -> None:
    of_a_pod = {"proc/10001/comm": "containerd", "proc/10001/limits": "Max locked memory 8388608 8388608 bytes"}
    assert words(look(h100(tmp_path, files={**of_a_pod})))["memlock"] == ("pass", "containers may lock all memory")


def test_a_bmc_s_log_that_loses_what_is_old_tells_nothing_new(tmp_path: Path) -> None:
    entry = "   4 | 11/21/2026 | 03:12:44 | Memory #0x53 | Uncorrectable ECC | Asserted\n"
    for count in (5, 4, 3):
        machine = h100(tmp_path, {"ipmitool": Output(0, TOOLS["ipmitool sel elist"].text + count * entry)})
        assert words(look(machine))["bmc-log"][0] == "warn"


def test_counters_are_judged_by_how_much_they_grow_within_an_hour(tmp_path: Path) -> None:
    machine = Told(tmp_path)

    def run(seconds: float, **counters: int) -> dict[str, int]:
        put(tmp_path / "proc/uptime", f"{seconds} 1.0")
        return grown(machine, "any", counters)

    assert run(100, a=99_999, b=250) == {}, "what was before the first run is nobody's"
    assert run(400, a=100_004, b=250) == {"a": 5}
    assert run(700, a=100_004, b=251) == {"a": 5, "b": 1}
    assert run(1000, a=2, b=251) == {"a": 7, "b": 1}, "cleared: it began again at 0"
    assert run(1100, a=2, b=251, c=7) == {"a": 7, "b": 1}, "a counter that is new has its first run, too"
    assert run(400 + WINDOW_SECONDS, a=2, b=251) == {"a": 2, "b": 1}
    assert run(2000 + WINDOW_SECONDS, a=2) == {}
    assert run(2300 + WINDOW_SECONDS, a=2, b=255) == {"b": 4}, "it could not be read for a while"


def test_what_was_kept_and_is_torn_is_begun_again(tmp_path: Path) -> None:
    for torn in ("{", "[]", '{"counters": 3, "steps": []}'):
        put(tmp_path / "run/netboot/health/any.json", torn)
        assert grown(Told(tmp_path), "any", {"a": 1}) == {}


def test_a_bmc_s_old_entries_warn_until_somebody_clears_them(tmp_path: Path) -> None:
    log = (
        TOOLS["ipmitool sel elist"].text
        + "   4 | 11/21/2026 | 03:12:44 | Memory #0x53 | Uncorrectable ECC | Asserted\n"
    )
    machine = h100(tmp_path, {"ipmitool": Output(0, log)})
    for _ in range(2):
        assert words(look(machine))["bmc-log"] == ("warn", "before this boot: Memory #0x53 Uncorrectable ECC")


def test_what_a_machine_or_profile_tolerates_goes_before_what_its_class_does() -> None:
    of_class = Hardware(thresholds={"nvme_used_percent": 80, "gpu_celsius": 70})
    known = expected(thresholds={"gpu_celsius": 75}, hardware=of_class)
    names = ("gpu_celsius", "nvme_used_percent", "gpu_memory_celsius")
    assert [known.threshold(name) for name in names] == [75, 80, 95]
    assert known.keys == ["thresholds"]


def test_of_every_threshold_the_class_s_own_is_what_the_checks_ask_for() -> None:
    """No check reads the table itself: one that did would pass a class's own by."""
    folder = Path(table.__file__).parent
    readers = {path.name for path in folder.rglob("*.py") if re.search(r"THRESHOLDS.*\.value", path.read_text())}
    assert readers == {"expected.py"}
    for name, one in THRESHOLDS.items():
        assert expected(hardware=Hardware(thresholds={name: one.value + 1})).threshold(name) == one.value + 1


def test_a_class_has_thresholds_of_its_own(tmp_path: Path) -> None:
    hot = TOOLS["nvidia-smi -q"].text.replace("41 C", "97 C")
    plant(tmp_path, "hgx-h100")
    for thresholds, status in (({}, "fail"), ({"gpu_memory_celsius": 98}, "pass")):
        own = expected(**WHOLE, thresholds=thresholds)
        machine = Told(tmp_path, own, Offset(0, 1), told("hgx-h100", {"nvidia-smi -q": Output(0, hot)}))
        assert look(machine)["gpu-temperature"].status == status


def test_older_gpus_are_judged_by_their_limits_in_degrees(tmp_path: Path) -> None:
    text = TOOLS["nvidia-smi -q"].text
    for old, new in (
        ("GPU T.Limit Temp                  : 51 C", "GPU T.Limit Temp                  : N/A"),
        ("GPU Slowdown T.Limit Temp", "GPU Slowdown Temp        "),
    ):
        assert old in text
        text = text.replace(old, new)
    warm = text.replace("-2 C", "94 C")
    found = words(look(h100(tmp_path, {"nvidia-smi -q": Output(0, warm)})))
    assert found["gpu-temperature"] == ("pass", "the warmest GPU has 40 C")
    found = words(look(h100(tmp_path, {"nvidia-smi -q": Output(0, text.replace("-2 C", "35 C"))})))
    assert found["gpu-temperature"] == ("fail", "GPU 2 has 35 C, of at most 35")


def test_a_machine_s_class_is_expected_where_health_says_nothing(tmp_path: Path) -> None:
    told_class = {**CLASS, "memory_bytes": 2048 * 2**30, "gpus": {"count": 8, "model": "H100"}}
    plant(tmp_path, "hgx-h100", {"run/netboot/class.json": json.dumps(told_class)})
    known = with_class(expected(memory_gib=1024), tmp_path)
    assert (known.gpus, known.gpu_model, known.memory_gib) == (8, "H100", 1024)
    found = words(look(Told(tmp_path, known, Offset(0, 1), TOOLS)))
    assert {name for name, one in found.items() if one[0] not in ("pass", "absent")} == set()
    assert with_class(expected(gpus=4), tmp_path / "none") == expected(gpus=4)


UNUSABLE: dict[str, dict[str, Any]] = {
    "class.thresholds": {"thresholds": []},
    "class.skip_checks": {"skip_checks": "bmc-log"},
    "class.active": {"active": []},
    "class.active.floors": {"active": {"floors": []}},
    "class.active.floor": {"active": {"floor": {}}},
}


def test_what_of_a_class_is_not_known_or_of_another_form_is_said(tmp_path: Path) -> None:
    strange = {
        "nics": [{"model": "x", "count": 8}],
        "disks": [{"count": "4"}],
        "firmware": {"bios": 1},
        "architecture": 64,
        "active": {"skip": "disk", "floors": {"disk_read_mbs": 0, "disk_read_mb": 9}},
        "of a later version": 1,
        "thresholds": {"nvme_used_percent": -1, "nvlink_replay": 3, "gpu_celsius": "80"},
        "skip_checks": ["bmc", "expectations", ["bmc-log"]],
    }
    plant(tmp_path, "vm", {"run/netboot/class.json": json.dumps(strange)})
    known = with_class(expected(cpus=2), tmp_path)
    assert known.not_understood == (
        "class.active.floors.disk_read_mb",
        "class.active.floors.disk_read_mbs",
        "class.active.skip",
        "class.architecture",
        "class.disks",
        "class.firmware",
        "class.nics",
        "class.of a later version",
        "class.skip_checks.['bmc-log']",
        "class.skip_checks.bmc",
        "class.skip_checks.expectations",
        "class.thresholds.gpu_celsius",
        "class.thresholds.nvlink_replay",
        "class.thresholds.nvme_used_percent",
    )
    assert (known.hardware.thresholds, known.hardware.skip_checks) == ({}, ())
    for name, told_class in UNUSABLE.items():
        put(tmp_path / "run/netboot/class.json", json.dumps(told_class))
        assert with_class(expected(cpus=2), tmp_path).not_understood == (name,)


def test_a_card_of_a_name_that_nobody_knows_is_not_passed(tmp_path: Path) -> None:
    own = Hardware(nics=(Nics("HAL 9000", 1, 1000),))
    machine = Told(plant(tmp_path, "hgx-h100"), expected(hardware=own), None, TOOLS)
    assert words(look(machine))["nics"] == ("unknown", "nobody here knows a network card called HAL 9000")


def test_a_port_that_is_down_is_found_once(tmp_path: Path) -> None:
    """By ib-ports and roce-gids where the class says how many there are, else by nics."""
    down: dict[str, str | None] = {f"{IB}/mlx5_{at}/ports/1/state": "1: DOWN" for at in (3, 9)}
    found = words(look(h100(tmp_path, files=down)))
    assert {name for name, one in found.items() if one[0] == "fail"} == {"ib-ports", "roce-gids"}
    found = words(look(Told(tmp_path, expected(hardware=HARDWARE), None, TOOLS)))
    assert found["nics"] == ("fail", "ConnectX-7: mlx5_3/1 is DOWN, 15b3:a2dc: mlx5_9/1 is DOWN")
    bare = {f"sys/bus/pci/devices/0000:40:00.{at}/infiniband/mlx5_{8 + at}": None for at in range(2)}
    files = {**bare, "sys/class/net/enp64s0f0np0/operstate": "down", "sys/class/net/enp64s0f1np1/operstate": "down"}
    plant(tmp_path, "hgx-h100", files)
    one: Any = ("enp64s0f1np1",)
    found = words(look(Told(tmp_path, expected(hardware=HARDWARE, ports=one), None, TOOLS)))
    assert (found["nics"][1], found["ports"][1]) == ("15b3:a2dc: enp64s0f0np0 is down", "enp64s0f1np1 is down")


@pytest.mark.parametrize("torn", ["{", "[]", "null"])
def test_a_class_that_cannot_be_read_is_said(tmp_path: Path, torn: str) -> None:
    plant(tmp_path, "vm", {"run/netboot/class.json": torn})
    found = words(look(Told(tmp_path, with_class(expected(cpus=2), tmp_path), None)))
    summary = "this image does not know what is expected by class.json: not checked"
    assert found["expectations"] == ("warn", summary)


def test_an_interface_of_infiniband_is_named_like_any_port(tmp_path: Path) -> None:
    plant(tmp_path, "hgx-h100", {f"{IB}/mlx5_3/ports/1/state": "1: DOWN"})
    names: Any = ("mlx5_2/1", "mlx5_3/1", "mlx5_77/1", "mlx5_12/1")
    found = words(look(Told(tmp_path, expected(ports=names), None, TOOLS)))
    assert found["ports"] == ("fail", "mlx5_3/1 is DOWN (LinkUp), mlx5_77/1 is not there, mlx5_12/1 is not there")


def test_memlock_without_containerd_is_nobody_s(tmp_path: Path) -> None:
    found = words(look(h100(tmp_path, files={"proc/1187/comm": "bash"})))
    assert found["memlock"] == ("absent", "containerd does not run here")


def test_a_threshold_says_where_it_is_from() -> None:
    assert {name for name, one in THRESHOLDS.items() if not (one.source and one.what) or one.value < 0} == set()
