"""What the class of a machine declares, in one line: for `machine show` and `explain`."""

from collections.abc import Iterator, Mapping
from typing import Any

GIB, GB = 2**30, 10**9


def facts(machine: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The class of a machine and its hardware; nothing where it names none."""
    hardware = machine.get("hardware")
    if hardware is None:
        return
    parts = [hardware["architecture"]]
    if "memory_bytes" in hardware:
        parts.append(f"{hardware['memory_bytes'] / GIB:g} GiB")
    if "gpus" in hardware:
        parts.append(_counted(hardware["gpus"], "GPU"))
    parts += [f"{_counted(nic, 'NIC')} at {nic['speed_mbps'] / 1000:g} Gbit/s" for nic in hardware.get("nics", ())]
    for disk in hardware.get("disks", ()):
        size = f" of {disk['size_bytes'] / GB:g} GB" if "size_bytes" in disk else ""
        parts.append(f"{_counted(disk, 'disk')}{size}")
    parts += [f"firmware {what} from {least} on" for what, least in sorted(hardware.get("firmware", {}).items())]
    yield "class", f"{hardware['name']} ({', '.join(parts)})"


def _counted(item: Mapping[str, Any], kind: str) -> str:
    words = " ".join(filter(None, (item.get("name"), kind, item.get("model"))))
    return f"{item['count']} × {words}"
