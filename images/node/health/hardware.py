"""The hardware of the machine's class, from /run/netboot/class.json: `document` in netboot/machines/classes.py.

In plain units: bytes, Mbit/s. What the class does not say is not there, and is not judged.
"""

from dataclasses import dataclass, field
from typing import Any

from .floors import FLOORS
from .names import ALWAYS, CHECKS
from .thresholds import understood


@dataclass(frozen=True, slots=True)
class Nics:
    """Ports of network cards of one model, each of this speed."""

    model: str
    count: int
    speed_mbps: int


@dataclass(frozen=True, slots=True)
class Disks:
    """Disks of one kind; None and "": of any size, of any model."""

    count: int
    size_bytes: int | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Hardware:
    """Of one class."""

    architecture: str = ""
    nics: tuple[Nics, ...] = ()
    disks: tuple[Disks, ...] = ()
    firmware: dict[str, str] = field(default_factory=dict)
    """`bios`, `bmc` or a board (PSID) -> the least version."""
    skip: tuple[str, ...] = ()
    """Tests of active/ that are not for this class."""
    floors: dict[str, float] = field(default_factory=dict)
    """The class's own, instead of those of floors.py."""
    thresholds: dict[str, float] = field(default_factory=dict)
    """The class's own, instead of those of thresholds.py."""
    skip_checks: tuple[str, ...] = ()
    """Checks that are not for this class."""

    @property
    def keys(self) -> list[str]:
        """What the class says, by the names that it has in the inventory."""
        return [name for name in (*_READERS, "thresholds") if getattr(self, name)]


def read_hardware(told: dict[str, Any]) -> tuple[Hardware, list[str]]:
    """The class, and what of it is not of its form or not known here: `class.nics`, `class.thresholds.x`. Never
    raises."""
    fields: dict[str, Any] = {}
    strange = []
    for name, read in _READERS.items():
        if name in told:
            fields[name] = read(told[name])
            strange += [f"class.{name}"] * (fields[name] is None)
    strange += [f"class.{name}"[:60] for name in told if name not in _KNOWN]
    parts: dict[str, Any] = {"active": {}, "thresholds": {}, "skip_checks": []}
    for name, empty in parts.items():
        parts[name] = told.get(name, empty)
        if not isinstance(parts[name], type(empty)):
            parts[name], strange = empty, [*strange, f"class.{name}"]
    limits = understood(parts["thresholds"])
    strange += [f"class.thresholds.{name}"[:60] for name in parts["thresholds"] if name not in limits]
    skip_checks = [name for name in parts["skip_checks"] if name in CHECKS and name != ALWAYS]
    strange += [f"class.skip_checks.{name}"[:60] for name in parts["skip_checks"] if name not in skip_checks]
    skip, floors, unknown = _active(parts["active"])
    usable = {name: value for name, value in fields.items() if value is not None}
    usable |= {"thresholds": limits, "skip_checks": tuple(skip_checks), "skip": skip, "floors": floors}
    return Hardware(**usable), [*strange, *unknown]


def _active(active: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, float], list[str]]:
    """Tests that are skipped, floors, and what is not of its form or not known."""
    strange = [f"class.active.{name}"[:60] for name in active if name not in ("skip", "floors")]
    skip, floors = active.get("skip", []), active.get("floors", {})
    if not _is_list(skip, str):
        skip, strange = [], [*strange, "class.active.skip"]
    if not isinstance(floors, dict):
        floors, strange = {}, [*strange, "class.active.floors"]
    good = {name: value for name, value in floors.items() if name in FLOORS and _is_positive(value)}
    strange += [f"class.active.floors.{name}"[:60] for name in floors if name not in good]
    return tuple(skip), good, strange


def _is_list(value: Any, kind: type) -> bool:
    return isinstance(value, list) and all(isinstance(item, kind) for item in value)


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < 2**53


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**63


def _architecture(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _nics(value: Any) -> tuple[Nics, ...] | None:
    if not _is_list(value, dict):
        return None
    found = tuple(Nics(nic.get("model"), nic.get("count"), nic.get("speed_mbps")) for nic in value)
    whole = all(isinstance(nic.model, str) and _is_count(nic.count) and _is_count(nic.speed_mbps) for nic in found)
    return found if whole else None


def _disks(value: Any) -> tuple[Disks, ...] | None:
    if not _is_list(value, dict):
        return None
    found = tuple(Disks(disk.get("count"), disk.get("size_bytes"), disk.get("model", "")) for disk in value)
    whole = all(
        _is_count(disk.count)
        and isinstance(disk.model, str)
        and (disk.size_bytes is None or _is_count(disk.size_bytes))
        for disk in found
    )
    return found if whole else None


def _firmware(value: Any) -> dict[str, str] | None:
    whole = isinstance(value, dict) and all(isinstance(text, str) for pair in value.items() for text in pair)
    return value if whole else None


_READERS = {"architecture": _architecture, "nics": _nics, "disks": _disks, "firmware": _firmware}
_KNOWN = (*_READERS, "name", "memory_bytes", "gpus", "active", "thresholds", "skip_checks")
"""Some are read by `expected.with_class`, or for people."""
