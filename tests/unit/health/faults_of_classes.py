"""One bad thing each that only the machine's class tells, to be laid over the machine `hgx-h100`."""

from tests.unit.health.faults import IB, NET, PCI, Fault

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
}
