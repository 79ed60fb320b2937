"""RDMA devices and their ports. Source: Linux Documentation/ABI/stable/sysfs-class-infiniband."""

import re
from dataclasses import dataclass

from .machine import Machine

HOME = "sys/class/infiniband"


@dataclass(frozen=True, slots=True)
class Port:
    """One port; words as the kernel has them, without their numbers: `ACTIVE`, `LinkUp`."""

    device: str
    number: str
    layer: str
    """`InfiniBand` or `Ethernet` (RoCE)."""
    state: str
    physical: str
    rate_gbps: float
    lid: int
    sm_lid: int
    is_virtual: bool
    """Of a virtual function (SR-IOV): it says nothing of the cable, and stays up while its own port is down."""

    @property
    def name(self) -> str:
        """Device and port as tools write them: `mlx5_0/1`."""
        return f"{self.device}/{self.number}"

    @property
    def up(self) -> bool:
        """Both the link and what is above it."""
        return self.state == "ACTIVE" and self.physical == "LinkUp"


def word(text: str | None) -> str:
    """`4: ACTIVE` → `ACTIVE`."""
    return (text or "").rpartition(":")[2].strip() or "unreadable"


def rate(text: str | None) -> float:
    """`400 Gb/sec (4X NDR)` → 400.0; 0.0: unreadable."""
    match = re.match(r"(\d{1,6}(?:\.\d{1,3})?) Gb/sec", text or "", re.ASCII)
    return float(match[1]) if match else 0.0


def ports(machine: Machine, layer: str = "") -> list[Port]:
    """All ports, or those of one link layer, virtual ones too."""
    all_ports = []
    for device in machine.names(HOME):
        virtual = bool(machine.names(f"{HOME}/{device}/device/physfn"))
        for number in machine.names(f"{HOME}/{device}/ports"):
            at = f"{HOME}/{device}/ports/{number}"
            all_ports.append(
                Port(
                    device,
                    number,
                    machine.text(f"{at}/link_layer") or "unreadable",
                    word(machine.text(f"{at}/state")),
                    word(machine.text(f"{at}/phys_state")),
                    rate(machine.text(f"{at}/rate")),
                    machine.whole(f"{at}/lid") or 0,
                    machine.whole(f"{at}/sm_lid") or 0,
                    virtual,
                )
            )
    return [port for port in all_ports if layer in ("", port.layer)]


def physical(machine: Machine, layer: str = "") -> list[Port]:
    """Those with a cable of their own."""
    return [port for port in ports(machine, layer) if not port.is_virtual]
