"""What the machine's class should have: the inventory's `health`, as the service hands it out."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ..agent.files import small
from ..agent.settings import RUN
from .hardware import Hardware, read_hardware
from .thresholds import THRESHOLDS, understood

Source = Literal["service", "kept", "nobody"]
"""Who said it: the service now, the service earlier in this boot, nobody could be asked."""
WHOLE = (
    *("gpus", "nvlinks", "nvswitches", "ib_ports", "roce_ports", "nvme", "cpus", "pcie_width", "clock_ms"),
    *("hugepages_2m", "hugepages_1g"),
)
NUMBERS = ("ib_rate_gbps", "memory_gib", "pcie_gts")
MAPS = ("nic_firmware", "thresholds")
CLASS = RUN / "class.json"
"""The hardware of the machine's class, as the inventory declares it. Not there without a class."""


@dataclass(frozen=True, slots=True)
class Expected:
    """None and empty: the class says nothing of it, and it is not judged."""

    source: Source = "nobody"
    gpus: int | None = None
    gpu_model: str | None = None
    """Part of the product's name, like `H100`."""
    nvlinks: int | None = None
    """Of each GPU."""
    nvswitches: int | None = None
    ib_ports: int | None = None
    ib_rate_gbps: float | None = None
    roce_ports: int | None = None
    nic_firmware: dict[str, str] = field(default_factory=dict)
    """Board (PSID) → version."""
    nvme: int | None = None
    memory_gib: float | None = None
    cpus: int | None = None
    pcie_width: int | None = None
    clock_ms: int | None = None
    hugepages_2m: int | None = None
    hugepages_1g: int | None = None
    pcie_gts: float | None = None
    """GT/s of the links of network cards and disks."""
    ports: tuple[str, ...] = ()
    """Ports that must be up: `mlx5_0/1` of an RDMA card, or an interface, `enp1s0np0`."""
    thresholds: dict[str, float] = field(default_factory=dict)
    """Of its profile, or its own; before those of its class and of thresholds.py."""
    hardware: Hardware = field(default_factory=Hardware)
    """Of the class."""
    not_understood: tuple[str, ...] = ()
    """Keys that this image is too old to know, or values that are not of their form."""

    @property
    def keys(self) -> list[str]:
        """The keys of which the class says something."""
        names = (*WHOLE, *NUMBERS, *MAPS, "gpu_model", "ports")
        return sorted({*(name for name in names if getattr(self, name) not in (None, {}, ())), *self.hardware.keys})

    def threshold(self, name: str) -> float:
        """What its profile or it itself says, else its class, else the one that is shipped."""
        known: tuple[dict[str, float], ...] = (self.thresholds, self.hardware.thresholds)
        return next((limits[name] for limits in known if name in limits), THRESHOLDS[name].value)


def read_expected(value: Any, source: Source) -> Expected:
    """The expectations in a JSON object; what cannot be understood is named in `not_understood`. Never raises."""
    if not isinstance(value, dict):
        return Expected(source=source, not_understood=("(not an object)",))
    known: dict[str, Any] = {}
    strange: list[str] = []
    for name, expectation in value.items():
        if expectation in (None, {}, []):
            continue
        if name == "thresholds" and isinstance(expectation, dict):
            known[name] = understood(expectation)
            strange += [f"thresholds.{key}"[:40] for key in expectation if key not in known[name]]
        elif _fits(name, expectation):
            known[name] = tuple(expectation) if name == "ports" else expectation
        else:
            strange.append(str(name)[:40])
    return Expected(source=source, **known, not_understood=tuple(sorted(strange)))


def _fits(name: object, value: Any) -> bool:
    if name in WHOLE:
        return type(value) is int and 0 <= value < 2**31
    if name in NUMBERS:
        return _fits_number(value)
    if name == "ports":
        return isinstance(value, list) and all(isinstance(port, str) and 0 < len(port) <= 64 for port in value)
    if name == "gpu_model":
        return isinstance(value, str) and 0 < len(value) <= 64
    if name == "nic_firmware":
        return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)
    return False


def _fits_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 2**31


def with_class(expected: Expected, root: Path) -> Expected:
    """With what the machine's class says; of GPUs and memory where `health` says nothing. Without
    /run/netboot/class.json as before. What of it is not of its form is left out, and named in `not_understood`. Never
    raises."""
    data = small(root / CLASS, 64 * 1024)
    if data is None:
        return expected
    try:
        told = json.loads(data)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        return replace(expected, not_understood=(*expected.not_understood, "class.json"))
    gpus, size = told.get("gpus"), told.get("memory_bytes")
    gpus = gpus if isinstance(gpus, dict) else {}
    new = {"gpus": gpus.get("count"), "gpu_model": gpus.get("model"), "memory_gib": None}
    if type(size) is int and size > 0:
        new["memory_gib"] = size / 2**30
    usable: dict[str, Any] = {
        name: value for name, value in new.items() if getattr(expected, name) is None and _fits(name, value)
    }
    hardware, strange = read_hardware(told)
    return replace(
        expected, **usable, hardware=hardware, not_understood=tuple(sorted((*expected.not_understood, *strange)))
    )
