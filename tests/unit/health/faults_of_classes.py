"""One bad thing each that only the machine's class tells, to be laid over the machine `hgx-h100`."""

from tests.unit.health.faults import COUNTERS, IB, LINK_ERRORS, MC, NET, PCI, SMART, SMI, Fault, aer, of_gpu, row, smart

BLOCK, ARCH = "sys/block", "proc/sys/kernel/arch"
BIOS, BMC = "sys/class/dmi/id/bios_version", "sys/bus/platform/devices/ipmi_bmc.0/firmware_revision"

FAULTS = {
    "architecture-other": Fault("cpus", "fail", "the class is amd64, the machine arm64", {ARCH: "aarch64"}),
    "nic-gone": Fault(
        "nics", "fail", "8 ports of ConnectX-7 expected, 7 there", {f"{PCI}/0000:37:00.0/device": "0x101d"}
    ),
    "nic-one-more": Fault(
        "nics",
        "warn",
        "2 ports of 15b3:a2dc expected, 3 there",
        {
            f"{PCI}/0000:41:00.0/{name}": said
            for name, said in (("vendor", "0x15b3"), ("device", "0xa2dc"), ("class", "0x020000"))
        },
    ),
    "roce-slow": Fault(
        "nics",
        "fail",
        "15b3:a2dc: mlx5_9/1 has 100 of 200 Gbit/s",
        {f"{IB}/mlx5_9/ports/1/rate": "100 Gb/sec (4X EDR)"},
    ),
    "ethernet-slow": Fault(
        "nics",
        "fail",
        "15b3:a2dc: enp64s0f1np1 has 25 of 200 Gbit/s",
        {f"{PCI}/0000:40:00.1/infiniband/mlx5_9": None, f"{NET}/enp64s0f1np1/speed": "25000"},
    ),
    "ethernet-silent": Fault(
        "nics",
        "fail",
        "15b3:a2dc: enp64s0f1np1 does not tell its speed",
        {f"{PCI}/0000:40:00.1/infiniband/mlx5_9": None, f"{NET}/enp64s0f1np1/speed": "-1"},
    ),
    "nic-without-driver": Fault(
        "nics",
        "fail",
        "15b3:a2dc: 0000:40:00.1 has no driver",
        {f"{PCI}/0000:40:00.1/infiniband/mlx5_9": None, f"{PCI}/0000:40:00.1/net/enp64s0f1np1": None},
    ),
    "disk-smaller": Fault(
        "disks",
        "fail",
        "4 disks MZQL23T8 of 3840 GB expected, 3 there",
        {f"{BLOCK}/nvme1n1/size": "3750748848"},
    ),
    "disk-other": Fault(
        "disks",
        "fail",
        "4 disks MZQL23T8 of 3840 GB expected, 3 there",
        {f"{BLOCK}/nvme1n1/device/model": "SAMSUNG MZ1L23T8HBLA-00A07"},
    ),
    "bios-old": Fault("firmware", "fail", "bios has 1.5.9, older than 1.6.2", {BIOS: "1.5.9"}),
    "bios-unread": Fault("firmware", "unknown", "the version of bios cannot be read", {BIOS: None}),
    "bios-words": Fault(
        "firmware", "unknown", "bios has U54 (2025), which cannot be compared with 1.6.2", {BIOS: "U54 (2025)"}
    ),
    "bmc-old": Fault("firmware", "fail", "bmc has 1.9, older than 1.70", {BMC: "1.9"}),
    "class-disk-worn": Fault(
        "nvme-smart",
        "warn",
        "nvme2: 85 % of its endurance is used",
        tools={SMART: smart("percent_used", "85")},
        tolerated={"nvme_used_percent": 80},
    ),
    "class-gpu-near-its-limit": Fault(
        "gpu-temperature",
        "warn",
        "GPU 2 has 35 C, 15 from its limit",
        tools={SMI: of_gpu(2, "GPU T.Limit Temp", "15 C")},
        tolerated={"gpu_margin_celsius": 20},
    ),
    "class-pcie-correctable": Fault(
        "pcie-errors",
        "warn",
        "0000:31:00.0: 6 corrected PCIe errors in the last hour, 5 are tolerated",
        {f"{PCI}/0000:31:00.0/aer_dev_correctable": aer("TOTAL_ERR_COR", 6)},
        tolerated={"pcie_correctable": 5},
    ),
    "class-ib-overrun": Fault(
        "ib-errors",
        "warn",
        "mlx5_5/1: 3 excessive buffer overruns in the last hour, 2 are tolerated",
        {f"{COUNTERS}/excessive_buffer_overrun_errors": "3"},
        tolerated={"ib_buffer_overruns": 2},
    ),
    "class-memory-corrected": Fault(
        "memory-errors",
        "warn",
        "CPU_SrcID#1_DIMM#3: 4 corrected memory errors in the last hour, 3 are tolerated",
        {f"{MC}/mc1/dimm3/dimm_ce_count": "4"},
        tolerated={"memory_corrected": 3},
    ),
    "class-nvlink-crc": Fault(
        "nvlink-errors",
        "warn",
        "GPU 0 link 0: 400 NVLink CRC errors in the last hour, 300 are tolerated",
        tools={LINK_ERRORS: row(3, "CRC Errors: 0", "CRC Errors: 400")},
        tolerated={"nvlink_crc": 300},
    ),
}
