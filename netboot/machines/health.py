"""What a class of machines should have: what the inventory declares, and the health checks on the machine judge by."""

from typing import Annotated

from pydantic import Field

from images.values.strict import Strict
from images.values.types import Matching

Count = Annotated[int, Field(ge=0, lt=2**31)]
Words = Annotated[str, Matching(r"[ -~]{1,64}", "must be 1 to 64 characters of ASCII, on one line")]
Threshold = Annotated[
    str, Matching(r"[a-z][a-z0-9_]{0,39}", "is no threshold: docs/health.md#thresholds has their names")
]
Tolerated = Annotated[float, Field(ge=0, lt=2**31)]


class Health(Strict):
    """Expectations; what is left out (None, empty) is not judged. docs/health.md says which check uses which."""

    gpus: Count | None = None
    """How many GPUs."""
    gpu_model: Words | None = None
    """Part of the product's name, like `H100`; case does not matter."""
    nvlinks: Count | None = None
    """Active ones, of each GPU."""
    nvswitches: Count | None = None
    """How many NVSwitches."""
    ib_ports: Count | None = None
    """How many InfiniBand ports, active."""
    ib_rate_gbps: Annotated[float, Field(ge=0, le=100_000)] | None = None
    """Gbit/s of each of them, at least."""
    roce_ports: Count | None = None
    """How many RoCE ports, active."""
    nic_firmware: Annotated[dict[Words, Words], Field(max_length=16)] = Field(default_factory=dict)
    """Board (the card's PSID) → version."""
    nvme: Count | None = None
    """How many NVMe disks."""
    memory_gib: Annotated[float, Field(ge=0, le=1_000_000)] | None = None
    """GiB of memory, at least."""
    cpus: Count | None = None
    """How many logical processors."""
    pcie_width: Annotated[int, Field(ge=1, le=32)] | None = None
    """Lanes of each GPU's link."""
    pcie_gts: Annotated[float, Field(gt=0, le=1_000)] | None = None
    """GT/s of the slots of network cards and disks; a card that can less is judged by what it can."""
    hugepages_2m: Count | None = None
    """How many huge pages of 2 MiB."""
    hugepages_1g: Count | None = None
    """How many huge pages of 1 GiB."""
    ports: Annotated[tuple[Words, ...], Field(max_length=64)] = ()
    """Ports that must be up: `mlx5_0/1` of an RDMA card, or an interface."""
    thresholds: Annotated[dict[Threshold, Tolerated], Field(max_length=64)] = Field(default_factory=dict)
    """How much of what is tolerated, by the names of docs/health.md; those that an image does not know it says."""
    clock_ms: Count | None = None
    """How far the clock may be off."""


def expected_of(profile: Health, machine: Health) -> Health:
    """A machine's own expectations over those of its profile, key by key; what it does not say is its profile's."""
    overrides = {name: value for name in Health.model_fields if (value := getattr(machine, name)) not in (None, {}, ())}
    return profile.model_copy(update=overrides)
