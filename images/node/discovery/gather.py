"""What this machine is made of, as files below a root say it: processors, memory, cards, disks, GPUs, firmware.

Sources: Linux Documentation/ABI/testing/sysfs-class-net (`speed` is -1, or cannot be read, without a link),
sysfs-firmware-dmi and stable/sysfs-block (`size` in sectors of 512 bytes); proc(5) for `cpuinfo` and `meminfo`.
"""

import os
import re
from typing import Any

from ..agent.net import plain
from ..health.machine import Machine
from ..health.pci import devices

MOST = 64
"""Of any kind of part: what the service takes."""
_NET, _BLOCK, _BY_PATH = "sys/class/net", "sys/block", "dev/disk/by-path"
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_DISPLAY = 0x03
_FIRMWARE = {
    "vendor": "sys_vendor",
    "product": "product_name",
    "serial": "product_serial",
    "uuid": "product_uuid",
    "bios": "bios_version",
}


def gathered(machine: Machine) -> dict[str, Any]:
    """All but the TPM and the neighbours. What cannot be read is "", 0 or not there. Never raises."""
    firmware = {name: _words(machine, f"sys/class/dmi/id/{file}") for name, file in _FIRMWARE.items()}
    return {
        "cpu": _cpu(machine),
        "memory_bytes": _memory(machine),
        "cards": [_card(machine, name) for name in machine.names(_NET) if _is_card(machine, name)][:MOST],
        "disks": [_disk(machine, name) for name in machine.names(_BLOCK) if _is_disk(machine, name)][:MOST],
        "gpus": [
            {"pci": device.address, "id": f"{device.vendor:04x}:{device.device:04x}"}
            for device in devices(machine)
            if device.kind >> 16 == _DISPLAY and not device.is_virtual
        ][:MOST],
        "firmware": firmware,
    }


def _words(machine: Machine, path: str) -> str:
    return plain(machine.text(path) or "")[:128].strip()


def _cpu(machine: Machine) -> dict[str, Any]:
    text = machine.text("proc/cpuinfo") or ""
    model = re.search(r"(?m)^model name\s*: (.*)$", text)
    count = len(re.findall(r"(?m)^processor\s*:", text))
    return {"model": plain(model[1])[:128].strip() if model else "", "count": count}


def _memory(machine: Machine) -> int:
    total = re.search(r"(?m)^MemTotal:\s*(\d{1,15}) kB", machine.text("proc/meminfo") or "")
    return int(total[1]) * 1024 if total else 0


def _is_card(machine: Machine, name: str) -> bool:
    """Whether it is a device's, and Ethernet's or InfiniBand's (ARPHRD_ETHER, ARPHRD_INFINIBAND)."""
    at = f"{_NET}/{name}"
    return (machine.root / at / "device").exists() and machine.whole(f"{at}/type") in (1, 32)


def _card(machine: Machine, name: str) -> dict[str, Any]:
    at = f"{_NET}/{name}"
    speed = machine.whole(f"{at}/speed") or 0
    return {
        "name": plain(name)[:32],
        "mac": (machine.text(f"{at}/address") or "")[:64],
        "pci": _pci(machine, f"{at}/device"),
        "driver": _last(machine, f"{at}/device/driver"),
        "speed_mbps": min(max(speed, 0), 10**7),
        "link": machine.text(f"{at}/carrier") == "1",
    }


def _is_disk(machine: Machine, name: str) -> bool:
    at = f"{_BLOCK}/{name}"
    return (machine.root / at / "device").exists() and bool(machine.whole(f"{at}/size"))


def _disk(machine: Machine, name: str) -> dict[str, Any]:
    at = f"{_BLOCK}/{name}"
    links = (link for link in machine.names(_BY_PATH) if _last(machine, f"{_BY_PATH}/{link}") == name)
    return {
        "name": plain(name)[:32],
        "model": _words(machine, f"{at}/device/model"),
        "size_bytes": min((machine.whole(f"{at}/size") or 0) * 512, 2**60),
        "path": plain(next(links, ""))[:128],
    }


def _pci(machine: Machine, path: str) -> str:
    """The PCI address nearest to a device, which may be behind it (virtio); "": it is on another bus."""
    parts = os.path.realpath(machine.root / path).split("/")
    return next((part for part in reversed(parts) if _PCI.fullmatch(part)), "")


def _last(machine: Machine, link: str) -> str:
    """The last part of what a link points to; "": there is none."""
    try:
        return plain((machine.root / link).readlink().name)[:32]
    except OSError:
        return ""
