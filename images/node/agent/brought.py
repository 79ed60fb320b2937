"""Labels that say what the image brings: the Node registers with those of /usr/lib/netboot/labels/*.json.

A file has `labels`, and `device`, if they are for machines that have one: a PCI device whose `vendor` is that and whose
`class` begins with that, as /sys writes them (Linux, Documentation/ABI/testing/sysfs-bus-pci).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from .answers import LABEL, WORD
from .files import small

FOLDER = "usr/lib/netboot/labels"
DEVICES = "sys/bus/pci/devices"
_KEPT = re.compile(r"([^/]*\.)?(kubernetes\.io|k8s\.io|netboot\.dev)/.*")
"""What a kubelet may not write, or only in part; and what is the service's to give."""


def brought(root: Path) -> dict[str, str]:
    """Those of this machine, below `root`; what is not a file of labels brings none."""
    found: dict[str, str] = {}
    for path in sorted((root / FOLDER).glob("*.json")):
        try:
            said = json.loads(small(path, 65536) or b"")
            if _is_here(root, said.get("device")):
                found |= dict(_sound(said["labels"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    return found


def _is_here(root: Path, device: dict[str, str] | None) -> bool:
    if device is None:
        return True
    return any(
        _read(folder / "vendor") == device["vendor"] and _read(folder / "class").startswith(device["class"])
        for folder in (root / DEVICES).glob("*")
    )


def _read(path: Path) -> str:
    return (small(path, 64) or b"").decode("ascii", "replace").strip()


def _sound(labels: dict[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in labels.items():
        if re.fullmatch(LABEL, key) and not _KEPT.fullmatch(key) and re.fullmatch(WORD, value):
            yield key, value
