"""One bad thing each, to be laid over the machine `hgx-h100`, and what is to be said of it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from images.node.health.machine import Offset

PCI, IB, MC = "sys/bus/pci/devices", "sys/class/infiniband", "sys/devices/system/edac/mc"
NVME, NET = "sys/class/nvme", "sys/class/net"
UUID, ECC = (f"nvidia-smi --query-gpu=index,{field}" for field in ("uuid", "ecc"))
ROWS, LINKS, LINK_ERRORS, SMI = (
    "nvidia-smi --query-remapped-rows",
    "nvidia-smi nvlink --s",
    "nvidia-smi nvlink -e",
    "nvidia-smi -q",
)
SMART, SEL = "nvme smart-log --output-format=json /dev/nvme2", "ipmitool sel"
EVENT, POWER = "port_module:252:(pid 0):", "mlx5_pcie_event:299:(pid 268269):"
"""What the driver's errors and warnings begin with: function, line, process (mlx5_core.h)."""
NO_SWITCHES: dict[str, str | None] = {
    f"{PCI}/0000:{bus}:00.0/{name}": None for bus in range(20, 24) for name in ("vendor", "device", "class")
}
COUNTERS = f"{IB}/mlx5_5/ports/1/counters"
Edit = Callable[[str], str]
NEAR = Offset(120, 40)


@dataclass(frozen=True)
class Fault:
    """`files`: path -> content, None: it cannot be read. `tools`: beginning of a command line -> what becomes of its
    words. `log`: lines of the kernel's. `tolerated`: thresholds of the machine's class, by which alone it
    is a fault."""

    check: str
    status: str
    summary: str
    files: dict[str, str | None] = field(default_factory=dict)
    tools: dict[str, Edit] = field(default_factory=dict)
    log: tuple[str, ...] = ()
    offset: Offset = NEAR
    """Of the clock against the service's."""
    not_understood: tuple[str, ...] = ()
    """Keys of what is expected that the image does not know."""
    expects: dict[str, int | None] = field(default_factory=dict)
    """What the inventory says otherwise."""
    absent: tuple[str, ...] = ()
    """Checks that have nothing to look at then."""
    tolerated: dict[str, float] = field(default_factory=dict)


def row(number: int, old: str, new: str) -> Edit:
    """Replace something in one line."""

    def edit(text: str) -> str:
        lines = text.splitlines()
        assert old in lines[number], lines[number]
        lines[number] = lines[number].replace(old, new, 1)
        return "\n".join(lines) + "\n"

    return edit


def first(lines: int) -> Edit:
    return lambda text: "".join(text.splitlines(True)[:lines])


def of_gpu(at: int, name: str, value: str) -> Edit:
    """Give a row of one GPU in `nvidia-smi -q` another value."""

    def edit(text: str) -> str:
        parts = text.split("\nGPU 0000")
        lines = parts[at + 1].splitlines()
        (number,) = [number for number, line in enumerate(lines) if line.strip().partition(" : ")[0].strip() == name]
        lines[number] = lines[number].partition(" : ")[0] + " : " + value
        parts[at + 1] = "\n".join(lines) + ("\n" if at == len(parts) - 2 else "")
        return "\nGPU 0000".join(parts)

    return edit


def section(at: int, head: str, name: str, value: str) -> Edit:
    """The same, where several sections have a row of that name."""

    def edit(text: str) -> str:
        parts = text.split("\nGPU 0000")
        before, _, after = parts[at + 1].partition(head)
        lines = after.splitlines()
        number = next(number for number, line in enumerate(lines) if line.strip().partition(" : ")[0].strip() == name)
        lines[number] = lines[number].partition(" : ")[0] + " : " + value
        parts[at + 1] = before + head + "\n".join(lines)
        return "\nGPU 0000".join(parts)

    return edit


def in_progress(*gpus: int) -> Edit:
    """GPUs that nobody has brought into the fabric."""

    def edit(text: str) -> str:
        for at in gpus:
            text = section(at, "Fabric", "Status", "N/A")(section(at, "Fabric", "State", "In Progress")(text))
        return text

    return edit


def smart(name: str, value: str) -> Edit:
    return lambda text: text.replace(f'"{name}": 0', f'"{name}": {value}').replace(
        f'"{name}": 1,', f'"{name}": {value},'
    )


def aer(total: str, count: int) -> str:
    return f"RxErr 0\nBadTLP {count}\n{total} {count}"


