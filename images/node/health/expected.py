"""What the machine's class should have: the inventory's `health`, as the service hands it out."""

from dataclasses import dataclass, field
from typing import Any, Literal

Source = Literal["service", "kept", "nobody"]
"""Who said it: the service now, the service earlier in this boot, nobody could be asked."""
WHOLE = ("gpus", "nvlinks", "nvswitches", "ib_ports", "roce_ports", "nvme", "cpus", "pcie_width", "clock_ms")
NUMBERS = ("ib_rate_gbps", "memory_gib")


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
    not_understood: tuple[str, ...] = ()
    """Keys that this image is too old to know, or values that are not of their form."""

    @property
    def keys(self) -> list[str]:
        """The keys of which the class says something."""
        names = (*WHOLE, *NUMBERS, "gpu_model", "nic_firmware")
        return sorted(name for name in names if getattr(self, name) not in (None, {}))


def read_expected(value: Any, source: Source) -> Expected:
    """The expectations in a JSON object; what cannot be understood is named in `not_understood`. Never raises."""
    if not isinstance(value, dict):
        return Expected(source=source, not_understood=("(not an object)",))
    known: dict[str, Any] = {}
    strange: list[str] = []
    for name, expectation in value.items():
        if expectation is None or expectation == {}:
            continue
        if _fits(name, expectation):
            known[name] = expectation
        else:
            strange.append(str(name)[:40])
    return Expected(source=source, **known, not_understood=tuple(sorted(strange)))


def _fits(name: object, value: Any) -> bool:
    if name in WHOLE:
        return type(value) is int and 0 <= value < 2**31
    if name in NUMBERS:
        return type(value) in (int, float) and 0 <= value < 2**31
    if name == "gpu_model":
        return isinstance(value, str) and 0 < len(value) <= 64
    if name == "nic_firmware":
        return isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)
    return False
