"""Devices on the PCI bus, from sysfs.

Source: Linux Documentation/ABI/testing/sysfs-bus-pci (`vendor`, `class`, `current_link_width`, `max_link_width`,
`current_link_speed`, `physfn`); classes: PCI Code and ID Assignment Specification (03: display, 02: network, 0680:
other bridge, 0108: NVM).
"""

import re
from dataclasses import dataclass

from .machine import Machine

NVIDIA, MELLANOX = 0x10DE, 0x15B3
_DEVICES = "sys/bus/pci/devices"


@dataclass(frozen=True, slots=True)
class Device:
    """One function of a device. Widths are lanes; None: the device does not say (0 there too: no link)."""

    address: str
    vendor: int
    device: int
    kind: int
    """Its class: 24 bits."""
    width: int | None
    max_width: int | None
    speed: float | None = None
    max_speed: float | None = None
    """GT/s of each lane."""
    is_virtual: bool = False
    """A virtual function: it has no link of its own."""

    @property
    def is_gpu(self) -> bool:
        """An NVIDIA display or 3D controller."""
        return self.vendor == NVIDIA and self.kind >> 16 == 0x03

    @property
    def is_nvswitch(self) -> bool:
        """An NVIDIA bridge: what NVSwitches are on the bus."""
        return self.vendor == NVIDIA and self.kind >> 8 == 0x0680

    @property
    def is_nic(self) -> bool:
        """An NVIDIA/Mellanox network card or InfiniBand controller."""
        return self.vendor == MELLANOX and self.kind >> 16 == 0x02

    @property
    def is_disk(self) -> bool:
        """An NVMe controller."""
        return self.kind >> 8 == 0x0108


def speed(text: str | None) -> float | None:
    """`16.0 GT/s PCIe` -> 16.0; None: unknown, or no link. Never raises."""
    match = re.match(r"(\d{1,3}(?:\.\d{1,3})?) GT/s", text or "", re.ASCII)
    return float(match[1]) if match and float(match[1]) else None


def devices(machine: Machine) -> list[Device]:
    """All of them, by address. What cannot be read is no device."""
    on_bus = []
    for address in machine.names(_DEVICES):
        at = f"{_DEVICES}/{address}"
        vendor, device, kind = (machine.whole(f"{at}/{name}") for name in ("vendor", "device", "class"))
        if vendor is None or kind is None:
            continue
        widths = [machine.whole(f"{at}/{name}_link_width") for name in ("current", "max")]
        # 0 and 255 are what a link says that is none (drivers/pci/pci.h, PCI_EXP_LNKSTA_NLW of a dead device)
        width, most = (lanes if lanes and 0 < lanes <= 32 else None for lanes in widths)
        now, best = (speed(machine.text(f"{at}/{name}_link_speed")) for name in ("current", "max"))
        virtual = bool(machine.names(f"{at}/physfn"))
        on_bus.append(Device(address, vendor, device or 0, kind, width, most, now, best, virtual))
    return on_bus


def gpus(machine: Machine) -> list[Device]:
    """NVIDIA GPUs on the bus."""
    return [device for device in devices(machine) if device.is_gpu]