def xid(code: int, text: str, where: str = "PCI:0000:13:00") -> tuple[str, ...]:
    return (f"4,1305,9300001,-;NVRM: Xid ({where}): {code}, {text}",)


def without(at: int, name: str) -> Edit:
    """Give a row of one GPU in `nvidia-smi -q` another name, as other drivers do."""

    def edit(text: str) -> str:
        parts = text.split("\nGPU 0000")
        assert parts[at + 1].count(f" {name} ") == 1
        parts[at + 1] = parts[at + 1].replace(f" {name} ", f" {name}ish ")
        return "\nGPU 0000".join(parts)

    return edit


FAULTS = {
    "expectation-too-new": Fault(
        "expectations",
        "warn",
        "this image does not know what is expected by dpus: not checked",
        not_understood=("dpus",),
    ),
    "clock-ahead": Fault(
        "clock", "warn", "6.96 s ahead of the service's clock; 5 s are tolerated", offset=Offset(7_000, 40)
    ),
    "clock-ahead-of-what-is-tolerated": Fault(
        "clock",
        "fail",
        "1.96 s ahead of the service's clock; 1 s are tolerated",
        offset=Offset(2_000, 40),
        expects={"clock_ms": 1_000},
    ),
    "clock-broken": Fault(
        "clock", "fail", "89.96 s behind the service's clock; 5 s are tolerated", offset=Offset(-90_000, 40)
    ),
    "gpu-reset-unsaid": Fault(
        "gpu-recovery",
        "unknown",
        "GPU 3 does not say whether it must be reset",
        tools={SMI: without(3, "Reset Required")},
    ),
    "gpu-generation-unsaid": Fault(
        "pcie-speed", "unknown", "GPU 5 does not tell its PCIe generation", tools={SMI: without(5, "Device Max")}
    ),
    "nvlink-counters-unsaid": Fault(
        "nvlink-errors",
        "unknown",
        "no NVLink tells its errors",
        tools={LINK_ERRORS: lambda text: text.replace(" Errors:", " Faults:")},
    ),
    "threads-off": Fault(
        "cpus", "fail", "224 CPUs expected, 112 are online", {"sys/devices/system/cpu/online": "0-111"}
    ),
    "threads-more": Fault(
        "cpus", "warn", "224 CPUs expected, 240 are online", {"sys/devices/system/cpu/online": "0-239"}
    ),
    "threads-unread": Fault(
        "cpus", "unknown", "/sys/devices/system/cpu/online cannot be read", {"sys/devices/system/cpu/online": "what?"}
    ),
    "memory-gone": Fault(
        "memory",
        "fail",
        "2048 GiB of memory expected, 1984 are there",
        {f"sys/devices/system/memory/memory{at}/state": None for at in range(2)},
    ),
    "memory-uncorrected": Fault(
        "memory-errors", "fail", "mc1 counts 1 uncorrected memory error in this boot", {f"{MC}/mc1/ue_count": "1"}
    ),
    "memory-corrected": Fault(
        "memory-errors",
        "warn",
        "CPU_SrcID#1_DIMM#3: 11 corrected memory errors in the last hour, 10 are tolerated",
        {f"{MC}/mc1/dimm3/dimm_ce_count": "11"},
    ),
    "memory-unread": Fault("memory-errors", "unknown", "mc0 does not tell its errors", {f"{MC}/mc0/ue_count": None}),
    "hugepages-few": Fault(
        "hugepages",
        "fail",
        "huge pages: 16 of 1 GiB expected, 15 there",
        {"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "15"},
    ),
    "disk-dead": Fault("nvme", "fail", "NVMe: nvme2 is dead", {f"{NVME}/nvme2/state": "dead"}),
    "disk-gone": Fault(
        "nvme",
        "fail",
        "4 NVMe disks expected, 3 found",
        {f"{NVME}/nvme3/{name}": None for name in ("state", "transport", "model")},
    ),
    "disk-spare": Fault(
        "nvme-smart", "fail", "nvme2: its spare blocks are used up", tools={SMART: smart("critical_warning", "1")}
    ),
    "disk-read-only": Fault(
        "nvme-smart", "fail", "nvme2: it is read-only", tools={SMART: smart("critical_warning", '{"value": 8}')}
    ),
    **{
        f"disk-warning-{bit}": Fault(
            "nvme-smart", "fail", f"nvme2: {words}", tools={SMART: smart("critical_warning", str(bit))}
        )
        for bit, words in (
            (0x02, "its temperature is beyond its limits"),
            (0x04, "it is degraded by errors"),
            (0x10, "its backup of volatile memory failed"),
            (0x20, "its persistent memory is read-only"),
        )
    },
    "disk-worn": Fault(
        "nvme-smart", "warn", "nvme2: 101 % of its endurance is used", tools={SMART: smart("percent_used", "101")}
    ),
    "disk-media": Fault(
        "nvme-smart",
        "warn",
        "nvme2: 3 media errors in the last hour, 0 are tolerated",
        tools={SMART: smart("media_errors", "3")},
    ),
    "disk-silent": Fault(
        "nvme-smart",
        "unknown",
        "nvme2 does not tell its health",
        tools={SMART: lambda _: "NVMe status: Internal Error(0x6)\n"},
    ),
    "clock-free": Fault(
        "time-service",
        "warn",
        "no time service holds the clock, and nobody names a time server: it drifts",
        {"@clock_is_held": "no"},
    ),
    "time-servers-silent": Fault(
        "time-service",
        "unknown",
        "time servers are named, and no time service holds the clock",
        {"@clock_is_held": "no", "run/chrony-dhcp/netboot.sources": "# DHCP\nserver 192.0.2.7 iburst"},
    ),
    "gpu-gone": Fault(
        "gpu-count",
        "fail",
        "8 GPUs expected, only 7 on the PCI bus",
        {f"{PCI}/0000:13:00.0/{name}": None for name in ("vendor", "device", "class")},
    ),
    "gpu-no-driver": Fault(
        "gpu-uuid",
        "unknown",
        "the NVIDIA driver is not loaded",
        tools={UUID: lambda _: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"},
    ),
    "gpu-not-driven": Fault("gpu-uuid", "fail", "8 GPUs on the PCI bus, the driver has 7", tools={UUID: first(7)}),
    "gpu-twins": Fault("gpu-uuid", "fail", "GPUs without a UUID of their own", tools={UUID: row(1, "0002,", "0001,")}),
    "gpu-model": Fault(
        "gpu-uuid", "fail", "model H100 expected, there is NVIDIA A100 80GB HBM3", tools={UUID: row(0, "H100", "A100")}
    ),
    "gpu-uuid-reset": Fault(
        "gpu-uuid",
        "fail",
        "GPU 3 says GPU requires reset",
        tools={UUID: row(3, "NVIDIA H100 80GB HBM3", "[GPU requires reset]")},
    ),
    "gpu-lost": Fault(
        "gpu-uuid",
        "fail",
        "the driver has lost GPU0000:13:00.0",
        tools={UUID: lambda _: "Unable to determine the device handle for GPU0000:13:00.0: Unknown Error\n"},
    ),
    "gpu-reset-required": Fault(
        "gpu-recovery", "fail", "GPU 3 must be reset", tools={SMI: of_gpu(3, "Reset Required", "Yes")}
    ),
    "gpu-reset-recommended": Fault(
        "gpu-recovery",
        "warn",
        "GPU 3 should be drained and reset",
        tools={SMI: of_gpu(3, "Drain and Reset Recommended", "Yes")},
    ),
    "gpu-action": Fault(
        "gpu-recovery",
        "fail",
        "GPU 0 asks for Reboot",
        tools={
            SMI: lambda text: text.replace(
                "Product Brand                         : NVIDIA", "GPU Recovery Action                   : Reboot", 1
            )
        },
    ),
    "gpu-status-unread": Fault(
        "gpu-recovery", "fail", "GPU 7 says Unknown Error", tools={SMI: of_gpu(7, "Reset Required", "Unknown Error")}
    ),
    "ecc-uncorrected": Fault(
        "gpu-ecc",
        "fail",
        "GPU 4 has 7 memory errors that ECC could not correct",
        tools={ECC: row(4, "Enabled, 0", "Enabled, 7")},
    ),
    "ecc-off": Fault("gpu-ecc", "warn", "ECC is off on GPU 4", tools={ECC: row(4, "Enabled", "Disabled")}),
    "ecc-requires-reset": Fault(
        "gpu-ecc",
        "fail",
        "GPU 4 says GPU requires reset",
        tools={ECC: row(4, "Enabled, 0, 0", "Enabled, [GPU requires reset], [GPU requires reset]")},
    ),
    "ecc-unknown-error": Fault(
        "gpu-ecc",
        "fail",
        "GPU 4 says Unknown Error",
        tools={ECC: row(4, "Enabled, 0, 0", "[Unknown Error], [Unknown Error], [Unknown Error]")},
    ),
    "ecc-err": Fault("gpu-ecc", "fail", "GPU 4 says ERR!", tools={ECC: row(4, "Enabled, 0", "Enabled, ERR!")}),
    "ecc-denied": Fault(
        "gpu-ecc",
        "unknown",
        "GPU 4 says Insufficient Permissions",
        tools={ECC: row(4, "Enabled, 0", "Enabled, [Insufficient Permissions]")},
    ),
    "ecc-not-counted": Fault(
        "gpu-ecc", "unknown", "GPU 4 does not count memory errors", tools={ECC: row(4, "Enabled, 0", "Enabled, [N/A]")}
    ),
    "ecc-of-seven": Fault("gpu-ecc", "fail", "7 of 8 GPUs answer", tools={ECC: first(7)}),
    "ecc-old-driver": Fault(
        "gpu-ecc",
        "unknown",
        "this nvidia-smi does not know ecc.mode.current",
        tools={ECC: lambda _: 'Field "ecc.mode.current" is not a valid field to query.\n'},
    ),
    "ecc-corrected": Fault(
        "gpu-ecc",
        "warn",
        "GPU 2: 11 corrected memory errors in the last hour, 10 are tolerated",
        tools={ECC: row(2, "Enabled, 0, 3", "Enabled, 0, 14")},
    ),
    "rows-pending": Fault(
        "gpu-ecc", "warn", "rows wait to be remapped on GPU 1", tools={ROWS: row(1, "1, No, No", "1, Yes, No")}
    ),
    "rows-failed": Fault(
        "gpu-ecc", "fail", "rows could not be remapped on GPU 1", tools={ROWS: row(1, "1, No, No", "1, No, Yes")}
    ),
    "rows-unread": Fault(
        "gpu-ecc", "fail", "GPU 1 says Unknown Error", tools={ROWS: row(1, "1, No, No", "1, [Unknown Error], No")}
    ),
    "sram-threshold": Fault(
        "gpu-ecc",
        "fail",
        "GPU 6 has more SRAM errors than NVIDIA tolerates",
        tools={SMI: of_gpu(6, "SRAM Threshold Exceeded", "Yes")},
    ),
    "memory-unrepairable": Fault(
        "gpu-ecc",
        "fail",
        "GPU 6 has memory that cannot be repaired",
        tools={SMI: of_gpu(6, "Unrepairable Memory", "Yes")},
    ),
    "repair-pending": Fault(
        "gpu-ecc",
        "warn",
        "memory waits to be repaired on GPU 6",
        tools={SMI: of_gpu(6, "Channel Repair Pending", "Yes")},
    ),
    "nvlink-inactive": Fault(
        "gpu-nvlink",
        "fail",
        "18 active NVLinks expected on each GPU, 17 on GPU 7 (not 12)",
        tools={LINKS: row(19 * 7 + 13, "26.562 GB/s", "<inactive>")},
    ),
    "nvlink-of-seven": Fault("gpu-nvlink", "fail", "NVLinks of 7 of 8 GPUs are told", tools={LINKS: first(19 * 7)}),
    "nvlink-nothing": Fault(
        "gpu-nvlink", "fail", "18 active NVLinks expected on each GPU, none", tools={LINKS: lambda _: ""}
    ),
    "nvlink-replay": Fault(
        "nvlink-errors",
        "warn",
        "GPU 0 link 0: 1 NVLink replays in the last hour, 0 are tolerated",
        tools={LINK_ERRORS: row(1, "Replay Errors: 0", "Replay Errors: 1")},
    ),
    "nvlink-recovery": Fault(
        "nvlink-errors",
        "warn",
        "GPU 0 link 0: 2 NVLink recoveries in the last hour, 0 are tolerated",
        tools={LINK_ERRORS: row(2, "Recovery Errors: 0", "Recovery Errors: 2")},
    ),
    "nvlink-crc": Fault(
        "nvlink-errors",
        "warn",
        "GPU 0 link 0: 400000 NVLink CRC errors in the last hour, 360000 are tolerated",
        tools={LINK_ERRORS: row(3, "CRC Errors: 0", "CRC Errors: 400000")},
    ),
    "nvlink-counters-of-seven": Fault(
        "nvlink-errors", "fail", "7 of 8 GPUs answer", tools={LINK_ERRORS: first(55 * 7)}
    ),
    "nvlink-counter-unread": Fault(
        "nvlink-errors",
        "fail",
        "GPU 0 link 0 says Unknown Error",
        tools={LINK_ERRORS: row(3, "CRC Errors: 0", "CRC Errors: Unknown Error")},
    ),
    "driver-and-fabric": Fault(
        "gpu-fabric",
        "fail",
        "the driver is 550.90.07 and the fabric manager 535.161.08: they must be the same",
        {"sys/module/nvidia/version": "550.90.07"},
    ),
    "driver-none": Fault(
        "gpu-fabric", "fail", "4 NVSwitches, and no driver is loaded", {"sys/module/nvidia/version": None}
    ),
    "fabric-version-unread": Fault(
        "gpu-fabric",
        "fail",
        "4 NVSwitches, and no version of the fabric manager can be read",
        tools={"nv-fabricmanager": lambda _: "?\n"},
    ),
    "fabric-unit": Fault(
        "gpu-fabric",
        "fail",
        "4 NVSwitches, and nvidia-fabricmanager.service is failed",
        tools={"systemctl is-active nvidia": lambda _: "failed\n"},
    ),
    "fabric-failed": Fault(
        "gpu-fabric",
        "fail",
        "GPUs that are not in the fabric: GPU 1: Completed Failure",
        tools={SMI: section(1, "Fabric", "Status", "Failure")},
    ),
    "fabric-in-progress": Fault(
        "gpu-fabric",
        "unknown",
        "GPUs that are not in the fabric: GPU 1: In Progress",
        tools={SMI: in_progress(1)},
    ),
    "fabric-requires-reset": Fault(
        "gpu-fabric",
        "fail",
        "GPU 1 says GPU requires reset",
        tools={SMI: section(1, "Fabric", "State", "GPU requires reset")},
    ),
    "fabric-without-switches": Fault(
        "gpu-fabric",
        "unknown",
        f"GPUs that are not in the fabric: {', '.join(f'GPU {at}: In Progress' for at in range(8))}",
        NO_SWITCHES,
        {SMI: in_progress(*range(8))},
        expects={"nvswitches": None},
        absent=("nvswitch-sxid",),
    ),
    "fabric-failed-without-switches": Fault(
        "gpu-fabric",
        "fail",
        "GPUs that are not in the fabric: GPU 6: Completed Failure",
        NO_SWITCHES,
        {SMI: section(6, "Fabric", "Status", "Failure")},
        expects={"nvswitches": None},
        absent=("nvswitch-sxid",),
    ),
    "switch-gone": Fault(
        "gpu-fabric",
        "fail",
        "4 NVSwitches expected, 3 on the PCI bus",
        {f"{PCI}/0000:22:00.0/{name}": None for name in ("vendor", "device", "class")},
    ),
    "xid-79": Fault(
        "gpu-xid",
        "fail",
        "Xid 79 at PCI:0000:13:00: GPU has fallen off the bus.",
        log=xid(79, "GPU has fallen off the bus."),
    ),
    "xid-48": Fault(
        "gpu-xid",
        "fail",
        "Xid 48 at PCI:0000:13:00: pid=2012, name=<program>, An uncorrectable double bit error (DBE) has been detected",
        log=xid(48, "pid=2012, name=<program>, An uncorrectable double bit error (DBE) has been detected"),
    ),
    "xid-74": Fault(
        "gpu-xid",
        "fail",
        "Xid 74 at PCI:0000:13:00: pid='<unknown>', name=<program>, NVLink: fatal error detected on link 2",
        log=xid(74, "pid='<unknown>', name=<program>, NVLink: fatal error detected on link 2"),
    ),
    "xid-95": Fault(
        "gpu-xid",
        "fail",
        "Xid 95 at PCI:0000:13:00: pid=2012, Uncontained: FBHUB. RST: Yes, D-RST: No",
        log=xid(95, "pid=2012, Uncontained: FBHUB. RST: Yes, D-RST: No"),
    ),
    "xid-119": Fault(
        "gpu-xid",
        "fail",
        "Xid 119 at PCI:0000:13:00: Timeout after 6s of waiting for RPC response from GPU3 GSP!",
        log=xid(119, "Timeout after 6s of waiting for RPC response from GPU3 GSP!"),
    ),
    "xid-154-reboot": Fault(
        "gpu-xid",
        "fail",
        "Xid 154 at PCI:0000:13:00: GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
        log=xid(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
    ),
    "xid-154-reset": Fault(
        "gpu-xid",
        "fail",
        "Xid 154 at PCI:0000:13:00: GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
        log=xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"),
    ),
    "xid-154-drain": Fault(
        "gpu-xid",
        "fail",
        "Xid 154 at PCI:0000:13:00: GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)",
        log=xid(154, "GPU recovery action changed from 0x0 (None) to 0x3 (Drain P2P)"),
    ),
    "xid-149-fatal": Fault(
        "gpu-xid",
        "fail",
        "Xid 149 at PCI:0000:13:00: NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x000004f0 0x00000000)",
        log=xid(149, "NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x000004f0 0x00000000)"),
    ),
    "xid-149": Fault(
        "gpu-xid",
        "warn",
        "Xid 149 at PCI:0000:13:00: NETIR_LINK_EVT Nonfatal XC0 i0 Link 07 (0x000004f0 0x00000000)",
        log=xid(149, "NETIR_LINK_EVT Nonfatal XC0 i0 Link 07 (0x000004f0 0x00000000)"),
    ),
    "xid-nobody-knows": Fault(
        "gpu-xid", "warn", "Xid 999 at PCI:0000:13:00: something new", log=xid(999, "something new")
    ),
    "xid-lost-early": Fault(
        "gpu-xid",
        "fail",
        "Xid 79 at unknown: fallen off the bus and is not responding to commands",
        log=("4,1307,9400000,-;NVRM: fallen off the bus and is not responding to commands.",),
    ),
    "sxid-fatal": Fault(
        "nvswitch-sxid",
        "fail",
        "SXid 24007 of nvidia-nvswitch2: Fatal, Link 30 sourcetrack timeout error",
        log=("4,1310,1,-;nvidia-nvswitch2: SXid (PCI:0000:22:00.0): 24007, Fatal, Link 30 sourcetrack timeout error",),
    ),
    "sxid-other": Fault(
        "nvswitch-sxid",
        "warn",
        "SXid 20009 of nvidia-nvswitch2: Non-fatal, Link 28 RX Short Error Rate",
        log=("4,1310,1,-;nvidia-nvswitch2: SXid (PCI:0000:22:00.0): 20009, Non-fatal, Link 28 RX Short Error Rate",),
    ),
    "gpu-hot-brake": Fault(
        "gpu-throttle",
        "fail",
        "GPU 2 is slowed down: HW Thermal Slowdown",
        tools={SMI: of_gpu(2, "HW Thermal Slowdown", "Active")},
    ),
    "gpu-power-brake": Fault(
        "gpu-throttle",
        "fail",
        "GPU 2 is slowed down: HW Power Brake Slowdown",
        tools={SMI: of_gpu(2, "HW Power Brake Slowdown", "Active")},
    ),
    "gpu-driver-brake": Fault(
        "gpu-throttle",
        "warn",
        "GPU 2 is slowed down: SW Thermal Slowdown",
        tools={SMI: of_gpu(2, "SW Thermal Slowdown", "Active")},
    ),
    "gpu-brake-unread": Fault(
        "gpu-throttle", "fail", "GPU 2 says Unknown Error", tools={SMI: of_gpu(2, "HW Slowdown", "Unknown Error")}
    ),
    "gpu-too-hot": Fault(
        "gpu-temperature",
        "fail",
        "GPU 2 has 35 C, 3 above its highest working temperature",
        tools={SMI: of_gpu(2, "GPU T.Limit Temp", "-3 C")},
    ),
    "gpu-at-its-limit": Fault(
        "gpu-temperature", "warn", "GPU 2 has 35 C, 0 from its limit", tools={SMI: of_gpu(2, "GPU T.Limit Temp", "0 C")}
    ),
    "gpu-memory-hot": Fault(
        "gpu-temperature",
        "fail",
        "GPU 2's memory has 97 C, more than 95",
        tools={SMI: of_gpu(2, "Memory Current Temp", "97 C")},
    ),
    "gpu-temperature-unread": Fault(
        "gpu-temperature",
        "fail",
        "GPU 2 says Unknown Error",
        tools={SMI: of_gpu(2, "GPU Current Temp", "Unknown Error")},
    ),
    "gpu-temperature-none": Fault(
        "gpu-temperature", "unknown", "GPU 2 tells no temperature", tools={SMI: of_gpu(2, "GPU Current Temp", "N/A")}
    ),
    "gpu-narrow": Fault(
        "pcie-width",
        "fail",
        "PCIe links are narrower than they should be: 0000:13:00.0 has x8 of x16",
        {f"{PCI}/0000:13:00.0/current_link_width": "8"},
    ),
    "card-narrow": Fault(
        "pcie-width",
        "fail",
        "PCIe links are narrower than they should be: 0000:31:00.0 has x4 of x16",
        {f"{PCI}/0000:31:00.0/current_link_width": "4"},
    ),
    "gpu-slow-slot": Fault(
        "pcie-speed",
        "fail",
        "GPU 5 reaches PCIe generation 4 of 5",
        tools={SMI: section(5, "PCIe Generation", "Max", "4")},
    ),
    "card-slow": Fault(
        "pcie-speed",
        "fail",
        "0000:31:00.0 has 16 of 32 GT/s",
        {f"{PCI}/0000:31:00.0/current_link_speed": "16.0 GT/s PCIe"},
    ),
    "disk-slow": Fault(
        "pcie-speed",
        "fail",
        "0000:51:00.0 has 2.5 of 16 GT/s",
        {f"{PCI}/0000:51:00.0/current_link_speed": "2.5 GT/s PCIe"},
    ),
    "card-speed-unknown": Fault(
        "pcie-speed",
        "unknown",
        "0000:31:00.0 does not tell the speed of its link",
        {f"{PCI}/0000:31:00.0/current_link_speed": "Unknown"},
    ),
    "pcie-correctable": Fault(
        "pcie-errors",
        "warn",
        "0000:31:00.0: 922 corrected PCIe errors in the last hour, 100 are tolerated",
        {f"{PCI}/0000:31:00.0/aer_dev_correctable": aer("TOTAL_ERR_COR", 922)},
    ),
    "pcie-nonfatal": Fault(
        "pcie-errors",
        "fail",
        "0000:13:00.0: 1 uncorrected PCIe errors in the last hour, 0 are tolerated",
        {f"{PCI}/0000:13:00.0/aer_dev_nonfatal": aer("TOTAL_ERR_NONFATAL", 1)},
    ),
    "pcie-fatal": Fault(
        "pcie-errors",
        "fail",
        "0000:22:00.0: 1 fatal PCIe errors in the last hour, 0 are tolerated",
        {f"{PCI}/0000:22:00.0/aer_dev_fatal": aer("TOTAL_ERR_FATAL", 1)},
    ),
    "pcie-replays": Fault(
        "pcie-errors",
        "warn",
        "GPU 1: 481 PCIe replays in the last hour, 480 are tolerated",
        tools={SMI: of_gpu(1, "Replays Since Reset", "481")},
    ),
    "ib-down": Fault(
        "ib-ports",
        "fail",
        "8 InfiniBand ports expected, 7 in order: mlx5_3/1 is DOWN (Polling)",
        {f"{IB}/mlx5_3/ports/1/state": "1: DOWN", f"{IB}/mlx5_3/ports/1/phys_state": "2: Polling"},
    ),
    "ib-init": Fault(
        "ib-ports",
        "fail",
        "8 InfiniBand ports expected, 7 in order: mlx5_3/1 is INIT (LinkUp)",
        {f"{IB}/mlx5_3/ports/1/state": "2: INIT", f"{IB}/mlx5_3/ports/1/lid": "0x0"},
    ),
    "ib-no-lid": Fault(
        "ib-ports",
        "fail",
        "8 InfiniBand ports expected, 7 in order: mlx5_3/1 has no LID",
        {f"{IB}/mlx5_3/ports/1/lid": "0x0"},
    ),
    "ib-slow": Fault(
        "ib-ports",
        "fail",
        "8 InfiniBand ports expected, 7 in order: mlx5_3/1 has 200 of 400 Gb/s",
        {f"{IB}/mlx5_3/ports/1/rate": "200 Gb/sec (2X NDR)"},
    ),
    "ib-symbols": Fault(
        "ib-errors",
        "warn",
        "mlx5_5/1: 99999 symbol errors in the last hour, 10 are tolerated",
        {f"{COUNTERS}/symbol_error": "99999"},
    ),
    "ib-flapped": Fault(
        "ib-errors",
        "fail",
        "mlx5_5/1: 250 times down in the last hour, 0 are tolerated",
        {f"{COUNTERS}/link_downed": "251"},
    ),
    "ib-recovered": Fault(
        "ib-errors",
        "warn",
        "mlx5_5/1: 11 link error recoveries in the last hour, 10 are tolerated",
        {f"{COUNTERS}/link_error_recovery": "11"},
    ),
    "ib-received": Fault(
        "ib-errors",
        "warn",
        "mlx5_5/1: 12 receive errors in the last hour, 10 are tolerated",
        {f"{COUNTERS}/port_rcv_errors": "12"},
    ),
    "ib-integrity": Fault(
        "ib-errors",
        "warn",
        "mlx5_5/1: 13 local link integrity errors in the last hour, 10 are tolerated",
        {f"{COUNTERS}/local_link_integrity_errors": "13"},
    ),
    "ib-overrun": Fault(
        "ib-errors",
        "warn",
        "mlx5_5/1: 14 excessive buffer overruns in the last hour, 10 are tolerated",
        {f"{COUNTERS}/excessive_buffer_overrun_errors": "14"},
    ),
    "ib-unread": Fault("ib-errors", "unknown", "mlx5_5/1 does not tell its errors", {f"{COUNTERS}/symbol_error": None}),
    "roce-no-gid": Fault(
        "roce-gids",
        "fail",
        "2 RoCE ports expected, 1 in order: mlx5_9/1 has no RoCE v2 GID with an address",
        {f"{IB}/mlx5_9/ports/1/gid_attrs/types/3": None},
    ),
    "roce-down-beside-its-virtual-functions": Fault(
        "roce-gids",
        "fail",
        "2 RoCE ports expected, 1 in order: mlx5_8/1 is DOWN (Disabled)",
        {f"{IB}/mlx5_8/ports/1/state": "1: DOWN", f"{IB}/mlx5_8/ports/1/phys_state": "3: Disabled"},
    ),
    "port-down": Fault("ports", "fail", "enp64s0f1np1 is down", {f"{NET}/enp64s0f1np1/operstate": "down"}),
    "port-gone": Fault("ports", "fail", "enp64s0f1np1 is not there", {f"{NET}/enp64s0f1np1/operstate": None}),
    "cable-unsupported": Fault(
        "cables",
        "fail",
        "0000:31:00.0 module 0: Cable error, Unsupported cable",
        log=(
            (
                f"3,900,1,-;mlx5_core 0000:31:00.0: {EVENT} Port module event[error]: "
                "module 0, Cable error, Unsupported cable"
            ),
        ),
    ),
    "cable-hot": Fault(
        "cables",
        "fail",
        "0000:5c:00.0 module 1: Cable error, High Temperature",
        log=(
            (
                f"3,900,1,-;mlx5_core 0000:5c:00.0: {EVENT} Port module event[error]: "
                "module 1, Cable error, High Temperature"
            ),
        ),
    ),
    "slot-power": Fault(
        "cables",
        "warn",
        "0000:12:00.0 power: Detected insufficient power on the PCIe slot (27W).",
        log=(f"4,901,1,-;mlx5_core 0000:12:00.0: {POWER} Detected insufficient power on the PCIe slot (27W).",),
    ),
    "firmware-differs": Fault(
        "nic-firmware",
        "warn",
        "cards of board MT_0000000838 have different firmware: 28.36.1010, 28.39.2048",
        {f"{IB}/mlx5_2/fw_ver": "28.36.1010"},
    ),
    "memlock-small": Fault(
        "memlock",
        "fail",
        "containers may lock 8388608 bytes of memory: RDMA in them fails or falls back to TCP",
        {"proc/1187/limits": "Max locked memory         8388608              8388608              bytes"},
    ),
    "memlock-unread": Fault("memlock", "unknown", "/proc/1187/limits cannot be read", {"proc/1187/limits": None}),
    "bmc-memory": Fault(
        "bmc-log",
        "fail",
        "Memory #0x53 Uncorrectable ECC",
        tools={SEL: lambda text: text + "   4 | 11/21/2026 | 03:12:44 | Memory #0x53 | Uncorrectable ECC | Asserted\n"},
    ),
    "bmc-power": Fault(
        "bmc-log",
        "fail",
        "Power Supply #0xc8 Failure detected",
        tools={
            SEL: lambda text: text + "   4 | 11/21/2026 | 03:12:44 | Power Supply #0xc8 | Failure detected | Asserted\n"
        },
    ),
}
