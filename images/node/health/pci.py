"""Devices on the PCI bus, from sysfs.

Source: Linux Documentation/ABI/testing/sysfs-bus-pci (`vendor`, `class`, `current_link_width`, `max_link_width`);
classes: PCI Code and ID Assignment Specification (03: display, 02: network, 0680: other bridge).
"""

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
        on_bus.append(Device(address, vendor, device or 0, kind, width, most))
    return on_bus


def gpus(machine: Machine) -> list[Device]:
    """NVIDIA GPUs on the bus."""
    return [device for device in devices(machine) if device.is_gpu]
