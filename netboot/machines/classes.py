"""Classes of machines: what hardware each machine of a class has, and origins for it, declared once.

The build's gate *memory* judges images by a class; a machine keeps its document as `/run/netboot/class.json`.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from images.values.durations import duration
from images.values.kernel_arguments import ProfileArgument
from images.values.strict import Strict
from images.values.types import Architecture, Matching, Name
from netboot.addresses import MachineUrl
from netboot.machines.boot_limit import Boots
from netboot.machines.deadlines import Deadlines
from netboot.machines.health import Count, Threshold, Tolerated, Words
from netboot.machines.remedies import Remedies

Gigabytes = Annotated[float, Field(gt=0, le=16_000_000)]
Some = Annotated[Count, Field(ge=1)]
Version = Annotated[
    str, Matching(r"\d{1,9}(\.\d{1,9}){0,7}", 'must be numbers with dots between them, like "28.39.2048", in quotes')
]
"""Versions of this form have an order, so that one can be the least."""
MIB, GIB, GB = 2**20, 2**30, 10**9


class Gpus(Strict):
    """All GPUs of a machine."""

    count: Count
    """How many."""
    model: Words | None = None
    """Part of the product's name, like `H100`."""


class Nics(Strict):
    """Network cards of one model: so many ports, each of this speed."""

    model: Words
    """The product's name, like `ConnectX-7`."""
    count: Some
    """How many ports, of all cards."""
    speed_gbps: Annotated[float, Field(gt=0, le=100_000)]
    """Gbit/s of each port."""
    name: Words | None = None
    """What the operator calls them: `compute`, `storage`."""

    def document(self) -> dict[str, Any]:
        """As a machine keeps it."""
        fields = self.model_dump(exclude_none=True, exclude={"speed_gbps"})
        return {**fields, "speed_mbps": round(self.speed_gbps * 1000)}


class Disks(Strict):
    """Disks of one kind."""

    count: Some
    """How many."""
    size_gb: Gigabytes | None = None
    """As it is printed on them, in 10⁹ bytes."""
    model: Words | None = None
    """Part of the product's name."""

    def document(self) -> dict[str, Any]:
        """As a machine keeps it."""
        fields = self.model_dump(exclude_none=True, exclude={"size_gb"})
        return fields if self.size_gb is None else {**fields, "size_bytes": round(self.size_gb * GB)}


class Active(Strict):
    """For the tests that load a machine before it takes work, where its profile asks for them: docs/health.md."""

    skip: Annotated[tuple[Words, ...], Field(max_length=16)] = ()
    """Not for this class."""
    floors: Annotated[dict[Threshold, Annotated[float, Field(gt=0, lt=2**31)]], Field(max_length=16)] = Field(
        default_factory=dict
    )
    """How much must be reached; those that an image does not know it says."""


class Gate(Strict):
    """When nodes of a class may take work: docs/gate.md."""

    required: Annotated[tuple[Words, ...], Field(max_length=64)] = ()
    """Health checks whose results must be in, and no worse than a warning, before the gate opens."""
    on_failure: Literal["taint", "report"] = "taint"
    """Once it is open. `report`: it stays open, for schedulers of jobs replace a node that is tainted."""


def _seconds(value: object) -> object:
    try:
        return duration(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("must be a duration like 90s, 15m or 2h") from None


Wait = Annotated[int, Field(ge=1, le=86_400, strict=True), BeforeValidator(_seconds)]
Namespace = Annotated[str, Matching(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "must be the name of a namespace")]


class Vetoes(Strict):
    """Which Pods may keep a node of a class from being drained, and for how long at most: docs/drain.md."""

    namespaces: Annotated[tuple[Namespace, ...], Field(min_length=1, max_length=64)]
    """Those whose Pods may."""
    max_wait: Wait
    """Seconds; `90s`, `15m`, `2h` in files."""


class Class(Strict):
    """Hardware that many machines have. What is left out is not known, and judged by nobody."""

    name: Name
    """By which machines name it."""
    architecture: Architecture = "amd64"
    """Of its processors."""
    memory_gib: Gigabytes | None = None
    """As it is installed: the kernel counts a little less."""
    gpus: Gpus | None = None
    nics: Annotated[tuple[Nics, ...], Field(max_length=16)] = ()
    """Its network cards, by their models."""
    disks: Annotated[tuple[Disks, ...], Field(max_length=16)] = ()
    """Its disks, by their kinds."""
    firmware: Annotated[dict[Words, Version], Field(max_length=16)] = Field(default_factory=dict)
    """Of what (`bios`, `bmc`, a card's PSID) → the least version that will do."""
    origins: Annotated[tuple[MachineUrl, ...], Field(max_length=8)] = Field((), exclude_if=lambda origins: not origins)
    """File servers and caches for these machines, tried after the rack's. Not written where there are none."""
    kernel_arguments: Annotated[
        tuple[ProfileArgument, ...], Field(max_length=32, exclude_if=lambda said: not said)
    ] = ()
    """What its hardware wants: cards of the network, a console. A profile's of the same names take their place."""
    active: Active | None = Field(None, exclude_if=lambda active: active is None)
    """Not written where there is none: versions before it read that."""
    thresholds: Annotated[dict[Threshold, Tolerated], Field(max_length=64, exclude_if=lambda said: not said)] = Field(
        default_factory=dict
    )
    """How much of what is tolerated, where neither machine nor profile says it. Not written where there is none."""
    skip_checks: Annotated[tuple[Words, ...], Field(max_length=64, exclude_if=lambda said: not said)] = ()
    """Health checks that are not for this class. Not written where there is none."""
    deadlines: Deadlines = Field(default_factory=dict, exclude_if=lambda said: not said)
    """How long its boots may stay at a phase, where that is not the default. Not written where there are none."""
    gate: Gate = Field(Gate(), exclude_if=lambda gate: gate == Gate())
    """When its nodes may take work. Not written where nothing is said."""
    boot_limit: Boots | None = Field(None, exclude_if=lambda said: said is None)
    """How many boots may come before one is Ready, where that is not the default. Not written where there is none."""
    vetoes: Vetoes | None = Field(None, exclude_if=lambda said: said is None)
    """Whose Pods may put a drain off. Not written where there are none."""
    remedies: Remedies = Field(Remedies(), exclude_if=lambda remedies: remedies == Remedies())
    """What is done about one that is not well. Not written where nothing is said."""

    @property
    def memory_mib(self) -> int | None:
        """MiB; None: not declared."""
        return int(self.memory_gib * GIB) // MIB if self.memory_gib is not None else None

    def document(self) -> dict[str, Any]:
        """The class as a machine keeps it, in plain units: bytes, Mbit/s. What is not declared is not there."""
        found: dict[str, Any] = {"name": self.name, "architecture": self.architecture}
        if self.memory_gib is not None:
            found["memory_bytes"] = int(self.memory_gib * GIB)
        if self.gpus is not None:
            found["gpus"] = self.gpus.model_dump(exclude_none=True)
        if self.nics:
            found["nics"] = [nic.document() for nic in self.nics]
        if self.disks:
            found["disks"] = [disk.document() for disk in self.disks]
        if self.firmware:
            found["firmware"] = dict(self.firmware)
        if self.active is not None:
            found["active"] = {"skip": list(self.active.skip), "floors": dict(self.active.floors)}
        if self.thresholds:
            found["thresholds"] = dict(self.thresholds)
        if self.skip_checks:
            found["skip_checks"] = list(self.skip_checks)
        return found
